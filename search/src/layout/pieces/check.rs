//! Checks that tables from an untrusted file lead every query to a line, and larger queries never
//! to an earlier one.

use super::{Pieces, Tables};
use crate::cut::BELOW_BITS;
use crate::lane::Lane;
use crate::scale::Scale;

impl<L: Lane> Pieces<L> {
    /// Whether the roots number all cells, one after another, and the cells all lines.
    pub(super) fn holds_tables(&self, tables: &Tables<'_, L>) -> bool {
        if self.is_direct() {
            return self.roots_number_lines(tables);
        }
        self.roots_follow(tables) && self.cells_follow(tables)
    }

    /// Whether each root's lines lie behind those of the root before it, and the last are lines.
    /// Roots without keys may share a line.
    fn roots_number_lines(&self, tables: &Tables<'_, L>) -> bool {
        let mut last = None;
        tables.roots.iter().enumerate().all(|(number, &root)| {
            let (first, by) = (u64::from(root >> BELOW_BITS), root & ((1 << BELOW_BITS) - 1));
            let end = u64::from(self.cut.cell_at(root, self.farthest(number)));
            let shares = by == self.cut.shift && last == Some(first);
            let follows = shares || first == last.map_or(0, |last| last + 1);
            last = Some(end);
            by > 0 && by <= self.cut.shift && follows && end < self.inner.scale.buckets() as u64
        })
    }

    /// The longest distance that leads to a root.
    fn farthest(&self, number: usize) -> L {
        let low = (number as u64) << self.cut.shift;
        L::narrow(self.cut.beyond.widen().min(low | self.cut.within().widen()))
    }

    /// Whether each root's cells follow those of the root before it.
    fn roots_follow(&self, tables: &Tables<'_, L>) -> bool {
        let mut next = 0;
        let follow = tables.roots.iter().enumerate().all(|(number, &root)| {
            let last = u64::from(self.cut.cell_at(root, self.farthest(number)));
            let begins = u64::from(root >> BELOW_BITS) == next && root & ((1 << BELOW_BITS) - 1) < L::BITS;
            next = last + 1;
            begins && last < tables.cells.len() as u64
        });
        follow && next == tables.cells.len() as u64
    }

    /// Whether each cell's lines lie behind those of the cell before it, and the last are lines.
    fn cells_follow(&self, tables: &Tables<'_, L>) -> bool {
        let mut free = 0u64;
        tables.cells.iter().all(|&[min, beyond, multiplier, first]| {
            let first = first.widen();
            let last = first.saturating_add(Scale::of_table(min, beyond, multiplier).last_bucket());
            let follows = first >= free && last < self.inner.scale.buckets() as u64;
            // A cell without keys leads to the first line of the next one.
            free = if multiplier == L::MIN { first } else { last + 1 };
            follows
        })
    }
}
