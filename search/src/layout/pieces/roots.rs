//! The ranks of roots, which are searched and not counted.

use alloc::vec::Vec;
use core::ops::Range;

use crate::cut::Cut;
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

    /// The ranks of the first keys of all roots of `cut`, and n.
    pub(super) fn ranks<L: Lane>(&mut self, cut: &Cut<L>) -> Vec<usize>
    where
        K: Exact<As = L>,
    {
        let shift = cut.shift;
        if let Some((finer, ranks)) = self.tables.iter().find(|(finer, _)| *finer <= shift) {
            let times = 1 << (shift - finer);
            let last = ranks.len() - 1;
            return (0..=count(cut)).map(|root| ranks[last.min(root * times)]).collect();
        }
        let ranks = match self.tables.last() {
            Some((coarse, ranks)) => search_further(cut, self.keys, ranks, 1 << (coarse - shift)),
            None => search(cut, self.keys),
        };
        self.tables.push((shift, ranks.clone()));
        ranks
    }
}

/// The number of roots.
fn count<L: Lane>(cut: &Cut<L>) -> usize {
    (cut.beyond.widen() >> cut.shift) as usize + 1
}

/// The ranks of the first keys of all roots, and n.
fn search<L: Lane, K: Exact<As = L>>(cut: &Cut<L>, keys: &[K]) -> Vec<usize> {
    let count = count(cut);
    let mut ranks = alloc::vec![0; count + 1];
    ranks[count] = keys.len();
    // Halves a range of roots whose ranks at both ends are known, so that most searches are short.
    let mut ranges = alloc::vec![0..count];
    while let Some(Range { start, end }) = ranges.pop() {
        if end - start < 2 {
            continue;
        }
        let (middle, from, to) = (start.midpoint(end), ranks[start], ranks[end]);
        let less = |key: &K| key.to_lane().minus(cut.min).widen() >> cut.shift < middle as u64;
        ranks[middle] = from + keys[from..to].partition_point(less);
        ranges.extend([start..middle, middle..end]);
    }
    ranks
}

/// The ranks of the first keys of all roots, and n, from those of a table that has one root for
/// `times` of these.
fn search_further<L: Lane, K: Exact<As = L>>(
    cut: &Cut<L>,
    keys: &[K],
    coarse: &[usize],
    times: usize,
) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(count(cut) + 1);
    for root in 0..count(cut) {
        let (from, to) = (coarse[root / times], coarse[root / times + 1]);
        let start = ranks.last().copied().unwrap_or(0).max(from);
        ranks.push(match root % times {
            0 => from,
            _ => start + keys[start..to].partition_point(|&key| cut.root(key.to_lane()) < root),
        });
    }
    ranks.push(keys.len());
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::DISTRIBUTIONS;

    fn finer_tables_have_the_same_ranks<L: Lane + Exact<As = L>>() {
        for &(distribution, name) in DISTRIBUTIONS {
            let wide = distribution.keys(20_000, L::MAX.widen(), 3);
            let keys: Vec<L> = wide.into_iter().map(L::narrow).collect();
            let (min, max) = (keys[0], keys[keys.len() - 1]);
            let beyond = L::narrow(max.minus(min).widen().saturating_add(1).min(L::MAX.widen()));
            let all = u64::BITS - beyond.widen().leading_zeros();
            let with_roots = |bits: u32| Cut { min, beyond, shift: all - bits };
            let coarse = with_roots(6);
            let ranks = search(&coarse, &keys);
            for bits in [7, 8, 11] {
                let fine = with_roots(bits);
                let further = search_further(&fine, &keys, &ranks, 1 << (coarse.shift - fine.shift));
                assert_eq!(further, search(&fine, &keys), "{name} {bits}");
            }
            // Tables that are asked for in any order.
            let mut roots = Roots::of(&keys);
            for bits in [7, 5, 11, 11, 8, 6] {
                let cut = with_roots(bits);
                assert_eq!(roots.ranks(&cut), search(&cut, &keys), "{name} {bits}");
            }
        }
    }

    #[test]
    fn roots_that_are_cut_further_begin_where_a_search_finds_them() {
        finer_tables_have_the_same_ranks::<u32>();
        finer_tables_have_the_same_ranks::<u64>();
    }
}
