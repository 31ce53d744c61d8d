//! Regions: which threads count, and what they have counted.
//!
//! Caches know nothing of it. A thread that counts has the simulation count into tables of the
//! region, which take the place of its own while records of the thread are simulated.

use instrument::mark::{Deed, PartCounts};
use instrument::Numbering;
use simulate::{Counts, Shelf, Simulator};

/// The region that is counted.
#[derive(Default)]
pub(crate) struct Region {
    /// Threads in which it is open.
    open: Vec<u32>,
    shelf: Shelf,
}

impl Region {
    /// A thread has reached a mark.
    pub(crate) fn marked(&mut self, deed: Deed) {
        match deed {
            Deed::Open(thread) => self.open.push(thread),
            Deed::Close(thread) => self.open.retain(|&open| open != thread),
            // A region has no other marks.
            _ => {}
        }
    }

    /// Has records of a thread simulated, which count if the region is open in it; returns whether
    /// it is.
    pub(crate) fn counting(
        &mut self,
        thread: u32,
        simulator: &mut Simulator,
        simulate: impl FnOnce(&mut Simulator),
    ) -> bool {
        let is_open = self.open.contains(&thread);
        if is_open {
            simulator.exchange(&mut self.shelf);
        }
        simulate(simulator);
        if is_open {
            simulator.exchange(&mut self.shelf);
        }
        is_open
    }

    /// What was counted so far.
    pub(crate) fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.shelf).counts()
    }
}

/// A part of an image's counts under the numbers of the run.
pub(crate) fn renumbered(part: &PartCounts, numbers: &Numbering) -> PartCounts {
    let mut part = part.clone();
    let PartCounts { executions, taken, aside, left_early, .. } = &mut part;
    for list in [executions, taken, aside] {
        list.iter_mut().for_each(|(block, _)| *block = numbers.block(*block));
    }
    left_early.iter_mut().for_each(|(block, ..)| *block = numbers.block(*block));
    part
}
