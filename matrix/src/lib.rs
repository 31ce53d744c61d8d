//! Blocked matrices.
mod blocked;
mod buffer;
mod element;
mod error;
mod gemm;
#[cfg(any(feature = "ndarray", feature = "faer"))]
pub mod interop;
pub mod kernel;
mod layout;
pub mod paper;
mod panel;
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
