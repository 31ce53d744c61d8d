//! Counts that are put aside while a simulation goes on.
//!
//! A simulation that is exchanged with a shelf counts into other tables from then on, with the same
//! caches. So parts of a run are told apart without a second look at any record, at the cost of
//! moving some pointers.

use crate::tally::Tally;
use crate::Counts;

/// Counts that are put aside.
#[derive(Default)]
pub struct Shelf {
    pub(crate) tally: Tally,
    pub(crate) counts: Counts,
}

impl Shelf {
    /// The counts on the shelf.
    pub fn counts(&self) -> Counts {
        let mut counts = self.tally.counts();
        counts.add(&self.counts);
        counts
    }
}
