//! The slow twin: three loops in double-double arithmetic.
//!
//! **What.** It computes `C ← α·op(A)·op(B) + β·C` entry by entry with about 106 bits, and for
//! every entry the magnitude `|α|·Σ|a||b| + |β||c|`, to which error bounds refer. A sum of K
//! products and the update, computed in any order in an arithmetic of unit roundoff u, errs by at
//! most `γₙ` times that magnitude, `γₙ = n·u / (1 − n·u)`. Source: Dekker 1971 (two-sum,
//! two-product); Higham 2002, section 3.1 (γ).

pub mod factor;

use crate::Element;
use num_complex::Complex;
use std::ops::{Add, Mul, Neg};

/// An unevaluated sum of two doubles, `|low|` at most half a unit in the last place of `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Twofold {
    high: f64,
    low: f64,
}

impl Twofold {
    /// A double, which is represented exactly.
    pub fn new(value: f64) -> Twofold {
        Twofold { high: value, low: 0.0 }
    }

    /// The nearest double.
    pub fn value(self) -> f64 {
        self.high + self.low
    }

    fn renormalised(high: f64, low: f64) -> Twofold {
        let sum = high + low;
        if !sum.is_finite() {
            return Twofold { high: sum, low: 0.0 };
        }
        Twofold { high: sum, low: low - (sum - high) }
    }
}

impl Add for Twofold {
    type Output = Twofold;
    fn add(self, other: Twofold) -> Twofold {
        let sum = self.high + other.high;
        let part = sum - self.high;
        let error = (self.high - (sum - part)) + (other.high - part);
        if !sum.is_finite() {
            return Twofold { high: sum, low: 0.0 };
        }
        Twofold::renormalised(sum, error + self.low + other.low)
    }
}

impl Mul for Twofold {
    type Output = Twofold;
    fn mul(self, other: Twofold) -> Twofold {
        let product = self.high * other.high;
        if !product.is_finite() {
            return Twofold { high: product, low: 0.0 };
        }
        let error = self.high.mul_add(other.high, -product);
        Twofold::renormalised(product, error + self.high * other.low + self.low * other.high)
    }
}

impl Neg for Twofold {
    type Output = Twofold;
    fn neg(self) -> Twofold {
        Twofold { high: -self.high, low: -self.low }
    }
}

/// An element type that the reference can widen.
pub trait Wide: Element {
    /// Unit roundoff of its parts.
    const ROUNDOFF: f64;
    /// Real and imaginary part.
    fn widen(self) -> [f64; 2];
}

impl Wide for f32 {
    const ROUNDOFF: f64 = f32::EPSILON as f64 / 2.0;
    fn widen(self) -> [f64; 2] {
        [self.into(), 0.0]
    }
}

impl Wide for f64 {
    const ROUNDOFF: f64 = f64::EPSILON / 2.0;
    fn widen(self) -> [f64; 2] {
        [self, 0.0]
    }
}

impl Wide for Complex<f32> {
    const ROUNDOFF: f64 = f32::EPSILON as f64 / 2.0;
    fn widen(self) -> [f64; 2] {
        [self.re.into(), self.im.into()]
    }
}

impl Wide for Complex<f64> {
    const ROUNDOFF: f64 = f64::EPSILON / 2.0;
    fn widen(self) -> [f64; 2] {
        [self.re, self.im]
    }
}

/// One entry of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Real and imaginary part, rounded once from double-double.
    pub value: [f64; 2],
    /// `|α|·Σ|a||b| + |β||c|`, with |z| = |re| + |im|.
    pub magnitude: f64,
}

/// γ of a sum with `terms` rounded operations at unit roundoff `u`.
pub fn gamma(terms: usize, u: f64) -> f64 {
    let nu = terms as f64 * u;
    nu / (1.0 - nu)
}

type Pair = [Twofold; 2];

fn pair<T: Wide>(value: T) -> Pair {
    value.widen().map(Twofold::new)
}

fn times(a: Pair, b: Pair) -> Pair {
    [a[0] * b[0] + -(a[1] * b[1]), a[0] * b[1] + a[1] * b[0]]
}

fn plus(a: Pair, b: Pair) -> Pair {
    [a[0] + b[0], a[1] + b[1]]
}

fn size<T: Wide>(value: T) -> f64 {
    value.widen().iter().map(|part| part.abs()).sum()
}

/// The entry `α·Σₖ a(k)·b(k) + β·c`. Real types are multiplied as reals, so ∞·0 arises only where
/// it arises for reals.
pub fn entry<T: Wide>(alpha: T, terms: impl Iterator<Item = (T, T)>, beta: T, c: T) -> Entry {
    let times =
        |a: Pair, b: Pair| if T::PARTS == 1 { [a[0] * b[0], Twofold::default()] } else { times(a, b) };
    let (mut sum, mut magnitude) = (Pair::default(), 0.0);
    if alpha != T::ZERO {
        for (a, b) in terms {
            sum = plus(sum, times(pair(a), pair(b)));
            magnitude += size(a) * size(b);
        }
        (sum, magnitude) = (times(pair(alpha), sum), magnitude * size(alpha));
    }
    if beta != T::ZERO {
        sum = plus(sum, times(pair(beta), pair(c)));
        magnitude += size(beta) * size(c);
    }
    Entry { value: sum.map(Twofold::value), magnitude }
}

/// All entries of `α·A·B + β·C` in row-major order; the closures give entries by row and column.
pub fn product<T: Wide>(
    (m, n, k): (usize, usize, usize),
    alpha: T,
    a: impl Fn(usize, usize) -> T,
    b: impl Fn(usize, usize) -> T,
    beta: T,
    c: impl Fn(usize, usize) -> T,
) -> Vec<Entry> {
    let at = |i: usize, j: usize| entry(alpha, (0..k).map(|p| (a(i, p), b(p, j))), beta, c(i, j));
    (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| at(i, j)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancellation_keeps_what_doubles_lose() {
        let terms = [(1e16, 1.0), (1.0, 1.0), (-1e16, 1.0)];
        let entry = entry(1.0, terms.into_iter(), 0.0, f64::NAN);
        assert_eq!(entry.value[0], 1.0);
        assert_eq!(entry.magnitude, 2e16 + 1.0);
    }

    #[test]
    fn complex_products_follow_the_definition() {
        let (a, b) = (Complex::new(1.0, 2.0), Complex::new(3.0, -4.0));
        let entry = entry(Complex::new(0.0, 1.0), [(a, b)].into_iter(), Complex::new(0.0, 0.0), a);
        assert_eq!(entry.value, [-2.0, 11.0]);
    }
}
