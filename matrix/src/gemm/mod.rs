//! `C ← α·op(A)·op(B) + β·C`, on blocked operands and on plain arrays.
//!
//! **Semantics.** Those of the BLAS: with α = 0 or K = 0 the operands are not read and `C ← β·C`;
//! with β = 0 `C` is not read, so NaN in it does not survive. Each entry is summed in the order of
//! `k`, in blocks of depth that depend on the operands and the tiling alone: any number of threads
//! gives the same bits. **Left out.** Conjugation; mixing element types; operands stored for
//! different kernels (an error says so).

mod batch;
mod job;
mod multiplication;
mod operand;
mod pool;
mod scale;
mod small;
mod source;
mod threads;
mod tile;

pub use batch::multiply_batch;
pub use multiplication::{gemm, Gemm};
pub use operand::{Op, Operand};
