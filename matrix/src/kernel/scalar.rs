//! The kernel in plain Rust: runs anywhere, and what the compiler makes of it is vector code of the
//! base set.
//!
//! Source: the formula. `mul_add` is not used: without the instruction it is a library call.

use super::instruction_set::{Kernel, RealKernel};
use super::microkernel::MicrokernelArguments;

pub(super) const KERNEL: Kernel = Kernel {
    name: "scalar",
    is_available: || true,
    f32: RealKernel {
        panel: 4,
        columns: 4,
        run: &[&[tile_f32::<1>, tile_f32::<2>, tile_f32::<3>, tile_f32::<4>]],
        tall: &[],
    },
    f64: RealKernel {
        panel: 4,
        columns: 4,
        run: &[&[tile_f64::<1>, tile_f64::<2>, tile_f64::<3>, tile_f64::<4>]],
        tall: &[],
    },
};

macro_rules! tile {
    ($name:ident, $real:ty) => {
        unsafe fn $name<const C: usize>(m: &MicrokernelArguments<$real>) {
            // Four rows by C columns: few enough to stay in registers of any machine.
            let mut acc = [[0.0; 4]; C];
            let (mut a_at, mut b_at) = (m.a, m.b);
            // One step of k: four numbers of A against C numbers of B.
            for _ in 0..m.k {
                // SAFETY: the caller promises `k` columns of four numbers at `a` (see
                // `MicroKernel`).
                let a = unsafe { *a_at.cast::<[$real; 4]>() };
                for (j, column) in acc.iter_mut().enumerate() {
                    // SAFETY: and `k` rows of `C` at `b`.
                    let b = unsafe { *b_at.wrapping_offset(j as isize * m.b_column) };
                    for (sum, a) in column.iter_mut().zip(a) {
                        *sum += a * b;
                    }
                }
                a_at = a_at.wrapping_offset(m.a_step);
                b_at = b_at.wrapping_offset(m.b_step);
            }
            // Only the rows that are there are written; β = 0 does not read C.
            for (j, column) in acc.iter().enumerate() {
                for (i, sum) in column.iter().enumerate().take(m.last_rows) {
                    // SAFETY: the caller promises these rows of `C` columns of `c`.
                    let c = unsafe { &mut *m.c_at(0, j).add(i) };
                    *c = if m.beta == 0.0 { m.alpha * sum } else { m.alpha * sum + m.beta * *c };
                }
            }
        }
    };
}

tile!(tile_f32, f32);
tile!(tile_f64, f64);
