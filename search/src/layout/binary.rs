//! The sorted array itself: classic binary search, and halving without branches with sixteen queries abreast.
//!
//! No memory beyond the keys (rounded up to a line). A query touches about log2 n − 4 lines, all but the first few of them cold in a large
//! array: these two are here to be raced against and to be read first.
//! Source: any textbook; the branch-free form after Khuong and Morin 2017, section 2.

use core::hint::select_unpredictable;

use super::{Fill, Method, Shape};
use crate::kernel::Simd;
use crate::key::{Exact, Lane};
use crate::line::{lanes, lanes_mut, lines_for, Line};

/// n sorted keys from the first line on; searched with branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sorted {
    n: usize,
    lines: usize,
}

/// n sorted keys from the first line on; searched without branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BranchFree {
    n: usize,
    lines: usize,
}

/// Queries whose halvings run abreast, so that their cache misses overlap.
const ABREAST: usize = 16;

impl Sorted {
    /// The shape of n keys.
    pub(crate) fn new<L: Lane>(n: usize) -> Sorted {
        Sorted { n, lines: lines_for::<L>(n) }
    }
}

impl BranchFree {
    /// The shape of n keys.
    pub(crate) fn new<L: Lane>(n: usize) -> BranchFree {
        BranchFree { n, lines: lines_for::<L>(n) }
    }
}

/// Writes keys in order; the rest of the last line becomes padding.
pub(super) fn fill_sorted<K: Exact>(keys: &[K], lines: &mut [Line], threads: usize) {
    let flat = lanes_mut::<K::As>(lines);
    let (head, tail) = flat.split_at_mut(keys.len());
    crate::parallel::zip_chunks(keys, head, threads, |keys, head| match K::as_lanes(keys) {
        Some(own) => head.copy_from_slice(own),
        None => head.iter_mut().zip(keys).for_each(|(lane, key)| *lane = key.to_lane()),
    });
    tail.fill(K::As::MAX);
}

/// True when lines hold n keys in order, and padding behind them.
pub(super) fn holds_sorted<L: Lane>(n: usize, lines: &[Line]) -> bool {
    let flat = lanes::<L>(lines);
    n <= flat.len() && flat[..n].is_sorted() && flat[n..].iter().all(|&lane| lane == L::MAX)
}

impl<L: Lane> Method<L> for Sorted {
    fn of(shape: &Shape<L>) -> &Self {
        let Shape::Sorted(this) = shape else { unreachable!("the kernel was chosen for this layout") };
        this
    }

    fn lines(&self) -> usize {
        self.lines
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, _simd: S, lines: &[Line], q: L) -> usize {
        lanes::<L>(lines)[..self.n].partition_point(|&key| key < q)
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], qs: &[L], out: &mut [usize]) {
        qs.iter().zip(out).for_each(|(&q, rank)| *rank = self.rank(simd, lines, q));
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        lanes::<L>(lines)[rank]
    }

    fn holds(&self, lines: &[Line]) -> bool {
        holds_sorted::<L>(self.n, lines)
    }
}

impl<L: Lane> Fill<L> for Sorted {
    fn fill<K: Exact<As = L>>(&self, keys: &[K], lines: &mut [Line], threads: usize) {
        fill_sorted(keys, lines, threads);
    }
}

impl BranchFree {
    /// The ranks of P queries, halving all of them in step.
    #[inline(always)]
    fn abreast<L: Lane, const P: usize>(&self, keys: &[L], qs: &[L; P]) -> [usize; P] {
        let mut base = [0; P];
        let mut len = keys.len();
        if len == 0 {
            return base;
        }
        while len > 1 {
            let half = len / 2;
            for (base, &q) in base.iter_mut().zip(qs) {
                *base = select_unpredictable(keys[*base + half - 1] < q, *base + half, *base);
            }
            len -= half;
        }
        for (base, &q) in base.iter_mut().zip(qs) {
            *base += select_unpredictable(keys[*base] < q, 1, 0);
        }
        base
    }
}

impl<L: Lane> Method<L> for BranchFree {
    fn of(shape: &Shape<L>) -> &Self {
        let Shape::BranchFree(this) = shape else { unreachable!("the kernel was chosen for this layout") };
        this
    }

    fn lines(&self) -> usize {
        self.lines
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, _simd: S, lines: &[Line], q: L) -> usize {
        self.abreast(&lanes::<L>(lines)[..self.n], &[q])[0]
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], qs: &[L], out: &mut [usize]) {
        let keys = &lanes::<L>(lines)[..self.n];
        let (groups, rest) = qs.as_chunks::<ABREAST>();
        let (answers, last) = out.as_chunks_mut::<ABREAST>();
        for (qs, out) in groups.iter().zip(answers) {
            *out = self.abreast(keys, qs);
        }
        rest.iter().zip(last).for_each(|(&q, rank)| *rank = self.rank(simd, lines, q));
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        lanes::<L>(lines)[rank]
    }

    fn holds(&self, lines: &[Line]) -> bool {
        holds_sorted::<L>(self.n, lines)
    }
}

impl<L: Lane> Fill<L> for BranchFree {
    fn fill<K: Exact<As = L>>(&self, keys: &[K], lines: &mut [Line], threads: usize) {
        fill_sorted(keys, lines, threads);
    }
}
