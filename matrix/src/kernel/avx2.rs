//! AVX2 with FMA: 12×4 in double precision, 24×4 in single; three panels of one 256-bit register
//! each.
//!
//! **Shapes.** 3 × 4 accumulators, three registers of `A`, one broadcast of `B`: 16 registers.
//! **Cost.** 12 FMA and 7 loads per step of `k`: 6 cycles on two FMA ports.

use super::direct_avx2;
use super::factor::FactorSet;
use super::instruction_set::{Kernel, RealKernel};
use super::microkernel::MicrokernelArguments;
use std::arch::x86_64::*;

pub(super) const KERNEL: Kernel = Kernel {
    name: "avx2",
    is_available: || is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
    factor: FactorSet::Avx2,
    f32: RealKernel {
        panel: 8,
        columns: 4,
        run: table!(tile_f32),
        tall: &[],
        direct: direct_avx2::single::KERNELS,
        thin: None,
    },
    f64: RealKernel {
        panel: 4,
        columns: 4,
        run: table!(tile_f64),
        tall: &[],
        direct: direct_avx2::double::KERNELS,
        thin: None,
    },
};

macro_rules! tile {
    ($name:ident, $real:ty, $panel:literal, $load:ident, $store:ident, $set:ident, $zero:ident, $fma:ident,
     $mul:ident) => {
        // SAFETY: see `MicroKernel`; every pointer below is in the list of its requirements.
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $name<const P: usize, const C: usize>(micro: &MicrokernelArguments<$real>) {
            // Accumulators, column by panel. P and C are constant, so they become registers.
            let mut acc = [[$zero(); P]; C];
            let (mut a, mut b) = (micro.a, micro.b);
            // SAFETY: `k` columns are readable in each panel of `a`, and `k` rows at `b`; the
            // pointers may point behind the last one.
            unsafe {
                // The tile of C is prefetched while the loop below runs.
                for j in 0..C {
                    for p in 0..P {
                        _mm_prefetch::<_MM_HINT_T0>(micro.c_at(p, j).cast_const().cast());
                    }
                }
                for _ in 0..micro.k {
                    // One step of k multiplies a column of each panel by each number of B.
                    let mut column = [$zero(); P];
                    for p in 0..P {
                        column[p] = $load(a.wrapping_offset(p as isize * micro.a_panel));
                    }
                    for j in 0..C {
                        let b = $set(*b.wrapping_offset(j as isize * micro.b_column));
                        for p in 0..P {
                            acc[j][p] = $fma(column[p], b, acc[j][p]);
                        }
                    }
                    // Both operands move on by one step of k.
                    a = a.wrapping_offset(micro.a_step);
                    b = b.wrapping_offset(micro.b_step);
                }
            }
            // C ← β·C + α·sum, panel by panel; β = 0 does not read C.
            let (alpha, beta) = ($set(micro.alpha), $set(micro.beta));
            for j in 0..C {
                for p in 0..P {
                    // SAFETY: the rows of this panel are writable, and initialised unless `beta` is
                    // zero.
                    unsafe {
                        micro.through::<P, $panel>(p, j, |c| {
                            let sum = if micro.beta == 0.0 {
                                $mul(alpha, acc[j][p])
                            } else {
                                $fma(alpha, acc[j][p], $mul(beta, $load(c)))
                            };
                            $store(c, sum);
                        });
                    }
                }
            }
        }
    };
}

tile!(
    tile_f64,
    f64,
    4,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_set1_pd,
    _mm256_setzero_pd,
    _mm256_fmadd_pd,
    _mm256_mul_pd
);
tile!(
    tile_f32,
    f32,
    8,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_set1_ps,
    _mm256_setzero_ps,
    _mm256_fmadd_ps,
    _mm256_mul_ps
);
