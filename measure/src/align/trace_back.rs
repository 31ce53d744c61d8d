//! The path, backwards: each block that it crosses is filled again from its kept borders, and this
//! time kept whole.
//!
//! **The problem.** The path needs the whole table, which would be 8 bytes for each pair of
//! records. Remembering directions instead took twenty times as long as the sweep: a choice among
//! three is a branch that no processor foresees.
//!
//! **The idea.** The sweep kept the last row of each strip and every `STRIP`th column. A path
//! crosses few of the blocks between them; each is filled again from its borders by the sweep's own
//! loop, and walked:
//!
//! ```text
//!    +-----+-----+-----+
//!    | 1st |     |     |     blocks that a path crosses, last to first
//!    +-----+-----+-----+
//!    |     | 2nd | 3rd |     rows and columns between blocks are kept
//!    +-----+-----+-----+
//! ```
//!
//! The block's table holds diagonal after diagonal, two of borders first: cell `(i, j)` stands at
//! place `i − r + 1` of diagonal `i − r + j − c + 2`, where `(r, c)` is the block's first cell.
//!
//! **Invariant.** Borders stand where cells would, so that neither filling nor walking has a
//! special case; what stands at other places is of another block and is never looked at.

use super::sweep::{costs, relax, Strips, STRIP};
use std::ops::Range;

/// Places of a diagonal: the rows of a block, one above and one below.
const PLACES: usize = STRIP + 2;
const DIAGONALS: usize = 2 * STRIP + 1;

/// The pairs of the cheapest path, first to last; of equals, diagonal before up before left.
/// `backwards` is the second trace, turned round.
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

/// A block of the table, filled as far as a path from one of its cells can go.
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

    /// Where the cell `up` rows and `left` columns before `(i, j)` stands; both are 0 or 1.
    fn place(&self, i: usize, j: usize, up: usize, left: usize) -> usize {
        let (row, column) = (i - self.row + 1 - up, j - self.column + 1 - left);
        (row + column) * PLACES + row
    }

    /// The cell before `(i, j)` on the cheapest path.
    fn before(&self, i: usize, j: usize) -> (usize, usize) {
        let cost = |up, left| self.table[self.place(i, j, up, left)];
        let (across, up, left) = (cost(1, 1), cost(1, 0), cost(0, 1));
        // Of equals diagonal before up before left, as the slow twin chooses.
        if across <= up && across <= left {
            (i - 1, j - 1)
        } else if up <= left {
            (i - 1, j)
        } else {
            (i, j - 1)
        }
    }

    /// Fills the block of cell `(i, j)` from its first cell to that one.
    fn fill(
        &mut self,
        a: &[Vec<f64>],
        backwards: &[Vec<f64>],
        allowed: &[Range<usize>],
        strips: &Strips,
        (i, j): (usize, usize),
    ) {
        (self.row, self.column) = (i / STRIP * STRIP, j / STRIP * STRIP);
        // Only the cells from which a path can come: up to the one where it entered the block.
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
            // The band leaves this diagonal empty: three guards are all that is looked at.
            if low > high || high + allowed[high].start > k {
                self.guard(diagonal, rows, from - 1..from + 2);
                continue;
            }
            let length = high + 1 - low;
            costs(a, backwards, low, low + backwards[0].len() - 1 - k, &mut self.costs[..length]);
            // The table keeps all diagonals, so the two before this one stand in front of it.
            let (before, now) = self.table.split_at_mut(diagonal * PLACES);
            let two_ago = &before[(diagonal - 2) * PLACES..];
            let one_ago = &before[(diagonal - 1) * PLACES..];
            let now = &mut now[from..from + length];
            relax(&self.costs[..length], &two_ago[from - 1..], &one_ago[from - 1..], &one_ago[from..], now);
            self.guard(diagonal, rows, from - 1..from);
            self.guard(diagonal, rows, from + length..from + length + 1);
        }
    }

    /// Infinity at places of a diagonal that no cell of the band has, but for those of the borders.
    /// As in the sweep, the neighbours of the cells in use are all that is ever looked at; what
    /// stands elsewhere is of another block.
    fn guard(&mut self, diagonal: usize, rows: usize, places: Range<usize>) {
        for place in places.start.max(1)..places.end.min(PLACES) {
            if place != diagonal || diagonal > rows {
                self.table[diagonal * PLACES + place] = f64::INFINITY;
            }
        }
    }

    /// The row above the block, the column before it and the corner between them.
    fn borders(&mut self, strips: &Strips, rows: usize, width: usize) {
        let (strip, block) = (self.row / STRIP, self.column / STRIP);
        // The corner: where the path may begin for nothing, or the cell that both borders share.
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
