//! Eytzinger: the binary tree in breadth-first order, node k's children at 2k and 2k + 1, slot 0
//! unused.
//!
//! The sixteen (u32) or eight (u64) descendants four (three) levels down fill exactly one line, so
//! one prefetch per level hides most latency: of log2 n levels, a quarter is waited for. The rank
//! follows from the path, without stored ranks: if all h levels were full, the path's bits would be
//! the number x of smaller slots. The slots before x that are missing at the end of the last level
//! are subtracted from it.
//!
//! Memory: the keys and one more slot. Source: Khuong and Morin 2017, section 4 (layout and
//! prefetch); the rank is derived here.

use super::method::{self, Contents, Method, Numbers, Placing, Properties, Refusal};
use crate::lane::{Exact, Lane};
use crate::line::{lanes, lanes_mut, lines_for, Line};
use crate::memory::Memory;
use crate::simd::{Simd, Vectors};

/// The layout's entry of the table of layouts.
pub(super) const PROPERTIES: Properties = Properties {
    code: 3,
    name: "eytzinger",
    about: "breadth-first binary tree, prefetching four levels ahead",
    bound: "at most log2 n a query, in a quarter of the waits",
    is_order_checked: false,
};

/// n keys in breadth-first order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Eytzinger {
    n: usize,
    /// Levels; the last one may be partly filled.
    height: u32,
    /// Keys in the last level.
    last: usize,
    lines: usize,
}

impl Eytzinger {
    /// The shape of n keys.
    pub(crate) fn new<L: Lane>(n: usize) -> Eytzinger {
        let height = usize::BITS - n.leading_zeros();
        let above = (1usize << height >> 1).saturating_sub(1);
        Eytzinger { n, height, last: n - above, lines: lines_for::<L>(n + 1) }
    }

    /// The rank of a complete path; `slot` is in the level below the last.
    #[inline(always)]
    fn rank_of_path(&self, slot: usize) -> usize {
        let smaller = slot - (1 << self.height);
        smaller - smaller.div_ceil(2).saturating_sub(self.last)
    }

    /// The slot of the key of rank `rank`.
    fn slot_of_rank(&self, rank: usize) -> usize {
        // Ranks up to the end of the last level are placed as in a full tree. Behind it every
        // second rank of the full tree is missing.
        let full = if rank < 2 * self.last { rank } else { 2 * rank + 1 - 2 * self.last };
        let up = (full + 1).trailing_zeros();
        (1 << (self.height - 1 - up)) + ((full + 1) >> (up + 1))
    }

    /// One step down from `slot`. A slot that is missing counts as larger than every query.
    #[inline(always)]
    fn step<L: Lane>(&self, slots: &[L], slot: usize, query: L) -> usize {
        2 * slot + usize::from(slot <= self.n && slots[slot] < query)
    }
}

/// Queries that descend in step.
const ABREAST: usize = 16;

impl<L: Lane> Contents<L> for Eytzinger {
    fn lines(&self) -> usize {
        self.lines
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        lanes::<L>(lines)[self.slot_of_rank(rank)]
    }

    fn holds(&self, lines: &[Line]) -> bool {
        (0..self.n).map(|rank| -> L { self.key(lines, rank) }).is_sorted()
    }
}

impl<L: Lane> Method<L> for Eytzinger {
    fn build<K: Exact<As = L>>(
        keys: &[K],
        _placing: Placing<impl Vectors>,
    ) -> Result<(Self, Memory), Refusal> {
        method::filled::<L, _>(Eytzinger::new::<L>(keys.len()), |shape, lines| {
            shape.fill(keys, lines);
            Ok(())
        })
    }

    fn from_numbers(n: usize, _numbers: Numbers) -> Option<Self> {
        Some(Eytzinger::new::<L>(n))
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, simd: S, lines: &[Line], query: L) -> usize {
        let slots = lanes::<L>(lines);
        // Every level but the last is full, so its slots need no check.
        let mut slot = 1;
        for _ in 1..self.height {
            simd.prefetch(lines, slot);
            slot = 2 * slot + usize::from(slots[slot] < query);
        }
        if self.height > 0 {
            slot = self.step(slots, slot, query);
        }
        self.rank_of_path(slot)
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        let slots = lanes::<L>(lines);
        for (queries, out) in queries.chunks(ABREAST).zip(out.chunks_mut(ABREAST)) {
            let mut at = [1; ABREAST];
            for level in 0..self.height {
                for (slot, &query) in at.iter_mut().zip(queries) {
                    if level + 1 < self.height {
                        simd.prefetch(lines, *slot);
                        *slot = 2 * *slot + usize::from(slots[*slot] < query);
                    } else {
                        *slot = self.step(slots, *slot, query);
                    }
                }
            }
            out.iter_mut().zip(at).for_each(|(rank, slot)| *rank = self.rank_of_path(slot));
        }
    }
}

impl Eytzinger {
    /// Writes the sorted `keys` into `lines`, whose number the shape determines.
    fn fill<L: Lane, K: Exact<As = L>>(&self, keys: &[K], lines: &mut [Line]) {
        let slots = lanes_mut::<L>(lines);
        for (rank, key) in keys.iter().enumerate() {
            slots[self.slot_of_rank(rank)] = key.to_lane();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_its_own_slot_in_every_small_tree() {
        for n in 1..300 {
            let shape = Eytzinger::new::<u32>(n);
            let mut seen = vec![false; n + 1];
            for rank in 0..n {
                let slot = shape.slot_of_rank(rank);
                assert!((1..=n).contains(&slot) && !seen[slot], "n={n} rank={rank} slot={slot}");
                seen[slot] = true;
            }
        }
    }
}
