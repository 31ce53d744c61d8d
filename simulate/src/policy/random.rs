//! Random: any line leaves, drawn by a generator that starts alike in every cache.
//!
//! **Definition.** The n-th replacement of a cache takes the way that the n-th number of [`Draw`]
//! names. The fixed start makes a simulation repeatable.

use super::definition::{Policy, Repeats, Replacement, SetHistory};
use super::draw::Draw;

/// Any line, from a generator that starts alike in every cache.
pub(super) const POLICY: Policy = Policy {
    name: "random",
    variant: 0,
    repeats: Repeats::ChangeNothing,
    fault: |_| None,
    new: |shape| Box::new(Drawn { draw: Draw::new(), ways: shape.ways }),
    defined: |shape| {
        SetHistory::definition(shape, |history, draw| draw.below(history.by_use.len() as u32) as usize)
    },
};

/// A cache that remembers nothing of its lines.
struct Drawn {
    draw: Draw,
    ways: u32,
}

impl Replacement for Drawn {
    fn used(&mut self, _set: usize, _way: usize) {}

    fn victim(&mut self, _set: usize) -> usize {
        self.draw.below(self.ways) as usize
    }
}
