//! Van Emde Boas: the recursive layout, with child addresses after Brodal, Fagerberg and Jacob
//! (`paper::Cuts`).
//!
//! The tree is full: 2^h − 1 slots for the smallest h that holds n keys, the slots behind the keys
//! padded with MAX. The path's bits are then the rank. Memory: up to twice the keys. It is here for
//! comparison, as the layout that does not depend on a line size.

use super::method::{self, Contents, Method, Numbers, Placing, Properties, Refusal};
use crate::lane::{Exact, Lane};
use crate::line::{lanes, lanes_mut, lines_for, Line};
use crate::memory::Memory;
use crate::paper::Cuts;
use crate::simd::{Simd, Vectors};

/// The layout's entry of the table of layouts.
pub(super) const PROPERTIES: Properties = Properties {
    code: 6,
    name: "van-emde-boas",
    about: "recursive binary tree, child addresses after Brodal, Fagerberg and Jacob",
    bound: "at most 4 log(k+1) n a query",
    is_order_checked: false,
};

/// n keys in a full tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VanEmdeBoas {
    n: usize,
    cuts: Cuts,
    lines: usize,
}

impl VanEmdeBoas {
    /// The shape of n keys.
    pub(crate) fn new<L: Lane>(n: usize) -> VanEmdeBoas {
        let height = usize::BITS - n.leading_zeros();
        let slots = if height < 48 { (1usize << height) - 1 } else { usize::MAX / 64 };
        VanEmdeBoas { n, cuts: Cuts::new(height.min(47)), lines: lines_for::<L>(slots) }
    }
}

impl<L: Lane> Contents<L> for VanEmdeBoas {
    fn lines(&self) -> usize {
        self.lines
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        lanes::<L>(lines)[self.cuts.slot_of_rank(rank)]
    }

    fn holds(&self, lines: &[Line]) -> bool {
        let key = |rank| -> L { self.key(lines, rank) };
        let slots = (1 << self.cuts.height()) - 1;
        (0..self.n).map(key).is_sorted() && (self.n..slots).map(key).all(|lane| lane == L::MAX)
    }
}

impl<L: Lane> Method<L> for VanEmdeBoas {
    fn build<K: Exact<As = L>>(
        keys: &[K],
        _placing: Placing<impl Vectors>,
    ) -> Result<(Self, Memory), Refusal> {
        method::filled::<L, _>(VanEmdeBoas::new::<L>(keys.len()), |shape, lines| {
            shape.fill(keys, lines);
            Ok(())
        })
    }

    fn from_numbers(n: usize, _numbers: Numbers) -> Option<Self> {
        Some(VanEmdeBoas::new::<L>(n))
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, _simd: S, lines: &[Line], query: L) -> usize {
        let slots = lanes::<L>(lines);
        let mut walk = self.cuts.root();
        for depth in 0..self.cuts.height() {
            let right = slots[walk.slot()] < query;
            walk.descend(&self.cuts, depth, usize::from(right));
        }
        walk.path().min(self.n)
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        queries.iter().zip(out).for_each(|(&query, rank)| *rank = self.rank(simd, lines, query));
    }
}

impl VanEmdeBoas {
    /// Writes the sorted `keys` into `lines`, whose number the shape determines.
    fn fill<L: Lane, K: Exact<As = L>>(&self, keys: &[K], lines: &mut [Line]) {
        lines.fill(Line::PADDING);
        let slots = lanes_mut::<L>(lines);
        for (rank, key) in keys.iter().enumerate() {
            slots[self.cuts.slot_of_rank(rank)] = key.to_lane();
        }
    }
}
