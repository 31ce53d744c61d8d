//! The result of an alignment, and the check of its arguments.

use std::ops::Range;

/// An alignment of two traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Aligned {
    /// The sum of squared differences along the path.
    pub cost: f64,
    /// Pairs of record numbers, from the first to the last; each step advances by one record in one
    /// trace or in both.
    pub path: Vec<(u32, u32)>,
    /// Number of pairs at an edge of the band inside the table. If it is large, a wider band would
    /// give a better alignment.
    pub at_edge: usize,
}

impl Aligned {
    pub(super) fn new(cost: f64, path: Vec<(u32, u32)>, allowed: &[Range<usize>]) -> Aligned {
        let columns = allowed.last().map_or(0, |row| row.end);
        let at_edge = path.iter().filter(|&&(i, j)| {
            let (row, j) = (&allowed[i as usize], j as usize);
            (j == row.start && j > 0) || (j + 1 == row.end && j + 1 < columns)
        });
        let at_edge = at_edge.count();
        Aligned { cost, path, at_edge }
    }

    /// `√cost`.
    pub fn distance(&self) -> f64 {
        self.cost.sqrt()
    }

    /// The largest and the mean distance of the path from the straight line between the corners, as
    /// shares of the second trace's length.
    pub fn warp(&self) -> (f64, f64) {
        let Some(&(n, m)) = self.path.last() else { return (0.0, 0.0) };
        let slope = f64::from(m) / f64::from(n.max(1));
        let off =
            self.path.iter().map(|&(i, j)| (f64::from(j) - f64::from(i) * slope).abs() / f64::from(m + 1));
        let (largest, sum) = off.fold((0.0_f64, 0.0), |(largest, sum), x| (largest.max(x), sum + x));
        (largest, sum / self.path.len() as f64)
    }

    /// The values of a column of each trace along the path: the first trace's, and the second's,
    /// pair by pair.
    pub fn along(&self, a: &[f64], b: &[f64]) -> (Vec<f64>, Vec<f64>) {
        self.path.iter().map(|&(i, j)| (a[i as usize], b[j as usize])).unzip()
    }
}

/// The lengths of both traces. Panics if they are empty, too long, or do not fit together.
pub(super) fn lengths(a: &[Vec<f64>], b: &[Vec<f64>]) -> (usize, usize) {
    assert!(
        a.len() == b.len() && !a.is_empty(),
        "traces of {} and {} metrics cannot be aligned",
        a.len(),
        b.len()
    );
    let (n, m) = (a[0].len(), b[0].len());
    assert!(n > 0 && m > 0 && n.max(m) < 1 << 31, "traces of {n} and {m} records cannot be aligned");
    assert!(a.iter().all(|x| x.len() == n) && b.iter().all(|x| x.len() == m), "columns have one length");
    (n, m)
}
