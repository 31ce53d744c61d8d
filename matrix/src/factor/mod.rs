//! Factorisations and triangular operations on plain arrays, in place: LU with partial pivoting,
//! Cholesky, QR; triangular solves, products and inverses; symmetric products and updates.
//!
//! **What.** [`Factor`] has the options and an operation for each. Arrays have any strides; those
//! with adjacent rows or columns are worked on in place. **Why this way.** Each algorithm halves
//! its matrix until a block fits into vector registers (`kernel/factor`), so that all other work is
//! products, of which the largest have the best shapes. There is no block size to choose; see
//! `docs/matrix.md` for what a model would choose, and for what a sweep shows. Transposed and
//! reversed views make one triangle and one side of all.
//!
//! **Threads** get columns or products of their own; no sum is split among them.
//!
//! **Leaves out** pivoting beyond that of rows, symmetric indefinite and banded matrices,
//! eigenvalues, condition estimates and refinement. Complex numbers have the same algorithms with
//! plain loops in place of register kernels.

#![allow(clippy::needless_range_loop, reason = "loops over rows and columns name them by their index")]

mod batch;
mod block;
mod cholesky;
mod inverse;
mod lu;
mod multiply;
mod near;
mod options;
mod product;
mod qr;
mod rank_update;
mod shape;
mod solve;
mod stored;

pub use cholesky::Cholesky;
pub use lu::Lu;
pub use options::Factor;
pub use qr::Qr;
pub use shape::{Diagonal, Side, Triangle, Triangular};
