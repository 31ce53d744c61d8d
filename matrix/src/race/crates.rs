//! Other crates, behind feature `peers`: `gemm`, `faer` (without its thread pool) and
//! `matrixmultiply` (without threads).

use super::peer::{Crate, Threads};

macro_rules! crates {
    ($list:ident, $real:ident, $function:ident) => {
        pub(super) const $list: &[Crate<$real>] = &[
            Crate { name: "matrixmultiply", threads: Threads::One, multiply: $real::matrixmultiply },
            Crate { name: "gemm-crate", threads: Threads::Any, multiply: $real::gemm },
            Crate { name: "faer", threads: Threads::One, multiply: $real::faer },
        ];

        mod $real {
            pub(super) fn matrixmultiply(n: usize, _: usize, a: &[$real], b: &[$real], c: &mut [$real]) {
                let (a, b, c, ld) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr(), n as isize);
                // SAFETY: three arrays of n² numbers.
                unsafe { matrixmultiply::$function(n, n, n, 1.0, a, 1, ld, b, 1, ld, 0.0, c, 1, ld) }
            }

            pub(super) fn gemm(n: usize, threads: usize, a: &[$real], b: &[$real], c: &mut [$real]) {
                let pool = match threads {
                    1 => gemm::Parallelism::None,
                    _ => gemm::Parallelism::Rayon(threads),
                };
                let (a, b, c, ld) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr(), n as isize);
                // SAFETY: three arrays of n² numbers, column-major; C is not read.
                unsafe {
                    gemm::gemm(
                        n, n, n, c, ld, 1, false, a, ld, 1, b, ld, 1, 0.0, 1.0, false, false, false, pool,
                    );
                }
            }

            pub(super) fn faer(n: usize, _: usize, a: &[$real], b: &[$real], c: &mut [$real]) {
                let a = faer::MatRef::from_column_major_slice(a, n, n);
                let b = faer::MatRef::from_column_major_slice(b, n, n);
                let c = faer::MatMut::from_column_major_slice_mut(c, n, n);
                faer::linalg::matmul::matmul(c, faer::Accum::Replace, a, b, 1.0, faer::Par::Seq);
            }
        }
    };
}

crates!(F32, f32, sgemm);
crates!(F64, f64, dgemm);
