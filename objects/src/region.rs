//! Regions: which threads count, and what they have counted.
//!
//! Caches know nothing of it. A thread that counts has the simulation count into tables of the
//! region, which take the place of its own while records of the thread are simulated.

use crate::by_image::ByImage;
use instrument::mark::Deed;
use simulate::{Counts, Shelf, Simulator};

/// The region that is counted.
#[derive(Default)]
pub(crate) struct Region {
    /// Threads in which it is open.
    open: Vec<u32>,
    /// By image.
    shelves: ByImage<Shelf>,
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

    /// Has records of a thread of an image simulated, which count if the region is open in it;
    /// returns whether it is.
    pub(crate) fn counting(
        &mut self,
        (image, thread): (u32, u32),
        simulator: &mut Simulator,
        simulate: impl FnOnce(&mut Simulator),
    ) -> bool {
        if !self.open.contains(&thread) {
            simulate(simulator);
            return false;
        }
        let shelf = self.shelves.get_or(image, Shelf::default);
        simulator.exchange(shelf);
        simulate(simulator);
        simulator.exchange(shelf);
        true
    }

    /// What an image that has ended has counted, under its own numbers.
    pub(crate) fn ended(&mut self, image: u32) -> Counts {
        self.shelves.remove(image).unwrap_or_default().counts()
    }
}
