//! SIGTRAP belongs to the program, although the engine stops it by `int3`.
//!
//! **The problem.** The kernel *forces* the signal of a breakpoint or a single step: if the thread
//! blocks SIGTRAP or the process ignores it, the kernel unblocks it and resets the action to the
//! default. A handler for SIGTRAP runs with SIGTRAP blocked, so the engine's first stop in the
//! handler would remove the program's handler.
//!
//! **The idea.** The host keeps its own copy of what the program has set, and makes the kernel's
//! state equal to it before the program can see a difference:
//!
//! - Whether a thread blocks SIGTRAP is learned from its creation, its `rt_sigprocmask` calls and
//!   the frames of its handlers. The host sets the bit again after each stop of the engine.
//! - The action of a process is learned from its `rt_sigaction` calls. The host restores it before
//!   a delivery, before the next `rt_sigaction` call, and in a child that is released.
//!
//! Only programs that block SIGTRAP or have an action for it pay for this.
//!
//! **Kinds of stops.** At a stop of the engine the thread stands behind an `int3` in the code
//! cache, and its context holds an exit number. A SIGTRAP that was sent may take the place of that
//! stop's signal in the kernel's queue; the host keeps it and delivers it next. A program that sets
//! the trap flag stops behind each instruction of its translation; the host delivers the signal
//! only at the start of an instruction of the program. **Leaves out** single steps within a system
//! call, and the signal masks in `/proc/PID/status`.

use super::state::Host;
use super::task::ProgramThread;
use super::task::Signal;
use crate::code::state_map::StateMapEntry;
use crate::code::superblock::Steps;
use crate::image::Image;
use crate::target::inject::Injector;
use crate::target::layout::{context, CONTEXTS};
use crate::target::memory;
use crate::target::ptrace;
use crate::target::ptrace::Registers;
use crate::target::signal_mask;
use crate::target::trap::{code, is_step, set_action, TrapAction, MASK_BYTES, TRAP};
use crate::translate::Translator;

const TRAP_FLAG: u64 = 1 << 8;
const INT3: u8 = 0xcc;
const SA_RESETHAND: u64 = 0x8000_0000;

/// Address of a part of the context that generated code uses within one instruction only, so it is
/// free at boundaries and at stops.
fn scratch(context_index: usize) -> u64 {
    CONTEXTS + context_index as u64 * context::BYTES + u64::from(context::VECTOR)
}

impl Image {
    /// Whether `rip` is behind an `int3` of generated code.
    fn is_behind_stop(&self, tid: i32, rip: u64) -> bool {
        let mut byte = [0u8];
        let before = rip.wrapping_sub(1);
        self.translator.cache.contains(before)
            && memory::read_target(tid, before, &mut byte) == 1
            && byte[0] == INT3
    }

    /// Whether a thread that steps itself has reached the start of an instruction of the program,
    /// or the next iteration of a repeated one. The first trap comes one instruction after the one
    /// that sets the trap flag.
    fn has_stepped(&mut self, registers: &Registers) -> bool {
        let translator = &mut self.translator;
        let Some((entry, exact)) = translator.boundary(registers.rip) else { return false };
        // The thread is inside a translation: only a repeated instruction has boundaries there.
        if !exact {
            return self.repeating(registers, &entry);
        }
        let block = &translator.blocks[entry.block as usize];
        // If the instruction before this one has just set the trap flag, natively no trap follows
        // it.
        let Some(before) = u32::from(entry.index).checked_sub(1) else { return true };
        let ip = match translator.instructions.get((block.first + before) as usize) {
            Some(stepped) => block.ip + u64::from(stepped.offset),
            None => return true,
        };
        let (bytes, length) = translator.reader.fetch(ip);
        let instruction = iced_x86::Decoder::with_ip(64, &bytes[..length], ip, 0).decode();
        !matches!(instruction.mnemonic(), iced_x86::Mnemonic::Popf | iced_x86::Mnemonic::Popfq)
    }
}

impl Translator {
    /// The state at an address of the code cache, and whether an instruction's translation begins
    /// there. A direct jump in the middle of a superblock has no code, so its entry and the next
    /// one have one position. A program that steps itself must see the jump first.
    pub(crate) fn boundary(&self, rip: u64) -> Option<(StateMapEntry, bool)> {
        let (last, exact) = self.cache.state_at(rip)?;
        if !exact || self.steps == Steps::Never {
            return Some((last, exact));
        }
        let zone =
            self.cache.zones.iter().find(|zone| rip >= zone.address && rip < zone.address + zone.hot_used)?;
        let first = zone.state_map.partition_point(|entry| entry.at < last.at);
        Some((zone.state_map.get(first)?, exact))
    }
}

impl Host<'_> {
    /// Answers a thread that SIGTRAP has stopped.
    pub(crate) fn trapped(&mut self, tid: i32) {
        let ProgramThread { context, blocks_trap, .. } = self.threads[&tid];
        let exit = self.image_mut(tid).read32(context, context::EXIT);
        if self.trap_actions || blocks_trap {
            return self.examine_trap(tid, context, exit);
        }
        match exit {
            0 => self.signal(tid, libc::SIGTRAP),
            exit => self.left_cache(tid, context, exit),
        }
    }

    /// Answers a thread that SIGTRAP has stopped, in a program that uses SIGTRAP itself.
    fn examine_trap(&mut self, tid: i32, context: usize, exit: u32) {
        let info = ptrace::signal_info(tid);
        let Some(registers) = ptrace::registers(tid) else { return };
        // The program has set the trap flag, so this is its own step.
        if is_step(libc::SIGTRAP, &info) && registers.eflags & TRAP_FLAG != 0 {
            return self.stepped_itself(tid, &registers);
        }
        let was_sent = code(&info) <= 0;
        let hidden = self.threads[&tid].hides_trap;
        // This is no stop of the engine, so the signal is the program's.
        if exit == 0 || !self.image_mut(tid).is_behind_stop(tid, registers.rip) {
            // The program blocks the signal and the kernel does not know it, so the signal waits.
            if was_sent && hidden {
                self.thread(tid).held.push_back((libc::SIGTRAP, info));
                return ptrace::resume(tid, 0);
            }
            return self.signal(tid, libc::SIGTRAP);
        }
        self.block_trap_again(tid);
        // The sent signal took the place of the stop's own signal, so the host delivers it next.
        if was_sent {
            self.thread(tid).held.push_back((libc::SIGTRAP, info));
        }
        // Before the thread runs on, this gives signals that are held back to the kernel.
        self.left_cache(tid, context, exit);
    }

    /// Answers a trap of a program that has set the trap flag.
    fn stepped_itself(&mut self, tid: i32, registers: &Registers) {
        let image = self.image_mut(tid);
        image.translator.steps = Steps::Itself;
        if !image.translator.cache.contains(registers.rip) || image.has_stepped(registers) {
            self.signal(tid, libc::SIGTRAP);
        } else {
            ptrace::resume(tid, 0);
        }
    }

    /// Blocks the signal again: a stop of the engine has unblocked it, and may have reset the
    /// action.
    pub(crate) fn block_trap_again(&mut self, tid: i32) {
        let ProgramThread { blocks_trap, hides_trap, process, .. } = self.threads[&tid];
        if !blocks_trap || hides_trap {
            return;
        }
        ptrace::set_signal_mask(tid, ptrace::signal_mask(tid) | TRAP);
        if let Some(living) = self.living.get_mut(&process) {
            living.trap.lost = true;
        }
    }

    /// The action that the thread's process has set for the signal.
    pub(crate) fn trap_action(&self, tid: i32) -> TrapAction {
        self.living.get(&self.threads[&tid].process).map_or_else(TrapAction::default, |living| living.trap)
    }

    /// Notes a process's new action for the signal.
    pub(crate) fn set_trap_action(&mut self, process: i32, action: TrapAction) {
        self.trap_actions |= !action.is_default();
        if let Some(living) = self.living.get_mut(&process) {
            living.trap = action;
        }
    }

    /// Prepares an `rt_sigprocmask` call. If the kernel must not know that SIGTRAP is blocked, the
    /// host performs the call itself and returns its result.
    pub(crate) fn mask_changes(&mut self, tid: i32, registers: &Registers) -> Option<i64> {
        if self.must_hide_blocks(tid) {
            return Some(self.change_mask(tid, registers));
        }
        // The kernel performs the call itself, so it must have the true mask first.
        self.show_trap_mask(tid);
        let set = read_set(tid, registers.rsi).filter(|_| registers.r10 == MASK_BYTES);
        let former = if self.thread(tid).blocks_trap { TRAP } else { 0 };
        if let Some(mask) = set.and_then(|set| changed_mask(registers.rdi, former, set)) {
            self.thread(tid).blocks_trap = mask & TRAP != 0;
        }
        None
    }

    /// Performs `rt_sigprocmask` for a thread, without telling the kernel about SIGTRAP.
    fn change_mask(&mut self, tid: i32, registers: &Registers) -> i64 {
        let ProgramThread { blocks_trap, .. } = self.threads[&tid];
        // The mask that the program knows: the kernel's, with the program's own bit.
        let own = if blocks_trap { TRAP } else { 0 };
        let former = ptrace::signal_mask(tid) & !TRAP | own;
        if registers.r10 != MASK_BYTES {
            return -i64::from(libc::EINVAL);
        }
        // The checks follow in the kernel's order, so the program gets the kernel's error.
        if registers.rsi != 0 {
            let Some(set) = read_set(tid, registers.rsi) else { return -i64::from(libc::EFAULT) };
            let Some(mask) = changed_mask(registers.rdi, former, set) else {
                return -i64::from(libc::EINVAL);
            };
            ptrace::set_signal_mask(tid, mask & !TRAP);
            let blocks_trap = mask & TRAP != 0;
            let thread = self.thread(tid);
            (thread.blocks_trap, thread.hides_trap) = (blocks_trap, blocks_trap);
        }
        let is_written =
            registers.rdx == 0 || memory::write_target(tid, registers.rdx, &former.to_le_bytes()) == 8;
        if is_written {
            0
        } else {
            -i64::from(libc::EFAULT)
        }
    }

    /// Whether the host must hide from the kernel that a thread blocks the signal. Otherwise a stop
    /// of the engine would reset the action of the whole process, and other threads rely on it.
    fn must_hide_blocks(&mut self, tid: i32) -> bool {
        let image = self.threads[&tid].image;
        self.trap_actions && self.image_of(image).threads > 1 && self.trap_action(tid).is_caught()
    }

    /// Reads from the kernel whether a stopped thread blocks the signal.
    pub(crate) fn note_trap_mask(&mut self, tid: i32) {
        let blocks_trap = ptrace::signal_mask(tid) & TRAP != 0;
        self.thread(tid).blocks_trap = blocks_trap;
    }

    /// Hides from the kernel that a thread blocks the signal, in a handler or since its creation.
    /// Otherwise a stop of the engine in that thread would reset the action of the whole process,
    /// perhaps just before another thread takes the signal.
    pub(crate) fn hide_trap_mask(&mut self, tid: i32) {
        if self.threads[&tid].blocks_trap && self.must_hide_blocks(tid) {
            ptrace::set_signal_mask(tid, ptrace::signal_mask(tid) & !TRAP);
            self.thread(tid).hides_trap = true;
        }
    }

    /// Whether the host hides from the kernel that a thread blocks the signal.
    pub(crate) fn hides_trap(&self, tid: i32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| thread.hides_trap)
    }

    /// Sets the hidden bit in the kernel's mask again, before the kernel saves the mask or shows it
    /// to the program.
    pub(crate) fn show_trap_mask(&mut self, tid: i32) {
        if std::mem::take(&mut self.thread(tid).hides_trap) {
            ptrace::set_signal_mask(tid, ptrace::signal_mask(tid) | TRAP);
        }
    }

    /// The next signal that was held back and may be delivered.
    pub(crate) fn next_held(&mut self, tid: i32) -> Option<Signal> {
        let thread = self.thread(tid);
        let hidden = thread.hides_trap;
        let may_come = |held: &Signal| !hidden || held.0 != libc::SIGTRAP;
        // The kernel delivers signals of a thread before signals of its process.
        let to_thread = |held: &Signal| held.0 == libc::SIGTRAP && code(&held.1) == libc::SI_TKILL;
        let first = thread.held.iter().position(may_come)?;
        // Among SIGTRAPs, one that was sent to the thread goes first.
        let sooner = thread.held.iter().position(|held| may_come(held) && to_thread(held));
        let next = sooner.filter(|_| thread.held[first].0 == libc::SIGTRAP).unwrap_or(first);
        thread.held.remove(next)
    }

    /// The SIGTRAP that ended the last step, if a process sent it; `None` if it is the step's own
    /// signal.
    pub(crate) fn sent_trap(&self, tid: i32) -> Option<Signal> {
        let may_be = self.trap_actions || self.threads.get(&tid).is_some_and(|thread| thread.blocks_trap);
        let info = may_be.then(|| ptrace::signal_info(tid))?;
        (code(&info) <= 0).then_some((libc::SIGTRAP, info))
    }

    /// Resets the process's action for SIGTRAP, as the kernel does when an instruction raises a
    /// signal that its thread blocks. The kernel cannot do this if the host hides the block.
    pub(crate) fn reset_trap_action(&mut self, tid: i32) {
        let ProgramThread { context, hides_trap, .. } = self.threads[&tid];
        let gadget = self.image_mut(tid).gadget;
        if !hides_trap {
            return;
        }
        let mask = signal_mask::block_for_calls(tid);
        if let Ok(mut injector) = Injector::at(tid, gadget) {
            set_action(&mut injector, scratch(context), &TrapAction::default());
            injector.finish_exactly();
        }
        signal_mask::unblock(tid, mask);
    }

    /// Prepares an `rt_sigaction` call for SIGTRAP: restores the program's action, which the call
    /// returns, and notes the new one.
    pub(crate) fn trap_action_changes(&mut self, tid: i32, registers: &Registers) {
        self.put_back_trap_action(tid);
        let mut bytes = [0u8; 32];
        // A call that only asks, or that the kernel will refuse, changes no action.
        if registers.rsi == 0
            || registers.r10 != MASK_BYTES
            || memory::read_target(tid, registers.rsi, &mut bytes) != bytes.len()
        {
            return;
        }
        let word = |index: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * index + byte]));
        let action = TrapAction { words: std::array::from_fn(word), lost: false };
        let process = self.threads[&tid].process;
        self.set_trap_action(process, action);
    }

    /// Restores the process's action in the kernel, if a stop of the engine has reset it.
    pub(crate) fn put_back_trap_action(&mut self, tid: i32) {
        let action = self.trap_action(tid);
        if !action.must_be_put_back() {
            return;
        }
        let ProgramThread { context, process, .. } = self.threads[&tid];
        let gadget = self.image_mut(tid).gadget;
        let mask = signal_mask::block_for_calls(tid);
        if let Ok(mut injector) = Injector::at(tid, gadget) {
            set_action(&mut injector, scratch(context), &action);
            injector.finish_exactly();
        }
        signal_mask::unblock(tid, mask);
        if let Some(living) = self.living.get_mut(&process) {
            living.trap.lost = false;
        }
    }

    /// Restores the action in a child of `parent` that is about to be released, if a stop of the
    /// engine has reset it.
    pub(crate) fn hand_trap_action_down(&self, tid: i32, parent: i32) {
        let action = self.trap_action(parent);
        if !action.must_be_put_back() {
            return;
        }
        let ProgramThread { context, image, .. } = self.threads[&parent];
        if let Ok(mut injector) = Injector::at(tid, self.images[&image].gadget) {
            set_action(&mut injector, scratch(context), &action);
            injector.finish_exactly();
        }
    }

    /// Notes that the signal was delivered to its handler.
    pub(crate) fn trap_delivered(&mut self, tid: i32) {
        let action = self.trap_action(tid);
        if action.words[1] & SA_RESETHAND != 0 {
            let process = self.threads[&tid].process;
            self.set_trap_action(process, TrapAction::default());
        }
    }
}

/// A set of signals in the program's memory.
fn read_set(tid: i32, at: u64) -> Option<u64> {
    let mut set = [0u8; MASK_BYTES as usize];
    (at != 0 && memory::read_target(tid, at, &mut set) == set.len()).then(|| u64::from_le_bytes(set))
}

/// The mask that `rt_sigprocmask` computes; `None` if it refuses `how`.
fn changed_mask(how: u64, former: u64, set: u64) -> Option<u64> {
    let unblockable = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
    let mask = match how as i32 {
        libc::SIG_BLOCK => former | set,
        libc::SIG_UNBLOCK => former & !set,
        libc::SIG_SETMASK => set,
        _ => return None,
    };
    Some(mask & !unblockable)
}
