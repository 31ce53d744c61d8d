//! Finds sizes and latencies in a curve: the analysis of a sweep, without a clock.
//!
//! **Problem.** The latency of a chase over working sets of growing size is a flight of stairs. A
//! tread is a cache whose latency it shows; a riser is the size of that cache. Real stairs are
//! uneven: physical addresses make risers soft, treads rise a little, and single points are wrong
//! because something else ran.
//!
//! **Idea.**
//!
//! ```text
//! ns │                      ┌────  tread    1. the median of each point's trials
//!    │                  ┌───┘               2. a running median of three: lone outliers go
//!    │        riser   ·/ ·                  3. the nearest curve that never falls
//!    │        ───────┘                      4. risers: where it grows faster than √size
//!    └──────────────────────────── size
//! ```
//!
//! A riser counts if it ends at 1.7 times its begin or higher, and if a tread follows it. What
//! fits is read in its middle. A curve whose trials disagree, or which falls where it must not, is
//! refused: then something else used the caches.

use serde::Serialize;

/// Growth of `ln(latency)` by `ln(size)` from which a curve rises.
const RISING_SLOPE: f64 = 0.4;
/// A riser ends at least this much above its begin. What misses of a first-level TLB add to a
/// second-level cache is less, and the next level of any processor is more.
const RISER_RATIO_MIN: f64 = 1.7;
/// Points in a row that do not rise and end a riser.
const TREAD_POINTS: usize = 3;
/// A riser over more octaves tells no size.
const RISER_OCTAVES_MAX: f64 = 2.0;
/// Quartiles of a point's trials, relative to its median, from which it counts as unsteady.
const UNSTEADY: f64 = 0.25;
/// The part of all points that may be unsteady.
const UNSTEADY_SHARE_MAX: f64 = 0.25;
/// How far a point may lie from the curve that never falls, as a factor.
const FALL_MAX: f64 = 1.33;
/// The part of all points that may lie farther from it.
const FALLING_SHARE_MAX: f64 = 0.1;

/// The median of some values with their quartiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// A quarter of the values is smaller.
    pub low: f64,
    /// Half of the values is smaller.
    pub median: f64,
    /// A quarter of the values is larger.
    pub high: f64,
}

impl Spread {
    /// The spread of `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |part: usize| sorted.get((sorted.len().saturating_sub(1) * part + 2) / 4).copied();
        Some(Spread { low: at(1)?, median: at(2)?, high: at(3)? })
    }

    /// The distance of the quartiles, relative to the median.
    pub fn relative(&self) -> f64 {
        (self.high - self.low) / self.median
    }
}

/// A working set and the times that a step through it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its size, in bytes or in pages.
    pub size: u64,
    /// Nanoseconds of a step, for each trial.
    pub nanoseconds: Vec<f64>,
}

/// Sizes of equal latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tread {
    /// The smallest size.
    pub from: u64,
    /// The largest size.
    pub to: u64,
    /// The latency of its points.
    pub nanoseconds: Spread,
}

/// Where the latency rises from one tread to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Riser {
    /// The largest size at which a tenth of the rise is not yet done.
    pub begins: u64,
    /// The size that fits: in the middle of the rise, the roundest of several.
    pub fits: u64,
    /// The smallest size at which nine tenths of the rise are done.
    pub ends: u64,
}

impl Riser {
    /// Whether `size` lies where the latency rises.
    pub fn agrees_with(&self, size: u64) -> bool {
        (self.begins..self.ends).contains(&size)
    }

    /// Whether it is steep enough to tell a size.
    pub fn is_steep(&self) -> bool {
        (self.ends as f64 / self.begins as f64).log2() <= RISER_OCTAVES_MAX
    }
}

/// The stairs of a curve: a tread, then pairs of a riser and a tread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stairs {
    /// Treads, the lowest first; one more than risers.
    pub treads: Vec<Tread>,
    /// Risers, by size.
    pub risers: Vec<Riser>,
    /// Where the curve begins to rise once more without a tread behind.
    pub unsettled_from: Option<u64>,
}

/// Why a curve tells nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unclear {
    /// Too few points have trials that were not disturbed.
    Disturbed,
    /// Trials of one size disagree at too many sizes.
    Unsteady {
        /// Sizes at which they do.
        points: usize,
        /// All sizes.
        of: usize,
    },
    /// Larger working sets are faster than smaller ones at too many sizes.
    Falls {
        /// Sizes at which they are.
        points: usize,
        /// All sizes.
        of: usize,
    },
}

impl std::fmt::Display for Unclear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unclear::Disturbed => write!(f, "hardly a trial had the processor to itself"),
            Unclear::Unsteady { points, of } => {
                write!(f, "trials of one size disagree at {points} of {of} sizes")
            }
            Unclear::Falls { points, of } => {
                write!(f, "latency jumps up and down at {points} of {of} sizes")
            }
        }
    }
}

/// Finds treads and risers in points that are sorted by size.
///
/// # Errors
/// When the trials disagree too much to believe any size.
pub fn stairs(points: &[Point]) -> Result<Stairs, Unclear> {
    let spreads: Vec<(u64, Spread)> =
        points.iter().filter_map(|point| Some((point.size, Spread::of(&point.nanoseconds)?))).collect();
    let of = points.len();
    if spreads.len() < 2 * TREAD_POINTS || spreads.len() * 10 < of * 9 {
        return Err(Unclear::Disturbed);
    }
    let unsteady = spreads.iter().filter(|(_, spread)| spread.relative() > UNSTEADY).count();
    if unsteady as f64 > UNSTEADY_SHARE_MAX * of as f64 {
        return Err(Unclear::Unsteady { points: unsteady, of });
    }
    let sizes: Vec<u64> = spreads.iter().map(|(size, _)| *size).collect();
    let smooth = without_outliers(&spreads.iter().map(|(_, spread)| spread.median).collect::<Vec<_>>());
    let rising = never_falling(&smooth);
    let off = |(value, fitted): &(&f64, &f64)| (*value / *fitted).max(*fitted / *value) > FALL_MAX;
    let falling = smooth.iter().zip(&rising).filter(off).count();
    if falling as f64 > FALLING_SHARE_MAX * of as f64 {
        return Err(Unclear::Falls { points: falling, of });
    }
    Ok(climbed(&sizes, &rising, &smooth))
}

/// Each value replaced by the median of itself and its two neighbours.
fn without_outliers(values: &[f64]) -> Vec<f64> {
    let last = values.len() - 1;
    let median = |index: usize| {
        // Three values at the ends too: an outlier there has neighbours on one side only.
        let from = index.saturating_sub(1).min(last.saturating_sub(2));
        let mut three = values[from..(from + 3).min(values.len())].to_vec();
        three.sort_unstable_by(f64::total_cmp);
        three[three.len() / 2]
    };
    (0..values.len()).map(median).collect()
}

/// The curve that never falls and is nearest to the values by the squares of ratios: neighbours
/// that fall are pooled until none does (Ayer and others 1955).
fn never_falling(values: &[f64]) -> Vec<f64> {
    // Pools of (sum of logarithms, number of values).
    let mut pools: Vec<(f64, usize)> = Vec::new();
    let mean = |pool: &(f64, usize)| pool.0 / pool.1 as f64;
    for value in values {
        let mut pool = (value.ln(), 1);
        while let Some(former) = pools.pop_if(|former| mean(former) > mean(&pool)) {
            pool = (pool.0 + former.0, pool.1 + former.1);
        }
        pools.push(pool);
    }
    pools.iter().flat_map(|pool| std::iter::repeat_n(mean(pool).exp(), pool.1)).collect()
}

/// Cuts a curve that never falls into treads and risers; `smooth` gives the treads' latencies.
fn climbed(sizes: &[u64], curve: &[f64], smooth: &[f64]) -> Stairs {
    let (mut treads, mut risers, mut unsettled_from) = (Vec::new(), Vec::new(), None);
    let tread = |from: usize, to: usize| {
        let nanoseconds = Spread::of(&smooth[from..=to]).expect("a tread has a point");
        Tread { from: sizes[from], to: sizes[to], nanoseconds }
    };
    // The first point of the tread that is being walked.
    let mut standing = 0;
    for (first, last) in rises(sizes, curve) {
        let is_high = curve[last] / curve[first] >= RISER_RATIO_MIN;
        if !is_high {
            continue;
        }
        if curve.len() - last < TREAD_POINTS {
            unsettled_from = Some(sizes[first]);
            treads.push(tread(standing, first));
            return Stairs { treads, risers, unsettled_from };
        }
        treads.push(tread(standing, first));
        risers.push(riser(sizes, curve, first, last));
        standing = last;
    }
    treads.push(tread(standing, curve.len() - 1));
    Stairs { treads, risers, unsettled_from }
}

/// Pairs of the first and the last point of each rise. A rise goes on across fewer than
/// [`TREAD_POINTS`] intervals that do not rise.
fn rises(sizes: &[u64], curve: &[f64]) -> Vec<(usize, usize)> {
    let slope = |index: usize| {
        let run = (sizes[index + 1] as f64 / sizes[index] as f64).ln();
        (curve[index + 1] / curve[index]).ln() / run
    };
    let mut all: Vec<(usize, usize)> = Vec::new();
    for index in (0..curve.len() - 1).filter(|&index| slope(index) > RISING_SLOPE) {
        match all.last_mut() {
            Some((_, last)) if index - *last < TREAD_POINTS => *last = index + 1,
            _ => all.push((index, index + 1)),
        }
    }
    all
}

fn riser(sizes: &[u64], curve: &[f64], first: usize, last: usize) -> Riser {
    let level = |part: f64| curve[first] + part * (curve[last] - curve[first]);
    // The last point below a part of the rise.
    let below = |part: f64| (first..last).rev().find(|&index| curve[index] < level(part)).unwrap_or(first);
    let middle = &sizes[below(0.25)..=below(0.75)];
    // Sizes are few bits: of several that fit, the one with the smallest odd part. Where the rise
    // is sharp there is one.
    let odd_part = |size: &u64| size >> size.trailing_zeros();
    let fits = middle.iter().copied().min_by_key(odd_part).unwrap_or(sizes[first]);
    Riser { begins: sizes[below(0.1)], fits, ends: sizes[below(0.9) + 1] }
}

#[cfg(test)]
mod tests;
