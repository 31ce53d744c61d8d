//! Where numbers come from: anything that can be read all at once.
//!
//! A set of [`Counters`] names its metrics and, when asked, tells their running totals in one read. [`Group`] is the kernel's: hardware and kernel events of a
//! process with all its threads and children, in one `read`; [`Samples`] are those that the kernel reads itself. Pages of counters that added code increments, and simulated machines, implement the
//! same trait elsewhere. What cannot be counted is refused when the set is opened, with the reason; it never reads as zero.

mod event;
mod perf;
mod ring;
mod sampled;
mod uprobe;

pub use event::{find, names, nearest, Event, EVENTS};
pub use perf::{Alarm, Group, Period, Whose};
pub(crate) use sampled::{Counted, Sums};
pub use sampled::{Sample, Samples};
pub use uprobe::{Entry, Uprobes};

use crate::trace::Metric;
use crate::Error;

/// Time in which counters were wanted and in which they counted, since they were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Nanoseconds enabled, added up over threads.
    pub enabled_ns: u64,
    /// Nanoseconds running; less where counters shared their hardware.
    pub running_ns: u64,
}

/// Counters that are read together.
pub trait Counters {
    /// What they count, in the order of the numbers.
    fn metrics(&self) -> &[Metric];

    /// Running totals into `totals`, one per metric, with the time they were counted in; equal times where nothing is shared.
    ///
    /// # Errors
    /// When the counters cannot be read; `totals` then means nothing.
    fn read(&mut self, totals: &mut [u64]) -> Result<Times, Error>;
}
