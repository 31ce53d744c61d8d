//! Dynamic time warping: pairs each record of one trace with the records of another trace that
//! correspond to it.
//!
//! `D(i,j) = Σ_d (a_d(i) − b_d(j))² + min(D(i−1,j−1), D(i−1,j), D(i,j−1))`, computed exactly, over
//! several metrics at once, with the path. The distance is `√D(n−1,m−1)`, as in other packages.
//!
//! The table is never stored. It is swept in strips of `STRIP` records of `a`, each strip along its
//! anti-diagonals (`sweep`). The cells of an anti-diagonal do not depend on each other, and they
//! are contiguous in memory when `b` is reversed, so compilers vectorise the loop. The last row of
//! each strip and every `STRIP`th column are stored. The path is found backwards, by filling the
//! few blocks that it crosses again (`trace_back`). Cost: `n·m` cells at about half a nanosecond,
//! `(n + m)·STRIP` more for the path, `16·n·m / STRIP` bytes.
//!
//! **Leaves out** approximations (FastDTW is slower than this) and open ends.

mod aligned;
mod band;
pub mod reference;
mod sweep;
mod trace_back;

pub use aligned::Aligned;
pub use band::Band;

use aligned::lengths;

/// Aligns two traces of the same metrics: `a[d][i]` is metric `d` of record `i`. Scale the metrics
/// first ([`normalised`]); no value may be missing.
///
/// # Panics
/// When a trace is empty, has more than 2^31 records or columns of different lengths, or the traces
/// have different dimensions.
pub fn align(a: &[Vec<f64>], b: &[Vec<f64>], band: Band) -> Aligned {
    let (n, m) = lengths(a, b);
    let allowed = band::rows(band, n, m);
    let backwards = turned(b);
    let strips = sweep::sweep(a, &backwards, &allowed);
    let path = trace_back::path(a, &backwards, &allowed, &strips);
    Aligned::new(strips.cost(), path, &allowed)
}

/// The cost of the cheapest path, without the path.
///
/// # Panics
/// When a trace is empty, has more than 2^31 records or columns of different lengths, or the traces
/// have different dimensions.
pub fn cost(a: &[Vec<f64>], b: &[Vec<f64>], band: Band) -> f64 {
    let (n, m) = lengths(a, b);
    sweep::sweep(a, &turned(b), &band::rows(band, n, m)).cost()
}

/// The columns of `b`, each reversed.
fn turned(b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    b.iter().map(|column| column.iter().rev().copied().collect()).collect()
}

/// Scales a series to mean 0 and standard deviation 1. A constant series becomes 0 everywhere, and
/// missing values become 0.
pub fn normalised(series: &[f64]) -> Vec<f64> {
    let known = || series.iter().filter(|x| x.is_finite());
    let count = known().count().max(1) as f64;
    let mean = known().sum::<f64>() / count;
    let deviation = (known().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count).sqrt();
    let scale = |x: &f64| if deviation > 0.0 && x.is_finite() { (x - mean) / deviation } else { 0.0 };
    series.iter().map(scale).collect()
}
