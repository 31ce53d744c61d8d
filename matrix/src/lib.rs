//! Matrix multiplication near the machine's limit, on plain slices or on matrices that stay
//! blocked.
//!
//! On slices, with the strides of a BLAS, `C ← α·A·B + β·C`:
//!
//! ```
//! // 2×3 times 3×2, row after row: a row stride of the width, a column stride of 1.
//! let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
//! let mut c = [0.0; 4];
//! lightfoot_matrix::gemm(2, 2, 3, 1.0, &a, 3, 1, &b, 2, 1, 0.0, &mut c, 2, 1)?;
//! assert_eq!(c, [4.0, 5.0, 10.0, 11.0]);
//! # Ok::<(), lightfoot_matrix::Error>(())
//! ```
//!
//! Keep a matrix that is multiplied more than once blocked: then nothing is repacked between
//! products.
//!
//! ```
//! use lightfoot_matrix::{BlockedMatrix, Gemm, Op, Operand};
//! let n = 100;
//! let a = BlockedMatrix::from_fn(n, n, |i, j| ((i + 2 * j) % 7) as f64)?;
//! let bt = BlockedMatrix::from_fn(n, n, |i, j| if i == j { 2.0 } else { 0.0 })?;
//! let mut c = BlockedMatrix::zeros(n, n)?;
//! Gemm::new().multiply(0.5, &a, Operand::new(&bt, Op::Transposed), 0.0, &mut c)?;
//! assert!(c == a);
//! # Ok::<(), lightfoot_matrix::Error>(())
//! ```
//!
//! | you have | you want | call | cost |
//! |---|---|---|---|
//! | slices with strides | one product | [`gemm`] | conversion inside, block by block |
//! | views of arrays | one product, on threads | [`Gemm::multiply_strided`] | conversion inside |
//! | matrices used again | products | [`BlockedMatrix`], [`Gemm::multiply`] | no conversion |
//! | one shape, many times | products of small arrays | [`Gemm::prepare`] | shapes are checked once |
//! | arrays side by side | all their products | [`Prepared::multiply_batch`] | each on one thread |
//! | many small matrices | all products | [`multiply_batch`] | each on one thread |
//! | a matrix and a vector | `y ← α·op(A)·x + β·y` | [`multiply_vector`] | one pass over `A` |
//! | a square system | its solution | [`Factor::lu`], [`Lu::solve`] | n³/3 multiply-adds, in place |
//! | a positive definite matrix | its factor, solutions | [`Factor::cholesky`] | n³/6, in place |
//! | more equations than unknowns | least squares | [`Factor::qr`] | mn² − n³/3, in place |
//! | a triangle | solutions, products | [`Factor::solve_triangular`], [`Factor::multiply_triangular`] | n²k/2 |
//! | a symmetric result | one triangle of it | [`Factor::rank_k_update`] | half a product |
//! | many small matrices | their factors | [`Factor::lu_batch`], [`Factor::cholesky_batch`] | each on one thread |
//! | a machine's description | tile sizes | [`Tiling::plan`], [`Tiling::paper`] | microseconds |
//! | bytes, `bf16` or `f16` | products with wide sums | [`mixed::Mixed`] | both operands are packed |
//! | matrices of `ndarray`, `nalgebra`, `faer` | views, both ways | `interop`, behind features | nothing |
//!
//! # Blocked storage, and when it pays
//!
//! A [`BlockedMatrix`] is stored in strips of T columns, which are divided into *panels* that are
//! one or two vector registers high ([`Layout`] has a picture). A tile is one piece of memory, and
//! one storage serves as `A`, as `B` and as `C`. The fast form is `A·Bᵀ`: both operands are then
//! used in place. Conversion in and out costs one pass over the matrix. It pays if a matrix takes
//! part in a few products, or if its products are small.
//!
//! # The plan
//!
//! [`Tiling::paper`] is the model of Athanasaki et al. 2006, case by case ([`paper`]);
//! [`Tiling::plan`] is one for machines that prefetch and overlap ([`rate`]). You need call
//! neither: the default is the second model's answer for the processor at hand.
//!
//! # What it promises
//!
//! Threads never change a bit: no sum is split, and each entry is summed in the order of `k`. If α
//! = 0 the operands are not read. If β = 0, `C` is not read, so NaN in it does not survive. Results
//! lie within γ of the length of the sums ([`mod@reference`] has the bound, and products in
//! double-double against which `tests/agree.rs` holds every kernel).
//!
//! # Kernels and figures
//!
//! [`Kernel::names`] lists them: AVX-512, AVX2 with FMA, NEON, plain Rust. The first one that the
//! processor's feature bits allow is chosen once. A matrix remembers the kernel to whose panels it
//! is cut. GFLOP/s of one thread, double precision, kernel `avx512` (`lightfoot study gemm`,
//! 2026-11-21, medians of interleaved passes on one server core):
//!
//! | N | blocked, `A·Bᵀ` | slices | OpenBLAS | MKL | share of the core's peak, blocked |
//! |---:|---:|---:|---:|---:|---:|
//! | 32 | 80.6 | 64.8 | 79.0 | 66.3 | 85 % |
//! | 128 | 87.9 | 73.6 | 52.9 | 73.7 | 91 % |
//! | 512 | 82.6 | 72.2 | 60.8 | 76.9 | 81 % |
//!
//! # Features
//!
//! None is on by default. `half` adds `bf16` and `f16` to module [`mixed`]. `ndarray`, `nalgebra`
//! and `faer` turn their views into [`Strided`] and back, in module `interop`. `race` compares with
//! BLAS libraries that are found at run time. `peers` compares with the crates `gemm`, `faer` and
//! `matrixmultiply` too, which take minutes to build.
//!
//! # What it leaves out
//!
//! Conjugation in [`Gemm`], eigenvalues. It does not choose a machine: callers pass one.

// The agreement tests include members of the kernel family that only unit tests can make.
#[cfg(test)]
extern crate self as lightfoot_matrix;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

mod blocked;
mod buffer;
mod column_sums;
mod element;
mod error;
mod factor;
mod gemm;
#[cfg(any(feature = "ndarray", feature = "nalgebra", feature = "faer"))]
pub mod interop;
pub mod kernel;
mod layout;
pub mod mixed;
mod panel;
pub mod paper;
mod partition;
#[cfg(feature = "race")]
pub mod race;
pub mod rate;
pub mod reference;
mod strided;
mod tile_sizes;
pub mod tiling;
mod transpose;
mod transposed;
mod vector;
mod view;
// This crate's interface has types of `machine`.
pub use machine;

pub use blocked::BlockedMatrix;
pub use element::{Element, Real};
pub use error::Error;
pub use factor::{Cholesky, Diagonal, Factor, Lu, Qr, Side, Triangle, Triangular};
pub use gemm::{gemm, multiply_batch, Batch, Gemm, Op, Operand, Prepared};
pub use kernel::Kernel;
pub use layout::Layout;
pub use strided::{Strided, StridedMut, StridedShape};
pub use tiling::Tiling;
pub use vector::multiply_vector;
pub use view::{View, ViewMut};

/// Makes the examples of the README doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
