//! Blocks signals of a stopped thread while the host steps it.

use super::ptrace;
use super::trap::TRAP;

/// Signals of faults, by bit: blocking one that an instruction raises would kill.
pub(crate) const FAULTS: u64 = 1 << (libc::SIGSEGV - 1)
    | 1 << (libc::SIGBUS - 1)
    | 1 << (libc::SIGFPE - 1)
    | 1 << (libc::SIGILL - 1)
    | 1 << (libc::SIGTRAP - 1);

/// Blocks every signal of a stopped thread but faults; gives what it blocked before. A step's own
/// signal must come through: the kernel would make way for it by force.
pub(crate) fn block(tid: i32) -> u64 {
    let mask = ptrace::signal_mask(tid);
    ptrace::set_signal_mask(tid, (mask | !FAULTS) & !TRAP);
    mask
}

/// Blocks every signal of a stopped thread but faults, for calls that an
/// [`Injector`](super::inject::Injector) makes; gives what it blocked before.
pub(crate) fn block_for_calls(tid: i32) -> u64 {
    let mask = ptrace::signal_mask(tid);
    ptrace::set_signal_mask(tid, mask | !FAULTS);
    mask
}

/// Undoes [`block`] and [`block_for_calls`].
pub(crate) fn unblock(tid: i32, mask: u64) {
    ptrace::set_signal_mask(tid, mask);
}
