//! Keys for races and tests. They are seeded, so that every run has the same keys, and as uneven as
//! real keys are.
//!
//! Numbers are 64-bit; [`Distribution::keys`] scales them to a key type's range. The generator is a
//! plain xorshift: fast, good enough, no dependency.

use alloc::vec::Vec;

/// A seeded generator of 64-bit numbers (xorshift64*; Vigna 2016).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator for a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `limit` (at least 1), nearly uniform.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number with mean 0 and standard deviation 1, roughly normal (twelve uniform ones summed).
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// The distribution of keys over their range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Distribution {
    /// Evenly at random.
    Uniform,
    /// The exponential of a normal variable of standard deviation 2: most keys in a tiny part of
    /// the range.
    Lognormal,
    /// Some hundred dense clusters, far apart.
    Clustered,
    /// Dense small keys and a handful near the end of the range.
    Outliers,
    /// Ascending seconds with bursts, each repeated up to a few times.
    Timestamps,
    /// Half of all keys are one and the same.
    OneKey,
    /// 153 prefixes of 16 bits, as addresses or tenants have, and random bits behind them.
    Prefixes,
    /// Gaps between neighbours follow a power law: most are 1, a few span much of the range.
    PowerGaps,
    /// Runs of consecutive numbers, as identifiers have, with holes between them.
    Runs,
    /// The bell curve around the middle of the range.
    Normal,
    /// A density that wanders, as ranks of sales and identifiers of users do, and 21 keys far
    /// above.
    Wandering,
    /// Cells of a map: every halving of a cell gives three quarters of its keys to one half.
    Cells,
}

/// Every distribution with its name.
///
/// ```
/// for &(distribution, name) in lightfoot_search::sample::DISTRIBUTIONS {
///     let keys = distribution.keys(1000, 1 << 40, 7);
///     assert!(keys.is_sorted() && keys[999] <= 1 << 40, "{name}");
/// }
/// ```
pub const DISTRIBUTIONS: &[(Distribution, &str)] = &[
    (Distribution::Uniform, "uniform"),
    (Distribution::Lognormal, "lognormal"),
    (Distribution::Clustered, "clustered"),
    (Distribution::Outliers, "outliers"),
    (Distribution::Timestamps, "timestamps"),
    (Distribution::OneKey, "one-key"),
    (Distribution::Prefixes, "prefixes"),
    (Distribution::PowerGaps, "power-gaps"),
    (Distribution::Runs, "runs"),
    (Distribution::Normal, "normal"),
    (Distribution::Wandering, "wandering"),
    (Distribution::Cells, "cells"),
];

impl Distribution {
    /// `n` sorted keys of at most `max`.
    pub fn keys(self, n: usize, max: u64, seed: u64) -> Vec<u64> {
        let mut random = Random::new(seed);
        match self {
            Distribution::Uniform => return uniform(n, max, &mut random),
            Distribution::PowerGaps | Distribution::Runs => return self.summed(n, max, &mut random),
            Distribution::Wandering => return wandering(n, max, &mut random),
            _ => {}
        }
        let dense = (n as u64).saturating_mul(4).min(max);
        let mut now = max / 2;
        let mut keys: Vec<u64> = (0..n)
            .map(|i| match self {
                Distribution::Lognormal => lognormal(&mut random, max),
                Distribution::Clustered => {
                    let step = (max / 128).max(1);
                    (random.below(128) * step).saturating_add(random.below((dense / 128).max(1))).min(max)
                }
                Distribution::Outliers if i < 8 => max - random.below((max / 1000).max(1)),
                Distribution::Outliers => random.below(dense.max(1)),
                Distribution::Timestamps => {
                    // With few keys in a wide range a gap may lead beyond the range: then time
                    // stops.
                    let widest = (max / 2 / n.max(1) as u64).saturating_mul(500).max(1);
                    let is_gap = random.below(1000) == 0;
                    now = now.saturating_add(if is_gap { random.below(widest) } else { random.below(3) / 2 });
                    now.min(max)
                }
                Distribution::Prefixes => {
                    // The prefixes are as many steps of a fixed stride, which has no common divisor
                    // with 2^16, so they are spread over the range and never equal.
                    let prefix = (random.below(153) * 25_717) & 0xFFFF;
                    let cell = (max >> 16).max(1);
                    (prefix * cell).saturating_add(random.below(cell)).min(max)
                }
                Distribution::Normal => {
                    let middle = max as f64 / 2.0;
                    ((middle + middle / 6.0 * random.normal()) as u64).min(max)
                }
                Distribution::Cells => cell(&mut random, max),
                _ if i % 2 == 0 => max / 3,
                _ => random.below(max),
            })
            .collect();
        keys.sort_unstable();
        keys
    }
}

impl Distribution {
    /// `n` keys whose gaps are drawn one by one, which needs no sorting; gaps that would lead
    /// beyond `max` are shortened.
    fn summed(self, n: usize, max: u64, random: &mut Random) -> Vec<u64> {
        // The average gap leaves half of the range for the long gaps that a sample may have.
        let average = (max / 2 / n.max(1) as u64).max(1) as f64;
        let (mut now, mut left) = (0u64, 0u64);
        let mut keys = Vec::with_capacity(n);
        for _ in 0..n {
            keys.push(now);
            let gap = match self {
                Distribution::PowerGaps => {
                    // The density of gaps falls with their square, so their sum is dominated by the
                    // longest ones; ln n times the shortest gap is the average.
                    let shortest = average / natural_logarithm(n as f64 + 3.0);
                    (shortest / (1.0 - random.unit())) as u64
                }
                _ if left > 0 => {
                    left -= 1;
                    1
                }
                _ => {
                    left = random.below(2000);
                    random.below((2000.0 * (average - 1.0).max(0.5)) as u64 + 1)
                }
            };
            now = now.saturating_add(gap).min(max);
        }
        keys
    }
}

/// Keys whose gaps are exponential with a mean that wanders by a few percent a key, and 21 keys far
/// above the others.
fn wandering(n: usize, max: u64, random: &mut Random) -> Vec<u64> {
    let far = n.min(21);
    let mut level = 1.0;
    let mut sums: Vec<f64> = Vec::with_capacity(n);
    let mut sum = 0.0;
    for _ in far..n {
        sum += exponential(random) * level;
        sums.push(sum);
        // The mean stays within two powers of ten.
        level = (level * (1.0 + 0.02 * random.normal())).clamp(0.1, 10.0);
    }
    let scale = max as f64 / 64.0 / sum.max(1.0);
    let mut keys: Vec<u64> = sums.into_iter().map(|sum| ((sum * scale) as u64).min(max)).collect();
    keys.extend((0..far).map(|_| max - random.below((max / 2).max(1))));
    keys.sort_unstable();
    keys
}

/// A cell: from the whole range down, one half of each interval gets three quarters of the keys;
/// which half, depends on the interval.
fn cell(random: &mut Random, max: u64) -> u64 {
    let (mut low, mut width) = (0u64, max);
    let mut bits = random.bits();
    let mut left = 32;
    while width > 1 {
        if left == 0 {
            (bits, left) = (random.bits(), 32);
        }
        let heavy = (low ^ width).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63;
        let upper = if bits & 3 == 0 { 1 - heavy } else { heavy };
        (bits, left) = (bits >> 2, left - 1);
        width = width.div_ceil(2);
        low = low.saturating_add(upper * width).min(max);
    }
    low
}

/// Sorted uniform keys without sorting: sums of exponential gaps, scaled to the range.
fn uniform(n: usize, max: u64, random: &mut Random) -> Vec<u64> {
    let mut sum = 0.0;
    let mut gaps: Vec<u64> = Vec::with_capacity(n);
    for _ in 0..n {
        sum += exponential(random);
        gaps.push(f64::to_bits(sum));
    }
    let scale = max as f64 / (sum + exponential(random));
    for gap in &mut gaps {
        *gap = ((f64::from_bits(*gap) * scale) as u64).min(max);
    }
    gaps
}

fn exponential(random: &mut Random) -> f64 {
    -natural_logarithm(1.0 - random.unit())
}

/// `core` has no logarithm: the exponent, and the series of (m − 1)/(m + 1) for the mantissa.
fn natural_logarithm(x: f64) -> f64 {
    let bits = x.max(f64::MIN_POSITIVE).to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | 1023 << 52);
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let series = (0..12).rev().fold(0.0, |sum, i| sum * square + 1.0 / (2 * i + 1) as f64);
    exponent as f64 * core::f64::consts::LN_2 + 2.0 * t * series
}

/// 2 to a normal power, scaled so that nearly all keys fit below `max`.
fn lognormal(random: &mut Random, max: u64) -> u64 {
    let power = 2.0 * core::f64::consts::LOG2_E * random.normal();
    let whole = power.max(-60.0) as i64 - i64::from(power < 0.0);
    let two_to_whole = f64::from_bits(((whole + 1023) as u64) << 52);
    let value = two_to_whole * (1.0 + (power - whole as f64)) * (max as f64 / 4096.0);
    (value as u64).min(max)
}

/// `count` queries: keys of the sorted `keys`, at random.
pub fn hits<K: Copy>(keys: &[K], count: usize, seed: u64) -> Vec<K> {
    let mut random = Random::new(seed);
    if keys.is_empty() {
        return Vec::new();
    }
    (0..count).map(|_| keys[random.below(keys.len() as u64) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_in_range_and_repeatable() {
        for &(distribution, name) in DISTRIBUTIONS {
            for max in [u64::from(u32::MAX), 1 << 31, u64::MAX, 100] {
                let keys = distribution.keys(2000, max, 1);
                assert!(keys.windows(2).all(|pair| pair[0] <= pair[1]) && keys[1999] <= max, "{name}");
                assert_eq!(keys, distribution.keys(2000, max, 1));
            }
        }
    }

    #[test]
    fn the_logarithm_is_close() {
        for x in [1e-300, 1e-9, 0.1, 0.5, 0.999, 1.0, 2.0, 1e10] {
            assert!((natural_logarithm(x) - x.ln()).abs() < 1e-9 * x.ln().abs().max(1.0), "{x}");
        }
    }
}
