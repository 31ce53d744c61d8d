//! Finds the path backwards: each block that it crosses is computed again from its stored borders,
//! and this time stored as a whole.
//!
//! **The problem.** The path needs the whole table, 8 bytes for each pair of records. Storing
//! directions instead took twenty times as long as the sweep, because a choice among three cells is
//! a branch that no processor predicts.
//!
//! **The idea.** The sweep has stored the last row of each strip and every `STRIP`th column. A path
//! crosses few of the blocks between them. Each of these is computed again from its borders by the
//! sweep's own loop, and the path is followed through it:
//!
//! ```text
//!    +-----+-----+-----+
//!    | 1st |     |     |     blocks that a path crosses, last to first
//!    +-----+-----+-----+
//!    |     | 2nd | 3rd |     rows and columns between blocks are kept
//!    +-----+-----+-----+
//! ```
//!
//! The table of a block holds its diagonals one after the other, beginning with two of borders:
//! cell `(i, j)` is at place `i − r + 1` of diagonal `i − r + j − c + 2`, where `(r, c)` is the
//! block's first cell.
//!
//! **Invariant.** Borders are stored at the places of cells, so neither filling nor following has a
//! special case. Other places may hold values of another block; they are never read.

use super::sweep::{costs, relax, Strips, STRIP};
use std::ops::Range;

/// Places of a diagonal: the rows of a block, one above and one below.
const PLACES: usize = STRIP + 2;
const DIAGONALS: usize = 2 * STRIP + 1;

/// The pairs of the cheapest path, from first to last. Of equal predecessors it takes the diagonal
/// one, then the upper, then the left. `backwards` is the second trace, reversed.
pub(super) fn path(
    a: &[Vec<f64>],
    backwards: &[Vec<f64>],
    allowed: &[Range<usize>],
    strips: &Strips,
) -> Vec<(u32, u32)> {
    let (mut i, mut j) = (a[0].len() - 1, backwards[0].len() - 1);
    let mut path = vec![(i as u32, j as u32)];
    let mut block = Block::new();
    // From the last pair back to the first, block by block.
    while (i, j) != (0, 0) {
        block.fill(a, backwards, allowed, strips, (i, j));
        while (i, j) != (0, 0) && i >= block.row && j >= block.column {
            (i, j) = block.before(i, j);
            path.push((i as u32, j as u32));
        }
    }
    path.reverse();
    path
}

/// A block of the table, computed as far as a path from one of its cells can reach back.
struct Block {
    row: usize,
    column: usize,
    table: Vec<f64>,
    costs: Vec<f64>,
}

impl Block {
    fn new() -> Block {
        Block { row: 0, column: 0, table: vec![f64::NAN; DIAGONALS * PLACES], costs: vec![0.0; STRIP] }
    }

    /// The index of the cell `up` rows and `left` columns before `(i, j)`; both are 0 or 1.
    fn place(&self, i: usize, j: usize, up: usize, left: usize) -> usize {
        let (row, column) = (i - self.row + 1 - up, j - self.column + 1 - left);
        (row + column) * PLACES + row
    }

    /// The predecessor of `(i, j)` on the cheapest path.
    fn before(&self, i: usize, j: usize) -> (usize, usize) {
        let cost = |up, left| self.table[self.place(i, j, up, left)];
        let (across, up, left) = (cost(1, 1), cost(1, 0), cost(0, 1));
        // Of equal costs it takes the diagonal one, then the upper, then the left, as the slow twin
        // does.
        if across <= up && across <= left {
            (i - 1, j - 1)
        } else if up <= left {
            (i - 1, j)
        } else {
            (i, j - 1)
        }
    }

    /// Computes the block that holds cell `(i, j)`, from its first cell to `(i, j)`.
    fn fill(
        &mut self,
        a: &[Vec<f64>],
        backwards: &[Vec<f64>],
        allowed: &[Range<usize>],
        strips: &Strips,
        (i, j): (usize, usize),
    ) {
        (self.row, self.column) = (i / STRIP * STRIP, j / STRIP * STRIP);
        // A path reaches only cells before the one at which it enters the block.
        let (rows, width) = (i + 1 - self.row, j + 1 - self.column);
        self.borders(strips, rows, width);
        let (mut low, mut high) = (self.row, self.row);
        for diagonal in 2..rows + width + 1 {
            let k = self.row + self.column + diagonal - 2;
            // Rows whose cell on this diagonal lies in the block and in the band.
            while low <= i && (low + allowed[low].end <= k || low + j < k) {
                low += 1;
            }
            while high < i && high + 1 + allowed[high + 1].start.max(self.column) <= k {
                high += 1;
            }
            // The first place of the diagonal in use.
            let from = low - self.row + 1;
            // No cell of this diagonal is in the band: only three guards are read.
            if low > high || high + allowed[high].start > k {
                self.guard(diagonal, rows, from - 1..from + 2);
                continue;
            }
            let length = high + 1 - low;
            costs(a, backwards, low, low + backwards[0].len() - 1 - k, &mut self.costs[..length]);
            // The table stores all diagonals, so the two before this one are in front of it.
            let (before, now) = self.table.split_at_mut(diagonal * PLACES);
            let two_ago = &before[(diagonal - 2) * PLACES..];
            let one_ago = &before[(diagonal - 1) * PLACES..];
            let now = &mut now[from..from + length];
            relax(&self.costs[..length], &two_ago[from - 1..], &one_ago[from - 1..], &one_ago[from..], now);
            self.guard(diagonal, rows, from - 1..from);
            self.guard(diagonal, rows, from + length..from + length + 1);
        }
    }

    /// Writes infinity to the places of a diagonal beside the cells of the band, except for
    /// borders. As in the sweep, only the neighbours of cells in use are read.
    fn guard(&mut self, diagonal: usize, rows: usize, places: Range<usize>) {
        for place in places.start.max(1)..places.end.min(PLACES) {
            if place != diagonal || diagonal > rows {
                self.table[diagonal * PLACES + place] = f64::INFINITY;
            }
        }
    }

    /// Stores the row above the block, the column before it, and the corner between them.
    fn borders(&mut self, strips: &Strips, rows: usize, width: usize) {
        let (strip, block) = (self.row / STRIP, self.column / STRIP);
        // The corner: cost 0 before the first cell of all, or the cell that both borders share.
        self.table[0] = match (strip.checked_sub(1), self.column.checked_sub(1)) {
            (None, None) => 0.0,
            (Some(above), Some(column)) => strips.last_row(above, column),
            _ => f64::INFINITY,
        };
        for column in 0..width {
            let above = strip.checked_sub(1).map(|above| strips.last_row(above, self.column + column));
            self.table[(column + 1) * PLACES] = above.unwrap_or(f64::INFINITY);
        }
        for row in 0..rows {
            let before = block.checked_sub(1).map(|before| strips.column(strip, before, row));
            self.table[(row + 1) * PLACES + row + 1] = before.unwrap_or(f64::INFINITY);
        }
    }
}
