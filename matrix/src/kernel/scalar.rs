//! The kernel in plain Rust. It runs anywhere, and compiles to vector code of the base instruction
//! set.
//!
//! It follows the formula. It does not use `mul_add`, which is a library call if the processor
//! lacks the instruction.

use super::factor::FactorSet;
use super::instruction_set::{Kernel, RealKernel};
use super::microkernel::MicrokernelArguments;

pub(super) const KERNEL: Kernel = Kernel {
    name: "scalar",
    is_available: || true,
    factor: FactorSet::Scalar,
    f32: RealKernel {
        panel: 4,
        columns: 4,
        run: &[&[tile_f32::<1>, tile_f32::<2>, tile_f32::<3>, tile_f32::<4>]],
        tall: &[],
        direct: &[],
        thin: None,
    },
    f64: RealKernel {
        panel: 4,
        columns: 4,
        run: &[&[tile_f64::<1>, tile_f64::<2>, tile_f64::<3>, tile_f64::<4>]],
        tall: &[],
        direct: &[],
        thin: None,
    },
};

macro_rules! tile {
    ($name:ident, $real:ty) => {
        unsafe fn $name<const C: usize>(micro: &MicrokernelArguments<$real>) {
            // Four rows by C columns fit into the registers of any machine.
            let mut acc = [[0.0; 4]; C];
            let (mut a_at, mut b_at) = (micro.a, micro.b);
            // One step of k multiplies four numbers of A by C numbers of B.
            for _ in 0..micro.k {
                // SAFETY: the caller promises `k` columns of four numbers at `a` (see
                // `MicroKernel`).
                let a = unsafe { *a_at.cast::<[$real; 4]>() };
                for (j, column) in acc.iter_mut().enumerate() {
                    // SAFETY: the caller also promises `k` rows of `C` numbers at `b`.
                    let b = unsafe { *b_at.wrapping_offset(j as isize * micro.b_column) };
                    for (sum, a) in column.iter_mut().zip(a) {
                        *sum += a * b;
                    }
                }
                a_at = a_at.wrapping_offset(micro.a_step);
                b_at = b_at.wrapping_offset(micro.b_step);
            }
            // Only existing rows are written. β = 0 does not read C.
            for (j, column) in acc.iter().enumerate() {
                for (i, sum) in column.iter().enumerate().take(micro.last_rows) {
                    // SAFETY: the caller promises these rows of `C` columns of `c`.
                    let c = unsafe { &mut *micro.c_at(0, j).add(i) };
                    *c = if micro.beta == 0.0 {
                        micro.alpha * sum
                    } else {
                        micro.alpha * sum + micro.beta * *c
                    };
                }
            }
        }
    };
}

tile!(tile_f32, f32);
tile!(tile_f64, f64);
