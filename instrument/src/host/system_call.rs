//! System calls that the engine must see: those that change signals, mappings, `fs` and `gs`,
//! credentials or tasks, and those that would show the engine to the program.
//!
//! The thread stops before such a call, in front of the `nop` that precedes the `syscall`:
//!
//! ```text
//!   int3 │ nop │ syscall │ …
//!        ▲     ▲         └ skip: the host has performed the call itself
//!        │     └ step: the host executes the call and looks at its result
//!        └ stop: going on from here executes the call
//! ```

use super::affinity;
use super::state::Host;
use super::task::StepOutcome;
use crate::code::fragment::EXIT_SYSTEM_CALL;
use crate::image::number;
use crate::store::kept::KeptTranslations;
use crate::target::credentials;
use crate::target::layout::context;
use crate::target::memory;
use crate::target::ptrace;
use crate::target::ptrace::Registers;
use crate::target::signal_mask;
use crate::target::trap;

const ARCH_SET_GS: u64 = 0x1001;
const ARCH_SET_FS: u64 = 0x1002;
/// Lengths of the instructions behind the stop: the `nop` and the `syscall`.
pub(super) const NOP_BYTES: u64 = 1;
const CALL_BYTES: u64 = 2;
/// Offset of the interrupted address in a signal's frame, from the stack pointer at `rt_sigreturn`
/// (`struct ucontext`).
pub(crate) const FRAME_RIP: u64 = 168;
/// Offset of the signal mask that the return restores, in the same frame.
const FRAME_MASK: u64 = 296;

impl Host<'_> {
    /// Answers the stop before a special system call and lets the thread go on.
    pub(crate) fn system_call(&mut self, tid: i32) {
        let Some(registers) = ptrace::registers(tid) else { return };
        self.stats.system_calls += 1;
        if self.answers_checker(tid, &registers) {
            return;
        }
        if let Some(result) = self.shown_result(tid, &registers) {
            return self.skip(tid, registers, result);
        }
        if self.waits_shown(tid, &registers) || self.takes_shown_numbers(tid, &registers) {
            return;
        }
        match registers.rax & 0xffff_ffff {
            number::SIGACTION => return self.set_handler(tid, registers),
            number::SIGRETURN => return self.signal_return(tid, registers),
            number::SIGPROCMASK => {
                if let Some(result) = self.mask_changes(tid, &registers) {
                    return self.skip(tid, registers, result);
                }
            }
            number::RSEQ => {
                let result = self.registers_area(tid, &registers);
                return self.skip(tid, registers, result.unwrap_or(-i64::from(libc::ENOSYS)));
            }
            number::ARCH_PRCTL if registers.rdi == ARCH_SET_FS => {
                let context = self.threads[&tid].context;
                self.image_mut(tid).write64(context, context::FS_BASE, registers.rsi);
            }
            number::ARCH_PRCTL if registers.rdi == ARCH_SET_GS => {
                self.image_mut(tid).translator.refusal =
                    Some("it sets the base of the gs register, which lightfoot needs itself".into());
            }
            number::CLONE | number::CLONE3 => self.stays_traced(tid, registers),
            number::PRCTL | number::SECCOMP => self.may_filter_calls(tid, &registers),
            number::PTRACE if self.children.are_counted() => return self.traces(tid, &registers),
            number::SET_AFFINITY => self.spread(),
            number::OPEN | number::OPENAT | number::OPENAT2 => {
                let is_first = registers.rax & 0xffff_ffff == number::OPEN;
                let path = if is_first { registers.rdi } else { registers.rsi };
                if self.opens_shown(tid, &registers, path) {
                    return;
                }
                self.opens(tid, path);
            }
            number::GET_AFFINITY => {
                if let Some(result) = self.get_affinity(tid, &registers) {
                    return self.skip(tid, registers, result);
                }
            }
            // Without `MAP_FIXED` the kernel chooses free addresses, so no mapping is replaced.
            number::MMAP if registers.r10 & libc::MAP_FIXED as u64 == 0 => {}
            number::MMAP | number::MUNMAP | number::MPROTECT | number::PKEY_MPROTECT => {
                self.image_mut(tid).memory_changes(registers.rdi, registers.rsi);
                if self.keeps_own(tid, &registers) {
                    return;
                }
            }
            number::MREMAP => {
                self.image_mut(tid).memory_changes(registers.rdi, registers.rsi);
                if registers.r10 & libc::MREMAP_FIXED as u64 != 0 {
                    self.image_mut(tid).memory_changes(registers.r8, registers.rdx);
                }
                if self.keeps_own(tid, &registers) {
                    return;
                }
            }
            // The table of calls that stop has an entry for each value of the lowest 16 bits.
            _ if credentials::CALLS.contains(&(registers.rax & 0xffff)) => {
                self.image_mut(tid).kept.iter_mut().for_each(KeptTranslations::credentials_change);
            }
            _ => {}
        }
        if !self.check_refusal(tid) {
            self.go_on(tid);
        }
    }

    /// Answers the opening of a file. If the file shows the processors of a task, the binding to
    /// one processor must end first.
    fn opens(&mut self, tid: i32, path: u64) {
        let mut bytes = [0u8; 64];
        let got = memory::read_target(tid, path, &mut bytes);
        if names_a_status(&bytes[..got]) {
            self.spread();
        }
        self.opens_left = self.opens_left.saturating_sub(1);
        if self.opens_left == 0 {
            self.watch_opens();
        }
    }

    /// Answers `sched_getaffinity` with the mask that the program would have natively; `None` if
    /// the kernel's answer is right.
    fn get_affinity(&self, tid: i32, registers: &Registers) -> Option<i64> {
        let own = registers.rdi == 0 || self.threads.contains_key(&(registers.rdi as i32));
        // Only threads of the run are bound, so only their masks differ from the native ones.
        let mut bytes = self.binding.hidden().filter(|_| own)?.bytes();
        // The kernel refuses a buffer that is too short or not aligned, so the kernel may answer.
        if (registers.rsi as usize) < possible().div_ceil(8) || !registers.rsi.is_multiple_of(8) {
            return None;
        }
        // The kernel writes whole sets, which have bits for more processors than this machine has.
        let length = affinity::set_bytes().min(registers.rsi as usize);
        bytes.resize(length, 0);
        let written = memory::write_target(tid, registers.rdx, &bytes);
        Some(if written == length { length as i64 } else { -i64::from(libc::EFAULT) })
    }

    /// Skips the system call; the program sees `result` as the call's result.
    pub(crate) fn skip(&mut self, tid: i32, registers: Registers, result: i64) {
        let changed = Registers {
            rax: result as u64,
            r11: registers.eflags,
            rip: registers.rip + NOP_BYTES + CALL_BYTES,
            orig_rax: u64::MAX,
            ..registers
        };
        ptrace::set_registers(tid, &changed);
        self.go_on(tid);
    }

    /// Answers the return from a handler, which must lead to a translation. The host writes the
    /// translation's address into the signal's frame, which is dead after the call. If that is
    /// impossible, the host executes the call by a step and then redirects the thread from the
    /// program's own address.
    fn signal_return(&mut self, tid: i32, registers: Registers) {
        self.frame_gives_mask(tid, registers.rsp);
        if self.leads_to_translation(tid, registers.rsp) {
            // The call sets the frame's mask; until then no signal may arrive.
            ptrace::set_signal_mask(tid, !signal_mask::FAULTS);
            if !self.check_refusal(tid) {
                ptrace::resume(tid, 0);
            }
            return;
        }
        ptrace::set_registers(tid, &Registers { rip: registers.rip + NOP_BYTES, ..registers });
        match self.step(tid, 0) {
            StepOutcome::Done => {
                self.block_trap_again(tid);
                self.redirect_program(tid);
                self.go_on(tid);
            }
            other => self.not_made(tid, registers, other),
        }
    }

    /// Notes whether the mask in a signal's frame blocks SIGTRAP, if the program uses SIGTRAP.
    fn frame_gives_mask(&mut self, tid: i32, frame: u64) {
        let mut word = [0u8; 8];
        let at = frame.wrapping_add(FRAME_MASK);
        if self.trap_actions && memory::read_target(tid, at, &mut word) == word.len() {
            let thread = self.thread(tid);
            thread.blocks_trap = u64::from_le_bytes(word) & trap::TRAP != 0;
            thread.hides_trap = false;
        }
    }

    /// Makes a signal's frame return to the translation of its address. Returns whether it does.
    fn leads_to_translation(&mut self, tid: i32, frame: u64) -> bool {
        let (mut word, at) = ([0u8; 8], frame.wrapping_add(FRAME_RIP));
        // A signal that is held back must be delivered at the program's own address.
        if !self.threads[&tid].held.is_empty() || memory::read_target(tid, at, &mut word) != word.len() {
            return false;
        }
        let pc = u64::from_le_bytes(word);
        let image = self.image_mut(tid);
        if image.translator.cache.contains(pc) {
            return false;
        }
        let Some(fragment_index) = image.translator.fragment(pc, &mut image.maps) else { return false };
        let body = image.translator.cache.fragments[fragment_index].body;
        memory::write_target(tid, at, &body.to_le_bytes()) == word.len()
    }

    /// Handles a step that ended before the system call in `registers` was executed.
    pub(super) fn not_made(&mut self, tid: i32, registers: Registers, step: StepOutcome) {
        match step {
            // The signal comes first; after its handler the program makes the call again.
            StepOutcome::Signal((signal, _)) => self.signal(tid, signal),
            StepOutcome::Other(what) => {
                self.ask_again(tid, registers);
                self.stopped(tid, what);
            }
            StepOutcome::Done | StepOutcome::Gone => {}
        }
    }

    /// Answers `rt_sigaction`, after which the host must read the process's handlers again. If
    /// there are other threads, the host executes the call by a step; otherwise it could handle a
    /// signal of another thread by the old handlers in between.
    fn set_handler(&mut self, tid: i32, registers: Registers) {
        const RESET: u32 = 0x8000_0000;
        if registers.rdi == libc::SIGTRAP as u64 {
            self.trap_action_changes(tid, &registers);
        }
        let process = self.threads[&tid].process;
        let mut flags = [0u8; 4];
        let given =
            registers.rsi != 0 && memory::read_target(tid, registers.rsi + 8, &mut flags) == flags.len();
        if let Some(living) = self.living.get_mut(&process) {
            // The action's flags say whether the handler is reset by its first signal.
            if given && (1..=64).contains(&registers.rdi) {
                let resets = u64::from(u32::from_le_bytes(flags) & RESET != 0);
                living.reset = living.reset & !(1 << (registers.rdi - 1)) | resets << (registers.rdi - 1);
            }
            living.caught = None;
        }
        if self.image_mut(tid).threads == 1 {
            return self.go_on(tid);
        }
        ptrace::set_registers(tid, &Registers { rip: registers.rip + NOP_BYTES, ..registers });
        let mask = signal_mask::block(tid);
        let stepped = self.step(tid, 0);
        signal_mask::unblock(tid, mask);
        match stepped {
            StepOutcome::Done => self.go_on(tid),
            other => self.not_made(tid, registers, other),
        }
    }

    /// Puts the thread back before its stop for a system call that was not made.
    fn ask_again(&mut self, tid: i32, registers: Registers) {
        if ptrace::registers(tid).is_none_or(|now| now.rip != registers.rip + NOP_BYTES) {
            return;
        }
        ptrace::set_registers(tid, &Registers { rip: registers.rip - 1, ..registers });
        let context = self.threads[&tid].context;
        self.image_mut(tid).write32(context, context::EXIT, EXIT_SYSTEM_CALL);
    }
}

/// Whether a path that ends with a NUL names the status file of a task.
fn names_a_status(path: &[u8]) -> bool {
    path.starts_with(b"/proc/")
        && path.split(|&byte| byte == 0).next().is_some_and(|path| path.ends_with(b"/status"))
}

/// The number of processors that this machine can have, present or not.
fn possible() -> usize {
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = possible.trim().rsplit(['-', ',']).next().and_then(|number| number.parse::<usize>().ok());
    last.map_or(64, |number| number + 1)
}
