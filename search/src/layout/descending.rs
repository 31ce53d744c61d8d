//! The sorted array from its largest key down: a layout that only the tests have.
//!
//! It shows that a layout needs only a file like this and an entry in the table of the parent
//! module. Tests that go through the table (agreement on every kernel and key type, forged files,
//! names) then compare it with the reference, like every other layout.

use super::method::{self, Contents, Method, Numbers, Placing, Properties, Refusal};
use crate::lane::{Exact, Lane};
use crate::line::{lanes, lanes_mut, lines_for, Line};
use crate::memory::Memory;
use crate::simd::{Simd, Vectors};

/// The layout's entry of the table of layouts.
pub(super) const PROPERTIES: Properties = Properties {
    code: 11,
    name: "descending",
    about: "the sorted array from its largest key down",
    bound: "at most log2 n a query",
    is_order_checked: false,
};

/// n keys, the largest first, then padding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descending {
    n: usize,
}

impl<L: Lane> Contents<L> for Descending {
    fn lines(&self) -> usize {
        lines_for::<L>(self.n)
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        lanes::<L>(lines)[self.n - 1 - rank]
    }

    fn holds(&self, lines: &[Line]) -> bool {
        self.n <= lanes::<L>(lines).len() && lanes::<L>(lines)[..self.n].iter().rev().is_sorted()
    }
}

impl<L: Lane> Method<L> for Descending {
    fn build<K: Exact<As = L>>(
        keys: &[K],
        _placing: Placing<impl Vectors>,
    ) -> Result<(Self, Memory), Refusal> {
        method::filled::<L, _>(Descending { n: keys.len() }, |_, lines| {
            let slots = lanes_mut::<L>(lines);
            slots.iter_mut().zip(keys.iter().rev()).for_each(|(slot, key)| *slot = key.to_lane());
            Ok(())
        })
    }

    fn from_numbers(n: usize, _numbers: Numbers) -> Option<Self> {
        Some(Descending { n })
    }

    fn rank<S: Simd>(&self, _simd: S, lines: &[Line], query: L) -> usize {
        self.n - lanes::<L>(lines)[..self.n].partition_point(|&key| key >= query)
    }

    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        queries.iter().zip(out).for_each(|(&query, rank)| *rank = self.rank(simd, lines, query));
    }
}
