//! The four element types, and how a complex product is computed from real ones.
//!
//! A complex number is stored as its two parts, so a panel of `n` complex rows is a panel of `2n`
//! real ones, and a group of `n` complex columns of `B` is a group of `2n` real ones. A real kernel
//! therefore yields, for a complex entry, the four sums `Σ re·re, Σ im·re, Σ re·im, Σ im·im`, at
//! full speed: 8 flops for each complex multiply-add, of which none is wasted.
//! [`Element::from_products`] joins the sums once per register tile.

use crate::kernel::factor::FactorKernels;
use crate::kernel::{Kernel, RealKernel};
use num_complex::Complex;
use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Sub};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for num_complex::Complex<f32> {}
    impl Sealed for num_complex::Complex<f64> {}
}

/// `f32` or `f64`.
pub trait Real: Element<Real = Self> + PartialOrd {
    /// The distance from 1 to the next larger number.
    const EPSILON: Self;
    /// The smallest positive normal number.
    const MIN_POSITIVE: Self;
    /// The kernel's part for this type.
    fn kernel(kernel: &'static Kernel) -> &'static RealKernel<Self>;
    /// The register kernels of factorisations for this type.
    #[doc(hidden)]
    fn factor(kernel: &'static Kernel) -> Factorizing<Self>;
    /// The positive square root, NaN for negative numbers.
    fn sqrt(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// The number in double precision, which holds it exactly.
    fn to_f64(self) -> f64;
    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;
}

/// A handle to the register kernels of factorisations, which are private.
#[derive(Clone, Copy, Debug)]
pub struct Factorizing<T: 'static>(pub(crate) &'static FactorKernels<T>);

/// An element type of matrices: `f32`, `f64`, `Complex<f32>`, `Complex<f64>`. All-zero bytes are a
/// valid element.
pub trait Element:
    sealed::Sealed
    + Copy
    + Send
    + Sync
    + Debug
    + PartialEq
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + 'static
{
    /// The type of the element's parts.
    type Real: Real;
    /// Reals per element: 1 or 2.
    const PARTS: usize;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The name that the command prints.
    const NAME: &'static str;
    /// The real part.
    fn re(self) -> Self::Real;
    /// Joins sums of products: `p[0..2]` are the parts of `Σ a·re(b)`, `p[2..4]` those of
    /// `Σ a·im(b)`. Real types use `p[0]`.
    fn from_products(p: [Self::Real; 4]) -> Self;
    /// The imaginary part, 0 for real types.
    fn im(self) -> Self::Real;
    /// The element with these parts; real types ignore the second.
    fn from_re_im(re: Self::Real, im: Self::Real) -> Self;
    /// The complex conjugate; real numbers are their own.
    fn conj(self) -> Self;
}

macro_rules! element {
    ($real:ident, $name:literal, $complex_name:literal) => {
        impl Real for $real {
            #[inline]
            fn kernel(kernel: &'static Kernel) -> &'static RealKernel<$real> {
                &kernel.$real
            }
            #[inline]
            fn factor(kernel: &'static Kernel) -> Factorizing<$real> {
                Factorizing(kernel.factor.$real())
            }
            const EPSILON: $real = $real::EPSILON;
            const MIN_POSITIVE: $real = $real::MIN_POSITIVE;
            #[inline]
            fn sqrt(self) -> $real {
                self.sqrt()
            }
            #[inline]
            fn abs(self) -> $real {
                self.abs()
            }
            #[inline]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline]
            fn from_f64(value: f64) -> $real {
                value as $real
            }
        }
        impl Element for $real {
            type Real = $real;
            const PARTS: usize = 1;
            const ZERO: $real = 0.0;
            const ONE: $real = 1.0;
            const NAME: &'static str = $name;
            #[inline]
            fn re(self) -> $real {
                self
            }
            #[inline]
            fn from_products(p: [$real; 4]) -> $real {
                p[0]
            }
            #[inline]
            fn im(self) -> $real {
                0.0
            }
            #[inline]
            fn from_re_im(re: $real, _: $real) -> $real {
                re
            }
            #[inline]
            fn conj(self) -> $real {
                self
            }
        }
        impl Element for Complex<$real> {
            type Real = $real;
            const PARTS: usize = 2;
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };
            const ONE: Self = Complex { re: 1.0, im: 0.0 };
            const NAME: &'static str = $complex_name;
            #[inline]
            fn re(self) -> $real {
                self.re
            }
            #[inline]
            fn from_products(p: [$real; 4]) -> Self {
                Complex { re: p[0] - p[3], im: p[1] + p[2] }
            }
            #[inline]
            fn im(self) -> $real {
                self.im
            }
            #[inline]
            fn from_re_im(re: $real, im: $real) -> Self {
                Complex { re, im }
            }
            #[inline]
            fn conj(self) -> Self {
                Complex { re: self.re, im: -self.im }
            }
        }
    };
}

element!(f32, "f32", "c32");
element!(f64, "f64", "c64");
