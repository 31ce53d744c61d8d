//! A vector register's operations, for kernels of factorisations that are written once.
//!
//! **Why a trait.** Panels of factorisations have branches, searches and divisions; written once
//! over [`Lanes`] they are compiled for every instruction set, inside of functions that have its
//! features. **Leaves out** all that the kernels of this folder do not need.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Range, Sub};

/// What the kernels need of `f32` and `f64`.
pub(crate) trait Float:
    Copy
    + Debug
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    /// The smallest positive number whose reciprocal is finite.
    const SAFE_MIN: Self;
    /// Sums of squares between this number and its reciprocal have lost no digit to the range.
    const SAFE_SQUARE: Self;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
}

macro_rules! float {
    ($real:ident, $safe_square:literal) => {
        impl Float for $real {
            const ZERO: $real = 0.0;
            const ONE: $real = 1.0;
            const SAFE_MIN: $real = $real::MIN_POSITIVE;
            const SAFE_SQUARE: $real = $safe_square;
            #[inline(always)]
            fn abs(self) -> $real {
                self.abs()
            }
            #[inline(always)]
            fn sqrt(self) -> $real {
                self.sqrt()
            }
        }
    };
}

float!(f32, 1e-25);
float!(f64, 1e-280);

/// A vector of numbers.
///
/// # Safety
/// Every function requires that the processor has the instruction set of the type. Addresses have
/// to be readable, or writable, for the lanes that a function names.
pub(crate) trait Lanes: Copy {
    /// The numbers.
    type Real: Float;
    /// The number of lanes, at most [`super::MOST_LANES`].
    const COUNT: usize;

    /// The vectors of the widest strip of right-hand sides, eight rows of which are in registers.
    const STRIP: usize;

    /// All lanes equal.
    unsafe fn splat(value: Self::Real) -> Self;
    /// Loads all lanes.
    unsafe fn load(at: *const Self::Real) -> Self;
    /// Stores all lanes.
    unsafe fn store(self, at: *mut Self::Real);
    /// Loads some lanes, each from its place relative to `at`; the others become 0.
    unsafe fn load_some(at: *const Self::Real, lanes: Range<usize>) -> Self;
    /// Stores some lanes, each to its place relative to `at`.
    unsafe fn store_some(self, at: *mut Self::Real, lanes: Range<usize>);
    /// `self · factor`.
    unsafe fn times(self, factor: Self) -> Self;
    /// `self + a · b`.
    unsafe fn plus_product(self, a: Self, b: Self) -> Self;
    /// `self − a · b`.
    unsafe fn minus_product(self, a: Self, b: Self) -> Self;
    /// The greater of `self` and `|other|` in each lane, and `self` where `other` is NaN.
    unsafe fn max_abs(self, other: Self) -> Self;
    /// `self / divisor`.
    unsafe fn over(self, divisor: Self) -> Self;
    /// All lanes become lane `index`.
    unsafe fn lane(self, index: usize) -> Self;
    /// The sum of the lanes.
    unsafe fn sum(self) -> Self::Real;
    /// The greatest lane; no lane is NaN.
    unsafe fn greatest(self) -> Self::Real;
    /// A bit for each lane whose absolute value is `value`.
    unsafe fn equal_abs(self, value: Self::Real) -> u32;
}
