//! The interface of all sets of counters: they name their metrics and return all totals in one
//! read.

use crate::trace::Metric;
use crate::Error;

/// Times since counters were opened in which they were enabled, and in which they counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Nanoseconds enabled, added up over threads.
    pub enabled_ns: u64,
    /// Nanoseconds in which they counted; less than enabled if counters shared their hardware.
    pub running_ns: u64,
}

/// Counters that are read together.
pub trait Counters {
    /// The metrics, in the order of the totals.
    fn metrics(&self) -> &[Metric];

    /// Writes the running totals to `totals`, one per metric, and returns the times in which they
    /// were counted; these are equal if no hardware is shared.
    ///
    /// # Errors
    /// If the counters cannot be read; `totals` is then undefined.
    fn read(&mut self, totals: &mut [u64]) -> Result<Times, Error>;
}
