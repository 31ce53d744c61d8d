//! How many keys would stand in crowded lines: the estimates that plans compare.

use core::ops::Range;

use super::cost::Costs;
use super::plan::{scale_of_cell, Pieces};
use crate::lane::{Exact, Lane};
use crate::layout::split::digit::{Width, WIDTHS};
use crate::scale::Scale;

/// Stretches of keys that are looked at to estimate how many stand in crowded lines.
const SAMPLED_STRETCHES: usize = 128;

/// The most keys of such a stretch.
const KEYS_PER_STRETCH: usize = 256;

/// Cells that are looked at to estimate the same.
const SAMPLED_CELLS: usize = 96;

/// The cells of a plan that is not cut yet, each found from a key.
struct Cells<'a, L: Lane, K> {
    plan: &'a Pieces<L>,
    keys: &'a [K],
    /// The ranks of the roots' first keys, and n.
    roots: &'a [usize],
    per_cell: usize,
}

impl<L: Lane, K: Exact<As = L>> Cells<'_, L, K> {
    /// The ranks of the cell with the key of rank `rank`.
    fn around(&self, rank: usize) -> Range<usize> {
        let (cut, keys) = (&self.plan.cut, self.keys);
        let root = cut.root(keys[rank].to_lane());
        let held = self.roots[root]..self.roots[root + 1];
        let below = cut.shift - self.plan.cells_of_root(root, held.len(), self.per_cell).0;
        let number = |rank: usize| keys[rank].to_lane().minus(cut.min).widen() >> below;
        let cell = number(rank);
        let end = self.plan.cell_end(keys, rank..held.end, cell, below);
        // The first key is searched in steps that double.
        let mut step = 1;
        while rank - held.start >= step && number(rank - step) == cell {
            step *= 2;
        }
        let from = held.start.max((rank + 1).saturating_sub(step));
        let to = rank - step / 2;
        let before = |key: &K| key.to_lane().minus(cut.min).widen() >> below < cell;
        from + keys[from..to].partition_point(before)..end
    }

    /// The hundredths of keys that stand in crowded lines, for one width of digits or for each that
    /// keys have.
    fn crowded_percents(&self, costs: &Costs, only: Option<Width>) -> impl Iterator<Item = usize> {
        let is_asked = move |digit: Width| digit.bits() <= L::BITS && only.is_none_or(|only| only == digit);
        let (mut looked_at, mut crowded) = (0, [0; WIDTHS.len()]);
        look_at_some(costs, self.keys.len(), &|rank| self.around(rank), &mut |some, map| {
            looked_at += some.len();
            let (some, map) = (&self.keys[some], &self.keys[map]);
            for ((digit, load), crowded) in WIDTHS.into_iter().zip(&mut crowded) {
                if is_asked(digit) {
                    *crowded += crowded_keys(digit, some, scale_of_cell(map, digit, load, 1));
                }
            }
        });
        let asked = WIDTHS.into_iter().zip(crowded).filter(move |((digit, _), _)| is_asked(*digit));
        asked.map(move |(_, crowded)| 100 * crowded / looked_at.max(1))
    }
}

/// Calls `look` for some keys: with their ranks, which lie in one cell, and with the ranks from
/// which the map of the cell is made. `cell` finds the cell of a key.
fn look_at_some(
    costs: &Costs,
    n: usize,
    cell: &dyn Fn(usize) -> Range<usize>,
    look: &mut dyn FnMut(Range<usize>, Range<usize>),
) {
    if !costs.looks_closer {
        // The first keys of cells: the choices of processors whose costs were measured so are kept.
        let mut next = 0;
        while next < n {
            // Large cells are looked at in proportion to their keys.
            let Range { start, end } = cell(next);
            let sampled = start..end.min(start + 4096);
            look(sampled.clone(), sampled);
            next = end + (n / SAMPLED_CELLS).max(1);
        }
        return;
    }
    // Stretches of keys that are spread over all cells.
    let share = n / SAMPLED_STRETCHES;
    for stretch in 0..SAMPLED_STRETCHES {
        let mut rank = share * stretch;
        let end = n.min(rank + (share / 8).clamp(KEYS_PER_STRETCH / 8, KEYS_PER_STRETCH));
        while rank < end {
            let cell = cell(rank);
            let behind = cell.end.min(end);
            look(rank..behind, cell);
            rank = behind;
        }
    }
}

impl<L: Lane> Pieces<L> {
    /// The hundredths of keys that stand in crowded lines where roots begin at `ranks` and `scale`
    /// maps the keys of one to lines.
    pub(super) fn crowded_in_roots<K: Exact<As = L>>(
        &self,
        costs: &Costs,
        keys: &[K],
        ranks: &[usize],
        scale: &dyn Fn(usize) -> Scale<L>,
    ) -> usize {
        let (mut looked_at, mut crowded) = (0, 0);
        let root = |rank: usize| self.cut.root(keys[rank].to_lane());
        let held = |rank: usize| ranks[root(rank)]..ranks[root(rank) + 1];
        look_at_some(costs, keys.len(), &held, &mut |some, _| {
            looked_at += some.len();
            crowded += crowded_keys(self.inner.digit, &keys[some.clone()], scale(root(some.start)));
        });
        100 * crowded / looked_at.max(1)
    }

    /// The hundredths of keys that stand in crowded lines where roots begin at `roots` and cells
    /// have about `per_cell` keys, for one width of digits or for each that keys have.
    pub(super) fn crowded_in_cells<K: Exact<As = L>>(
        &self,
        costs: &Costs,
        keys: &[K],
        roots: &[usize],
        per_cell: usize,
        only: Option<Width>,
    ) -> impl Iterator<Item = usize> {
        Cells { plan: self, keys, roots, per_cell }.crowded_percents(costs, only)
    }
}

/// The keys of one cell, mapped to lines by `scale`, that stand in crowded lines.
fn crowded_keys<L: Lane, K: Exact<As = L>>(digit: Width, keys: &[K], scale: Scale<L>) -> usize {
    let capacity = digit.capacity();
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
        let first = before + keys[before..rank].partition_point(|key| scale.locate(key.to_lane()).0 < here);
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
            for (digit, load) in DIRECT_LOADS.into_iter().take(3) {
                let scale = Scale::new(keys[0], keys[keys.len() - 1], keys.len() / load);
                let (capacity, mut expected) = (digit.capacity(), 0);
                for line in keys.chunk_by(|&a, &b| scale.locate(a).0 == scale.locate(b).0) {
                    expected += match line.len() {
                        count if count <= capacity => 0,
                        count if count > capacity * capacity / 2 => 8 * count,
                        count => count,
                    };
                }
                assert_eq!(crowded_keys(digit, &keys, scale), expected, "{name} {digit:?}");
            }
        }
    }
}
