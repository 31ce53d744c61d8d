//! Follows a probed process through an exec.
//!
//! ```text
//!   thread   request ──▶ wait ─────────────▶ system calls ──▶ exec ─┬─ fails ───▶ runs on
//!                          │        ▲                               └─ succeeds ─▶ stops
//!   host                attaches    answers                           detaches │ patches, detaches
//! ```
//!
//! The probe of `execve` sends the request. The host lets the thread run from system call to system
//! call, so that it learns whether the exec fails. During this time a signal costs two more
//! switches; no other thread is traced. **Leaves out** programs that gain rights by being executed:
//! the kernel withholds these rights from a traced process, and the thread is traced during the
//! exec.

use crate::outcome::Exit;
use crate::target::ptrace::{self, Wait};
use crate::target::pulse::Pulse;
use crate::target::trap::Inherited;
use std::time::Duration;

/// The signal of a stop at a system call's beginning or end (`PTRACE_O_TRACESYSGOOD`).
const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;
/// The most beginnings and ends of system calls between the answer and the end of a failed exec:
/// those of the wait, of the exec, and of a signal handler.
const STOPS_MAX: u32 = 64;

/// Time between two checks whether the run is over.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The outcome of following.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// The process stands at the new program's first instruction, attached. The state of SIGTRAP
    /// that it inherited must be given back.
    Executed(i32, Inherited),
    /// The exec failed or was not followed: the process runs on, detached.
    Remains,
    /// The process has ended with this status.
    Ended(i32, Exit),
}

/// Follows thread `tid` into the program that it is about to execute; `answer` lets the thread run
/// on.
///
/// `asks` returns whether a thread at this address waits for an answer. Any other thread has not
/// made the request and is detached at once. When the run is `over`, following ends.
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
        // There is no other tracee. If the thread is not the process's first one, the exec changes
        // its number.
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
        // The answer is sent after the first stop was handled, so the thread cannot run on before.
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
            // In a group stop the thread stays stopped until it is continued.
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
    // At the beginning of a call rax holds ENOSYS, so another value is a result.
    is_exec && registers.rax as i64 != -i64::from(libc::ENOSYS)
}

/// Steps the process out of the exec, to the first instruction of the new program.
fn executed(pid: i32) -> Followed {
    let traps = Inherited::of(pid);
    // If the host dies now, the process must die too: it would be partly patched, and could jump to
    // trampolines that do not exist.
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
