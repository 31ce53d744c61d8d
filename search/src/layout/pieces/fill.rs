//! Placing keys in pieces: each cell is filled as a split layout of its own, one behind another.

use alloc::vec::Vec;

use super::cost::Costs;
use super::plan::{Cuts, Pieces};
use super::roots::Roots;
use super::Cell;
use crate::cut::BELOW_BITS;
use crate::lane::{Exact, Lane};
use crate::layout::method::{Contents, Placing, Refusal};
use crate::layout::split::digit::{with_digit, Width, WIDTHS};
use crate::layout::split::{empty_line, FillPart, Part, Split};
use crate::line::{lanes_mut, Line};
use crate::memory::{Draft, Memory};
use crate::scale::Scale;
use crate::simd::Vectors;

/// How often a cell gets four times the lines because one of them would be too crowded for a
/// directory.
const TRIES: u32 = 4;

/// Plans and builds.
///
/// # Errors
/// Why the layout cannot hold the keys.
pub(super) fn build<L: Lane, K: Exact<As = L>>(
    keys: &[K],
    placing: Placing<impl Vectors>,
) -> Result<(Pieces<L>, Memory), Refusal> {
    let costs = Costs::of(placing.vectors.is_third_level_far());
    let (plan, cuts) = Pieces::plan(keys, costs)?;
    match build_planned(plan, &cuts, keys, placing) {
        // A line was too crowded for a directory in spite of the sample: cells get more lines then.
        Err(Refusal::Crowded) if plan.is_direct() => {}
        result => return result,
    }
    let (_, plan, cuts) =
        Pieces::plan_cells(keys, &mut Roots::of(keys), costs, usize::MAX)?.ok_or(Refusal::Crowded)?;
    build_planned(plan, &cuts, keys, placing)
}

/// Builds what was planned.
pub(super) fn build_planned<L: Lane, K: Exact<As = L>>(
    mut plan: Pieces<L>,
    cuts: &Cuts,
    keys: &[K],
    placing: Placing<impl Vectors>,
) -> Result<(Pieces<L>, Memory), Refusal> {
    let (lines, blocks) = plan.room(keys, cuts);
    // Memory that stays untouched takes no pages.
    let tables = plan.table_lines();
    let mut draft = Draft::new(tables + lines + blocks);
    let (front, behind) = draft.lines_mut().split_at_mut(tables);
    let (lines, rest) = behind.split_at_mut(lines);
    // The number of lines of roots is known, so blocks are written where they stay. Cells may take
    // fewer lines than there is room for, and their blocks, which are few, are moved.
    let (mut crowd, is_direct) = (Draft::new(if plan.is_direct() { 0 } else { blocks }), plan.is_direct());
    let blocks = if is_direct { rest } else { crowd.lines_mut() };
    let count = lines.len();
    let filled = FillPieces { plan, cuts, keys, lines, blocks, vectors: placing.vectors }.fill()?;
    debug_assert!(!is_direct || filled.lines == count);
    plan.write_tables(front, cuts, &filled);
    plan.inner.scale = Scale::of_buckets(filled.lines);
    plan.inner.blocks = filled.blocks;
    if !is_direct {
        let to = &mut behind[filled.lines..filled.lines + filled.blocks];
        to.copy_from_slice(&crowd.lines_mut()[..filled.blocks]);
    }
    let lines = Contents::<L>::lines(&plan);
    Ok((plan, draft.finish(lines)))
}

/// The filling of all cells.
struct FillPieces<'a, L: Lane, K, V> {
    plan: Pieces<L>,
    cuts: &'a Cuts,
    keys: &'a [K],
    lines: &'a mut [Line],
    blocks: &'a mut [Line],
    vectors: V,
}

/// What the filling used.
struct Filled<L> {
    cells: Vec<Cell<L>>,
    /// The entries of roots that are cut into lines.
    roots: Vec<u32>,
    lines: usize,
    blocks: usize,
}

impl<L: Lane, K: Exact<As = L>, V: Vectors> FillPieces<'_, L, K, V> {
    fn fill(mut self) -> Result<Filled<L>, Refusal> {
        let cells = Vec::with_capacity(self.cuts.ranks.len());
        let mut filled = Filled { cells, roots: Vec::new(), lines: 0, blocks: 0 };
        if self.plan.is_direct() {
            self.fill_roots(&mut filled)?;
            return Ok(filled);
        }
        for pair in self.cuts.ranks.windows(2) {
            if pair[0] == pair[1] {
                // A query in a cell without keys goes to the first line of the next cell, as less
                // than all keys there.
                filled.cells.push([L::MAX, L::MIN, L::MIN, L::narrow(filled.lines as u64)]);
                continue;
            }
            let mut tries = 0;
            while let Err(why) = self.fill_cell(pair[0]..pair[1], 4usize.pow(tries), &mut filled) {
                tries += 1;
                if tries == TRIES || why != Refusal::Crowded {
                    return Err(why);
                }
            }
        }
        // Queries behind all keys may go to a line of their own.
        let last = self.lines.get_mut(filled.lines).ok_or(Refusal::Crowded)?;
        *last = with_digit!(self.plan.inner.digit, D => empty_line::<D>(self.keys.len()));
        filled.lines += 1;
        Ok(filled)
    }

    /// Fills the lines of roots that are cut into lines. Neighbours without keys share a line.
    fn fill_roots(&mut self, filled: &mut Filled<L>) -> Result<(), Refusal> {
        filled.roots.reserve(self.plan.roots());
        let mut is_empty = false;
        for (number, (pair, &logarithm)) in self.cuts.ranks.windows(2).zip(&self.cuts.logarithms).enumerate()
        {
            if pair[0] == pair[1] {
                if !is_empty {
                    let line = self.lines.get_mut(filled.lines).ok_or(Refusal::Crowded)?;
                    *line = with_digit!(self.plan.inner.digit, D => empty_line::<D>(pair[0]));
                    filled.lines += 1;
                }
                is_empty = true;
                filled.roots.push(((filled.lines as u32 - 1) << BELOW_BITS) | self.plan.cut.shift);
                continue;
            }
            is_empty = false;
            let entry = ((filled.lines as u32) << BELOW_BITS) | (self.plan.cut.shift - logarithm);
            let scale = self.plan.scale_of_root(number, entry);
            let count = self.plan.lines_of_root(number, logarithm);
            self.fill_map(pair[0]..pair[1], scale, count, filled)?;
            filled.roots.push(entry);
        }
        Ok(())
    }

    /// Fills the lines of one cell, by the code that fills a part of a split layout: a call for
    /// each cell costs little, and code for each type of keys and instruction set is large.
    fn fill_cell(
        &mut self,
        ranks: core::ops::Range<usize>,
        times: usize,
        filled: &mut Filled<L>,
    ) -> Result<(), Refusal> {
        let scale = self.plan.scale(&self.keys[ranks.clone()], times);
        let first = filled.lines;
        self.fill_map(ranks, scale, scale.buckets(), filled)?;
        let [min, beyond, multiplier, _] = scale.numbers();
        filled.cells.push([min, beyond, multiplier, first as u64].map(L::narrow));
        Ok(())
    }

    /// Fills the `count` lines to which a map leads.
    fn fill_map(
        &mut self,
        ranks: core::ops::Range<usize>,
        scale: Scale<L>,
        count: usize,
        filled: &mut Filled<L>,
    ) -> Result<(), Refusal> {
        let split = Split { n: self.keys.len(), scale, digit: self.plan.inner.digit, blocks: 0 };
        let end = filled.lines + count;
        let lines = self.lines.get_mut(filled.lines..end).ok_or(Refusal::Crowded)?;
        let part = Part { ranks, first_line: 0, lines, blocks: self.blocks, used: filled.blocks };
        filled.blocks = self.vectors.run(FillPart { plan: &split, keys: self.keys, part })?.blocks;
        filled.lines = end;
        Ok(())
    }
}

impl<L: Lane> Pieces<L> {
    /// The lines to allocate for cells, with room for some that get more than on average, and the
    /// blocks.
    fn room<K: Exact<As = L>>(&self, keys: &[K], cuts: &Cuts) -> (usize, usize) {
        if self.is_direct() {
            let lines = self.lines_of_roots(cuts);
            let per_block = self.inner.digit.per_line();
            // Blocks for all keys, and one more for each line, whose last block has gaps.
            return (lines, keys.len() / per_block + lines + 64);
        }
        let load =
            WIDTHS.into_iter().find(|(digit, _)| *digit == self.inner.digit).map_or(1, |(_, load)| load);
        let digit: Width = self.inner.digit;
        let cells =
            cuts.ranks.windows(2).map(|pair| super::plan::wanted_lines(&keys[pair[0]..pair[1]], digit, load));
        let lines = cells.sum::<usize>();
        (3 * lines + 64, lines + 64)
    }

    /// Writes both tables.
    fn write_tables(&self, lines: &mut [Line], cuts: &Cuts, filled: &Filled<L>) {
        if self.is_direct() {
            return lanes_mut::<u32>(lines)[..filled.roots.len()].copy_from_slice(&filled.roots);
        }
        let (roots, rest) = lines.split_at_mut(self.root_lines());
        let mut first_cell = 0u32;
        let entries = lanes_mut::<u32>(roots);
        for ((root, &logarithm), entry) in cuts.logarithms.iter().enumerate().zip(entries) {
            let below = self.cut.shift - logarithm;
            *entry = (first_cell << BELOW_BITS) | below;
            // The last root may end in the midst of its cells.
            let low = (root as u64) << self.cut.shift;
            let high = self.cut.beyond.widen().min(low | self.cut.within().widen());
            first_cell += ((high - low) >> below) as u32 + 1;
        }
        lanes_mut::<L>(rest).as_chunks_mut::<4>().0[..filled.cells.len()].copy_from_slice(&filled.cells);
    }
}
