//! The ranks of roots. Few are searched. Where there are many, all keys are passed once, for all
//! tables that may follow.

use alloc::vec::Vec;
use core::ops::Range;

use crate::cut::Cut;
use crate::lane::{Exact, Lane};

/// The most roots that are cut into lines, as a binary logarithm.
pub(super) const DIRECT_ROOTS_BITS_MAX: u32 = 16;

/// Fewest keys for each root that is cut into lines.
const KEYS_PER_DIRECT_ROOT: usize = 8;

/// The binary logarithm of the most roots of `n` keys that are cut into lines, or `None` where keys
/// are too few.
pub(super) fn finest_roots_bits(n: usize) -> Option<u32> {
    // With two bits at least a root spans fewer values than a lane has, so it can be shifted.
    let bits = (n / KEYS_PER_DIRECT_ROOT).checked_ilog2().filter(|&bits| bits >= 2)?;
    Some(bits.min(DIRECT_ROOTS_BITS_MAX))
}

/// To search a root takes as long as to pass so many keys.
const KEYS_PER_SEARCH: usize = 1024;

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
        let coarser = self.tables.last();
        if coarser.is_none() || count(cut) < self.keys.len() / KEYS_PER_SEARCH {
            let ranks = match coarser {
                Some((coarse, ranks)) => search_further(cut, self.keys, ranks, 1 << (coarse - shift)),
                None => search(cut, self.keys),
            };
            self.tables.push((shift, ranks.clone()));
            return ranks;
        }
        let finest = Cut { shift: self.finest_shift(cut).min(shift), ..*cut };
        self.tables.push((finest.shift, pass(&finest, self.keys)));
        self.ranks(cut)
    }

    /// Where the first key stands that is so far from the smallest one or farther, as the finest
    /// table tells: a range of ranks, both ends of which it may be.
    pub(super) fn around(&self, distance: u64) -> Range<usize> {
        let Some((shift, ranks)) = self.tables.last() else { return 0..self.keys.len() };
        let at = |root: u64| ranks[(ranks.len() - 1).min(root as usize)];
        let root = distance >> shift;
        let is_exact = root << shift == distance;
        at(root)..if is_exact { at(root) } else { at(root + 1) }
    }

    /// The shift of the finest table that plans ask for.
    fn finest_shift<L: Lane>(&self, cut: &Cut<L>) -> u32 {
        let bits = u64::BITS - cut.beyond.widen().leading_zeros();
        bits.saturating_sub(finest_roots_bits(self.keys.len()).unwrap_or(0))
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

/// The ranks of the first keys of all roots, and n, from all keys, which are sorted.
fn pass<L: Lane, K: Exact<As = L>>(cut: &Cut<L>, keys: &[K]) -> Vec<usize> {
    const STRETCH: usize = 16;
    const NONE: usize = usize::MAX;
    let count = count(cut);
    let mut ranks = alloc::vec![NONE; count];
    let root = |key: &K| cut.root(key.to_lane()).min(count - 1);
    // From the last key to the first: what a root keeps is its first key. A stretch of one root is
    // one entry; the keys of others are entered one by one, since branches on where a root ends
    // cannot be predicted.
    let (stretches, rest) = keys.as_chunks::<STRETCH>();
    let behind = keys.len() - rest.len();
    for (place, key) in rest.iter().enumerate().rev() {
        ranks[root(key)] = behind + place;
    }
    for (number, stretch) in stretches.iter().enumerate().rev() {
        let first = root(&stretch[0]);
        if first != root(&stretch[STRETCH - 1]) {
            for (place, key) in stretch.iter().enumerate().rev() {
                ranks[root(key)] = number * STRETCH + place;
            }
        }
        ranks[first] = number * STRETCH;
    }
    // A root without keys begins where the next one does.
    let mut next = keys.len();
    for rank in ranks.iter_mut().rev() {
        next = if *rank == NONE { next } else { *rank };
        *rank = next;
    }
    ranks.push(keys.len());
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::DISTRIBUTIONS;

    fn a_pass_finds_what_a_search_finds<L: Lane + Exact<As = L>>() {
        for &(distribution, name) in DISTRIBUTIONS {
            let wide = distribution.keys(20_000, L::MAX.widen(), 3);
            let keys: Vec<L> = wide.into_iter().map(L::narrow).collect();
            let (min, max) = (keys[0], keys[keys.len() - 1]);
            let beyond = L::narrow(max.minus(min).widen().saturating_add(1).min(L::MAX.widen()));
            let all = u64::BITS - beyond.widen().leading_zeros();
            let with_roots = |bits: u32| Cut { min, beyond, shift: all - bits };
            let ranks = search(&with_roots(4), &keys);
            for bits in [6, 7, 8, 11, 14] {
                let cut = with_roots(bits);
                let further = search_further(&cut, &keys, &ranks, 1 << (bits - 4));
                assert_eq!(further, search(&cut, &keys), "{name} {bits}");
                assert_eq!(pass(&cut, &keys), search(&cut, &keys), "{name} {bits}");
            }
            // Tables that are asked for in any order.
            let mut roots = Roots::of(&keys);
            for bits in [3, 5, 4, 7, 11, 11, 8, 6, 14] {
                let cut = with_roots(bits);
                assert_eq!(roots.ranks(&cut), search(&cut, &keys), "{name} {bits}");
            }
        }
    }

    #[test]
    fn roots_begin_where_a_search_finds_them() {
        a_pass_finds_what_a_search_finds::<u32>();
        a_pass_finds_what_a_search_finds::<u64>();
    }
}
