//! The plan of pieces: where the range is cut, and how many lines each cell gets. It is made from
//! the ranks of the cuts, which are searched, and from a sample of the cells, before any key is
//! placed.

use alloc::vec::Vec;
use core::ops::Range;

use super::cost::Costs;
use super::roots::{finest_roots_bits, Roots, DIRECT_ROOTS_BITS_MAX};
use super::Cell;
use crate::cut::{Cut, Word, BELOW_BITS};
use crate::lane::{Exact, Lane};
use crate::layout::method::{Numbers, Refusal};
use crate::layout::split::digit::{Width, DIRECTORY, WIDTHS};
use crate::layout::split::Split;
use crate::line::{lines_for, LINE_BYTES};
use crate::scale::Scale;

/// The fewest roots: a cell then covers a quarter of all values at most, so its multiplier is not
/// 0.
const ROOTS_MIN: usize = 4;

/// The most roots.
const ROOTS_MAX: usize = 1024;

/// Fewest keys for each root.
const KEYS_PER_ROOT: usize = 64;

/// The fewest roots that are cut into lines, unless there are few keys, as a binary logarithm.
const DIRECT_ROOTS_BITS_MIN: u32 = 10;

/// With more keys, in hundredths, in crowded lines the number of roots is doubled twice.
const VERY_CROWDED_PERCENT: usize = 40;

/// With as many keys, in hundredths, in crowded lines two tables of roots are enough: gaps are too
/// wide for a single cut.
const HOPELESS_PERCENT: usize = 99;

/// The most keys of a line on average where roots are cut into lines: their number is a power of
/// two, so the average is between half of this and this.
pub(super) const DIRECT_LOADS: [(Width, usize); 4] =
    [(Width::Bits8, 46), (Width::Bits16, 21), (Width::Bits32, 9), (Width::Bits64, 4)];

/// The most bytes of lines for each byte of keys where roots are cut into lines.
const DIRECT_GROWTH: usize = 3;

/// Keys of a cell on average, coarsest first: a coarse table stays in a nearer cache, a fine one
/// follows a rough distribution.
const KEYS_PER_CELL: [usize; 4] = [2048, 512, 128, 32];

/// A table of cells is not made finer when it would outgrow this many cells.
const CELLS_MAX: usize = 1 << 18;

/// So few cells of keys that are near are cut in less time than crowds are estimated in.
const CELLS_CUT_AT_ONCE: usize = 2048;

/// A tree of fewer levels counts as one of as many: where keys are few, any layout will do.
const LEVELS_MIN: usize = 4;

/// n keys behind tables: `inner` has the lines, as a split layout without a map of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pieces<L: Lane> {
    /// Its `beyond` is one more than the largest key's distance from `min` (the distance itself
    /// when there is no room for more).
    pub(super) cut: Cut<L>,
    pub(super) cells: usize,
    pub(super) inner: Split<L>,
}

/// A plan with its estimated cost and its cuts.
pub(super) type Planned<L> = (usize, Pieces<L>, Cuts);

/// The levels of a tree of `n` keys.
fn tree_levels<L: Lane>(n: usize) -> usize {
    let lines = core::iter::successors(Some(lines_for::<L>(n)), |&lines| {
        (lines > 1).then(|| lines.div_ceil(L::PER_LINE + 1))
    });
    lines.count()
}

/// The cuts of a plan: for each root, how many cells it has; for each cell, the rank of its first
/// key, and at the end n.
#[derive(Clone)]
pub(super) struct Cuts {
    /// The binary logarithm of each root's number of cells.
    pub(super) logarithms: Vec<u32>,
    pub(super) ranks: Vec<usize>,
}

impl<L: Lane> Pieces<L> {
    /// The number of roots.
    #[inline(always)]
    pub(super) fn roots(&self) -> usize {
        (self.cut.beyond.widen() >> (self.cut.shift & 63)) as usize + 1
    }

    /// Lines of the roots' table.
    #[inline(always)]
    pub(super) fn root_lines(&self) -> usize {
        lines_for::<u32>(self.roots())
    }

    /// Lines of both tables.
    #[inline(always)]
    pub(super) fn table_lines(&self) -> usize {
        self.root_lines() + self.cells.div_ceil(LINE_BYTES / size_of::<Cell<L>>())
    }

    /// The shape of `n` keys with a file's numbers, or `None` when they describe none.
    pub(super) fn of_numbers(n: usize, numbers: Numbers) -> Option<Pieces<L>> {
        let lane = |number: u64| (number <= L::MAX.widen()).then(|| L::narrow(number));
        let count = |number: u64| (number < u64::from(DIRECTORY)).then_some(number as usize);
        let (min, beyond, shift) = (lane(numbers[0])?, lane(numbers[1])?, numbers[2] as u32);
        let (digit, _) = WIDTHS
            .into_iter()
            .find(|(digit, _)| u64::from(digit.bits()) == numbers[2] >> 32 && digit.bits() <= L::BITS)?;
        let scale = Scale::of_buckets(count(numbers[4])?);
        let inner = Split { n: count(n as u64)?, scale, digit, blocks: count(numbers[5])? };
        let cells = count(numbers[3])?;
        let most = if cells == 0 { 2 << DIRECT_ROOTS_BITS_MAX } else { ROOTS_MAX as u64 };
        let fits = shift < L::BITS && beyond.widen() >> shift <= most;
        fits.then_some(Pieces { cut: Cut { min, beyond, shift }, cells, inner })
    }

    /// The plan for the sorted `keys`: a shape whose lines are not counted yet, and its cuts. Of
    /// all ways to cut that are tried, it has the lowest estimated cost.
    ///
    /// # Errors
    /// [`Refusal::TooMany`]; [`Refusal::Crowded`] when equal keys, or keys too close together,
    /// would crowd so many lines that the tree costs less.
    pub(super) fn plan<K: Exact<As = L>>(keys: &[K], costs: &Costs) -> Result<(Pieces<L>, Cuts), Refusal> {
        if keys.len() >= DIRECTORY as usize / 2 {
            return Err(Refusal::TooMany);
        }
        let mut roots = Roots::of(keys);
        let direct = Pieces::plan_direct(keys, &mut roots, costs);
        // No way through cells costs less than this.
        let direct = match direct {
            Some((cost, plan, cuts)) if cost < costs.cells => return Ok((plan, cuts)),
            other => other,
        };
        let distance = costs.distance(size_of_val(keys));
        let levels = tree_levels::<L>(keys.len()).max(LEVELS_MIN);
        let tree = costs.level * levels + costs.far_tree[distance];
        // What costs more than another way is not looked at. Directories are cut in less time than
        // many cells, but not where few cells are better than any directories.
        let lowest = |way: &Option<Planned<L>>| way.as_ref().map_or(tree, |&(cost, ..)| cost.min(tree));
        let (most, directories) = (lowest(&direct), costs.deep[distance]);
        let mut cells = Pieces::plan_cells(keys, &mut roots, costs, most.min(directories))?;
        let mut deep = None;
        if cells.is_none() && most > directories {
            deep = Pieces::plan_deep(keys, &mut roots, costs, most);
            cells = Pieces::plan_cells(keys, &mut roots, costs, most.min(lowest(&deep)))?;
        }
        let best = [direct, cells, deep].into_iter().flatten().min_by_key(|(cost, ..)| *cost);
        let accepted = best.filter(|(cost, ..)| *cost <= tree);
        accepted.map(|(_, plan, cuts)| (plan, cuts)).ok_or(Refusal::Crowded)
    }

    /// The plan whose roots are cut into cells with the lowest estimated cost, or `None` where
    /// there is none. Tables that alone cost more than `most` are not made.
    ///
    /// # Errors
    /// [`Refusal::TooMany`].
    pub(super) fn plan_cells<K: Exact<As = L>>(
        keys: &[K],
        roots: &mut Roots<'_, K>,
        costs: &Costs,
        most: usize,
    ) -> Result<Option<Planned<L>>, Refusal> {
        let roots_bits = (keys.len() / KEYS_PER_ROOT).clamp(ROOTS_MIN, ROOTS_MAX).ilog2();
        let Some(mut plan) = Pieces::with_roots(keys, |bits| bits.saturating_sub(roots_bits)) else {
            return Ok(None);
        };
        let known = roots;
        let roots = known.ranks(&plan.cut);
        let mut best: Option<Planned<L>> = None;
        let mut is_any_known = false;
        // Many keys are cut as coarsely as few: a table that is small stays near.
        let coarsest = (keys.len() / ROOTS_MAX / 2).next_power_of_two().max(KEYS_PER_CELL[0]);
        let coarser = core::iter::successors(Some(coarsest), |per_cell| Some(per_cell / 4));
        let coarser = coarser.take_while(|&per_cell| per_cell > KEYS_PER_CELL[0]);
        let distance = costs.distance(size_of_val(keys));
        let cut_at_once = if distance == 0 { CELLS_CUT_AT_ONCE } else { 0 };
        for per_cell in coarser.chain(KEYS_PER_CELL) {
            plan.cells = plan.cells_of_roots(&roots, per_cell).map(|(_, cells)| cells as usize).sum();
            let least = costs.cells + costs.table(plan.cells * size_of::<Cell<L>>());
            let is_too_large = is_any_known && plan.cells > CELLS_MAX;
            if least > most || is_too_large || best.as_ref().is_some_and(|&(cost, ..)| cost <= least) {
                break;
            }
            is_any_known = true;
            let crowded = |digit: Option<Width>| {
                let percents = plan.crowded_in_cells(costs, keys, &roots, per_cell, digit);
                percents.map(|crowded| least + crowded * costs.crowded[distance])
            };
            let is_worth = |cost: usize| cost <= most && best.as_ref().is_none_or(|&(best, ..)| cost < best);
            // Before many cells are cut, crowds are estimated for every width of digits, from the
            // cells of some keys alone.
            if plan.cells > cut_at_once && !crowded(None).any(is_worth) {
                continue;
            }
            let cuts = plan.cut_cells(keys, known, &roots, per_cell);
            let digit = plan.width(keys, &cuts)?;
            let cost = crowded(Some(digit)).next().filter(|&cost| is_worth(cost));
            if let Some(cost) = cost {
                plan.inner.digit = digit;
                best = Some((cost, plan, cuts));
            }
        }
        Ok(best)
    }

    /// The plan whose roots are cut into lines with the lowest estimated cost, or `None` where
    /// lines would take too much memory.
    fn plan_direct<K: Exact<As = L>>(
        keys: &[K],
        roots: &mut Roots<'_, K>,
        costs: &Costs,
    ) -> Option<Planned<L>> {
        let finest = finest_roots_bits(keys.len())?;
        let mut roots_bits = finest.min(DIRECT_ROOTS_BITS_MIN);
        let mut best: Option<Planned<L>> = None;
        let mut tried = 0;
        while roots_bits <= finest {
            let mut plan = Pieces::with_roots(keys, |bits| bits.saturating_sub(roots_bits))?;
            let least = costs.direct + costs.table(plan.roots() * size_of::<u32>());
            if plan.cut.shift < 2 || best.as_ref().is_some_and(|&(cost, ..)| cost <= least) {
                break;
            }
            let (lines, cuts) = plan.choose_width(roots.ranks(&plan.cut))?;
            let crowded = plan.crowded_in_roots(costs, keys, &cuts.ranks, &|root| {
                plan.scale_of_root(root, plan.cut.shift - cuts.logarithms[root])
            });
            let cost = least + crowded * costs.crowded[costs.distance(size_of_val(keys))];
            let fits = lines <= DIRECT_GROWTH * size_of_val(keys) / LINE_BYTES + 64;
            let is_numbered = lines < 1 << (u32::BITS - BELOW_BITS);
            if fits && is_numbered && best.as_ref().is_none_or(|&(lowest, ..)| cost < lowest) {
                best = Some((cost, plan, cuts));
            }
            tried += 1;
            if tried > 1 && crowded >= HOPELESS_PERCENT {
                break;
            }
            let step = if crowded > VERY_CROWDED_PERCENT { 2 } else { 1 };
            roots_bits += if costs.looks_closer { step.min(finest - roots_bits).max(1) } else { step };
        }
        best
    }

    /// A plan without cuts, whose roots span as many values as `shift` says for the number of bits
    /// of distances; `None` without keys.
    pub(super) fn with_roots<K: Exact<As = L>>(keys: &[K], shift: impl Fn(u32) -> u32) -> Option<Pieces<L>> {
        let (min, max) = (keys.first()?.to_lane(), keys.last()?.to_lane());
        let span = max.minus(min);
        let beyond = if span < L::MAX { L::narrow(span.widen() + 1) } else { span };
        let bits = u64::BITS - beyond.widen().leading_zeros();
        let inner = Split { n: keys.len(), scale: Scale::of_buckets(0), digit: Width::Bits32, blocks: 0 };
        Some(Pieces { cut: Cut { min, beyond, shift: shift(bits) }, cells: 0, inner })
    }

    /// Chooses the width of digits that takes the fewest lines, for roots that begin at `ranks` and
    /// are cut into lines. Returns the lines and the cuts.
    fn choose_width(&mut self, ranks: Vec<usize>) -> Option<(usize, Cuts)> {
        let widths = DIRECT_LOADS.into_iter().filter(|(digit, _)| digit.bits() <= L::BITS);
        let lines = widths.map(|(digit, load)| {
            let lines = self.lines_of_cut_roots(&ranks, |count| self.lines_logarithm(count, digit, load));
            (lines, digit, load)
        });
        let (lines, digit, load) = lines.min_by_key(|&(lines, ..)| lines)?;
        self.inner.digit = digit;
        let logarithm = |pair: &[usize]| self.lines_logarithm(pair[1] - pair[0], digit, load);
        let logarithms = ranks.windows(2).map(logarithm).collect();
        Some((lines, Cuts { logarithms, ranks }))
    }

    /// The binary logarithm of the number of lines of a root with so many keys: at most `load` in
    /// each on average, which the digits tell apart.
    #[inline(always)]
    fn lines_logarithm(&self, count: usize, digit: Width, load: usize) -> u32 {
        if count == 0 {
            return 0;
        }
        // The fewest doublings of `load` that reach `count`.
        let apart = count.ilog2().saturating_sub(load.ilog2());
        let wanted = apart + u32::from(load << apart < count);
        // A line spans two values at least.
        wanted.max(self.cut.shift.saturating_sub(digit.bits())).min(self.cut.shift - 1)
    }

    /// The lines of a root with keys that is cut into two to the `logarithm`. Distances end at
    /// `beyond`, which may be in the midst of the last root.
    pub(super) fn lines_of_root(&self, number: usize, logarithm: u32) -> usize {
        let first = (number as u64) << logarithm;
        let last = self.cut.beyond.widen() >> (self.cut.shift - logarithm);
        (last.min(first + (1 << logarithm) - 1) - first) as usize + 1
    }

    /// The lines of all roots; neighbours without keys share one.
    pub(super) fn lines_of_roots(&self, cuts: &Cuts) -> usize {
        let mut logarithms = cuts.logarithms.iter();
        self.lines_of_cut_roots(&cuts.ranks, |_| logarithms.next().map_or(0, |&logarithm| logarithm))
    }

    /// [`Pieces::lines_of_roots`] of roots that begin at `ranks`, each cut as `logarithm` says for
    /// its number of keys.
    #[inline(always)]
    fn lines_of_cut_roots(&self, ranks: &[usize], mut logarithm: impl FnMut(usize) -> u32) -> usize {
        let mut is_empty = false;
        let roots = ranks.windows(2).enumerate();
        let lines = roots.map(|(number, pair)| {
            let lines = self.lines_of_root(number, logarithm(pair[1] - pair[0]));
            let shares = core::mem::replace(&mut is_empty, pair[0] == pair[1]) && is_empty;
            if shares {
                0
            } else {
                lines
            }
        });
        lines.sum()
    }

    /// The binary logarithm and the number of the cells of each root, whose ranks are known, if
    /// cells are to have about `per_cell` keys.
    fn cells_of_roots<'a>(
        &'a self,
        roots: &'a [usize],
        per_cell: usize,
    ) -> impl Iterator<Item = (u32, u64)> + 'a {
        let counts = roots.windows(2).map(|ends| ends[1] - ends[0]).enumerate();
        counts.map(move |(root, count)| self.cells_of_root(root, count, per_cell))
    }

    /// The binary logarithm and the number of the cells of a root with `count` keys.
    pub(super) fn cells_of_root(&self, root: usize, count: usize, per_cell: usize) -> (u32, u64) {
        let wanted = count.div_ceil(per_cell).max(1);
        let logarithm = wanted.next_power_of_two().ilog2().min(self.cut.shift);
        let first = (root as u64) << logarithm;
        // Distances end at `beyond`, which may be in the midst of the last root.
        let last = self.cut.beyond.widen() >> (self.cut.shift - logarithm);
        (logarithm, last.min(first + (1 << logarithm) - 1) - first + 1)
    }

    /// Cuts each root into cells of about `per_cell` keys.
    fn cut_cells<K: Exact<As = L>>(
        &self,
        keys: &[K],
        known: &Roots<'_, K>,
        roots: &[usize],
        per_cell: usize,
    ) -> Cuts {
        let ranks = Vec::with_capacity(self.cells + 1);
        let mut cuts = Cuts { logarithms: Vec::with_capacity(roots.len()), ranks };
        for (root, (logarithm, cells)) in self.cells_of_roots(roots, per_cell).enumerate() {
            let below = self.cut.shift - logarithm;
            let first = (root as u64) << logarithm;
            cuts.logarithms.push(logarithm);
            let mut rank = roots[root];
            for cell in first..first + cells - 1 {
                cuts.ranks.push(rank);
                // A table of roots that is finer than cells knows their ends.
                let Range { start, end } = known.around((cell + 1) << below);
                rank = if start < end { self.cell_end(keys, start.max(rank)..end, cell, below) } else { end };
            }
            cuts.ranks.push(rank);
        }
        cuts.ranks.push(keys.len());
        cuts
    }

    /// The rank behind the last key of a cell, searched from its first key in steps that double.
    pub(super) fn cell_end<K: Exact<As = L>>(
        &self,
        keys: &[K],
        ranks: Range<usize>,
        cell: u64,
        below: u32,
    ) -> usize {
        let inside = |key: &K| key.to_lane().minus(self.cut.min).widen() >> below <= cell;
        let mut step = 32;
        while ranks.start + step < ranks.end && inside(&keys[ranks.start + step]) {
            step *= 2;
        }
        let from = if step > 32 { ranks.start + step / 2 } else { ranks.start };
        let to = ranks.end.min(ranks.start + step);
        from + keys[from..to].partition_point(inside)
    }

    /// The width of digits that takes the fewest lines.
    fn width<K: Exact<As = L>>(&self, keys: &[K], cuts: &Cuts) -> Result<Width, Refusal> {
        let mut lines = WIDTHS.map(|_| 0usize);
        for cell in cuts.ranks.windows(2).map(|pair| &keys[pair[0]..pair[1]]) {
            // Loads are known here, so no division is done for each.
            for (lines, (digit, load)) in lines.iter_mut().zip(WIDTHS) {
                *lines = lines.saturating_add(wanted_lines(cell, digit, load));
            }
        }
        let widths = lines.into_iter().zip(WIDTHS).filter(|(_, (digit, _))| digit.bits() <= L::BITS);
        let (lines, (digit, _)) = widths.min_by_key(|&(lines, _)| lines).ok_or(Refusal::Crowded)?;
        if lines < DIRECTORY as usize / 2 {
            Ok(digit)
        } else {
            Err(Refusal::TooMany)
        }
    }

    /// The map of a cell with these keys, with `times` the lines that suffice on average.
    pub(super) fn scale<K: Exact<As = L>>(&self, cell: &[K], times: usize) -> Scale<L> {
        let load =
            WIDTHS.into_iter().find(|(digit, _)| *digit == self.inner.digit).map_or(1, |(_, load)| load);
        scale_of_cell(cell, self.inner.digit, load, times)
    }
}

/// The map of a cell with these keys, with `times` the lines that suffice on average.
pub(super) fn scale_of_cell<L: Lane, K: Exact<As = L>>(
    cell: &[K],
    digit: Width,
    load: usize,
    times: usize,
) -> Scale<L> {
    let (min, max) = (cell[0].to_lane(), cell[cell.len() - 1].to_lane());
    Scale::new(min, max, wanted_lines(cell, digit, load).saturating_mul(times))
}

/// The lines for a cell's keys: as many as keep lines from crowding on average, and as many as
/// digits need to distinguish all values.
pub(super) fn wanted_lines<K: Exact>(cell: &[K], digit: Width, load: usize) -> usize {
    let (Some(min), Some(max)) = (cell.first(), cell.last()) else { return 0 };
    let values = max.to_lane().minus(min.to_lane()).widen() as u128 + 2;
    let needed = usize::try_from((values >> digit.bits()) + 1).unwrap_or(usize::MAX);
    needed.max(cell.len().div_ceil(load))
}

#[cfg(test)]
mod tests {
    use super::super::cost::{FAR, NEAR};
    use super::*;
    use crate::sample::DISTRIBUTIONS;
    use alloc::string::String;

    #[test]
    fn roots_get_the_fewest_lines_that_hold_their_keys() {
        let keys = [0u32, u32::MAX];
        let plan = Pieces::with_roots(&keys, |bits| bits - 10).unwrap();
        for (digit, load) in DIRECT_LOADS.into_iter().take(3) {
            for count in 1..20_000usize {
                let slow = count.div_ceil(load).next_power_of_two().ilog2();
                let slow = slow.max(plan.cut.shift.saturating_sub(digit.bits())).min(plan.cut.shift - 1);
                assert_eq!(plan.lines_logarithm(count, digit, load), slow, "{count} {digit:?}");
            }
        }
    }

    #[test]
    fn a_plan_takes_the_way_that_costs_least() {
        for costs in [&NEAR, &FAR] {
            let planned = |distribution: crate::sample::Distribution| {
                let wide = distribution.keys(50_000, u64::from(u32::MAX), 3);
                let keys: Vec<u32> = wide.into_iter().map(|key| key as u32).collect();
                Pieces::<u32>::plan(&keys, costs).map(|(plan, _)| plan.is_direct())
            };
            assert_eq!(planned(crate::sample::Distribution::Normal), Ok(true));
            assert_eq!(planned(crate::sample::Distribution::Prefixes), Ok(false));
            assert_eq!(planned(crate::sample::Distribution::OneKey), Err(Refusal::Crowded));
        }
    }

    /// What is planned for each distribution, by initials: lines in one table, directories in one
    /// table, cells, or the tree.
    fn planned(kib: usize, costs: &Costs) -> String {
        let each = DISTRIBUTIONS.iter().map(|&(distribution, _)| {
            let wide = distribution.keys(kib * 256, u64::from(u32::MAX) / 2, 1);
            let keys: Vec<u32> = wide.into_iter().map(|key| key as u32).collect();
            match Pieces::<u32>::plan(&keys, costs) {
                Ok((plan, cuts)) if plan.is_direct() => {
                    match plan.lines_of_roots(&cuts) * plan.inner.digit.capacity() < keys.len() {
                        true => 'd',
                        false => 'l',
                    }
                }
                Ok(_) => 'c',
                Err(_) => 't',
            }
        });
        each.collect()
    }

    #[test]
    fn choices_stay_as_they_were_measured_on_both_kinds_of_processor() {
        // In the order of `DISTRIBUTIONS`. Half of the keys of the sixth are one, whose copies an
        // index counts before it plans.
        assert_eq!(planned(256, &NEAR), "llccctctcllt");
        assert_eq!(planned(1024, &NEAR), "llclctclcllt");
        assert_eq!(planned(256, &FAR), "llclctclcllt");
        assert_eq!(planned(1024, &FAR), "llclctclclll");
        assert_eq!(planned(8192, &FAR), "llllclccclld");
    }
}
