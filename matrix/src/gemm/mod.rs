//! `C ← α·op(A)·op(B) + β·C`, on blocked operands and on plain arrays.
//!
//! **Semantics.** Those of the BLAS: if α = 0 or K = 0, the operands are not read and `C ← β·C`; if
//! β = 0, `C` is not read, so NaN in it does not survive. Each entry is summed in the order of `k`,
//! in blocks of depth that depend only on the operands and the tiling, so any number of threads
//! gives the same bits. **Leaves out** conjugation and mixed element types; operands that are
//! stored for different kernels are an error.

mod batch;
pub(crate) mod clip;
mod direct;
mod job;
mod multiplication;
mod operand;
mod placement;
pub(crate) mod pool;
mod prepared;
mod scale;
mod small;
mod source;
pub(crate) mod threads;
mod tile;

pub use batch::multiply_batch;
pub use multiplication::{gemm, Gemm};
pub use operand::{Op, Operand};
pub use prepared::{Batch, Prepared};
