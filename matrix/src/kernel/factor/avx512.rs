//! The operations of a 512-bit register.

use super::lanes::Lanes;
use std::arch::x86_64::*;
use std::ops::Range;

/// Eight numbers of double precision.
#[derive(Clone, Copy)]
pub(crate) struct Double(__m512d);
/// Sixteen numbers of single precision.
#[derive(Clone, Copy)]
pub(crate) struct Single(__m512);

macro_rules! lanes {
    ($lanes:ident, $real:ty, $count:literal, $mask:ty, $index:ident, $int:ty, $set:ident, $load:ident,
     $store:ident, $masked_load:ident, $masked_store:ident, $mul:ident, $div:ident, $fma:ident, $fnma:ident, $max:ident,
     $abs:ident, $permute:ident, $sum:ident, $greatest:ident, $equal:ident) => {
        impl Lanes for $lanes {
            type Real = $real;
            const COUNT: usize = $count;
            const STRIP: usize = 3;

            #[inline(always)]
            unsafe fn splat(value: $real) -> Self {
                // SAFETY: the caller's promise of the instruction set.
                $lanes(unsafe { $set(value) })
            }
            #[inline(always)]
            unsafe fn load(at: *const $real) -> Self {
                // SAFETY: the caller's promise.
                $lanes(unsafe { $load(at) })
            }
            #[inline(always)]
            unsafe fn store(self, at: *mut $real) {
                // SAFETY: the caller's promise.
                unsafe { $store(at, self.0) }
            }
            #[inline(always)]
            unsafe fn load_some(at: *const $real, lanes: Range<usize>) -> Self {
                let mask = (((1u32 << lanes.end) - 1) & !((1u32 << lanes.start) - 1)) as $mask;
                // SAFETY: the caller's promise.
                $lanes(unsafe { $masked_load(mask, at) })
            }
            #[inline(always)]
            unsafe fn store_some(self, at: *mut $real, lanes: Range<usize>) {
                let mask = (((1u32 << lanes.end) - 1) & !((1u32 << lanes.start) - 1)) as $mask;
                // SAFETY: the caller's promise.
                unsafe { $masked_store(at, mask, self.0) }
            }
            #[inline(always)]
            unsafe fn times(self, factor: Self) -> Self {
                // SAFETY: the caller's promise of the instruction set.
                $lanes(unsafe { $mul(self.0, factor.0) })
            }
            #[inline(always)]
            unsafe fn plus_product(self, a: Self, b: Self) -> Self {
                // SAFETY: the caller's promise of the instruction set.
                $lanes(unsafe { $fma(a.0, b.0, self.0) })
            }
            #[inline(always)]
            unsafe fn minus_product(self, a: Self, b: Self) -> Self {
                // SAFETY: the caller's promise of the instruction set.
                $lanes(unsafe { $fnma(a.0, b.0, self.0) })
            }
            #[inline(always)]
            unsafe fn max_abs(self, other: Self) -> Self {
                // The instruction returns its second operand if one of them is NaN.
                // SAFETY: the caller's promise of the instruction set.
                $lanes(unsafe { $max($abs(other.0), self.0) })
            }
            #[inline(always)]
            unsafe fn over(self, divisor: Self) -> Self {
                // SAFETY: the caller's promise of the instruction set.
                $lanes(unsafe { $div(self.0, divisor.0) })
            }
            #[inline(always)]
            unsafe fn lane(self, index: usize) -> Self {
                // SAFETY: the caller's promise of the instruction set.
                $lanes(unsafe { $permute($index(index as $int), self.0) })
            }
            #[inline(always)]
            unsafe fn sum(self) -> $real {
                // SAFETY: the caller's promise of the instruction set.
                unsafe { $sum(self.0) }
            }
            #[inline(always)]
            unsafe fn greatest(self) -> $real {
                // SAFETY: the caller's promise of the instruction set.
                unsafe { $greatest(self.0) }
            }
            #[inline(always)]
            unsafe fn equal_abs(self, value: $real) -> u32 {
                // SAFETY: the caller's promise of the instruction set.
                u32::from(unsafe { $equal::<_CMP_EQ_OQ>($abs(self.0), $set(value)) })
            }
        }
    };
}

lanes!(
    Double,
    f64,
    8,
    __mmask8,
    _mm512_set1_epi64,
    i64,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_mask_storeu_pd,
    _mm512_mul_pd,
    _mm512_div_pd,
    _mm512_fmadd_pd,
    _mm512_fnmadd_pd,
    _mm512_max_pd,
    _mm512_abs_pd,
    _mm512_permutexvar_pd,
    _mm512_reduce_add_pd,
    _mm512_reduce_max_pd,
    _mm512_cmp_pd_mask
);
lanes!(
    Single,
    f32,
    16,
    __mmask16,
    _mm512_set1_epi32,
    i32,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_mask_storeu_ps,
    _mm512_mul_ps,
    _mm512_div_ps,
    _mm512_fmadd_ps,
    _mm512_fnmadd_ps,
    _mm512_max_ps,
    _mm512_abs_ps,
    _mm512_permutexvar_ps,
    _mm512_reduce_add_ps,
    _mm512_reduce_max_ps,
    _mm512_cmp_ps_mask
);
