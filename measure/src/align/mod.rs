//! Dynamic time warping: which record of one trace corresponds to which of the other.
//!
//! `D(i,j) = Σ_d (a_d(i) − b_d(j))² + min(D(i−1,j−1), D(i−1,j), D(i,j−1))`, exact, over several
//! metrics at once, with the path. The distance is `√D(n−1,m−1)`, as the packages that people
//! compare with have it.
//!
//! The table is never kept. It is swept in strips of `STRIP` records of `a`, each along its
//! anti-diagonals (`sweep`), whose cells do not depend on each other and whose neighbours lie in
//! contiguous memory once `b` is turned round: a loop that compilers vectorise. Of each strip its
//! last row and every `STRIP`th column stay; the path is found backwards, by filling again the few
//! blocks that it crosses (`trace_back`). Cost: `n·m` cells at about half a nanosecond,
//! `(n + m)·STRIP` more for the path, `16·n·m / STRIP` bytes.
//!
//! Deliberately absent: approximations (FastDTW is slower than this) and open ends.
//! Source: Sakoe and Chiba 1978; Berndt and Clifford 1994; the slow twin is [`mod@reference`].

mod aligned;
mod band;
pub mod reference;
mod sweep;
mod trace_back;

pub use aligned::Aligned;
pub use band::Band;

use aligned::lengths;

/// Aligns two traces of the same metrics: `a[d][i]` is metric `d` of record `i`. Scale the metrics
/// first ([`normalised`]); none may be missing.
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

/// Columns with their last record first.
fn turned(b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    b.iter().map(|column| column.iter().rev().copied().collect()).collect()
}

/// A series with mean 0 and standard deviation 1; a constant one becomes 0 throughout, and so does
/// what is missing.
pub fn normalised(series: &[f64]) -> Vec<f64> {
    let known = || series.iter().filter(|x| x.is_finite());
    let count = known().count().max(1) as f64;
    let mean = known().sum::<f64>() / count;
    let deviation = (known().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count).sqrt();
    let scale = |x: &f64| if deviation > 0.0 && x.is_finite() { (x - mean) / deviation } else { 0.0 };
    series.iter().map(scale).collect()
}
