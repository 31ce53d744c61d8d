//! Signals: delivered at an instruction boundary of the program, with the program's own registers
//! in the frame.
//!
//! **The problem.** A signal stops a thread in generated code, where program registers may wait in
//! the context. The handler and the frame must show the program's own registers and address.
//!
//! **The idea.** The host delivers the signal in four steps:
//!
//! ```text
//! step to the start of an    ──▶ restore registers ──▶ the kernel builds ──▶ redirect the
//! instruction's translation      and flags             the frame             handler's start
//! ```
//!
//! A fault belongs to the instruction that raised it, so it needs no steps. A signal without a
//! handler needs nothing of this, because the kernel's default action reads no registers.
//!
//! **Invariants.** While a thread is stepped, all signals but faults are blocked: they stay in the
//! kernel's queue, in its order, or go to another thread. A fault on the way is delivered first,
//! and the host holds the waiting signal back.

use super::state::Host;
use super::task::ProgramThread;
use super::task::{Boundary, Signal, StepOutcome, FAULT_ADDRESS};
use crate::code::fragment::{EXIT_INSTRUCTION, EXIT_PAGES, EXIT_RING, EXIT_SYSTEM_CALL};
use crate::error::{Error, ErrorKind};
use crate::image::StopPlace;
use crate::target::in_flight;
use crate::target::layout::context;
use crate::target::memory;
use crate::target::ptrace::{self, SignalInfo, Wait};
use crate::target::signal_mask::{block, unblock, FAULTS};
use crate::target::trap::{self, TRAP};

/// The most steps to a boundary: more than any routine of generated code has.
const STEPS_MAX: u32 = 100_000;

/// Signals whose default action ends the process with a core dump.
const CORES: u64 = FAULTS
    | 1 << (libc::SIGQUIT - 1)
    | 1 << (libc::SIGABRT - 1)
    | 1 << (libc::SIGXCPU - 1)
    | 1 << (libc::SIGXFSZ - 1)
    | 1 << (libc::SIGSYS - 1);

/// Whether an instruction raised this signal; otherwise some process sent it.
fn is_fault((signal, info): &Signal) -> bool {
    FAULTS >> (signal - 1) & 1 != 0 && trap::code(info) > 0 && !trap::is_step(*signal, info)
}

/// The address at which an instruction faulted.
fn fault_address(info: &SignalInfo) -> u64 {
    u64::from_le_bytes(info[FAULT_ADDRESS..FAULT_ADDRESS + 8].try_into().expect("eight bytes"))
}

impl Host<'_> {
    /// Delivers `signal`, whose details are the current stop's.
    pub(crate) fn signal(&mut self, tid: i32, signal: i32) {
        let mut info = ptrace::signal_info(tid);
        self.fault_where_it_went(tid, signal, &mut info);
        self.deliver(tid, (signal, info));
    }

    /// Delivers a signal. The thread must be in a signal-delivery-stop, because ptrace accepts a
    /// signal in no other stop.
    pub(crate) fn deliver(&mut self, tid: i32, signal: Signal) {
        let number = signal.0;
        let fault = is_fault(&signal);
        let bit = 1 << (number - 1);
        // The kernel kills a process that blocks or ignores a signal raised by an instruction.
        let forced = fault && number == libc::SIGTRAP && self.thread(tid).blocks_trap;
        let handled = self.caught(tid) & bit != 0 && !forced;
        let ignored = self.ignored(tid) & bit != 0;
        // The program ignores SIGTRAP, and the kernel may not know that.
        if number == libc::SIGTRAP && ignored && trap::code(&signal.1) <= 0 {
            return self.go_on(tid);
        }
        // A core dump shows the program's own registers.
        let dumps = CORES & bit != 0 && !ignored;
        if !handled && !fault && !dumps {
            // Natively an ignored signal interrupts no call; that of a traced thread does.
            in_flight::repeat(tid);
            return ptrace::resume(tid, number);
        }
        // The host forwards its own signals to the root. If the sender addressed the root as well,
        // the host drops the second copy.
        if handled && self.thread(tid).process == self.root && self.echo.repeats(number, &signal.1) {
            return self.go_on(tid);
        }
        if fault && self.lacks_memory(tid, &signal) {
            return self.lost(tid, &signal);
        }
        match self.bring_to_boundary(tid, fault) {
            Boundary::Reached => {}
            Boundary::Fault(other) => {
                self.thread(tid).held.push_back(signal);
                return self.deliver(tid, other);
            }
            // The signal ends the process, so its registers do not matter.
            Boundary::Lost if !handled && !fault => return ptrace::resume(tid, number),
            Boundary::Lost => return self.lost(tid, &signal),
            Boundary::Other(what) => return self.interrupted(tid, signal, what),
            Boundary::Gone => return,
        }
        if fault && number == libc::SIGILL && self.has_reached_refused_code(tid) {
            return;
        }
        if !handled {
            if forced {
                self.reset_trap_action(tid);
            }
            ptrace::set_signal_info(tid, &signal.1);
            return ptrace::resume(tid, number);
        }
        // The kernel saves the signal mask in the frame and follows the action, so both must be the
        // program's own.
        self.stats.signals += 1;
        self.show_trap_mask(tid);
        if number == libc::SIGTRAP {
            self.put_back_trap_action(tid);
        }
        ptrace::set_signal_info(tid, &signal.1);
        self.forget_reset_handler(tid, number);
        match self.step(tid, number) {
            StepOutcome::Done => {
                self.delivered(tid, number);
                self.redirect_program(tid);
            }
            // The kernel could not write the frame.
            StepOutcome::Signal(other) => return self.deliver(tid, other),
            StepOutcome::Other(what) => return self.stopped(tid, what),
            StepOutcome::Gone => return,
        }
        self.go_on(tid);
    }

    /// Ends the run if the thread, whose registers are the program's own, stands before an
    /// instruction that the engine does not support; returns whether it does.
    fn has_reached_refused_code(&mut self, tid: i32) -> bool {
        let Some(registers) = ptrace::registers(tid) else { return false };
        let translator = &mut self.image_mut(tid).translator;
        let Some(why) = translator.refused.get(&registers.rip).cloned() else { return false };
        translator.refusal = Some(why);
        self.check_refusal(tid)
    }

    /// Handles a thread that ended or stopped before it could take `signal`.
    fn interrupted(&mut self, tid: i32, signal: Signal, what: Wait) {
        self.thread(tid).held.push_front(signal);
        self.stopped(tid, what);
    }

    /// Lets a thread run on in the cache, or delivers the next signal that was held back. After the
    /// building of a handler's frame, or a group stop, ptrace accepts no signal. One step leads to
    /// a stop that accepts one.
    pub(crate) fn go_on(&mut self, tid: i32) {
        if self.waits_for_turn(tid) {
            return;
        }
        let Some(signal) = self.next_held(tid) else { return ptrace::resume(tid, 0) };
        let mask = block(tid);
        self.answer_before_step(tid);
        let stepped = self.step_answered(tid);
        unblock(tid, mask);
        match stepped {
            // The thread blocks the signal, so the kernel queues it again.
            StepOutcome::Done if mask >> (signal.0 - 1) & 1 != 0 => {
                ptrace::set_signal_info(tid, &signal.1);
                ptrace::resume(tid, signal.0);
            }
            StepOutcome::Done => self.deliver(tid, signal),
            // This signal waits until the program unblocks it.
            StepOutcome::Signal(other) if mask >> (other.0 - 1) & 1 != 0 => {
                self.thread(tid).held.push_front(signal);
                self.thread(tid).held.push_back(other);
                self.go_on(tid);
            }
            StepOutcome::Signal(other) => {
                self.thread(tid).held.push_front(signal);
                self.deliver(tid, other);
            }
            StepOutcome::Other(what) => self.interrupted(tid, signal, what),
            StepOutcome::Gone => {}
        }
    }

    /// Updates what the host knows about SIGTRAP after the kernel has built a handler's frame.
    fn delivered(&mut self, tid: i32, number: i32) {
        if !self.trap_actions {
            return;
        }
        if number == libc::SIGTRAP {
            self.trap_delivered(tid);
        }
        self.note_trap_mask(tid);
        self.hide_trap_mask(tid);
    }

    pub(crate) fn thread(&mut self, tid: i32) -> &mut ProgramThread {
        self.threads.get_mut(&tid).expect("a thread of ours")
    }

    /// Bit mask of the signals that have handlers.
    pub(crate) fn caught(&mut self, tid: i32) -> u64 {
        let process = self.thread(tid).process;
        // For SIGTRAP the kernel's state may be wrong, because a stop of the engine resets the
        // action.
        let trap = if self.trap_action(tid).is_caught() { TRAP } else { 0 };
        if let Some(mask) = self.living.get(&process).and_then(|living| living.caught) {
            return mask & !TRAP | trap;
        }
        let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
        let mask = |name| {
            let field = status.lines().find_map(|line| line.strip_prefix(name));
            field.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
        };
        let caught = mask("SigCgt:");
        if let Some(living) = self.living.get_mut(&process) {
            (living.caught, living.ignored) = (Some(caught), mask("SigIgn:"));
        }
        caught & !TRAP | trap
    }

    /// Bit mask of the signals that were ignored when [`Host::caught`] was last called.
    fn ignored(&mut self, tid: i32) -> u64 {
        let process = self.thread(tid).process;
        let ignored = self.living.get(&process).map_or(0, |living| living.ignored);
        let trap = if self.trap_action(tid).is_ignored() { TRAP } else { 0 };
        ignored & !TRAP | trap
    }

    /// Forgets which signals have handlers if the handler of `signal` has `SA_RESETHAND`: the
    /// kernel removes such a handler at its first signal.
    fn forget_reset_handler(&mut self, tid: i32, signal: i32) {
        let process = self.thread(tid).process;
        if let Some(living) =
            self.living.get_mut(&process).filter(|living| living.reset >> (signal - 1) & 1 != 0)
        {
            living.caught = None;
        }
    }

    /// Steps the thread to an instruction boundary and gives it the program's own registers.
    pub(crate) fn bring_to_boundary(&mut self, tid: i32, fault: bool) -> Boundary {
        if self.at_boundary(tid, fault) {
            return Boundary::Reached;
        }
        // Stepping cannot help: the instruction would fault again.
        if fault {
            return Boundary::Lost;
        }
        let mask = block(tid);
        self.answer_before_step(tid);
        let mut outcome = Boundary::Lost;
        for _ in 0..STEPS_MAX {
            match self.step_answered(tid) {
                StepOutcome::Done => {}
                StepOutcome::Signal(other) if is_fault(&other) => {
                    outcome = Boundary::Fault(other);
                    break;
                }
                StepOutcome::Signal(other) => self.thread(tid).held.push_back(other),
                StepOutcome::Other(what) => {
                    outcome = Boundary::Other(what);
                    break;
                }
                StepOutcome::Gone => {
                    outcome = Boundary::Gone;
                    break;
                }
            }
            if self.at_boundary(tid, false) {
                outcome = Boundary::Reached;
                break;
            }
        }
        unblock(tid, mask);
        outcome
    }

    /// Whether generated code faulted because memory of the engine is no longer mapped.
    fn lacks_memory(&mut self, tid: i32, (signal, info): &Signal) -> bool {
        const MAPERR: i32 = 1;
        let code = i32::from_le_bytes([info[8], info[9], info[10], info[11]]);
        let is_unmapped = *signal == libc::SIGSEGV && code == MAPERR && self.thread(tid).astray.is_none();
        is_unmapped && self.image_mut(tid).translator.cache.layout.holds(fault_address(info))
    }

    /// Ends the run: generated code faulted in a way that no instruction of the program explains.
    pub(crate) fn lost(&mut self, tid: i32, (signal, info): &Signal) {
        let rip = ptrace::registers(tid).map_or(0, |registers| registers.rip);
        let address = fault_address(info);
        let why = format!(
            "lightfoot cannot go on with the program: signal {signal} stopped generated code at {rip:#x} (address {address:#x}) \
             outside any instruction of the program; either the program has changed lightfoot's memory, or this is a defect of \
             lightfoot, which you can report"
        );
        // Such a thread has no state with which the program could run on.
        self.attachment = None;
        self.fail(Error::new(ErrorKind::System, why));
    }

    /// If the stopped thread is at a boundary, makes its registers the program's own.
    fn at_boundary(&mut self, tid: i32, fault: bool) -> bool {
        let context = self.thread(tid).context;
        let Some(mut registers) = ptrace::registers(tid) else { return true };
        if self.thread(tid).astray == Some(registers.rip) {
            return true;
        }
        let image = self.image_mut(tid);
        // Outside the code cache the registers are the program's own.
        if !image.translator.cache.contains(registers.rip) {
            return true;
        }
        let Some((entry, exact)) = image.translator.boundary(registers.rip) else { return false };
        // The point of the translation at which the thread stands: before an instruction, in an
        // instruction that faulted, or between two iterations.
        let stop = if fault && !entry.retreat {
            StopPlace::Faulted
        } else if exact || entry.retreat {
            StopPlace::Before
        } else if image.repeating(&registers, &entry) {
            StopPlace::Repeating
        } else {
            return false;
        };
        image.write32(context, context::EXIT, 0);
        let misses = image.leave(context, &mut registers, &entry, stop);
        ptrace::set_registers(tid, &registers);
        self.append_misses(tid, context, &misses);
        true
    }

    /// Makes one step in the code cache. If the step posted a request or executed an `int3` of
    /// generated code, answers that.
    pub(crate) fn step_answered(&mut self, tid: i32) -> StepOutcome {
        let stepped = self.step(tid, 0);
        if let StepOutcome::Done = stepped {
            self.answer_before_step(tid);
            let context = self.thread(tid).context;
            self.answer_in_step(tid, context);
        }
        stepped
    }

    /// If the last step executed an `int3` of generated code, answers that stop.
    fn answer_in_step(&mut self, tid: i32, context: usize) {
        let exit = self.image_mut(tid).read32(context, context::EXIT);
        let Some(registers) = ptrace::registers(tid).filter(|_| exit != 0) else { return };
        let mut byte = [0u8];
        if memory::read_target(tid, registers.rip.wrapping_sub(1), &mut byte) != 1 || byte[0] != 0xcc {
            return;
        }
        // A special system call or instruction is answered when the thread runs on: the host sets
        // the thread back before the `int3`, where it stops again.
        if exit == EXIT_SYSTEM_CALL || exit == EXIT_INSTRUCTION {
            return ptrace::set_registers(tid, &ptrace::Registers { rip: registers.rip - 1, ..registers });
        }
        self.image_mut(tid).write32(context, context::EXIT, 0);
        match exit {
            EXIT_RING => self.ring_full(tid),
            EXIT_PAGES => self.use_pages(tid, context),
            exit => {
                let code = self.serve(tid, exit);
                self.image_mut(tid).write64(context, context::CONTINUE, code);
            }
        }
    }

    /// Makes one step; the kernel delivers `signal` first (0: none).
    pub(crate) fn step(&mut self, tid: i32, signal: i32) -> StepOutcome {
        if !ptrace::step(tid, signal) {
            return StepOutcome::Gone;
        }
        loop {
            match ptrace::wait(tid) {
                Ok(Some((_, Wait::Signal(libc::SIGTRAP)))) => {
                    return self.sent_trap(tid).map_or(StepOutcome::Done, StepOutcome::Signal)
                }
                Ok(Some((_, Wait::Signal(other)))) => {
                    return StepOutcome::Signal((other, ptrace::signal_info(tid)))
                }
                Ok(Some((_, what))) => return StepOutcome::Other(what),
                Ok(None) => {}
                Err(()) => return StepOutcome::Gone,
            }
        }
    }
}
