//! Counters of a process that runs already: a [`Group`] for each of its threads.
//!
//! The kernel opens counters for a thread, and a thread that is started inherits its maker's. So
//! the threads that a process has at the beginning get a group each, which counts at once, and
//! later ones and children belong to the group of the thread that they come from. A thread that
//! ends leaves its counts in its group. One `read` for each of those threads makes a sum. **Leaves
//! out** threads that a thread starts in the microseconds between the listing and the opening of
//! its own counters: to stop the process for that moment would end its waits early.

use super::counters::{Counters, Times};
use super::event::Event;
use super::perf::{Group, Whose};
use crate::trace::Metric;
use crate::Error;
use rustix::io::Errno;
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

/// The counters of a process that ran already.
#[derive(Debug)]
pub struct RunningProcess {
    /// One for each thread that it had at the beginning; at least one.
    groups: Vec<Group>,
    /// Totals of one group.
    totals: Vec<u64>,
}

impl RunningProcess {
    /// Opens counters for `events` in all threads of process `pid`; they count from now on. Cost:
    /// some µs and a descriptor for each thread and event. This process's limit of descriptors is
    /// raised as far as it may.
    ///
    /// # Errors
    /// The first event that cannot be counted, and why, as [`Group::open`]; [`Error::Io`] if there
    /// is no such process, or if it may not be counted.
    pub fn open(events: &[&'static Event], pid: u32) -> Result<RunningProcess, Error> {
        // A thread of a process takes a descriptor for each event.
        allow_descriptors();
        let failed = |error: std::io::Error| Error::io("list the threads of the process", error);
        let mut groups = Vec::new();
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).map_err(failed)? {
            let Ok(name) = thread.map_err(failed)?.file_name().into_string() else { continue };
            let Ok(thread) = name.parse::<u32>() else { continue };
            match Group::open(events, Whose::Thread(thread)) {
                Ok(group) => groups.push(group),
                // It has ended since.
                Err(Error::Io { error, .. }) if Errno::from_io_error(&error) == Some(Errno::SRCH) => {}
                Err(error) => return Err(error),
            }
        }
        if groups.is_empty() {
            return Err(Error::io("count the process", Errno::SRCH));
        }
        Ok(RunningProcess { groups, totals: vec![0; events.len()] })
    }
}

/// Raises the limit of this process's descriptors as far as it may.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // If this fails, a process of many threads is refused with the system's reason.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

impl Counters for RunningProcess {
    fn metrics(&self) -> &[Metric] {
        self.groups[0].metrics()
    }

    fn read(&mut self, totals: &mut [u64]) -> Result<Times, Error> {
        totals.fill(0);
        let mut sum = Times::default();
        for group in &mut self.groups {
            let times = group.read(&mut self.totals)?;
            sum.enabled_ns += times.enabled_ns;
            sum.running_ns += times.running_ns;
            totals.iter_mut().zip(&self.totals).for_each(|(total, own)| *total += own);
        }
        Ok(sum)
    }
}
