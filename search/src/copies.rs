//! One key that many keys are equal to, such as a zero or a missing value: its copies are counted
//! and not stored.
//!
//! **The problem.** Lines hold some dozen keys. A key with ten thousand copies would need hundreds
//! of lines between two neighbouring values, so the layouts that read one line a query refuse such
//! keys, however evenly the others are spread.
//!
//! **The idea.** The layout gets the keys without the copies beyond the first. A rank there becomes
//! a rank among all keys by one comparison: above the key, the copies are added.
//!
//! **Leaves out** a second such key, and strings and keys of 128 bits, whose layouts hold prefixes.

use alloc::vec::Vec;
use core::ops::Range;

use crate::lane::{Exact, Lane};

/// A key's copies are counted if at least one key in so many is a copy of it.
const SHARE: usize = 16;

/// The fewest copies that are counted: as many keys fit behind one line of any layout.
const COPIES_MIN: usize = 4096;

/// The most copies for each other key. A file with more describes no index.
const COPIES_EACH_MAX: usize = 256;

/// Queries between two passes that add copies: their ranks are then still near.
const CHUNK: usize = 1 << 12;

/// The copies of a key that its layout does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copies<L> {
    /// The key.
    pub(crate) key: L,
    /// The rank of the one copy that the layout holds.
    first: usize,
    /// The number of the others.
    pub(crate) count: usize,
}

impl<L: Lane> Copies<L> {
    /// No copies.
    pub(crate) const NONE: Copies<L> = Copies { key: L::MAX, first: 0, count: 0 };

    /// The copies of `key`, whose first one has the rank `first`.
    pub(crate) fn of(key: L, first: usize, count: usize) -> Copies<L> {
        Copies { key, first, count }
    }

    /// The copies of the key that takes a large part of the sorted `keys`, if there is one. Costs a
    /// few searches.
    pub(crate) fn find<K: Exact<As = L>>(keys: &[K]) -> Option<Copies<L>> {
        if keys.len() <= COPIES_MIN {
            return None;
        }
        let step = keys.len() / SHARE / 2;
        let lane = |at: usize| keys[at].to_lane();
        // A run of so many keys begins before one of these places and ends behind the next.
        let equal = (step..keys.len()).step_by(step).filter(|&at| lane(at) == lane(at - step));
        let runs = equal.map(|at| {
            let key = lane(at);
            let first = keys[..at].partition_point(|other| other.to_lane() < key);
            let behind = at + keys[at..].partition_point(|other| other.to_lane() <= key);
            Copies { key, first, count: behind - first - 1 }
        });
        let most = runs.max_by_key(|copies| copies.count)?;
        let is_large = most.count >= COPIES_MIN.max(keys.len() / SHARE);
        (is_large && are_plausible(keys.len(), most.count)).then_some(most)
    }

    /// The keys without the copies.
    pub(crate) fn without<K: Copy>(&self, keys: &[K]) -> Vec<K> {
        let (upper, lower) = (&keys[self.first + 1 + self.count..], &keys[..=self.first]);
        [lower, upper].concat()
    }

    /// What a rank in the layout lacks for `query`.
    #[inline(always)]
    pub(crate) fn below(&self, query: L) -> usize {
        if query > self.key {
            self.count
        } else {
            0
        }
    }

    /// Calls `search` with pieces of the queries, and adds to their ranks in the layout what they
    /// lack.
    #[inline]
    pub(crate) fn ranks(&self, queries: &[L], out: &mut [usize], search: impl Fn(&[L], &mut [usize])) {
        if self.count == 0 {
            return search(queries, out);
        }
        assert_eq!(queries.len(), out.len(), "as many answers as queries");
        for (queries, out) in queries.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            search(queries, out);
            for (&query, rank) in queries.iter().zip(out) {
                *rank += self.below(query);
            }
        }
    }

    /// The rank in the layout of the key with a rank among all keys.
    pub(crate) fn stored(&self, rank: usize) -> usize {
        match rank > self.first {
            true => rank.saturating_sub(self.count).max(self.first),
            false => rank,
        }
    }

    /// Ranks of all keys as ranks in the layout before the copies, a number of copies, and ranks in
    /// the layout behind them.
    pub(crate) fn cut(&self, ranks: Range<usize>) -> (Range<usize>, usize, Range<usize>) {
        let (start, end) = (self.first + 1, self.first + 1 + self.count);
        let before = ranks.start.min(start)..ranks.end.min(start);
        let copies = ranks.start.clamp(start, end)..ranks.end.clamp(start, end);
        let behind = ranks.start.max(end) - self.count..ranks.end.max(end) - self.count;
        (before, copies.len(), behind)
    }
}

/// Whether an index of `n` keys may count so many copies.
pub(crate) fn are_plausible(n: usize, count: usize) -> bool {
    count < n && count / COPIES_EACH_MAX <= n - count && u32::try_from(count).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_lead_to_the_layout_and_back() {
        let all: Vec<u32> = (0..7).chain([7; 5]).chain(8..12).collect();
        let copies = Copies::of(7, 7, 4);
        let stored = copies.without(&all);
        assert_eq!(stored, (0..12).collect::<Vec<u32>>());
        for (rank, &key) in all.iter().enumerate() {
            assert_eq!(stored[copies.stored(rank)], key);
            let first = all.partition_point(|&other| other < key);
            assert_eq!(stored.partition_point(|&other| other < key) + copies.below(key), first);
        }
        for start in 0..=all.len() {
            for end in start..=all.len() {
                let (before, count, behind) = copies.cut(start..end);
                let middle = core::iter::repeat_n(&7, count);
                let found: Vec<u32> =
                    stored[before].iter().chain(middle).chain(&stored[behind]).copied().collect();
                assert_eq!(found, all[start..end], "{start}..{end}");
            }
        }
    }

    #[test]
    fn only_a_key_of_many_copies_is_found() {
        let mut keys: Vec<u32> = (0..100_000).collect();
        assert_eq!(Copies::find(&keys), None);
        keys[30_000..36_500].fill(30_000);
        assert_eq!(Copies::find(&keys), Some(Copies::of(30_000, 30_000, 6_499)));
        keys[30_000..34_000].fill(29_999);
        assert_eq!(Copies::find(&keys), None);
        assert_eq!(Copies::find(&[5u64; 100_000]), None, "nearly all keys are equal: the tree takes them");
        assert_eq!(Copies::<u32>::find::<u32>(&[]), None);
        assert!(
            are_plausible(257, 256) && !are_plausible(258, 257 + 1) && !are_plausible(usize::MAX, 1 << 40)
        );
    }
}
