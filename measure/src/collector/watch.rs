//! Waits for the next edge, for the program's end, or for a signal.

use super::pace::Pace;
use crate::Error;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::thread::{current_timer_slack, set_current_timer_slack};
use rustix::time::Timespec;
use std::num::NonZeroU64;

/// Nanoseconds by which a wait may be late; the kernel's default is fifty times as long.
const SLACK_NS: u64 = 1000;

/// The reason why a wait has ended.
pub(super) enum Tick {
    Due,
    Ended,
    Signal,
}

/// The process that is watched.
pub(super) struct Watch {
    process: OwnedFd,
    tasks: Option<OwnedFd>,
}

impl Watch {
    pub(super) fn new(pid: u32) -> Result<Watch, Error> {
        let number = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        let number = number.ok_or_else(|| Error::io("watch the program", Errno::SRCH))?;
        let process = rustix::process::pidfd_open(number, rustix::process::PidfdFlags::empty())
            .map_err(|error| Error::io("watch the program", error))?;
        let tasks = std::fs::File::open(format!("/proc/{pid}/task")).ok().map(OwnedFd::from);
        Ok(Watch { process, tasks })
    }

    /// Waits. `left_ns` is the time until the next edge, if the pace is in time.
    pub(super) fn wait(&self, pace: &Pace, left_ns: u64) -> Result<Tick, Error> {
        let left =
            Timespec { tv_sec: (left_ns / 1_000_000_000) as i64, tv_nsec: (left_ns % 1_000_000_000) as i64 };
        let on = |descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
        let process = on(self.process.as_fd());
        let (mut one, mut two);
        let (ready, limit): (&mut [PollFd<'_>], _) = match pace {
            Pace::Time(_) => {
                one = [process];
                (&mut one, Some(&left))
            }
            Pace::Counted(alarm, _) => {
                two = [process, on(alarm.as_fd())];
                (&mut two, None)
            }
        };
        match poll(ready, limit) {
            Err(Errno::INTR) => return Ok(Tick::Signal),
            other => other.map_err(|error| Error::io("wait for the program", error))?,
        };
        if !ready[0].revents().is_empty() {
            return Ok(Tick::Ended);
        }
        if let Pace::Counted(alarm, _) = pace {
            alarm.clear();
        }
        Ok(Tick::Due)
    }

    /// The number of threads of the process; 0 if it has ended.
    pub(super) fn threads(&self) -> u32 {
        let links =
            self.tasks.as_ref().and_then(|tasks| rustix::fs::fstat(tasks).ok()).map(|about| about.st_nlink);
        links.and_then(|links| u32::try_from(links).ok()).unwrap_or(0).saturating_sub(2)
    }
}

/// While it lives, this thread's waits end with little delay.
pub(super) struct Slack(Option<NonZeroU64>);

impl Slack {
    pub(super) fn short() -> Slack {
        let before = current_timer_slack().ok().and_then(NonZeroU64::new);
        // Without it records are slightly longer, and their lengths say so.
        let _ = set_current_timer_slack(NonZeroU64::new(SLACK_NS));
        Slack(before)
    }
}

impl Drop for Slack {
    fn drop(&mut self) {
        let _ = set_current_timer_slack(self.0);
    }
}
