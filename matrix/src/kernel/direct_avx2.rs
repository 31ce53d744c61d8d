//! Direct kernels with AVX2 and FMA: up to twelve accumulators, in shapes of one to three panels.
//!
//! **Shapes.** 1×8, 2×6 and 3×4 panels by columns, and all narrower ones; a panel is one 256-bit
//! register. **Cost.** P loads, C broadcasts and P·C FMA per step of `k`. **Masks** are vectors.

use super::direct::{DirectKernel, DirectTile, Update};
use std::arch::x86_64::*;

/// A mask of those of four 8-byte lanes whose bits are set.
#[target_feature(enable = "avx2")]
#[inline]
fn four_lanes(bits: u32) -> __m256i {
    let lanes = _mm256_set_epi64x(8, 4, 2, 1);
    _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(i64::from(bits)), lanes), lanes)
}

/// A mask of those of eight 4-byte lanes whose bits are set.
#[target_feature(enable = "avx2")]
#[inline]
fn eight_lanes(bits: u32) -> __m256i {
    let lanes = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);
    _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits as i32), lanes), lanes)
}

macro_rules! direct {
    ($module:ident, $real:ty, $mask:ident, $load:ident, $masked_load:ident,
     $store:ident, $masked_store:ident, $set:ident, $zero:ident, $fma:ident, $mul:ident) => {
        pub(super) mod $module {
            use super::*;

            type Call = DirectKernel<$real>;
            const ONE: &[Call] = &[
                tile::<1, 1>,
                tile::<1, 2>,
                tile::<1, 3>,
                tile::<1, 4>,
                tile::<1, 5>,
                tile::<1, 6>,
                tile::<1, 7>,
                tile::<1, 8>,
            ];
            const TWO: &[Call] =
                &[tile::<2, 1>, tile::<2, 2>, tile::<2, 3>, tile::<2, 4>, tile::<2, 5>, tile::<2, 6>];
            const THREE: &[Call] = &[tile::<3, 1>, tile::<3, 2>, tile::<3, 3>, tile::<3, 4>];
            pub(in super::super) const KERNELS: &[&[Call]] = &[ONE, TWO, THREE];

            /// # Safety
            /// The requirements of [`DirectKernel`], with `P` panels and `C` columns.
            #[target_feature(enable = "avx2,fma")]
            unsafe fn tile<const P: usize, const C: usize>(
                tile: &DirectTile<$real>,
                a: *const $real,
                b: *const $real,
                c: *mut $real,
            ) {
                let mut sums = [[$zero(); P]; C];
                let mask = $mask(tile.mask);
                let (a_panel, a_step, b_step) = (tile.a_panel, tile.a_step, tile.b_step);
                let back = if P > 1 { tile.back } else { 0 };
                let last = (P as isize - 1) * a_panel - back;
                let (mut a, mut b) = (a as isize, b as isize);
                for _ in 0..tile.k {
                    let mut left = [$zero(); P];
                    for p in 0..P {
                        let at = a + if p + 1 < P { p as isize * a_panel } else { last };
                        // SAFETY: all rows of panel `p` are readable, or those in the mask if there
                        // is one panel only.
                        left[p] = unsafe {
                            if P > 1 {
                                $load(at as *const $real)
                            } else {
                                $masked_load(at as *const $real, mask)
                            }
                        };
                    }
                    for j in 0..C {
                        // SAFETY: column `j` of B is readable.
                        let right = $set(unsafe { *((b + j as isize * tile.b_column) as *const $real) });
                        for p in 0..P {
                            sums[j][p] = $fma(left[p], right, sums[j][p]);
                        }
                    }
                    a += a_step;
                    b += b_step;
                }
                let is_last = |p: usize| p + 1 == P;
                let c_at = |p: usize, j: usize| {
                    let back = if is_last(p) { back } else { 0 };
                    (c as isize + p as isize * tile.c_panel - back + j as isize * tile.c_column) as *mut $real
                };
                // SAFETY: the existing rows of panel `p` are writable in column `j`.
                let put = |p: usize, j: usize, value| unsafe {
                    if is_last(p) {
                        $masked_store(c_at(p, j), mask, value)
                    } else {
                        $store(c_at(p, j), value)
                    }
                };
                let alpha = $set(tile.alpha);
                // β = 0 does not read C: NaN in it must not survive. Multiplications by 1 would
                // take 6 % of a product of 16×16×16.
                if tile.update == Update::Set {
                    for j in 0..C {
                        for p in 0..P {
                            put(p, j, sums[j][p]);
                        }
                    }
                } else if tile.update == Update::Scale {
                    for j in 0..C {
                        for p in 0..P {
                            put(p, j, $mul(alpha, sums[j][p]));
                        }
                    }
                } else {
                    let beta = $set(tile.beta);
                    for j in 0..C {
                        for p in 0..P {
                            // SAFETY: the existing rows are initialised, because β is not 0.
                            let old = unsafe {
                                if is_last(p) {
                                    $masked_load(c_at(p, j), mask)
                                } else {
                                    $load(c_at(p, j))
                                }
                            };
                            put(p, j, $fma(alpha, sums[j][p], $mul(beta, old)));
                        }
                    }
                }
            }
        }
    };
}

direct!(
    double,
    f64,
    four_lanes,
    _mm256_loadu_pd,
    _mm256_maskload_pd,
    _mm256_storeu_pd,
    _mm256_maskstore_pd,
    _mm256_set1_pd,
    _mm256_setzero_pd,
    _mm256_fmadd_pd,
    _mm256_mul_pd
);
direct!(
    single,
    f32,
    eight_lanes,
    _mm256_loadu_ps,
    _mm256_maskload_ps,
    _mm256_storeu_ps,
    _mm256_maskstore_ps,
    _mm256_set1_ps,
    _mm256_setzero_ps,
    _mm256_fmadd_ps,
    _mm256_mul_ps
);
