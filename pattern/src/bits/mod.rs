//! Bits of rows and lines: bitmaps, and the steps from a program's output to them.

mod bitmap;
mod kernel;

pub use bitmap::Bitmap;
pub(crate) use kernel::{BitKernel, BitWriter};
