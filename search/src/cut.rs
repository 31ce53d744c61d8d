//! The numbers of cells that a table of roots gives to queries: two cuts of the range of keys.
//!
//! A query's distance from the smallest key is cut by its top bits, which number a *root*. The
//! root's entry has the number of its first cell, and how far the distance within the root is
//! shifted to number the cells behind that. `layout::pieces` builds these tables; the cuts stand
//! here because instruction sets do them for many queries at once.

use crate::lane::Lane;

/// Bits of a root's entry that say how far a distance is shifted to number its cells.
pub(crate) const BELOW_BITS: u32 = 6;

/// The way from a query to its root, and from there to its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut<L> {
    /// The smallest key.
    pub(crate) min: L,
    /// The largest distance: queries farther away have this one.
    pub(crate) beyond: L,
    /// Bits of a distance behind those that number its root; fewer than the lane has.
    pub(crate) shift: u32,
}

impl<L: Lane> Cut<L> {
    /// The distance of a query from the smallest key, at most `beyond`.
    #[inline(always)]
    pub(crate) fn distance(&self, query: L) -> L {
        query.minus(self.min).min(self.beyond)
    }

    /// The number of a query's root.
    #[inline(always)]
    pub(crate) fn root(&self, query: L) -> usize {
        self.distance(query).right(self.shift).widen() as usize
    }

    /// The mask of a distance within its root.
    #[inline(always)]
    pub(crate) fn within(&self) -> L {
        L::narrow((1u64 << (self.shift & 63)) - 1)
    }

    /// The number of a query's cell, from the entry of its root.
    #[inline(always)]
    pub(crate) fn cell(&self, root: u32, query: L) -> u32 {
        self.cell_at(root, self.distance(query))
    }

    /// The number of a distance's cell, from the entry of its root.
    #[inline(always)]
    pub(crate) fn cell_at(&self, root: u32, distance: L) -> u32 {
        let below = distance.and(self.within()).right(root & ((1 << BELOW_BITS) - 1));
        (root >> BELOW_BITS).wrapping_add(below.widen() as u32)
    }
}
