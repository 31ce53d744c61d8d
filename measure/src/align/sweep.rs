//! The forward pass: strips of rows, each along its anti-diagonals.
//!
//! **The problem.** Each cell needs the cells above, to the left, and diagonally before it: row by
//! row, every cell waits for its predecessor.
//!
//! **The idea.** The cells of an anti-diagonal depend only on the two diagonals before it, so a
//! whole diagonal is one loop without a dependency chain. With the second trace reversed,
//! neighbours on a diagonal are neighbours in memory in both traces. Strips of `STRIP` rows keep
//! three diagonals in the first-level cache:
//!
//! ```text
//!            columns ->          place t on a diagonal: row s + t - 1 of a strip from s on;
//!   place 0  . . . . . . .       place 0 is the row above the strip
//!   place 1  0 1 2 3 4 5         cell (i, j) lies on diagonal k = i + j
//!   place 2  1 2 3 4 5
//!   place 3  2 3 4 5          now[t] = c(i, k-i) + min(two_ago[t-1], one_ago[t-1], one_ago[t])
//! ```
//!
//! The last row of each strip and every `STRIP`th column are stored for the path (`trace_back`).
//!
//! **Invariant.** In a band, the range of places in use moves by at most one from one diagonal to
//! the next, so one infinite cell on either side of it suffices as a guard.

use std::array::from_fn;
use std::ops::Range;

/// Rows of a strip and columns of a block.
pub(super) const STRIP: usize = 256;

/// The stored parts of the table.
#[derive(Debug)]
pub(super) struct Strips {
    strips: Vec<Strip>,
}

/// The stored parts of one strip.
#[derive(Debug)]
struct Strip {
    /// Columns of its last row, and their costs.
    row: Range<usize>,
    last_row: Vec<f64>,
    /// Index of the first block whose last column is stored, and the stored columns: `STRIP` costs
    /// each, infinite outside the band.
    first_block: usize,
    columns: Vec<Vec<f64>>,
}

impl Strips {
    /// The cost of the last cell.
    pub(super) fn cost(&self) -> f64 {
        self.strips.last().and_then(|strip| strip.last_row.last()).copied().unwrap_or(f64::INFINITY)
    }

    /// The cost of cell (`(strip + 1) · STRIP − 1`, `column`); infinite outside the band.
    pub(super) fn last_row(&self, strip: usize, column: usize) -> f64 {
        let strip = &self.strips[strip];
        let index = column.checked_sub(strip.row.start);
        index.and_then(|index| strip.last_row.get(index)).copied().unwrap_or(f64::INFINITY)
    }

    /// The cost of cell (`strip · STRIP + row`, `(block + 1) · STRIP − 1`).
    pub(super) fn column(&self, strip: usize, block: usize, row: usize) -> f64 {
        let strip = &self.strips[strip];
        let index = block.checked_sub(strip.first_block);
        index.and_then(|index| strip.columns.get(index)).map_or(f64::INFINITY, |column| column[row])
    }
}

/// Computes the table and stores the parts that the path needs. `backwards` is the second trace,
/// reversed.
pub(super) fn sweep(a: &[Vec<f64>], backwards: &[Vec<f64>], allowed: &[Range<usize>]) -> Strips {
    let mut done = Strips { strips: Vec::with_capacity(allowed.len().div_ceil(STRIP)) };
    let mut diagonals = Diagonals::new();
    for first in (0..allowed.len()).step_by(STRIP) {
        let rows = first..(first + STRIP).min(allowed.len());
        let strip = one_strip(a, backwards, allowed, rows, &done, &mut diagonals);
        done.strips.push(strip);
    }
    done
}

/// Three diagonals, and the costs of the cells of the newest.
struct Diagonals {
    now: Vec<f64>,
    one_ago: Vec<f64>,
    two_ago: Vec<f64>,
    costs: Vec<f64>,
}

impl Diagonals {
    fn new() -> Diagonals {
        let places = || vec![f64::INFINITY; STRIP + 2];
        Diagonals { now: places(), one_ago: places(), two_ago: places(), costs: vec![0.0; STRIP] }
    }

    fn clear(&mut self) {
        for diagonal in [&mut self.now, &mut self.one_ago, &mut self.two_ago] {
            diagonal.fill(f64::INFINITY);
        }
    }

    /// Computes the cells of the newest diagonal at places `from..to`.
    fn relax(&mut self, from: usize, to: usize) {
        let (up, left) = (&self.one_ago[from - 1..], &self.one_ago[from..]);
        relax(&self.costs[..to - from], &self.two_ago[from - 1..], up, left, &mut self.now[from..to]);
    }

    fn turn(&mut self) {
        std::mem::swap(&mut self.two_ago, &mut self.one_ago);
        std::mem::swap(&mut self.one_ago, &mut self.now);
    }
}

fn one_strip(
    a: &[Vec<f64>],
    backwards: &[Vec<f64>],
    allowed: &[Range<usize>],
    rows: Range<usize>,
    done: &Strips,
    diagonals: &mut Diagonals,
) -> Strip {
    let mut strip = empty_strip(allowed, &rows);
    // The row above the strip is the last one of the strip before.
    let above = |column: usize| match rows.start {
        0 => f64::INFINITY,
        first => done.last_row(first / STRIP - 1, column),
    };
    let m = backwards[0].len();
    let (mut low, mut high) = (rows.start, rows.start);
    // Diagonals from the strip's first allowed cell to its last one.
    let first_diagonal = rows.start + allowed[rows.start].start;
    let last_diagonal = rows.end - 1 + allowed[rows.end - 1].end - 1;
    diagonals.clear();
    // The row above the strip's first cell; for the very first cell a cost of 0.
    diagonals.two_ago[0] = match first_diagonal {
        0 => 0.0,
        k => (k - rows.start).checked_sub(1).map_or(f64::INFINITY, above),
    };
    diagonals.one_ago[0] = above(first_diagonal - rows.start);
    for k in first_diagonal..=last_diagonal {
        // The rows whose band this diagonal crosses. Both ends only grow.
        while low + allowed[low].end <= k {
            low += 1;
        }
        while high + 1 < rows.end && high + 1 + allowed[high + 1].start <= k {
            high += 1;
        }
        // Their places; place 0 is the row above.
        let (from, to) = (low - rows.start + 1, high - rows.start + 2);
        // With the second trace reversed, the cells of a diagonal meet neighbours in both traces.
        let start_of_b = low + m - 1 - k;
        costs(a, backwards, low, start_of_b, &mut diagonals.costs[..to - from]);
        diagonals.relax(from, to);
        // Guards on either side: these places still hold an older diagonal.
        diagonals.now[from - 1] = f64::INFINITY;
        diagonals.now[to] = f64::INFINITY;
        // Place 0 is the row above the strip.
        if from == 1 {
            diagonals.now[0] = above(k + 1 - rows.start);
        }
        strip.keep(&diagonals.now, &rows, low..high + 1, k);
        // The oldest of the three diagonals becomes the next one.
        diagonals.turn();
    }
    strip
}

fn empty_strip(allowed: &[Range<usize>], rows: &Range<usize>) -> Strip {
    let row = allowed[rows.end - 1].clone();
    let first_block = allowed[rows.start].start / STRIP;
    let blocks = (row.end / STRIP).saturating_sub(first_block);
    let columns = vec![vec![f64::INFINITY; STRIP]; blocks];
    Strip { last_row: vec![f64::INFINITY; row.len()], row, first_block, columns }
}

impl Strip {
    /// Stores the cells of diagonal `k` that lie in the last row or in the last column of a block.
    fn keep(&mut self, now: &[f64], rows: &Range<usize>, used: Range<usize>, k: usize) {
        // The last row of the strip, which the next strip needs.
        if used.end == rows.end {
            let column = k - (rows.end - 1);
            self.last_row[column - self.row.start] = now[rows.len()];
        }
        // The columns on this diagonal run from k - (used.end - 1) to k - used.start.
        let mut block = (k + 1 - used.end) / STRIP;
        loop {
            let column = block * STRIP + STRIP - 1;
            if column + used.start > k {
                return;
            }
            let place = k - column - rows.start;
            self.columns[block - self.first_block][place] = now[place + 1];
            block += 1;
        }
    }
}

/// The sums of squared differences for the cells of a diagonal: rows from `low` on of `a` against
/// the reversed `b` from `start_of_b` on.
#[inline]
pub(super) fn costs(a: &[Vec<f64>], b: &[Vec<f64>], low: usize, start_of_b: usize, out: &mut [f64]) {
    match a.len() {
        1 => sums::<1>(a, b, low, start_of_b, out),
        2 => sums::<2>(a, b, low, start_of_b, out),
        3 => sums::<3>(a, b, low, start_of_b, out),
        4 => sums::<4>(a, b, low, start_of_b, out),
        5 => sums::<5>(a, b, low, start_of_b, out),
        6 => sums::<6>(a, b, low, start_of_b, out),
        _ => {
            sums::<1>(a, b, low, start_of_b, out);
            let length = out.len();
            for (a, b) in a.iter().zip(b).skip(1) {
                let pairs = a[low..low + length].iter().zip(&b[start_of_b..start_of_b + length]);
                for (out, (a, b)) in out.iter_mut().zip(pairs) {
                    *out += (a - b) * (a - b);
                }
            }
        }
    }
}

/// The sums of squared differences for the cells of a diagonal, over the first `D` metrics.
#[inline]
fn sums<const D: usize>(a: &[Vec<f64>], b: &[Vec<f64>], low: usize, start_of_b: usize, out: &mut [f64]) {
    let length = out.len();
    let a: [&[f64]; D] = from_fn(|d| &a[d][low..low + length]);
    let b: [&[f64]; D] = from_fn(|d| &b[d][start_of_b..start_of_b + length]);
    for (t, out) in out.iter_mut().enumerate() {
        let mut sum = 0.0;
        for d in 0..D {
            // With a constant number of metrics, the loop over `t` is vectorised.
            let difference = a[d][t] - b[d][t];
            sum += difference * difference;
        }
        *out = sum;
    }
}

/// `now = costs + min(across, up, left)`, cell by cell.
#[inline]
pub(super) fn relax(costs: &[f64], across: &[f64], up: &[f64], left: &[f64], now: &mut [f64]) {
    let length = now.len();
    let (costs, across, up, left) = (&costs[..length], &across[..length], &up[..length], &left[..length]);
    for t in 0..length {
        // Comparisons instead of `min`, which would have to handle NaN and is not vectorised as
        // well.
        let best = if up[t] < across[t] { up[t] } else { across[t] };
        let best = if left[t] < best { left[t] } else { best };
        now[t] = costs[t] + best;
    }
}
