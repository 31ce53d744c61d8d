//! Spearman's correlation: the correlation of ranks, which depends on order only.
//!
//! `ρ = Σ dᵢeᵢ / √(Σ dᵢ² · Σ eᵢ²)` with `dᵢ = 2·rank(xᵢ) − (n + 1)`. Ties take average ranks, so
//! `d` is a whole number and all three sums are exact; only the last division rounds. A constant
//! series has no correlation: `None`, not 0. Missing numbers (NaN) are left out together with their
//! partners.
//!
//! Cost: a sort per series and one multiplication per pair of records; a matrix ranks every series
//! once. Source: Spearman 1904; the slow twin is [`mod@reference`].

/// A series as centred, doubled average ranks.
#[derive(Clone, Debug)]
pub struct Ranks {
    centred: Vec<i32>,
    /// Σ dᵢ²; 0 for a constant series.
    norm: i128,
}

/// The number of products that are added in 64 bits before the sum is added in 128 bits: with ranks
/// below 2^27 it stays below 2^63.
const CHUNK: usize = 256;

impl Ranks {
    /// Ranks a series without missing numbers; -0 equals 0.
    ///
    /// # Panics
    /// For more than 2^26 records, or a NaN.
    pub fn new(series: &[f64]) -> Ranks {
        assert!(series.len() <= 1 << 26, "{} records are too many to rank", series.len());
        let keys = series.iter().zip(0_u64..).map(|(&x, index)| u128::from(key(x)) << 64 | u128::from(index));
        let mut order: Vec<u128> = keys.collect();
        order.sort_unstable();
        let mut centred = vec![0; series.len()];
        let n = series.len() as i32;
        let mut at = 0;
        for ties in order.chunk_by(|a, b| a >> 64 == b >> 64) {
            // Places at + 1 to at + count have the average rank at + (count + 1) / 2.
            let count = ties.len() as i32;
            for tie in ties {
                centred[*tie as u64 as usize] = 2 * at + count - n;
            }
            at += count;
        }
        let norm = product(&centred, &centred);
        Ranks { centred, norm }
    }

    /// The correlation of two series of the same length; `None` when one is constant.
    pub fn correlation(&self, other: &Ranks) -> Option<f64> {
        assert_eq!(self.centred.len(), other.centred.len(), "series have one length");
        if self.norm == 0 || other.norm == 0 {
            return None;
        }
        let covariance = product(&self.centred, &other.centred) as f64;
        // The root of each norm is taken first: their product may not fit the 53 bits of a double,
        // and equal series must give exactly 1.
        let scale = if self.norm == other.norm {
            self.norm as f64
        } else {
            (self.norm as f64).sqrt() * (other.norm as f64).sqrt()
        };
        Some((covariance / scale).clamp(-1.0, 1.0))
    }
}

/// Maps a floating-point number to an unsigned one with the same order.
fn key(x: f64) -> u64 {
    assert!(!x.is_nan(), "a missing number has no rank");
    let bits = (x + 0.0).to_bits();
    bits ^ ((bits as i64 >> 63) as u64 | 1 << 63)
}

fn product(a: &[i32], b: &[i32]) -> i128 {
    let chunk = |(a, b): (&[i32], &[i32])| -> i128 {
        a.iter().zip(b).map(|(&a, &b)| i64::from(a) * i64::from(b)).sum::<i64>().into()
    };
    a.chunks(CHUNK).zip(b.chunks(CHUNK)).map(chunk).sum()
}

/// Spearman's correlation of two series of the same length, over the records where neither is
/// missing.
///
/// # Panics
/// When the lengths differ.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    assert_eq!(a.len(), b.len(), "series have one length");
    if !a.iter().chain(b).any(|x| x.is_nan()) {
        return Ranks::new(a).correlation(&Ranks::new(b));
    }
    let both = a.iter().zip(b).filter(|(a, b)| !a.is_nan() && !b.is_nan());
    let (a, b): (Vec<f64>, Vec<f64>) = both.unzip();
    Ranks::new(&a).correlation(&Ranks::new(&b))
}

/// The correlations of all pairs `(i, j)` with `i < j`, row by row.
pub fn matrix(series: &[Vec<f64>]) -> Vec<Option<f64>> {
    let whole = |s: &Vec<f64>| (!s.iter().any(|x| x.is_nan())).then(|| Ranks::new(s));
    let ranks: Vec<Option<Ranks>> = series.iter().map(whole).collect();
    let mut out = Vec::with_capacity(series.len() * series.len().saturating_sub(1) / 2);
    for i in 0..series.len() {
        for j in i + 1..series.len() {
            out.push(match (&ranks[i], &ranks[j]) {
                (Some(a), Some(b)) => a.correlation(b),
                _ => spearman(&series[i], &series[j]),
            });
        }
    }
    out
}

/// The slow twin: computes ranks by counting, and applies Pearson's formula to them.
pub mod reference {
    /// Spearman's correlation by counting, in quadratic time.
    pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
        let kept: Vec<usize> = (0..a.len()).filter(|&i| !a[i].is_nan() && !b[i].is_nan()).collect();
        let rank = |x: &[f64], i: usize| {
            let below = kept.iter().filter(|&&j| x[j] < x[i]).count() as f64;
            let equal = kept.iter().filter(|&&j| x[j] == x[i]).count() as f64;
            below + (equal + 1.0) / 2.0
        };
        let mean = (kept.len() as f64 + 1.0) / 2.0;
        let sum = |x: &[f64], y: &[f64]| -> f64 {
            kept.iter().map(|&i| (rank(x, i) - mean) * (rank(y, i) - mean)).sum()
        };
        let (covariance, a_norm, b_norm) = (sum(a, b), sum(a, a), sum(b, b));
        (a_norm > 0.0 && b_norm > 0.0).then(|| covariance / (a_norm.sqrt() * b_norm.sqrt()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]), Some(1.0));
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(spearman(&[1.0, 1.0, 1.0], &[3.0, 2.0, 1.0]), None);
        assert_eq!(spearman(&[], &[]), None);
        assert_eq!(spearman(&[5.0], &[5.0]), None);
        assert_eq!(spearman(&[0.0, -0.0, 1.0], &[2.0, 2.0, 3.0]), Some(1.0));
        assert_eq!(spearman(&[1.0, f64::NAN, 2.0, 3.0], &[1.0, -9.0, 2.0, 3.0]), Some(1.0));
        assert_eq!(spearman(&[f64::NEG_INFINITY, -1.0, f64::INFINITY], &[1.0, 2.0, 3.0]), Some(1.0));
    }

    proptest! {
        #[test]
        fn agrees_with_the_slow_twin(pairs in prop::collection::vec((-6..6_i32, prop_oneof![Just(f64::NAN), -1e9..1e9, -3.0..3.0_f64]), 0..60)) {
            let a: Vec<f64> = pairs.iter().map(|pair| f64::from(pair.0)).collect();
            let b: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
            match (spearman(&a, &b), reference::spearman(&a, &b)) {
                (Some(fast), Some(slow)) => prop_assert!((fast - slow).abs() < 1e-12),
                (fast, slow) => prop_assert_eq!(fast, slow),
            }
            let all = matrix(&[a.clone(), b.clone(), a.clone()]);
            prop_assert_eq!(all[0], spearman(&a, &b));
            prop_assert_eq!(all[2], spearman(&b, &a));
        }
    }
}
