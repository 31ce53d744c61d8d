//! Direct kernels with AVX-512: up to 24 accumulators, in shapes of one to four panels.
//!
//! **Shapes.** 1×16, 2×12, 3×8 and 4×6 panels by columns, and all narrower ones; a panel is one
//! 512-bit register. **Cost.** P loads, C broadcasts and P·C FMA per step of `k`. The load ports
//! bind where `P + C ≥ P·C`, which is so for a single panel only. **Addresses.** Four columns of
//! `B` are reached from one pointer with one, two and three times the stride; the strides and
//! pointers are hidden from the compiler, which would otherwise keep an address for every column
//! and spill them. **Masks.** A load with a mask takes a port of the multiplications on Intel's
//! cores, one in 25 operations of a 4×6 tile, so only tiles of a single panel have it.

use super::direct::{DirectKernel, DirectTile, Update};
use std::arch::asm;
use std::arch::x86_64::*;

/// Hides where a number comes from, so that the compiler keeps it in a register as it is.
#[inline(always)]
fn opaque(mut value: isize) -> isize {
    // SAFETY: there is no instruction.
    unsafe { asm!("/* {0} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags)) };
    value
}

macro_rules! direct {
    ($module:ident, $real:ty, $mask:ty, $load:ident, $masked_load:ident,
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
                tile::<1, 9>,
                tile::<1, 10>,
                tile::<1, 11>,
                tile::<1, 12>,
                tile::<1, 13>,
                tile::<1, 14>,
                tile::<1, 15>,
                tile::<1, 16>,
            ];
            const TWO: &[Call] = &[
                tile::<2, 1>,
                tile::<2, 2>,
                tile::<2, 3>,
                tile::<2, 4>,
                tile::<2, 5>,
                tile::<2, 6>,
                tile::<2, 7>,
                tile::<2, 8>,
                tile::<2, 9>,
                tile::<2, 10>,
                tile::<2, 11>,
                tile::<2, 12>,
            ];
            const THREE: &[Call] = &[
                tile::<3, 1>,
                tile::<3, 2>,
                tile::<3, 3>,
                tile::<3, 4>,
                tile::<3, 5>,
                tile::<3, 6>,
                tile::<3, 7>,
                tile::<3, 8>,
            ];
            const FOUR: &[Call] =
                &[tile::<4, 1>, tile::<4, 2>, tile::<4, 3>, tile::<4, 4>, tile::<4, 5>, tile::<4, 6>];
            pub(in super::super) const KERNELS: &[&[Call]] = &[ONE, TWO, THREE, FOUR];

            /// # Safety
            /// The requirements of [`DirectKernel`], with `P` panels and `C` columns.
            #[target_feature(enable = "avx512f")]
            unsafe fn tile<const P: usize, const C: usize>(
                tile: &DirectTile<$real>,
                a: *const $real,
                b: *const $real,
                c: *mut $real,
            ) {
                let mut sums = [[$zero(); P]; C];
                let mask = tile.mask as $mask;
                let (a_panel, a_step, b_step) = (tile.a_panel, tile.a_step, tile.b_step);
                let column = opaque(tile.b_column);
                let offsets = [0, column, 2 * column, opaque(3 * column)];
                let back = if P > 1 { tile.back } else { 0 };
                let last = (P as isize - 1) * a_panel - back;
                let mut a = a as isize;
                // Columns 0, 4, 8 and 12 of B.
                let (near, far) = (b as isize, b as isize + tile.b_far);
                let mut b = [near, opaque(near + 4 * column), opaque(far), opaque(far + 4 * column)];
                let mut left_steps = tile.k;
                loop {
                    // One step of k: a column of each panel times each number of a row of B.
                    let mut left = [$zero(); P];
                    for p in 0..P {
                        let at = a + if p + 1 < P { p as isize * a_panel } else { last };
                        // SAFETY: all rows of panel `p` are readable, or those in the mask if there
                        // is one panel only.
                        left[p] = unsafe {
                            if P > 1 {
                                $load(at as *const $real)
                            } else {
                                $masked_load(mask, at as *const $real)
                            }
                        };
                    }
                    for j in 0..C {
                        // SAFETY: column `j` of B is readable.
                        let right = $set(unsafe { *((b[j / 4] + offsets[j % 4]) as *const $real) });
                        for p in 0..P {
                            sums[j][p] = $fma(left[p], right, sums[j][p]);
                        }
                    }
                    a += a_step;
                    for j in 0..4 {
                        b[j] += b_step;
                    }
                    left_steps -= 1;
                    if left_steps == 0 {
                        break;
                    }
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
                            let mask = if is_last(p) { mask } else { !0 };
                            // SAFETY: the existing rows are initialised, because β is not 0.
                            let old = unsafe { $masked_load(mask, c_at(p, j)) };
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
    __mmask8,
    _mm512_loadu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_storeu_pd,
    _mm512_mask_storeu_pd,
    _mm512_set1_pd,
    _mm512_setzero_pd,
    _mm512_fmadd_pd,
    _mm512_mul_pd
);
direct!(
    single,
    f32,
    __mmask16,
    _mm512_loadu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_storeu_ps,
    _mm512_mask_storeu_ps,
    _mm512_set1_ps,
    _mm512_setzero_ps,
    _mm512_fmadd_ps,
    _mm512_mul_ps
);
