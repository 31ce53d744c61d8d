//! The slow twin: computes the whole table row by row, and its path.

use super::aligned::{lengths, Aligned};
use super::band::{rows, Band};

/// Aligns as [`super::align`] does, with a table of `n · m` numbers.
///
/// # Panics
/// When a trace is empty or the traces have different dimensions.
pub fn align(a: &[Vec<f64>], b: &[Vec<f64>], band: Band) -> Aligned {
    let (n, m) = lengths(a, b);
    let allowed = rows(band, n, m);
    let mut table = vec![vec![f64::INFINITY; m]; n];
    for i in 0..n {
        for j in allowed[i].clone() {
            let cost: f64 = a.iter().zip(b).map(|(a, b)| (a[i] - b[j]) * (a[i] - b[j])).sum();
            table[i][j] = cost + best(&table, i, j).map_or(0.0, |(cost, _)| cost);
        }
    }
    let mut path = vec![(n as u32 - 1, m as u32 - 1)];
    let (mut i, mut j) = (n - 1, m - 1);
    while let Some((_, from)) = best(&table, i, j) {
        (i, j) = from;
        path.push((i as u32, j as u32));
    }
    path.reverse();
    Aligned::new(table[n - 1][m - 1], path, &allowed)
}

/// The cost and position of the cheapest predecessor of cell `(i, j)`. Of equal ones it is the
/// diagonal one, then the upper, then the left. `None` for the first cell.
fn best(table: &[Vec<f64>], i: usize, j: usize) -> Option<(f64, (usize, usize))> {
    let mut found: Option<(f64, (usize, usize))> = None;
    let mut offer = |from: (usize, usize)| {
        let cost = table[from.0][from.1];
        if found.is_none_or(|(least, _)| cost < least) {
            found = Some((cost, from));
        }
    };
    if i > 0 && j > 0 {
        offer((i - 1, j - 1));
    }
    if i > 0 {
        offer((i - 1, j));
    }
    if j > 0 {
        offer((i, j - 1));
    }
    found
}
