//! Phases of a run: where its metrics change their level.
//!
//! **What.** A trace is cut at *change points* into pieces within which every metric stays near
//! its mean. The cut that is taken minimises
//!
//! `C = Σ_pieces ( Σ_metrics Σ_i (x(i) − mean)² + β )`
//!
//! exactly, by dynamic programming over the last change point:
//! `best(j) = min_i best(i) + cost(i, j) + β`. Cost of a piece follows from prefix sums, so `n`
//! records of `m` metrics take `m·n²/2` steps; a longer trace is joined to at most [`BINS_MAX`]
//! means first, and its change points are then that coarse.
//!
//! **Units.** Each metric is divided by its noise: the median absolute difference of neighbours
//! over 0.6745·√2, which a normal distribution has as its standard deviation. A metric whose
//! neighbours hardly differ would make phases of nothing, so its noise is at least a tenth of its
//! standard deviation and a hundredth of its mean. `β = 3·m·ln n`, about that of the Bayesian
//! information criterion. Neighbours of a program's trace are not independent, as that criterion
//! assumes, therefore β is doubled until there are no more phases than the caller wants.
//!
//! **Leaves out** what phases resemble each other, and changes of variance alone. Sources: Jackson
//! et al. 2005, "An algorithm for optimal partitioning of data on an interval"; Yao 1988 for the
//! penalty.

pub mod reference;

use std::ops::Range;

/// The most values of a metric that are looked at one by one.
pub const BINS_MAX: usize = 1000;

/// A phase has at least one part in this many of the trace.
const PARTS_MAX: usize = 100;

/// Phases of a trace, at most `most`: ranges of records that follow each other. `series[d][i]` is
/// metric `d` in record `i`, as a rate; NaN was not counted.
///
/// ```
/// let calm_then_busy = [vec![10.0, 11.0, 10.0, 11.0, 10.0, 90.0, 91.0, 90.0, 91.0, 90.0]];
/// assert_eq!(lightfoot_measure::phase::phases(&calm_then_busy, 8), [0..5, 5..10]);
/// ```
///
/// # Panics
/// When the series differ in length.
pub fn phases(series: &[Vec<f64>], most: usize) -> Vec<Range<usize>> {
    let records = series.first().map_or(0, Vec::len);
    assert!(series.iter().all(|one| one.len() == records), "all metrics have the same records");
    if records == 0 {
        return Vec::new();
    }
    let bins = records.min(BINS_MAX);
    let first = |bin: usize| bin * records / bins;
    let scaled: Vec<Vec<f64>> = series.iter().filter_map(|one| scaled(&joined(one, bins, first))).collect();
    let least = bins.div_ceil(PARTS_MAX).max(2);
    let mut penalty = 3.0 * scaled.len() as f64 * (bins as f64).ln();
    let mut starts = segment(&scaled, bins, penalty, least);
    while starts.len() > most.max(1) {
        penalty *= 2.0;
        starts = segment(&scaled, bins, penalty, least);
    }
    let ends = starts.iter().skip(1).copied().chain([bins]);
    starts.iter().zip(ends).map(|(start, end)| first(*start)..first(end)).collect()
}

/// The starts of the pieces of the cheapest cut of `values` values of each series; the first is 0.
/// Pieces have at least `least` values, unless there are fewer. Of cuts that cost the same, one
/// whose last change points are early.
///
/// # Panics
/// When a series has fewer than `values` values.
pub fn segment(series: &[Vec<f64>], values: usize, penalty: f64, least: usize) -> Vec<usize> {
    let sums: Vec<Sums> = series.iter().map(|one| Sums::new(&one[..values])).collect();
    let cost = |from, to| sums.iter().map(|sums| sums.deviations(from, to)).sum::<f64>() + penalty;
    // `best[j]` is what the first `j` values cost, and `last[j]` where their last piece begins.
    let mut best = vec![f64::INFINITY; values + 1];
    let mut last = vec![0; values + 1];
    best[0] = 0.0;
    for to in least.max(1)..=values {
        for from in 0..=to - least.max(1) {
            // Fewer values than a piece are reached by no cut: their cost is infinite.
            let whole = best[from] + if best[from].is_finite() { cost(from, to) } else { 0.0 };
            if whole < best[to] {
                (best[to], last[to]) = (whole, from);
            }
        }
    }
    // The path backwards from the end. Where nothing reaches the end, `last` is 0: one piece.
    let mut starts = vec![last[values]];
    while let Some(&from) = starts.last().filter(|from| **from > 0) {
        starts.push(last[from]);
    }
    starts.reverse();
    starts
}

/// Prefix sums of a series, from which the deviations of any piece follow.
struct Sums {
    values: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn new(series: &[f64]) -> Sums {
        let (mut values, mut squares) = (vec![0.0], vec![0.0]);
        for (index, value) in series.iter().enumerate() {
            values.push(values[index] + value);
            squares.push(squares[index] + value * value);
        }
        Sums { values, squares }
    }

    /// `Σ (x − mean)²` of the values `from..to`.
    fn deviations(&self, from: usize, to: usize) -> f64 {
        let sum = self.values[to] - self.values[from];
        let squares = self.squares[to] - self.squares[from];
        (squares - sum * sum / (to - from) as f64).max(0.0)
    }
}

/// The means of `bins` equal parts of a series. A value that was not counted is that before it.
fn joined(series: &[f64], bins: usize, first: impl Fn(usize) -> usize) -> Vec<f64> {
    let mut before = series.iter().copied().find(|value| value.is_finite()).unwrap_or(0.0);
    let mut known = |value: f64| {
        before = if value.is_finite() { value } else { before };
        before
    };
    let known: Vec<f64> = series.iter().map(|value| known(*value)).collect();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    (0..bins).map(|bin| mean(&known[first(bin)..first(bin + 1)])).collect()
}

/// A series with mean 0, in units of its noise; `None` if it is constant.
fn scaled(series: &[f64]) -> Option<Vec<f64>> {
    let count = series.len() as f64;
    let mean = series.iter().sum::<f64>() / count;
    let deviation = (series.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    // Distances are no less than 0, so their bits are in their order.
    let mut steps: Vec<u64> = series.windows(2).map(|pair| (pair[1] - pair[0]).abs().to_bits()).collect();
    steps.sort_unstable();
    let step = steps.get(steps.len() / 2).map_or(0.0, |bits| f64::from_bits(*bits));
    let noise = (step / (0.6745 * std::f64::consts::SQRT_2)).max(0.1 * deviation).max(0.01 * mean.abs());
    let is_varied = deviation > 1e-9 * mean.abs() && noise.is_finite() && noise > 0.0;
    is_varied.then(|| series.iter().map(|value| (value - mean) / noise).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Levels, each so many records long, with normal noise of deviation 1.
    fn stepped(levels: &[(f64, usize)], seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let level = |(level, records): &(f64, usize)| vec![*level; *records];
        levels.iter().flat_map(level).map(|level| level + random.normal()).collect()
    }

    #[test]
    fn steps_are_found_where_they_are() {
        let one = stepped(&[(10.0, 40), (30.0, 25), (10.0, 35)], 1);
        let other = stepped(&[(5.0, 65), (50.0, 35)], 2);
        assert_eq!(phases(&[one, other], 20), [0..40, 40..65, 65..100]);
    }

    #[test]
    fn noise_is_one_phase() {
        for seed in 0..20 {
            let found = phases(&[stepped(&[(100.0, 500)], seed), stepped(&[(3.0, 500)], 100 + seed)], 20);
            assert_eq!(found, [0..500], "{seed}");
        }
    }

    #[test]
    fn a_scale_changes_nothing() {
        let one = stepped(&[(10.0, 300), (14.0, 300), (9.0, 400)], 3);
        let scaled = one.iter().map(|value| value * 1e9).collect();
        assert_eq!(phases(&[one], 20), phases(&[scaled], 20));
    }

    #[test]
    fn what_is_missing_or_constant_makes_no_phase() {
        assert_eq!(phases(&[vec![7.0; 50]], 20), [0..50]);
        assert_eq!(phases(&[vec![f64::NAN; 50]], 20), [0..50]);
        let mut one = stepped(&[(10.0, 30), (40.0, 30)], 4);
        (one[5], one[45]) = (f64::NAN, f64::NAN);
        assert_eq!(phases(&[one], 20), [0..30, 30..60]);
        assert_eq!(phases(&[vec![1.0]], 20), [0..1]);
        assert!(phases(&[Vec::new()], 20).is_empty() && phases(&[], 20).is_empty());
    }

    #[test]
    fn long_traces_are_joined_and_many_phases_are_limited() {
        let long = stepped(&[(10.0, 30_000), (40.0, 70_000)], 5);
        assert_eq!(phases(&[long], 20), [0..30_000, 30_000..100_000]);
        let many = stepped(&[(10.0, 20), (90.0, 20)].repeat(25), 6);
        assert!(phases(&[many.clone()], usize::MAX).len() == 50 && phases(&[many], 12).len() <= 12);
    }
}
