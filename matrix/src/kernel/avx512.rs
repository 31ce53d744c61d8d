//! AVX-512: 24×8 in double precision, 48×8 in single; three panels of one 512-bit register each.
//!
//! **Shapes.** 3 × 8 accumulators, three registers of `A`, broadcasts of `B` in the rest: 32 registers.
//! **Cost.** 24 FMA, 3 vector loads and 8 broadcasts per step of `k`: 12 cycles on two FMA ports. Broadcasts
//! are separate instructions: folded into the FMA each would take a load slot of its own, three times over.
//! **Prefetch.** The tile of `C` at entry; one line of what comes next (`next`) per four steps.

use super::{Kernel, Micro, RealKernel};
use std::arch::x86_64::*;

pub(super) const KERNEL: Kernel = Kernel {
    name: "avx512",
    is_available: || is_x86_feature_detected!("avx512f"),
    f32: RealKernel { panel: 16, columns: 8, run: &[tile_f32::<1>, tile_f32::<2>, tile_f32::<3>] },
    f64: RealKernel { panel: 8, columns: 8, run: &[tile_f64::<1>, tile_f64::<2>, tile_f64::<3>] },
};

macro_rules! tile {
    ($name:ident, $real:ty, $panel:literal, $load:ident, $store:ident, $set:ident, $zero:ident, $fma:ident,
     $mul:ident) => {
        // SAFETY: see `MicroKernel`; every pointer below is one of those that its contract lists.
        #[target_feature(enable = "avx512f")]
        unsafe fn $name<const P: usize>(m: &Micro<$real>) {
            let mut acc = [[$zero(); P]; 8];
            let (mut a, mut b) = (m.a, m.b);
            let mut next = m.next;
            // SAFETY: `k` columns are readable in each panel of `a`, `k` rows at `b`; `wrapping_add` may step past.
            unsafe {
                for j in 0..8 {
                    for p in 0..P {
                        _mm_prefetch::<_MM_HINT_T0>(m.c.wrapping_add(p * m.c_panel + j * m.c_column).cast());
                    }
                }
                let mut step = |a: *const $real, b: *const $real| {
                    let mut column = [$zero(); P];
                    for p in 0..P {
                        column[p] = $load(a.add(p * m.a_panel));
                    }
                    for j in 0..8 {
                        let b = $set(*b.add(j));
                        for p in 0..P {
                            acc[j][p] = $fma(column[p], b, acc[j][p]);
                        }
                    }
                };
                for _ in 0..m.k / 4 {
                    step(a, b);
                    step(a.add($panel), b.add($panel));
                    step(a.add(2 * $panel), b.add(2 * $panel));
                    step(a.add(3 * $panel), b.add(3 * $panel));
                    _mm_prefetch::<_MM_HINT_T1>(next.cast());
                    next = next.wrapping_add($panel);
                    a = a.wrapping_add(4 * $panel);
                    b = b.wrapping_add(4 * $panel);
                }
                for _ in 0..m.k % 4 {
                    step(a, b);
                    a = a.wrapping_add($panel);
                    b = b.wrapping_add($panel);
                }
            }
            let (alpha, beta) = ($set(m.alpha), $set(m.beta));
            for j in 0..8 {
                for p in 0..P {
                    // SAFETY: `panel` numbers are writable, and initialised unless `beta` is zero.
                    unsafe {
                        let c = m.c.add(p * m.c_panel + j * m.c_column);
                        let sum = if m.beta == 0.0 {
                            $mul(alpha, acc[j][p])
                        } else {
                            $fma(alpha, acc[j][p], $mul(beta, $load(c)))
                        };
                        $store(c, sum);
                    }
                }
            }
        }
    };
}

tile!(
    tile_f64, f64, 8, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_setzero_pd, _mm512_fmadd_pd,
    _mm512_mul_pd
);
tile!(
    tile_f32, f32, 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_fmadd_ps,
    _mm512_mul_ps
);
