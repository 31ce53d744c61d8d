//! Blocked matrices: storage that a multiplication can use as it lies, tile sizes from a model, and kernels near the
//! machine's limit.
//!
//! # The story
//!
//! *Given* matrices, **plan** a [`Tiling`], store them as [`BlockedMatrix`], and let a **kernel** compute `C`.
//!
//! 1. **Storage.** A [`BlockedMatrix`] is kept in strips of T columns, each in *panels* one vector register high
//!    ([`Layout`] draws it). A tile is one piece of memory, element addresses are shifts and masks of the indices, and the
//!    same storage serves as A, as B and as C, so nothing is repacked between two multiplications.
//! 2. **Plan.** [`Tiling::paper`] is the model of Athanasaki et al. 2006, case by case ([`paper`]);
//!    [`Tiling::plan`] is one for machines that prefetch and overlap ([`rate`]).
//! 3. **Kernel.** [`KERNELS`] lists them: AVX-512, AVX2 with FMA, NEON, plain Rust. The first that the processor's
//!    feature bits allow is chosen once; a matrix remembers the kernel whose panels it is made of.
//! 4. **Result.** [`Gemm::multiply`] on blocked operands, [`gemm`] on plain arrays (conversion inside),
//!    [`multiply_batch`] for many small ones, [`multiply_vector`], [`BlockedMatrix::transposed`]. Threads never change a bit.
//!
//! The slow twin is [`mod@reference`]; `tests/agree.rs` holds everything against it.
//!
//! ```
//! use matrix::{BlockedMatrix, Gemm, Op, Operand};
//! let n = 100;
//! let a = BlockedMatrix::from_fn(n, n, |i, j| ((i + 2 * j) % 7) as f64)?;
//! let bt = BlockedMatrix::from_fn(n, n, |i, j| if i == j { 2.0 } else { 0.0 })?;
//! let mut c = BlockedMatrix::zeros(n, n)?;
//! Gemm::new().multiply(0.5, &a, Operand::new(&bt, Op::Transposed), 0.0, &mut c)?;
//! assert!(c == a);
//! # Ok::<(), matrix::Error>(())
//! ```
//!
//! # What is left out
//!
//! Integers, factorisations and solves, symmetric updates, conjugation. Reading or choosing the machine: it is passed.
//!
//! # Features
//!
//! `ndarray` and `faer`: their views as [`Strided`], in module `interop`. `race`: the race against BLAS libraries found at
//! run time; `peers`: against crates `gemm`, `faer` and `matrixmultiply` as well (minutes to build, hence apart).

mod blocked;
mod buffer;
mod element;
mod error;
mod gemm;
#[cfg(any(feature = "ndarray", feature = "faer"))]
pub mod interop;
pub mod kernel;
mod layout;
mod panel;
pub mod paper;
#[cfg(feature = "race")]
pub mod race;
pub mod rate;
pub mod reference;
mod strided;
pub mod tiling;
mod transpose;
mod turn;
mod vector;
mod view;
pub use blocked::BlockedMatrix;
pub use element::{Element, Real};
pub use error::Error;
pub use gemm::{gemm, multiply_batch, Gemm, Op, Operand};
pub use kernel::{Kernel, KERNELS};
pub use layout::Layout;
pub use strided::{Strided, StridedMut};
pub use tiling::Tiling;
pub use vector::multiply_vector;
pub use view::{View, ViewMut};
