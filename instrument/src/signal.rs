//! Signals: delivered at an instruction boundary of the program, with the program's own registers in the frame.
//!
//! A fault maps to its instruction. Any other signal waits, by single steps, until the thread stands before the translation of an
//! instruction; registers and flags that scratch code holds are put back, the kernel builds the frame with the program's
//! address, and the handler's first instruction is redirected into the cache. Without a handler nothing is moved: the
//! kernel's default action needs no registers. While a thread is stepped all signals but faults are blocked, so that they stay in the kernel's
//! queue, in its order, or go to another thread. A fault in the middle comes first, and what waited for the boundary is held back meanwhile.

use crate::host::{Host, Thread};
use crate::image::Stop;
use crate::layout::context;
use crate::memory;
use crate::ptrace::{self, SignalInfo, Wait};

const STEPS_MAX: u32 = 100_000;

/// Signals of faults, by bit: blocking one that an instruction raises would kill.
pub(crate) const FAULTS: u64 = 1 << (libc::SIGSEGV - 1)
    | 1 << (libc::SIGBUS - 1)
    | 1 << (libc::SIGFPE - 1)
    | 1 << (libc::SIGILL - 1)
    | 1 << (libc::SIGTRAP - 1);

/// A signal with its details.
pub(crate) type Signal = (i32, SignalInfo);

/// Outcome of bringing a thread to a boundary.
enum Boundary {
    Reached,
    /// An instruction faulted on the way.
    Fault(Signal),
    /// It ended or stopped on the way.
    Other(Wait),
    Gone,
}

/// Outcome of one step.
pub(crate) enum Step {
    Done,
    /// A signal came instead.
    Signal(Signal),
    /// The thread ended, or stops with its group.
    Other(Wait),
    Gone,
}

/// Whether an instruction raised this signal, rather than somebody sent it.
fn is_fault((signal, info): &Signal) -> bool {
    let code = i32::from_le_bytes([info[8], info[9], info[10], info[11]]);
    FAULTS >> (signal - 1) & 1 != 0 && code > 0
}

impl Host<'_> {
    /// Delivers `signal`, whose details are the current stop's.
    pub(crate) fn signal(&mut self, tid: i32, signal: i32) {
        self.deliver(tid, (signal, ptrace::signal_info(tid)));
    }

    /// Delivers a signal. The thread stands where ptrace takes one: in the stop before a signal's delivery.
    fn deliver(&mut self, tid: i32, signal: Signal) {
        let number = signal.0;
        let fault = is_fault(&signal);
        let handled = self.caught(tid) >> (number - 1) & 1 != 0;
        if !handled && !fault {
            return ptrace::resume(tid, number);
        }
        // What was sent to the host is passed on to the root alone.
        if self.thread(tid).process == self.root && self.echo.repeats(number, &signal.1) {
            return self.go_on(tid);
        }
        match self.bring_to_boundary(tid, fault) {
            Boundary::Reached => {}
            Boundary::Fault(other) => {
                self.thread(tid).held.push_back(signal);
                return self.deliver(tid, other);
            }
            Boundary::Other(what) => return self.interrupted(tid, signal, what),
            Boundary::Gone => return,
        }
        if !handled {
            return ptrace::resume(tid, number);
        }
        self.effort.signals += 1;
        ptrace::set_signal_info(tid, &signal.1);
        self.forget_reset_handler(tid, number);
        match self.step(tid, number) {
            Step::Done => self.redirect(tid),
            // The frame did not fit.
            Step::Signal(other) => return self.deliver(tid, other),
            Step::Other(what) => return self.stopped(tid, what),
            Step::Gone => return,
        }
        self.go_on(tid);
    }

    /// The thread ended or stopped before it could take `signal`.
    fn interrupted(&mut self, tid: i32, signal: Signal, what: Wait) {
        self.thread(tid).held.push_front(signal);
        self.stopped(tid, what);
    }

    /// Lets a thread run on in the cache, or delivers the next signal that was held back. After a handler's frame was built, or a group stop, ptrace
    /// takes no signal: a step leads to a stop where it does.
    pub(crate) fn go_on(&mut self, tid: i32) {
        let Some(signal) = self.thread(tid).held.pop_front() else { return ptrace::resume(tid, 0) };
        let mask = block(tid);
        let stepped = self.step_answered(tid);
        unblock(tid, mask);
        match stepped {
            // The kernel queues it again.
            Step::Done if mask >> (signal.0 - 1) & 1 != 0 => {
                ptrace::set_signal_info(tid, &signal.1);
                ptrace::resume(tid, signal.0);
            }
            Step::Done => self.deliver(tid, signal),
            Step::Signal(other) => {
                self.thread(tid).held.push_front(signal);
                self.deliver(tid, other);
            }
            Step::Other(what) => self.interrupted(tid, signal, what),
            Step::Gone => {}
        }
    }

    fn thread(&mut self, tid: i32) -> &mut Thread {
        self.threads.get_mut(&tid).expect("a thread of ours")
    }

    /// Bit mask of the signals that have handlers.
    fn caught(&mut self, tid: i32) -> u64 {
        let process = self.thread(tid).process;
        if let Some(mask) = self.living.get(&process).and_then(|living| living.caught) {
            return mask;
        }
        let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
        let field = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
        let mask = field.and_then(|f| u64::from_str_radix(f.trim(), 16).ok()).unwrap_or(0);
        if let Some(living) = self.living.get_mut(&process) {
            living.caught = Some(mask);
        }
        mask
    }

    /// A handler for one signal only is none after it.
    fn forget_reset_handler(&mut self, tid: i32, signal: i32) {
        let process = self.thread(tid).process;
        if let Some(living) = self.living.get_mut(&process).filter(|l| l.reset >> (signal - 1) & 1 != 0) {
            living.caught = None;
        }
    }

    /// Brings the thread to where its registers can be made the program's own, and makes them so.
    fn bring_to_boundary(&mut self, tid: i32, fault: bool) -> Boundary {
        if self.at_boundary(tid, fault) {
            return Boundary::Reached;
        }
        let mask = block(tid);
        let mut outcome = Boundary::Reached;
        for _ in 0..STEPS_MAX {
            match self.step_answered(tid) {
                Step::Done => {}
                Step::Signal(other) if is_fault(&other) => {
                    outcome = Boundary::Fault(other);
                    break;
                }
                Step::Signal(other) => self.thread(tid).held.push_back(other),
                Step::Other(what) => {
                    outcome = Boundary::Other(what);
                    break;
                }
                Step::Gone => {
                    outcome = Boundary::Gone;
                    break;
                }
            }
            if self.at_boundary(tid, false) {
                break;
            }
        }
        unblock(tid, mask);
        outcome
    }

    /// If the stopped thread is at a boundary, makes its registers the program's own.
    fn at_boundary(&mut self, tid: i32, fault: bool) -> bool {
        let context = self.thread(tid).context;
        let Some(mut r) = ptrace::registers(tid) else { return true };
        let image = self.image_mut(tid);
        if !image.translator.cache.contains(r.rip) {
            return true;
        }
        let Some((bound, exact)) = image.translator.cache.bound(r.rip) else { return false };
        let stop = if fault {
            Stop::Faulted
        } else if exact || bound.retreat {
            Stop::Before
        } else if image.repeating(&r, &bound) {
            Stop::Repeating
        } else {
            return false;
        };
        image.write32(context, context::EXIT, 0);
        image.leave(context, &mut r, &bound, stop);
        ptrace::set_registers(tid, &r);
        true
    }

    /// One step in the cache; if it was an `int3` of ours, it is answered.
    fn step_answered(&mut self, tid: i32) -> Step {
        let stepped = self.step(tid, 0);
        if let Step::Done = stepped {
            let context = self.thread(tid).context;
            self.answer_in_step(tid, context);
        }
        stepped
    }

    /// If the step just made was an `int3` of ours, answers it.
    fn answer_in_step(&mut self, tid: i32, context: usize) {
        let exit = self.image_mut(tid).read32(context, context::EXIT);
        let Some(r) = ptrace::registers(tid).filter(|_| exit != 0) else { return };
        let mut byte = [0u8];
        if memory::read_target(tid, r.rip.wrapping_sub(1), &mut byte) != 1 || byte[0] != 0xcc {
            return;
        }
        self.image_mut(tid).write32(context, context::EXIT, 0);
        match exit {
            crate::cache::EXIT_RING => self.ring_full(tid),
            exit => {
                let code = self.serve(tid, exit);
                self.image_mut(tid).write64(context, context::CONTINUE, code);
            }
        }
    }

    /// One step, with `signal` delivered first (0: none).
    pub(crate) fn step(&mut self, tid: i32, signal: i32) -> Step {
        if !ptrace::step(tid, signal) {
            return Step::Gone;
        }
        loop {
            match ptrace::wait(tid) {
                Ok(Some((_, Wait::Signal(libc::SIGTRAP)))) => return Step::Done,
                Ok(Some((_, Wait::Signal(other)))) => return Step::Signal((other, ptrace::signal_info(tid))),
                Ok(Some((_, what))) => return Step::Other(what),
                Ok(None) => {}
                Err(()) => return Step::Gone,
            }
        }
    }
}

/// Blocks every signal of a stopped thread but faults; gives what it blocked before.
pub(crate) fn block(tid: i32) -> u64 {
    let mask = ptrace::signal_mask(tid);
    ptrace::set_signal_mask(tid, mask | !FAULTS);
    mask
}

/// Undoes [`block`].
pub(crate) fn unblock(tid: i32, mask: u64) {
    ptrace::set_signal_mask(tid, mask);
}
