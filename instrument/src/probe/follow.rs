//! What a probed process executes instead of itself.
//!
//! The probe of `execve` knocks; while the thread waits for the answer, the host attaches to it,
//! and then lets it go on from system call to system call: a call that fails ends that again, one
//! that succeeds stops behind the exec, where the new image is patched like the first one. In
//! between a signal costs two switches more; nobody else is traced, and for no longer. **Leaves
//! out** programs that gain rights by being executed: under a tracer the kernel withholds them,
//! here for the moment of the exec.

use crate::outcome::Exit;
use crate::target::ptrace::{self, Wait};
use crate::target::pulse::Pulse;
use crate::target::trap::Inherited;
use std::time::Duration;

/// `SIGTRAP` of a system call's beginning or end, told apart.
const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;
/// Beginnings and ends of calls between the answer and the exec's failure: that of waiting, that of
/// the exec, and those of a signal handler.
const STOPS_MAX: u32 = 64;

/// How often it is looked whether the run is over.
const GLANCE: Duration = Duration::from_millis(50);

/// How it went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// This process stands at its first instruction, attached; what it inherited of SIGTRAP is to
    /// be given back.
    Executed(i32, Inherited),
    /// It goes on as before, alone.
    Remains,
    /// It is gone; its end was seen here.
    Ended(i32, Exit),
}

/// Follows thread `tid` into the program that it is about to execute; `answer` lets it go on.
///
/// A thread that stands anywhere but where one waits for an answer (`asks`, given its address)
/// asked for nothing: it is let go at once. When the run is `over`, nobody is followed any further.
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
    let _pulse = Pulse::start(GLANCE);
    ptrace::interrupt(tid);
    let mut answer = Some(answer);
    let (mut stops, mut ends) = (0, false);
    loop {
        // The only tracee of this thread; an exec by another thread than the first changes its
        // number.
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
        let first = answer.take();
        match what {
            Wait::Exited(code) => return Followed::Ended(at, Exit::Code(code)),
            Wait::Signaled(signal) => return Followed::Ended(at, Exit::Signal(signal)),
            Wait::Event(libc::PTRACE_EVENT_EXEC, _) => return executed(at),
            _ if first.is_some() && !ptrace::registers(at).is_some_and(|r| asks(r.rip)) => ends = true,
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

/// Whether the thread stands at the end of an exec, which only a failed one has.
fn has_failed(tid: i32) -> bool {
    let Some(r) = ptrace::registers(tid) else { return true };
    let is_exec = [libc::SYS_execve, libc::SYS_execveat].contains(&(r.orig_rax as i64));
    // At the beginning of a call the result is ENOSYS.
    is_exec && r.rax as i64 != -i64::from(libc::ENOSYS)
}

/// Out of the exec, to the first instruction.
fn executed(pid: i32) -> Followed {
    let traps = Inherited::of(pid);
    // Half patched it would run into what is not there.
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
