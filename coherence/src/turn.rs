//! A turn of a round, as far as it was simulated.

use event::Record;

/// References that a thread makes in a step: about as many as a basic block has.
pub(crate) const STEP: usize = 2;

/// A turn whose records are kept.
pub(crate) struct Turn {
    pub(crate) thread: u32,
    /// The core of the thread; none such if its hits have to be made one by one.
    pub(crate) core: usize,
    pub(crate) records: Vec<Record>,
    /// The first record that was not simulated.
    pub(crate) at: usize,
    /// Addresses that it compares or exchanges, and how often it has not yet.
    pub(crate) locks: Vec<(u64, u32)>,
}

impl Turn {
    /// Whether all its records were simulated.
    pub(crate) fn is_over(&self) -> bool {
        self.at == self.records.len()
    }

    /// Whether the turn has yet to compare or exchange at an address.
    pub(crate) fn has_left(&self, address: u64) -> bool {
        self.locks.iter().any(|lock| *lock == (address, lock.1) && lock.1 > 0)
    }
}
