//! System calls that a stop has interrupted.
//!
//! **The problem.** The stop of a task interrupts the system call in which it sleeps. Most calls
//! then end with a number that only the kernel and tracers see, and the kernel makes the call again
//! by setting the task back onto its `syscall`, two bytes before:
//!
//! | number | the call is made again |
//! |---|---|
//! | ERESTARTSYS | unless a handler without `SA_RESTART` runs |
//! | ERESTARTNOINTR | always |
//! | ERESTARTNOHAND | unless a handler runs |
//! | ERESTART_RESTARTBLOCK | with the time that is left, unless a handler runs |
//!
//! A few calls end with EINTR instead, which the program would see although no handler has run.
//! **The idea.** Those get the number ERESTARTNOHAND, so the kernel repeats them too. **Leaves
//! out** the time that such a call has already waited: a repeated `epoll_wait` waits for its whole
//! timeout again. Source: signal(7), Linux 5.10 to 6.18.

use super::ptrace::{self, Registers};

const ERESTARTSYS: i64 = 512;
const ERESTARTNOINTR: i64 = 513;
const ERESTARTNOHAND: i64 = 514;
const ERESTART_RESTARTBLOCK: i64 = 516;

/// Calls that end with EINTR when their task is stopped, and that have done nothing then. Calls of
/// sockets do so if the socket has a timeout.
const ENDED_BY_STOPS: [i64; 17] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// Makes the kernel repeat the call of a stopped task if the stop has ended it with EINTR.
pub(crate) fn repeat(tid: i32) {
    let Some(registers) = ptrace::registers(tid) else { return };
    let is_ended = registers.rax as i64 == -i64::from(libc::EINTR);
    if is_ended && ENDED_BY_STOPS.contains(&(registers.orig_rax as i64)) {
        ptrace::set_registers(tid, &Registers { rax: -ERESTARTNOHAND as u64, ..registers });
    }
}

/// Whether the kernel will set a task with these registers back onto its `syscall`.
pub(crate) fn repeats(registers: &Registers) -> bool {
    are_repeated(registers.rax as i64, registers.orig_rax)
}

/// Whether the kernel repeats the call with this number, which has ended with `result`.
fn are_repeated(result: i64, number: u64) -> bool {
    let restarts = [ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK];
    number as i32 != -1 && restarts.contains(&-result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_interrupted_calls_are_made_again() {
        for result in [-512, -513, -514, -516] {
            assert!(are_repeated(result, 7), "{result}");
            assert!(!are_repeated(result, u64::MAX), "{result} outside any call");
        }
        for result in [-515, -4, 0, 512] {
            assert!(!are_repeated(result, 7), "{result}");
        }
    }
}
