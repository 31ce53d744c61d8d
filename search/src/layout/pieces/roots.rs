//! The ranks of roots, which are searched and not counted.

use alloc::vec::Vec;
use core::ops::Range;

use super::plan::Pieces;
use crate::lane::{Exact, Lane};

/// The ranks of roots: what one way to cut has searched, the others find here.
pub(super) struct Roots<'a, K> {
    keys: &'a [K],
    /// By shift. Each table is finer than the one before.
    tables: Vec<(u32, Vec<usize>)>,
}

impl<'a, K: Exact> Roots<'a, K> {
    /// No ranks yet.
    pub(super) fn of(keys: &'a [K]) -> Roots<'a, K> {
        Roots { keys, tables: Vec::new() }
    }

    /// The ranks of the first keys of all roots of `plan`, and n.
    pub(super) fn ranks<L: Lane>(&mut self, plan: &Pieces<L>) -> Vec<usize>
    where
        K: Exact<As = L>,
    {
        let shift = plan.cut.shift;
        if let Some((finer, ranks)) = self.tables.iter().find(|(finer, _)| *finer <= shift) {
            let times = 1 << (shift - finer);
            let last = ranks.len() - 1;
            return (0..=plan.roots()).map(|root| ranks[last.min(root * times)]).collect();
        }
        let ranks = match self.tables.last() {
            Some((coarse, ranks)) => plan.cut_roots_further(self.keys, ranks, 1 << (coarse - shift)),
            None => plan.cut_roots(self.keys),
        };
        self.tables.push((shift, ranks.clone()));
        ranks
    }
}

impl<L: Lane> Pieces<L> {
    /// The ranks of the first keys of all roots, and n.
    pub(super) fn cut_roots<K: Exact<As = L>>(&self, keys: &[K]) -> Vec<usize> {
        let mut ranks = alloc::vec![0; self.roots() + 1];
        ranks[self.roots()] = keys.len();
        // Halves a range of roots whose ranks at both ends are known, so that most searches are
        // short.
        let mut ranges = alloc::vec![0..self.roots()];
        while let Some(Range { start, end }) = ranges.pop() {
            if end - start < 2 {
                continue;
            }
            let (middle, from, to) = (start.midpoint(end), ranks[start], ranks[end]);
            let less = |key: &K| key.to_lane().minus(self.cut.min).widen() >> self.cut.shift < middle as u64;
            ranks[middle] = from + keys[from..to].partition_point(less);
            ranges.extend([start..middle, middle..end]);
        }
        ranks
    }

    /// The ranks of the first keys of all roots, and n, from those of a table that has one root for
    /// `times` of these.
    fn cut_roots_further<K: Exact<As = L>>(&self, keys: &[K], coarse: &[usize], times: usize) -> Vec<usize> {
        let mut ranks = Vec::with_capacity(self.roots() + 1);
        for root in 0..self.roots() {
            let (from, to) = (coarse[root / times], coarse[root / times + 1]);
            let start = ranks.last().copied().unwrap_or(0).max(from);
            ranks.push(match root % times {
                0 => from,
                _ => start + keys[start..to].partition_point(|&key| self.cut.root(key.to_lane()) < root),
            });
        }
        ranks.push(keys.len());
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::DISTRIBUTIONS;

    fn finer_tables_have_the_same_ranks<L: Lane + Exact<As = L>>() {
        for &(distribution, name) in DISTRIBUTIONS {
            let wide = distribution.keys(20_000, L::MAX.widen(), 3);
            let keys: Vec<L> = wide.into_iter().map(L::narrow).collect();
            let with_roots = |bits: u32| Pieces::with_roots(&keys, |all| all.saturating_sub(bits)).unwrap();
            let coarse = with_roots(6);
            let ranks = coarse.cut_roots(&keys);
            for bits in [7, 8, 11] {
                let fine = with_roots(bits);
                let times = 1 << (coarse.cut.shift - fine.cut.shift);
                let further = fine.cut_roots_further(&keys, &ranks, times);
                assert_eq!(further, fine.cut_roots(&keys), "{name} {bits}");
            }
            // Tables that are asked for in any order.
            let mut roots = Roots::of(&keys);
            for bits in [7, 5, 11, 11, 8, 6] {
                let plan = with_roots(bits);
                assert_eq!(roots.ranks(&plan), plan.cut_roots(&keys), "{name} {bits}");
            }
        }
    }

    #[test]
    fn roots_that_are_cut_further_begin_where_a_search_finds_them() {
        finer_tables_have_the_same_ranks::<u32>();
        finer_tables_have_the_same_ranks::<u64>();
    }
}
