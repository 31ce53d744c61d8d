//! Stops a process that runs already, so that the engine can enter it.
//!
//! ```text
//!   check ──▶ seize each task ──▶ interrupt ──▶ wait for all ──▶ until no task is new
//! ```
//!
//! A task that takes a signal on the way takes it natively and is interrupted again. Until the
//! engine enters the process, its tasks run on alone if the host ends. **Leaves out** what is done
//! with the stopped process (`host::attach`).

use super::in_flight;
use super::ptrace::{self, Registers, Wait};
use super::pulse::Pulse;
use super::running;
use crate::error::{Error, ErrorKind};
use crate::target::layout::CONTEXTS_MAX;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Tasks that do not stop within this time cannot be measured.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two looks at the clock while the host waits for tasks.
const LOOK: Duration = Duration::from_millis(20);
/// The code segment of 64-bit programs.
const CODE_SEGMENT: u64 = 0x33;

/// A process of which each task is stopped. Its tasks run on natively when this value is dropped.
pub(crate) struct Stopped {
    pub(crate) pid: i32,
    /// The stopped tasks, the process's first one first.
    pub(crate) tids: Vec<i32>,
    /// When the first task was stopped.
    pub(crate) since: Instant,
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for &tid in &self.tids {
            in_flight::repeat(tid);
            ptrace::detach(tid, 0);
        }
    }
}

/// Stops process `pid`.
///
/// # Errors
/// If the process cannot be measured; it runs on as before.
pub(crate) fn stop(pid: i32) -> Result<Stopped, Error> {
    running::check(pid)?;
    let mut stopped = Stopped { pid, tids: Vec::new(), since: Instant::now() };
    let _pulse = Pulse::start(LOOK);
    // Tasks that are no tasks of the program, such as workers of the kernel.
    let mut others = BTreeSet::new();
    loop {
        let mut running = Vec::new();
        for tid in running::tasks(pid) {
            if stopped.tids.contains(&tid) || others.contains(&tid) {
                continue;
            }
            match ptrace::seize_alone(tid) {
                Ok(()) => running.push(tid),
                Err(_) if tid != pid && running::is_no_thread(pid, tid) => {
                    others.insert(tid);
                }
                Err(error) => return Err(running::refusal(pid, tid, error)),
            }
        }
        if running.is_empty() {
            break;
        }
        // A signal that a stopped task would take goes to another one, which must be traced too.
        running.iter().for_each(|&tid| ptrace::interrupt(tid));
        wait_for_all(&mut stopped, running)?;
    }
    stopped.tids.sort_unstable_by_key(|&tid| (tid != pid, tid));
    check_stopped(&stopped)?;
    Ok(stopped)
}

/// Waits until each of these tasks has stopped or ended.
fn wait_for_all(stopped: &mut Stopped, mut running: Vec<i32>) -> Result<(), Error> {
    let begun = Instant::now();
    while !running.is_empty() {
        if begun.elapsed() > PATIENCE {
            return Err(running::does_not_stop(stopped.pid, running[0]));
        }
        let (tid, what) = match ptrace::wait(-1) {
            Ok(Some(event)) => event,
            Ok(None) => continue,
            Err(()) => return Err(ended(stopped.pid)),
        };
        match what {
            Wait::Exited(_) | Wait::Signaled(_) => {
                running.retain(|&other| other != tid);
                stopped.tids.retain(|&other| other != tid);
                if tid == stopped.pid {
                    return Err(ended(tid));
                }
            }
            Wait::Event(libc::PTRACE_EVENT_STOP, signal) => {
                running.retain(|&other| other != tid);
                stopped.tids.push(tid);
                if signal != libc::SIGTRAP {
                    return Err(running::is_stopped(stopped.pid));
                }
            }
            // The task takes this signal natively. The stop has used the request up.
            Wait::Signal(signal) => {
                // Natively an ignored signal interrupts no call; that of a traced task does.
                if !running::has_handler(tid, signal) {
                    in_flight::repeat(tid);
                }
                ptrace::interrupt(tid);
                ptrace::resume(tid, signal);
            }
            Wait::Event(..) => {
                ptrace::interrupt(tid);
                ptrace::resume(tid, 0);
            }
        }
    }
    Ok(())
}

/// Refuses a process whose threads the engine cannot run.
fn check_stopped(stopped: &Stopped) -> Result<(), Error> {
    let Stopped { pid, tids, .. } = stopped;
    let refuse = |why: &str| {
        let sentence = format!("cannot measure process {pid}: {why}");
        Err(Error::new(ErrorKind::Unsupported, sentence))
    };
    if tids.first() != Some(pid) {
        return refuse("its first thread has ended, and lightfoot needs it");
    }
    if tids.len() > CONTEXTS_MAX {
        let many = tids.len();
        return refuse(&format!("it has {many} threads, and lightfoot runs at most {CONTEXTS_MAX}"));
    }
    let registers: Vec<Registers> = tids.iter().filter_map(|&tid| ptrace::registers(tid)).collect();
    if registers.len() != tids.len() {
        return Err(ended(*pid));
    }
    if registers.iter().any(|own| own.cs != CODE_SEGMENT) {
        return refuse("it runs 32-bit code, and lightfoot measures 64-bit programs");
    }
    if registers.iter().any(|own| own.gs_base != 0) {
        return refuse("it uses the base of the gs register, which lightfoot needs itself");
    }
    Ok(())
}

/// The error for a process that has ended before it could be measured.
pub(crate) fn ended(pid: i32) -> Error {
    Error::new(ErrorKind::NotFound, format!("process {pid} ended before lightfoot could enter it"))
}
