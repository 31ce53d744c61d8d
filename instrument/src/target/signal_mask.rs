//! Blocks signals of a stopped thread while the host steps it.

use super::ptrace;
use super::trap::TRAP;

/// The bits of signals that faults raise. If a thread blocked such a signal, the fault would kill
/// the process.
pub(crate) const FAULTS: u64 = 1 << (libc::SIGSEGV - 1)
    | 1 << (libc::SIGBUS - 1)
    | 1 << (libc::SIGFPE - 1)
    | 1 << (libc::SIGILL - 1)
    | 1 << (libc::SIGTRAP - 1);

/// Blocks every signal of a stopped thread but faults; returns the mask that it had before. SIGTRAP
/// stays unblocked, because a step's own SIGTRAP would reset the action of a thread that blocks it.
pub(crate) fn block(tid: i32) -> u64 {
    let mask = ptrace::signal_mask(tid);
    ptrace::set_signal_mask(tid, (mask | !FAULTS) & !TRAP);
    mask
}

/// Blocks every signal of a stopped thread but faults, for calls that an
/// [`Injector`](super::inject::Injector) makes; returns the mask that it had before.
pub(crate) fn block_for_calls(tid: i32) -> u64 {
    let mask = ptrace::signal_mask(tid);
    ptrace::set_signal_mask(tid, mask | !FAULTS);
    mask
}

/// Restores the mask that [`block`] or [`block_for_calls`] has returned.
pub(crate) fn unblock(tid: i32, mask: u64) {
    ptrace::set_signal_mask(tid, mask);
}
