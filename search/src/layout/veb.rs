//! Van Emde Boas: the recursive layout, with child addresses after Brodal, Fagerberg and Jacob (`paper::brodal`).
//!
//! The tree is full: 2^h − 1 slots for the smallest h that holds n keys, the slots behind the keys padded with MAX. The path's bits are then the rank.
//! Memory: up to twice the keys. Here to be raced: it is the layout that knows no line size.

use super::{Fill, Method, Shape};
use crate::kernel::Simd;
use crate::key::{Exact, Lane};
use crate::line::{lanes, lanes_mut, lines_for, Line};
use crate::paper::brodal::Cuts;

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

impl<L: Lane> Method<L> for VanEmdeBoas {
    fn of(shape: &Shape<L>) -> &Self {
        let Shape::VanEmdeBoas(this) = shape else { unreachable!("the kernel was chosen for this layout") };
        this
    }

    fn lines(&self) -> usize {
        self.lines
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, _simd: S, lines: &[Line], q: L) -> usize {
        let slots = lanes::<L>(lines);
        let mut walk = self.cuts.root();
        for depth in 0..self.cuts.height() {
            let right = slots[walk.slot()] < q;
            walk.descend(&self.cuts, depth, usize::from(right));
        }
        walk.path().min(self.n)
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], qs: &[L], out: &mut [usize]) {
        qs.iter().zip(out).for_each(|(&q, rank)| *rank = self.rank(simd, lines, q));
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

impl<L: Lane> Fill<L> for VanEmdeBoas {
    fn fill<K: Exact<As = L>>(&self, keys: &[K], lines: &mut [Line], _threads: usize) {
        lines.fill(Line::PADDING);
        let slots = lanes_mut::<L>(lines);
        for (rank, key) in keys.iter().enumerate() {
            slots[self.cuts.slot_of_rank(rank)] = key.to_lane();
        }
    }
}
