//! The sorted array, halved without branches, for sixteen queries in step.
//!
//! A comparison selects one of two positions instead of deciding a jump, so no branch is
//! mispredicted, and the cache misses of sixteen queries overlap. Memory and lines touched are
//! those of the sorted array. Source: Khuong and Morin 2017, section 2.

use core::hint::select_unpredictable;

use super::method::{self, Contents, Method, Numbers, Placing, Properties, Refusal};
use super::ordered::{fill_sorted, holds_sorted};
use crate::lane::{Exact, Lane};
use crate::line::{lanes, lines_for, Line};
use crate::memory::Memory;
use crate::simd::{Simd, Vectors};

/// The layout's entry of the table of layouts.
pub(super) const PROPERTIES: Properties = Properties {
    code: 2,
    name: "branch-free",
    about: "sorted array, halving without branches, sixteen queries abreast",
    bound: "at most log2 n a query",
    is_order_checked: false,
};

/// n sorted keys that begin in the first line, and are searched without branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BranchFree {
    n: usize,
    lines: usize,
}

/// Queries that are halved in step, so that their cache misses overlap.
const ABREAST: usize = 16;

impl BranchFree {
    /// The shape of n keys.
    pub(crate) fn new<L: Lane>(n: usize) -> BranchFree {
        BranchFree { n, lines: lines_for::<L>(n) }
    }
}

impl BranchFree {
    /// The ranks of P queries, halving all of them in step.
    #[inline(always)]
    fn abreast<L: Lane, const P: usize>(&self, keys: &[L], queries: &[L; P]) -> [usize; P] {
        let mut base = [0; P];
        let mut len = keys.len();
        if len == 0 {
            return base;
        }
        while len > 1 {
            let half = len / 2;
            for (base, &query) in base.iter_mut().zip(queries) {
                *base = select_unpredictable(keys[*base + half - 1] < query, *base + half, *base);
            }
            len -= half;
        }
        for (base, &query) in base.iter_mut().zip(queries) {
            *base += select_unpredictable(keys[*base] < query, 1, 0);
        }
        base
    }
}

impl<L: Lane> Contents<L> for BranchFree {
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

impl<L: Lane> Method<L> for BranchFree {
    fn build<K: Exact<As = L>>(
        keys: &[K],
        placing: Placing<impl Vectors>,
    ) -> Result<(Self, Memory), Refusal> {
        method::filled::<L, _>(BranchFree::new::<L>(keys.len()), |_, lines| {
            fill_sorted(keys, lines, placing.threads);
            Ok(())
        })
    }

    fn from_numbers(n: usize, _numbers: Numbers) -> Option<Self> {
        Some(BranchFree::new::<L>(n))
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, _simd: S, lines: &[Line], query: L) -> usize {
        self.abreast(&lanes::<L>(lines)[..self.n], &[query])[0]
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        let keys = &lanes::<L>(lines)[..self.n];
        let (groups, rest) = queries.as_chunks::<ABREAST>();
        let (answers, last) = out.as_chunks_mut::<ABREAST>();
        for (queries, out) in groups.iter().zip(answers) {
            *out = self.abreast(keys, queries);
        }
        rest.iter().zip(last).for_each(|(&query, rank)| *rank = self.rank(simd, lines, query));
    }
}
