//! A fully associative level with LRU, of which a hit costs a store.
//!
//! **The problem.** A list in the order of uses is changed by nearly every reference, and all that
//! is wanted of it is whether a line that the first level lost would still be in this level.
//!
//! **The idea.** Each copy has the time of its last use. The level is a heap by times that may be
//! out of date: they only grow, so the top of the heap is the oldest copy unless its time has
//! changed; then it gets its true time and sinks. A copy that was taken away stays in the heap
//! until it comes to the top, or is in the level again.

use std::cmp::Reverse;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

/// Whether a copy is in the level, and whether its heap has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) in_level: bool,
    in_heap: bool,
}

/// What the level asks of a copy.
pub(crate) trait Dated {
    /// The time of its last use.
    fn time(&self) -> u64;
    /// Its standing.
    fn standing(&mut self) -> &mut Standing;
}

/// The level of one core.
#[derive(Clone, Debug)]
pub(crate) struct Associative {
    capacity: usize,
    /// Copies that are in the level.
    held: usize,
    oldest: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Associative {
    /// An empty level of this many lines.
    pub(crate) fn new(capacity: usize) -> Associative {
        Associative { capacity, held: 0, oldest: BinaryHeap::new() }
    }

    /// Takes a copy away.
    pub(crate) fn take(&mut self, standing: &mut Standing) {
        self.held -= usize::from(std::mem::replace(&mut standing.in_level, false));
    }

    /// Puts a copy that is not in the level there. If the level is full, the oldest copy leaves.
    pub(crate) fn enter(&mut self, copies: &mut [impl Dated], copy: u32) {
        let entering = &mut copies[copy as usize];
        let time = entering.time();
        let standing = entering.standing();
        standing.in_level = true;
        self.held += 1;
        if !std::mem::replace(&mut standing.in_heap, true) {
            self.oldest.push(Reverse((time, copy)));
        }
        while self.held > self.capacity {
            let Some(mut top) = self.oldest.peek_mut() else { return };
            let Reverse((known, oldest)) = *top;
            let time = copies[oldest as usize].time();
            let standing = copies[oldest as usize].standing();
            if standing.in_level && time != known {
                *top = Reverse((time, oldest));
                continue;
            }
            self.held -= usize::from(standing.in_level);
            *standing = Standing::default();
            PeekMut::pop(top);
        }
    }
}
