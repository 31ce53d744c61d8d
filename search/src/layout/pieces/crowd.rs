//! How many keys would stand in crowded lines: the estimates that plans compare.

use core::ops::Range;

use super::cost::Costs;
use super::plan::{Cuts, Pieces};
use crate::lane::{Exact, Lane};
use crate::scale::Scale;

/// Stretches of keys that are looked at to estimate how many stand in crowded lines.
const SAMPLED_STRETCHES: usize = 128;

/// The most keys of such a stretch.
const KEYS_PER_STRETCH: usize = 256;

/// Cells that are looked at to estimate the same.
const SAMPLED_CELLS: usize = 96;

impl<L: Lane> Pieces<L> {
    /// The hundredths of keys that stand in crowded lines.
    pub(super) fn crowded_percent<K: Exact<As = L>>(
        &self,
        costs: &Costs,
        keys: &[K],
        cuts: &Cuts,
        scale: &dyn Fn(Range<usize>) -> Scale<L>,
    ) -> usize {
        if costs.looks_closer {
            return self.crowded_in_stretches(keys, cuts, scale);
        }
        self.crowded_in_cells(keys, cuts, scale)
    }

    /// The hundredths of keys that stand in crowded lines, from stretches of keys that are spread
    /// over all cells, which `scale` maps to lines.
    fn crowded_in_stretches<K: Exact<As = L>>(
        &self,
        keys: &[K],
        cuts: &Cuts,
        scale: &dyn Fn(Range<usize>) -> Scale<L>,
    ) -> usize {
        let (mut looked_at, mut crowded) = (0, 0);
        let share = keys.len() / SAMPLED_STRETCHES;
        for stretch in 0..SAMPLED_STRETCHES {
            let mut rank = share * stretch;
            let end = keys.len().min(rank + (share / 8).clamp(KEYS_PER_STRETCH / 8, KEYS_PER_STRETCH));
            let mut cell = cuts.ranks.partition_point(|&first| first <= rank);
            while rank < end {
                let (first, behind) = (cuts.ranks[cell - 1], cuts.ranks[cell]);
                let some = &keys[rank..behind.min(end)];
                if !some.is_empty() {
                    looked_at += some.len();
                    crowded += self.crowded_keys(some, scale(first..behind));
                }
                (rank, cell) = (behind.min(end), cell + 1);
            }
        }
        100 * crowded / looked_at.max(1)
    }

    /// The keys of one cell, mapped to lines by `scale`, that stand in crowded lines.
    fn crowded_keys<K: Exact<As = L>>(&self, keys: &[K], scale: Scale<L>) -> usize {
        let capacity = self.inner.digit.capacity();
        let most = capacity * capacity / 2;
        let line = |rank: usize| scale.locate(keys[rank].to_lane()).0;
        // Of a line with more keys than its capacity two of the ranks share it that are so far
        // apart, wherever it begins. Most other keys need not be looked at.
        let step = capacity.div_ceil(2);
        let (mut rank, mut crowded) = (0, 0);
        while rank + step < keys.len() {
            let here = line(rank);
            if line(rank + step) != here {
                rank += step;
                continue;
            }
            let before = rank - rank.min(step);
            let first =
                before + keys[before..rank].partition_point(|key| scale.locate(key.to_lane()).0 < here);
            if first + capacity >= keys.len() || line(first + capacity) != here {
                rank += step;
                continue;
            }
            let behind = &keys[rank + step..];
            rank += step + behind.partition_point(|key| scale.locate(key.to_lane()).0 <= here);
            // A line that is nearly too crowded for a directory makes its cell take more lines.
            let count = rank - first;
            crowded += if count > most { 8 * count } else { count };
        }
        crowded
    }

    /// [`Pieces::crowded_in_stretches`] from a sample of cells with keys, of which the first keys
    /// are looked at: the choices of processors whose costs were measured so are kept.
    fn crowded_in_cells<K: Exact<As = L>>(
        &self,
        keys: &[K],
        cuts: &Cuts,
        scale: &dyn Fn(Range<usize>) -> Scale<L>,
    ) -> usize {
        let (mut looked_at, mut crowded) = (0, 0);
        let stride = (keys.len() / SAMPLED_CELLS).max(1);
        let mut next = 0;
        for pair in cuts.ranks.windows(2).filter(|pair| pair[0] < pair[1]) {
            // Large cells are looked at in proportion to their keys.
            if pair[1] <= next {
                continue;
            }
            next = pair[1] + stride;
            let sampled = pair[0]..pair[1].min(pair[0] + 4096);
            looked_at += sampled.len();
            crowded += self.crowded_keys(&keys[sampled.clone()], scale(sampled));
        }
        100 * crowded / looked_at.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::DIRECT_LOADS;
    use super::*;
    use crate::sample::DISTRIBUTIONS;
    use alloc::vec::Vec;

    #[test]
    fn crowded_keys_are_those_that_a_count_of_each_line_finds() {
        for &(distribution, name) in DISTRIBUTIONS {
            let wide = distribution.keys(30_000, u64::from(u32::MAX), 9);
            let keys: Vec<u32> = wide.into_iter().map(|key| key as u32).collect();
            let mut plan = Pieces::with_roots(&keys, |bits| bits).unwrap();
            for (digit, load) in DIRECT_LOADS.into_iter().take(3) {
                plan.inner.digit = digit;
                let scale = Scale::new(keys[0], keys[keys.len() - 1], keys.len() / load);
                let (capacity, mut expected) = (digit.capacity(), 0);
                for line in keys.chunk_by(|&a, &b| scale.locate(a).0 == scale.locate(b).0) {
                    expected += match line.len() {
                        count if count <= capacity => 0,
                        count if count > capacity * capacity / 2 => 8 * count,
                        count => count,
                    };
                }
                assert_eq!(plan.crowded_keys(&keys, scale), expected, "{name} {digit:?}");
            }
        }
    }
}
