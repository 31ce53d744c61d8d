//! The kernel in plain Rust: runs anywhere, and what the compiler makes of it is vector code of the base set.
//!
//! Source: the formula. `mul_add` is not used: without the instruction it is a library call.

use super::{Kernel, Micro, RealKernel};

pub(super) const KERNEL: Kernel = Kernel {
    name: "scalar",
    is_available: || true,
    f32: RealKernel { panel: 4, columns: 4, run: &[tile_f32], half: &[] },
    f64: RealKernel { panel: 4, columns: 4, run: &[tile_f64], half: &[] },
};

macro_rules! tile {
    ($name:ident, $real:ty) => {
        unsafe fn $name(m: &Micro<$real>) {
            let mut acc = [[0.0; 4]; 4];
            for k in 0..m.k {
                // SAFETY: the caller promises `k` columns of four numbers at `a` (see `MicroKernel`).
                let a = unsafe { *m.a.add(4 * k).cast::<[$real; 4]>() };
                // SAFETY: and `k` rows of four at `b`.
                let b = unsafe { *m.b.add(4 * k).cast::<[$real; 4]>() };
                for (column, b) in acc.iter_mut().zip(b) {
                    for (sum, a) in column.iter_mut().zip(a) {
                        *sum += a * b;
                    }
                }
            }
            for (j, column) in acc.iter().enumerate() {
                // SAFETY: the caller promises four writable numbers in each of the four columns of `c`.
                let c = unsafe { &mut *m.c.add(j * m.c_column).cast::<[$real; 4]>() };
                for (c, sum) in c.iter_mut().zip(column) {
                    *c = if m.beta == 0.0 { m.alpha * sum } else { m.alpha * sum + m.beta * *c };
                }
            }
        }
    };
}

tile!(tile_f32, f32);
tile!(tile_f64, f64);
