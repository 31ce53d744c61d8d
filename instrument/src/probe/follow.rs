//! Follows a probed process through an exec.
//!
//! The probe of `execve` sends a request. While the thread waits for the answer, the host attaches
//! to it and then lets it run from system call to system call. If the exec fails, the host detaches
//! again. If it succeeds, the process stops behind it and its new image is patched as the first one
//! was. Meanwhile a signal costs two more switches; no other thread is traced. **Leaves out**
//! programs that gain rights by being executed: the kernel withholds them from a traced process,
//! and this one is traced during the exec.

use crate::outcome::Exit;
use crate::target::ptrace::{self, Wait};
use crate::target::pulse::Pulse;
use crate::target::trap::Inherited;
use std::time::Duration;

/// `SIGTRAP` of a system call's beginning or end, told apart.
const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;
/// The most beginnings and ends of system calls between the answer and the end of a failed exec:
/// those of the wait, of the exec, and of a signal handler.
const STOPS_MAX: u32 = 64;

/// Time between two looks at whether the run is over.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The outcome of following.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// The process stands at the new program's first instruction, attached. The state of SIGTRAP
    /// that it inherited must be given back.
    Executed(i32, Inherited),
    /// The exec failed or was not followed: the process goes on, detached.
    Remains,
    /// The process has ended with this status.
    Ended(i32, Exit),
}

/// Follows thread `tid` into the program that it is about to execute; `answer` lets it go on.
///
/// `asks` says whether a thread at this address waits for an answer; any other thread did not make
/// the request and is detached at once. When the run is `over`, following ends.
pub(super) fn follow(
    tid: i32,
    asks: impl Fn(u64) -> bool,
    over: impl Fn() -> bool,
    answer: impl FnOnce(),
) -> Followed {
    if !ptrace::seize_until_exec(tid) {
        answer();
        return Followed::Remains;
    }
    let _pulse = Pulse::start(CHECK_INTERVAL);
    ptrace::interrupt(tid);
    let mut answer = Some(answer);
    let (mut stops, mut ends) = (0, false);
    loop {
        // There is no other tracee. An exec by a thread that is not the process's first changes the
        // thread's number.
        let (at, what) = match ptrace::wait(-1) {
            Ok(Some(got)) => got,
            Ok(None) if over() => {
                ends = true;
                ptrace::interrupt(tid);
                continue;
            }
            Ok(None) => continue,
            Err(()) => {
                answer.into_iter().for_each(|answer| answer());
                return Followed::Remains;
            }
        };
        // The thread waits for the answer until its first stop was handled, so it cannot run off.
        let first = answer.take();
        match what {
            Wait::Exited(code) => return Followed::Ended(at, Exit::Code(code)),
            Wait::Signaled(signal) => return Followed::Ended(at, Exit::Signal(signal)),
            Wait::Event(libc::PTRACE_EVENT_EXEC, _) => return executed(at),
            _ if first.is_some() && !ptrace::registers(at).is_some_and(|registers| asks(registers.rip)) => {
                ends = true
            }
            _ => {}
        }
        if let Wait::Signal(SYSTEM_CALL) = what {
            stops += 1;
            ends |= stops == STOPS_MAX || has_failed(at);
        }
        let go_on: fn(i32, i32) = if ends { ptrace::detach } else { ptrace::to_system_call };
        match what {
            Wait::Signal(signal) if signal != SYSTEM_CALL => go_on(at, signal),
            // A group stop: it stays stopped until it is continued.
            Wait::Event(_, signal) if signal != libc::SIGTRAP && !ends => ptrace::listen(at),
            _ => go_on(at, 0),
        }
        first.into_iter().for_each(|answer| answer());
        if ends {
            return Followed::Remains;
        }
    }
}

/// Whether the thread stands at the end of an exec's system call. Only a failed exec returns.
fn has_failed(tid: i32) -> bool {
    let Some(registers) = ptrace::registers(tid) else { return true };
    let is_exec = [libc::SYS_execve, libc::SYS_execveat].contains(&(registers.orig_rax as i64));
    // At the beginning of a call the result is ENOSYS.
    is_exec && registers.rax as i64 != -i64::from(libc::ENOSYS)
}

/// Steps the process out of the exec, to the first instruction of the new program.
fn executed(pid: i32) -> Followed {
    let traps = Inherited::of(pid);
    // If the host dies, so must the process: half patched, it would jump to trampolines that do not
    // exist.
    ptrace::end_with_tracer(pid);
    while ptrace::step(pid, 0) {
        match ptrace::wait_for(pid) {
            Some((_, Wait::Signal(libc::SIGTRAP))) => return Followed::Executed(pid, traps),
            Some((_, Wait::Signal(signal))) => ptrace::kill(pid, signal),
            Some((_, Wait::Exited(code))) => return Followed::Ended(pid, Exit::Code(code)),
            Some((_, Wait::Signaled(signal))) => return Followed::Ended(pid, Exit::Signal(signal)),
            Some(_) => {}
            None => break,
        }
    }
    Followed::Remains
}
