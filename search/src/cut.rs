//! The numbers of cells that a table of roots gives to queries: two cuts of the range of keys.
//!
//! A query's distance from the smallest key is cut by its top bits, which number a *root*. The
//! root's entry has the number of its first cell, and how far the distance within the root is
//! shifted to number the cells behind that. Where cells are lines, the bits that are shifted out
//! tell the keys of a line apart. `layout::pieces` builds these tables; the cuts stand here because
//! instruction sets do them for many queries at once.

/// Bits of a root's entry that say how far a distance is shifted to number its cells.
pub(crate) const BELOW_BITS: u32 = 6;

/// The arithmetic of cuts, on unsigned integers of 32 or 64 bits.
pub(crate) trait Word: Copy + Ord {
    /// The number as 64 bits.
    fn widen(self) -> u64;
    /// The number with the low bits of `wide`.
    fn narrow(wide: u64) -> Self;
    /// `self - other`, not below 0.
    fn minus(self, other: Self) -> Self;
    /// The number shifted right by `bits`, of which only as many count as number a number's bits.
    fn right(self, bits: u32) -> Self;
    /// The low `bits` bits, of which only as many count as number a number's bits, at the top.
    fn lowest_at_top(self, bits: u32) -> Self;
    /// The bits that both have.
    fn and(self, other: Self) -> Self;
}

macro_rules! define_word {
    ($word:ty) => {
        impl Word for $word {
            #[inline(always)]
            fn widen(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn narrow(wide: u64) -> Self {
                wide as Self
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.saturating_sub(other)
            }

            #[inline(always)]
            fn right(self, bits: u32) -> Self {
                self >> (bits & (<$word>::BITS - 1))
            }

            #[inline(always)]
            fn lowest_at_top(self, bits: u32) -> Self {
                self.checked_shl(<$word>::BITS - (bits & (<$word>::BITS - 1))).unwrap_or(0)
            }

            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }
        }
    };
}

define_word!(u32);
define_word!(u64);

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

impl<L: Word> Cut<L> {
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

    /// The line of a query, from the entry of its root where entries number lines, and the bits
    /// that tell apart the distances of a line, left-aligned.
    #[inline(always)]
    pub(crate) fn line(&self, root: u32, query: L) -> (u32, L) {
        let distance = self.distance(query);
        (self.cell_at(root, distance), distance.lowest_at_top(root & ((1 << BELOW_BITS) - 1)))
    }
}
