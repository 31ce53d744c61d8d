//! Signals: delivered at an instruction boundary of the program, with the program's own registers in the frame.
//!
//! A fault maps to its instruction. Any other signal waits, by single steps, until the thread stands before the translation of an
//! instruction; registers and flags that scratch code holds are put back, the kernel builds the frame with the program's
//! address, and the handler's first instruction is redirected into the cache. Without a handler nothing is moved: the
//! kernel's default action needs no registers.

use crate::host::Host;
use crate::image::Stop;
use crate::layout::context;
use crate::memory;
use crate::ptrace::{self, SignalInfo, Wait};

const STEPS_MAX: u32 = 100_000;

/// Outcome of bringing a thread to a boundary.
enum Boundary {
    Reached,
    Gone,
}

impl Host {
    /// Delivers `signal`, whose details are `info` (or the current stop's).
    pub(crate) fn signal(&mut self, tid: i32, signal: i32, info: Option<SignalInfo>) {
        let info = info.unwrap_or_else(|| ptrace::signal_info(tid));
        let code = i32::from_le_bytes([info[8], info[9], info[10], info[11]]);
        let fault =
            matches!(signal, libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP)
                && code > 0;
        let handled = self.caught(tid) >> (signal - 1) & 1 != 0;
        if !handled && !fault {
            return ptrace::resume(tid, signal);
        }
        let mut held = std::mem::take(&mut self.thread(tid).held);
        // What was sent to the host is passed on to the root alone.
        if self.thread(tid).process == self.root && self.echo.repeats(signal, &info) {
            return self.next_signal(tid, held);
        }
        match self.bring_to_boundary(tid, fault, &mut held) {
            Boundary::Reached => {}
            Boundary::Gone => return,
        }
        if !handled {
            self.thread(tid).held = held;
            return ptrace::resume(tid, signal);
        }
        self.effort.signals += 1;
        ptrace::set_signal_info(tid, &info);
        if !self.step(tid, signal, &mut held) {
            return;
        }
        self.redirect(tid);
        self.next_signal(tid, held);
    }

    /// Delivers the next signal that was held back, or lets the thread run.
    pub(crate) fn next_signal(&mut self, tid: i32, mut held: Vec<(i32, SignalInfo)>) {
        match held.pop() {
            Some((signal, info)) => {
                self.thread(tid).held = held;
                self.signal(tid, signal, Some(info));
            }
            None => ptrace::resume(tid, 0),
        }
    }

    fn thread(&mut self, tid: i32) -> &mut crate::host::Thread {
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

    /// Brings the thread to where its registers can be made the program's own, and makes them so.
    fn bring_to_boundary(&mut self, tid: i32, fault: bool, held: &mut Vec<(i32, SignalInfo)>) -> Boundary {
        let context = self.thread(tid).context;
        for _ in 0..STEPS_MAX {
            let Some(mut r) = ptrace::registers(tid) else { return Boundary::Gone };
            let image = self.image_mut(tid);
            if !image.translator.cache.contains(r.rip) {
                return Boundary::Reached;
            }
            if let Some((bound, exact)) = image.translator.cache.bound(r.rip) {
                let stop = if fault {
                    Some(Stop::Faulted)
                } else if exact || bound.retreat {
                    Some(Stop::Before)
                } else {
                    image.repeating(&r, &bound).then_some(Stop::Repeating)
                };
                if let Some(stop) = stop {
                    image.write32(context, context::EXIT, 0);
                    image.leave(context, &mut r, &bound, stop);
                    ptrace::set_registers(tid, &r);
                    return Boundary::Reached;
                }
            }
            if !self.step(tid, 0, held) {
                return Boundary::Gone;
            }
            self.answer_in_step(tid, context);
        }
        Boundary::Reached
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

    /// One step; other signals that turn up are held. False when the thread is gone.
    pub(crate) fn step(&mut self, tid: i32, signal: i32, held: &mut Vec<(i32, SignalInfo)>) -> bool {
        let mut signal = signal;
        loop {
            if !ptrace::step(tid, signal) {
                return false;
            }
            match ptrace::wait(tid) {
                Ok(Some((_, Wait::Signal(libc::SIGTRAP)))) => return true,
                Ok(Some((_, Wait::Signal(other)))) => {
                    held.push((other, ptrace::signal_info(tid)));
                    signal = 0;
                }
                Ok(Some((_, what))) => {
                    self.stopped(tid, what);
                    return false;
                }
                Ok(None) => {}
                Err(()) => return false,
            }
        }
    }
}
