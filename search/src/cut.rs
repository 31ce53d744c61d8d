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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::kernel::KERNELS;
    use crate::sample::Random;
    use crate::simd::{Simd, Task, Vectors, GATHERED};

    /// The cells of queries as an instruction set numbers them.
    struct Cells<'a, L>(&'a [u32], &'a Cut<L>, &'a [L; GATHERED]);

    impl<L: Lane> Task for Cells<'_, L> {
        type Output = [u32; GATHERED];

        fn run<S: Simd>(self, simd: S) -> [u32; GATHERED] {
            L::cells(simd, self.0, self.1, self.2)
        }
    }

    /// Compares all kernels with [`Cut::cell`], for cuts and entries that may be any.
    fn agrees<L: Lane>() {
        let mut random = Random::new(5);
        for round in 0..2000u32 {
            let number = |random: &mut Random| L::narrow(random.bits() >> random.below(64));
            let shift = random.below(u64::from(L::BITS)) as u32;
            let cut = Cut { min: number(&mut random), beyond: number(&mut random), shift };
            let roots: Vec<u32> = (0..1 + round % 70).map(|_| random.bits() as u32).collect();
            let queries: [L; GATHERED] = core::array::from_fn(|i| match i {
                0 => L::MIN,
                1 => L::MAX,
                2 => cut.min,
                _ => number(&mut random),
            });
            let last = roots.len() - 1;
            let expected = queries.map(|query| cut.cell(roots[cut.root(query).min(last)], query));
            for isa in KERNELS.iter().filter(|isa| isa.is_available()) {
                assert_eq!(isa.run(Cells(&roots, &cut, &queries)), expected, "{} {cut:?}", isa.name());
            }
        }
    }

    #[test]
    fn every_kernel_numbers_cells_alike() {
        agrees::<u32>();
        agrees::<u64>();
    }
}
