//! The operations of a register as loops over a small array, which compilers turn into vector
//! instructions of the target: plain Rust for any processor, and for AVX2 and NEON, whose functions
//! are compiled with their features.
//!
//! `FUSED` selects fused multiply-adds, which are library calls if the processor lacks them.

use super::lanes::{Float, Lanes};
use std::ops::Range;

/// `N` numbers.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Array<R, const N: usize, const FUSED: bool>([R; N]);

macro_rules! lanes {
    ($real:ident) => {
        impl<const N: usize, const FUSED: bool> Lanes for Array<$real, N, FUSED> {
            type Real = $real;
            const COUNT: usize = N;
            const STRIP: usize = 1;

            #[inline(always)]
            unsafe fn splat(value: $real) -> Self {
                Array([value; N])
            }
            #[inline(always)]
            unsafe fn load(at: *const $real) -> Self {
                // SAFETY: the caller's promise.
                Array(unsafe { at.cast::<[$real; N]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn store(self, at: *mut $real) {
                // SAFETY: the caller's promise.
                unsafe { at.cast::<[$real; N]>().write_unaligned(self.0) }
            }
            #[inline(always)]
            unsafe fn load_some(at: *const $real, lanes: Range<usize>) -> Self {
                let mut out = [<$real>::ZERO; N];
                for lane in lanes {
                    // SAFETY: the caller promises these lanes.
                    out[lane] = unsafe { *at.wrapping_add(lane) };
                }
                Array(out)
            }
            #[inline(always)]
            unsafe fn store_some(self, at: *mut $real, lanes: Range<usize>) {
                for lane in lanes {
                    // SAFETY: the caller promises these lanes.
                    unsafe { *at.wrapping_add(lane) = self.0[lane] };
                }
            }
            #[inline(always)]
            unsafe fn times(mut self, factor: Self) -> Self {
                (0..N).for_each(|i| self.0[i] *= factor.0[i]);
                self
            }
            #[inline(always)]
            unsafe fn plus_product(mut self, a: Self, b: Self) -> Self {
                for i in 0..N {
                    self.0[i] =
                        if FUSED { a.0[i].mul_add(b.0[i], self.0[i]) } else { self.0[i] + a.0[i] * b.0[i] };
                }
                self
            }
            #[inline(always)]
            unsafe fn minus_product(mut self, a: Self, b: Self) -> Self {
                for i in 0..N {
                    self.0[i] = if FUSED {
                        (-a.0[i]).mul_add(b.0[i], self.0[i])
                    } else {
                        self.0[i] - a.0[i] * b.0[i]
                    };
                }
                self
            }
            #[inline(always)]
            unsafe fn max_abs(mut self, other: Self) -> Self {
                for i in 0..N {
                    let size = other.0[i].abs();
                    self.0[i] = if size > self.0[i] { size } else { self.0[i] };
                }
                self
            }
            #[inline(always)]
            unsafe fn over(mut self, divisor: Self) -> Self {
                (0..N).for_each(|i| self.0[i] /= divisor.0[i]);
                self
            }
            #[inline(always)]
            unsafe fn lane(self, index: usize) -> Self {
                Array([self.0[index]; N])
            }
            #[inline(always)]
            unsafe fn sum(self) -> $real {
                self.0.iter().sum()
            }
            #[inline(always)]
            unsafe fn greatest(self) -> $real {
                self.0.iter().fold(self.0[0], |best, &value| if value > best { value } else { best })
            }
            #[inline(always)]
            unsafe fn equal_abs(self, value: $real) -> u32 {
                (0..N).fold(0, |bits, i| bits | u32::from(self.0[i].abs() == value) << i)
            }
        }
    };
}

lanes!(f32);
lanes!(f64);
