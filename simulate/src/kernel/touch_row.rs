//! What a touch does to one row: the operation that each kernel implements, and its three kinds of
//! misses.
//!
//! **The idea.** A row holds a set's tags, most recent first. Whether a touch hits or misses, the
//! same lanes are shifted up by one and the tag is put in front; only *how far* the shift reaches
//! differs:
//!
//! ```text
//! row          d c b a        hit of b: lanes up to b's move       miss: all lanes move, a leaves
//! touch b  ->  b d c a        touch e  ->  e d c b
//! ```
//!
//! So a kernel computes the bit of the lane where the tag was (`found`, 0 on a miss), asks
//! [`Fill::moved`] for the mask of lanes that move, and shifts under that mask: no branch on hit or
//! miss.
//!
//! **Invariants.** A tag stands in a row at most once, so `found` has at most one bit. Lanes behind
//! the last logical way hold `EMPTY` for ever: no mask reaches them.

use super::row::Row;
use super::vectors::Vectors;

/// Touches rows of `LANES` tags.
pub(crate) trait TouchRow<T, const LANES: usize>: Vectors {
    /// Finds `tag` and moves it to the front; when it is missing, `fill` says what happens. Answers
    /// with the bit of the lane where the tag was, 0 where it was missing.
    fn touch_row<F: Fill>(self, row: &mut Row<T, LANES>, tag: T, fill: F) -> u32;
}

/// What a touch does to its row when the line is missing.
pub(crate) trait Fill: Copy {
    /// The bits of all lanes, where each is a way and the line always enters. A kernel that adds it
    /// to `found`, modulo the width of the sum, subtracts one.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only AVX-512 has a use for it"))]
    #[inline(always)]
    fn whole(self) -> Option<u32> {
        None
    }

    /// The lanes that move: up to and with the lowest one of `found`; on a miss all ways, or none
    /// if nothing enters.
    fn moved(self, found: u32) -> u32;
}

/// The line always enters. `last` is the last way's bit.
#[derive(Clone, Copy)]
pub(crate) struct Enters {
    pub(crate) last: u32,
}

/// The line always enters, in a row each of whose lanes is a way.
#[derive(Clone, Copy)]
pub(crate) struct EntersWhole {
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only AVX-512 has a use for it"))]
    all: u32,
}

impl EntersWhole {
    /// Hides the number from the compiler, which would otherwise compute the sum in a general
    /// register: a mask takes three cycles to get there, and three to come back.
    #[inline(always)]
    pub(crate) fn new(lanes: usize) -> EntersWhole {
        EntersWhole { all: std::hint::black_box(u32::MAX >> (u32::BITS - lanes as u32)) }
    }
}

/// The line enters where `enters` is all ones, and does not where it is 0.
#[derive(Clone, Copy)]
pub(crate) struct MayEnter {
    pub(crate) last: u32,
    pub(crate) enters: u32,
}

impl Fill for Enters {
    #[inline(always)]
    fn moved(self, found: u32) -> u32 {
        // The lowest set bit of `found | last`, and all bits below it: on a miss that bit is the
        // last way.
        let last = found | self.last;
        last ^ (last - 1)
    }
}

impl Fill for EntersWhole {
    #[inline(always)]
    fn whole(self) -> Option<u32> {
        Some(self.all)
    }

    #[inline(always)]
    fn moved(self, found: u32) -> u32 {
        found ^ found.wrapping_sub(1)
    }
}

impl Fill for MayEnter {
    #[inline(always)]
    fn moved(self, found: u32) -> u32 {
        // All ones where the tag was found: then lanes move whether or not a miss would enter.
        let hit = (found as i32).wrapping_neg() >> 31;
        Enters { last: self.last }.moved(found) & (self.enters | hit as u32)
    }
}
