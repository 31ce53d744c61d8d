//! The sorted array itself, searched with branches as in textbooks.
//!
//! It needs no memory beyond the keys (rounded up to a line). A query touches about log2 n − 4
//! lines; in a large array, all but the first few miss the cache. This layout is the baseline of
//! the others, and the best one to read first.

use super::method::{self, Contents, Method, Numbers, Placing, Properties, Refusal};
use super::ordered::{fill_sorted, holds_sorted};
use crate::lane::{Exact, Lane};
use crate::line::{lanes, lines_for, Line};
use crate::memory::Memory;
use crate::simd::{Simd, Vectors};

/// The layout's entry of the table of layouts.
pub(super) const PROPERTIES: Properties = Properties {
    code: 1,
    name: "sorted",
    about: "sorted array, classic binary search",
    bound: "at most log2 n a query",
    is_order_checked: false,
};

/// n sorted keys that begin in the first line, and are searched with branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sorted {
    n: usize,
    lines: usize,
}

impl Sorted {
    /// The shape of n keys.
    pub(crate) fn new<L: Lane>(n: usize) -> Sorted {
        Sorted { n, lines: lines_for::<L>(n) }
    }
}

impl<L: Lane> Contents<L> for Sorted {
    fn lines(&self) -> usize {
        self.lines
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        lanes::<L>(lines)[rank]
    }

    fn holds(&self, lines: &[Line]) -> bool {
        holds_sorted::<L>(self.n, lines)
    }
}

impl<L: Lane> Method<L> for Sorted {
    fn build<K: Exact<As = L>>(
        keys: &[K],
        placing: Placing<impl Vectors>,
    ) -> Result<(Self, Memory), Refusal> {
        method::filled::<L, _>(Sorted::new::<L>(keys.len()), |_, lines| {
            fill_sorted(keys, lines, placing.threads);
            Ok(())
        })
    }

    fn from_numbers(n: usize, _numbers: Numbers) -> Option<Self> {
        Some(Sorted::new::<L>(n))
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, _simd: S, lines: &[Line], query: L) -> usize {
        lanes::<L>(lines)[..self.n].partition_point(|&key| key < query)
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        queries.iter().zip(out).for_each(|(&query, rank)| *rank = self.rank(simd, lines, query));
    }
}
