//! NEON: 12×4 in double precision, 24×4 in single; three panels of two 128-bit registers each.
//!
//! **Shapes.** 6 × 4 accumulators, six registers of `A`, two of `B`: 32 registers. **Cost.** 24 FMA
//! and 8 loads per step of `k`. It compiles for this target, but was never run, because no such
//! machine was available.

use super::factor::FactorSet;
use super::instruction_set::{Kernel, RealKernel};
use super::microkernel::MicrokernelArguments;
use std::arch::aarch64::*;

pub(super) const KERNEL: Kernel = Kernel {
    name: "neon",
    is_available: || std::arch::is_aarch64_feature_detected!("neon"),
    factor: FactorSet::Neon,
    f32: RealKernel { panel: 8, columns: 4, run: table!(tile_f32), tall: &[], direct: &[], thin: None },
    f64: RealKernel { panel: 4, columns: 4, run: table!(tile_f64), tall: &[], direct: &[], thin: None },
};

macro_rules! tile {
    ($name:ident, $real:ty, $panel:literal, $lanes:literal, $load:ident, $store:ident, $set:ident, $fma:ident,
     $mul:ident) => {
        // SAFETY: see `MicroKernel`; every pointer below is in the list of its requirements.
        #[target_feature(enable = "neon")]
        unsafe fn $name<const P: usize, const C: usize>(micro: &MicrokernelArguments<$real>) {
            // Accumulators, column by panel by half. P and C are constant, so they become
            // registers.
            let mut acc = [[[$set(0.0); 2]; P]; C];
            let (mut a, mut b) = (micro.a, micro.b);
            for _ in 0..micro.k {
                // One step of k multiplies a column of each panel by each number of B.
                let mut column = [[$set(0.0); 2]; P];
                for p in 0..P {
                    // SAFETY: `k` columns of `panel` numbers are readable in each panel of `a`.
                    unsafe {
                        column[p][0] = $load(a.wrapping_offset(p as isize * micro.a_panel));
                        column[p][1] = $load(a.wrapping_offset(p as isize * micro.a_panel).add($lanes));
                    }
                }
                for j in 0..C {
                    // SAFETY: each of the `k` rows at `b` has `C` numbers.
                    let b = $set(unsafe { *b.wrapping_offset(j as isize * micro.b_column) });
                    for p in 0..P {
                        acc[j][p][0] = $fma(acc[j][p][0], column[p][0], b);
                        acc[j][p][1] = $fma(acc[j][p][1], column[p][1], b);
                    }
                }
                // Both operands move on by one step of k.
                a = a.wrapping_offset(micro.a_step);
                b = b.wrapping_offset(micro.b_step);
            }
            // C ← β·C + α·sum, half a panel at a time; β = 0 does not read C.
            let (alpha, beta) = ($set(micro.alpha), $set(micro.beta));
            for j in 0..C {
                for p in 0..P {
                    // SAFETY: the rows of this panel are writable, and initialised unless `beta` is
                    // zero.
                    unsafe {
                        micro.through::<P, $panel>(p, j, |c| {
                            for half in 0..2 {
                                let c = c.add(half * $lanes);
                                let sum = if micro.beta == 0.0 {
                                    $mul(alpha, acc[j][p][half])
                                } else {
                                    $fma($mul(beta, $load(c)), alpha, acc[j][p][half])
                                };
                                $store(c, sum);
                            }
                        });
                    }
                }
            }
        }
    };
}

tile!(tile_f64, f64, 4, 2, vld1q_f64, vst1q_f64, vdupq_n_f64, vfmaq_f64, vmulq_f64);
tile!(tile_f32, f32, 8, 4, vld1q_f32, vst1q_f32, vdupq_n_f32, vfmaq_f32, vmulq_f32);
