//! What the agreement tests share: seeded numbers, kinds of arrays, and the comparison with the
//! reference.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod agreement;

use lightfoot_matrix::reference::{self, gamma, Entry, Wide};
use lightfoot_matrix::Kernel;
use num_complex::Complex;

/// A small generator with a fixed seed: the same numbers on every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// In −1 … 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Element types under test.
pub(crate) trait Number: Wide {
    fn from_parts(re: f64, im: f64) -> Self;
    fn bits(self) -> [u64; 2];
    fn random(random: &mut Random) -> Self {
        Self::from_parts(random.unit(), random.unit())
    }
    fn nan() -> Self {
        Self::from_parts(f64::NAN, f64::NAN)
    }
}

impl Number for f32 {
    fn from_parts(re: f64, _: f64) -> f32 {
        re as f32
    }
    fn bits(self) -> [u64; 2] {
        [self.to_bits().into(), 0]
    }
}

impl Number for f64 {
    fn from_parts(re: f64, _: f64) -> f64 {
        re
    }
    fn bits(self) -> [u64; 2] {
        [self.to_bits(), 0]
    }
}

impl Number for Complex<f32> {
    fn from_parts(re: f64, im: f64) -> Self {
        Complex::new(re as f32, im as f32)
    }
    fn bits(self) -> [u64; 2] {
        [self.re.to_bits().into(), self.im.to_bits().into()]
    }
}

impl Number for Complex<f64> {
    fn from_parts(re: f64, im: f64) -> Self {
        Complex::new(re, im)
    }
    fn bits(self) -> [u64; 2] {
        [self.re.to_bits(), self.im.to_bits()]
    }
}

/// Runs `check` for every kernel that this machine can run, and prints the ones it cannot.
pub(crate) fn every_kernel(mut check: impl FnMut(&'static Kernel)) {
    for name in Kernel::names() {
        match Kernel::named(name) {
            Some(kernel) => check(kernel),
            None => println!("skipping {name}: this processor cannot run it"),
        }
    }
}

/// Asserts that `got` is the reference's entry up to γ of its length, or the same kind of infinity
/// or NaN.
pub(crate) fn assert_entry<T: Number>(got: T, want: Entry, k: usize, context: &str) {
    // K products, their sums, α, β and the last sum; twice as many for complex numbers.
    let bound = gamma(2 * (k + 4), T::ROUNDOFF) * want.magnitude + f64::from(f32::MIN_POSITIVE) * T::ROUNDOFF;
    for (got, want) in got.widen().into_iter().zip(want.value) {
        let same = if want.is_nan() {
            got.is_nan()
        } else if want.is_infinite() {
            got == want
        } else {
            (got - want).abs() <= bound
        };
        assert!(same, "{context}: got {got:e}, the reference says {want:e}, bound {bound:e}");
    }
}

/// One multiplication on dense column-major data, for the reference.
#[derive(Clone)]
pub(crate) struct Problem<T> {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) alpha: T,
    pub(crate) beta: T,
    pub(crate) a: Vec<T>,
    pub(crate) b: Vec<T>,
    pub(crate) c: Vec<T>,
}

impl<T: Number> Problem<T> {
    pub(crate) fn random(m: usize, n: usize, k: usize, random: &mut Random) -> Problem<T> {
        let mut numbers = |count| (0..count).map(|_| T::random(random)).collect::<Vec<_>>();
        let (a, b, c) = (numbers(m * k), numbers(k * n), numbers(m * n));
        let (alpha, beta) = (T::random(random), T::random(random));
        Problem { m, n, k, alpha, beta, a, b, c }
    }

    pub(crate) fn expected(&self) -> Vec<Entry> {
        let a = |i, p| self.a[i + p * self.m];
        let b = |p, j| self.b[p + j * self.k];
        let c = |i, j| self.c[i + j * self.m];
        reference::product((self.m, self.n, self.k), self.alpha, a, b, self.beta, c)
    }

    /// Compares a column-major result with the reference.
    pub(crate) fn assert_result(&self, got: &[T], context: &str) {
        let expected = self.expected();
        for i in 0..self.m {
            for j in 0..self.n {
                let context = format!(
                    "{context}, {}×{}×{} {}, entry ({i}, {j}), α {:?}, β {:?}",
                    self.m,
                    self.n,
                    self.k,
                    T::NAME,
                    self.alpha,
                    self.beta
                );
                assert_entry(got[i + j * self.m], expected[i * self.n + j], self.k, &context);
            }
        }
    }
}
