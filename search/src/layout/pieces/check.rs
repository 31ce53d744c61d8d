//! Checks that tables from an untrusted file lead every query to a line, and larger queries never to
//! an earlier one.

use super::{Pieces, Tables};
use crate::lane::Lane;
use crate::scale::Scale;

impl<L: Lane> Pieces<L> {
    /// Whether the roots number all cells, one after another, and the cells all lines.
    pub(super) fn holds_tables(&self, tables: &Tables<'_, L>) -> bool {
        self.roots_follow(tables) && self.cells_follow(tables)
    }

    /// Whether each root's cells follow those of the root before it.
    fn roots_follow(&self, tables: &Tables<'_, L>) -> bool {
        let beyond = self.beyond.widen();
        let mut next = 0u64;
        for (root, &[_, below]) in tables.roots.iter().enumerate() {
            // The shortest and the longest distance that lead to this root, and their cells.
            let low = (root as u64) << self.shift;
            let high = beyond.min(low | ((1u64 << self.shift) - 1));
            let cell = |distance| tables.cell(L::narrow(distance), self.shift) as u64;
            let steps = (high >> (below & 63)) - (low >> (below & 63));
            if below > self.shift || low > high || cell(low) != next || steps >= tables.cells.len() as u64 {
                return false;
            }
            if cell(high) != next + steps {
                return false;
            }
            next += steps + 1;
        }
        next == tables.cells.len() as u64
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
