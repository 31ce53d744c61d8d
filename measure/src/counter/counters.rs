//! What every set of counters can do: name its metrics, and tell all totals in one read.

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

    /// Running totals into `totals`, one per metric, with the time they were counted in; equal
    /// times where nothing is shared.
    ///
    /// # Errors
    /// When the counters cannot be read; `totals` then means nothing.
    fn read(&mut self, totals: &mut [u64]) -> Result<Times, Error>;
}
