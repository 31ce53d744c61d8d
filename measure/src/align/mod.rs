//! Dynamic time warping: which record of one trace corresponds to which of the other.
//!
//! `D(i,j) = Σ_d (a_d(i) − b_d(j))² + min(D(i−1,j−1), D(i−1,j), D(i,j−1))`, exact, over several metrics at once, with the path. The distance is `√D(n−1,m−1)`, as
//! the packages that people compare with have it.
//!
//! The table is never kept. It is swept in strips of `STRIP` records of `a`, each along its anti-diagonals (`sweep`), whose cells do not depend on each
//! other and whose neighbours lie in contiguous memory once `b` is turned round: a loop that compilers vectorise. Of each strip its last row and
//! every `STRIP`th column stay; the path is found backwards, by filling again the few blocks that it crosses (`trace_back`). Cost: `n·m` cells at
//! about half a nanosecond, `(n + m)·STRIP` more for the path, `16·n·m / STRIP` bytes.
//!
//! Deliberately absent: approximations (FastDTW is slower than this) and open ends.
//! Source: Sakoe and Chiba 1978; Berndt and Clifford 1994; the slow twin is [`reference`].

mod band;
pub mod reference;
mod sweep;
mod trace_back;

pub use band::Band;

use std::ops::Range;

/// Rows of a strip and columns of a block.
const STRIP: usize = 256;

/// An alignment of two traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Aligned {
    /// The sum of squared differences along the path.
    pub cost: f64,
    /// Pairs of records, from the first pair to the last; each step goes on by one in one trace or in both.
    pub path: Vec<(u32, u32)>,
    /// Pairs that lie at an edge of the band while the table goes on behind it: were there many, a wider band would align better.
    pub at_edge: usize,
}

impl Aligned {
    fn new(cost: f64, path: Vec<(u32, u32)>, allowed: &[Range<usize>]) -> Aligned {
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

    /// How far the path leaves the straight line between the corners, as a share of the second trace: the largest and the mean.
    pub fn warp(&self) -> (f64, f64) {
        let Some(&(n, m)) = self.path.last() else { return (0.0, 0.0) };
        let slope = f64::from(m) / f64::from(n.max(1));
        let off =
            self.path.iter().map(|&(i, j)| (f64::from(j) - f64::from(i) * slope).abs() / f64::from(m + 1));
        let (largest, sum) = off.fold((0.0_f64, 0.0), |(largest, sum), x| (largest.max(x), sum + x));
        (largest, sum / self.path.len() as f64)
    }

    /// A column of each trace along the path: the first trace's values and the second's, pair by pair.
    pub fn along(&self, a: &[f64], b: &[f64]) -> (Vec<f64>, Vec<f64>) {
        self.path.iter().map(|&(i, j)| (a[i as usize], b[j as usize])).unzip()
    }
}

/// Aligns two traces of the same metrics: `a[d][i]` is metric `d` of record `i`. Scale the metrics first ([`normalised`]); none may be missing.
///
/// # Panics
/// When a trace is empty, has more than 2^31 records or columns of different lengths, or the traces have different dimensions.
pub fn align(a: &[Vec<f64>], b: &[Vec<f64>], band: Band) -> Aligned {
    let (n, m) = lengths(a, b);
    let allowed = band::rows(band, n, m);
    let backwards = turned(b);
    let strips = sweep::sweep(a, &backwards, &allowed);
    let path = trace_back::path(a, &backwards, &allowed, &strips);
    Aligned::new(strips.cost(), path, &allowed)
}

/// The cost alone.
///
/// # Panics
/// As [`align`].
pub fn cost(a: &[Vec<f64>], b: &[Vec<f64>], band: Band) -> f64 {
    let (n, m) = lengths(a, b);
    sweep::sweep(a, &turned(b), &band::rows(band, n, m)).cost()
}

/// Columns with their last record first.
fn turned(b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    b.iter().map(|column| column.iter().rev().copied().collect()).collect()
}

/// A series with mean 0 and standard deviation 1; a constant one becomes 0 throughout, and so does what is missing.
pub fn normalised(series: &[f64]) -> Vec<f64> {
    let known = || series.iter().filter(|x| x.is_finite());
    let count = known().count().max(1) as f64;
    let mean = known().sum::<f64>() / count;
    let deviation = (known().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count).sqrt();
    let scale = |x: &f64| if deviation > 0.0 && x.is_finite() { (x - mean) / deviation } else { 0.0 };
    series.iter().map(scale).collect()
}

/// The lengths of both traces, checked.
fn lengths(a: &[Vec<f64>], b: &[Vec<f64>]) -> (usize, usize) {
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
