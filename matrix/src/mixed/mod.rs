//! Products of narrow numbers with wide sums: bytes into 32-bit integers, `bf16` and `f16` into
//! `f32`.
//!
//! **What.** [`Mixed`] computes `C ← α·A·B + β·C` on plain arrays of any strides:
//!
//! | `A` | `B` | `C` | sums |
//! |---|---|---|---|
//! | `u8` or `i8` | `i8` or `u8` | `i32` | exact, modulo 2³² |
//! | `i16` | `i16` | `i32` | exact, modulo 2³² |
//! | `bf16` | `bf16` | `f32` | in `f32`, feature `half` |
//! | `f16` | `f16` | `f32` | in `f32`, feature `half` |
//!
//! ```
//! use lightfoot_matrix::mixed::Mixed;
//! use lightfoot_matrix::{Strided, StridedMut};
//! let (a, b, mut c) = ([200_u8, 100, 50, 25], [-1_i8, 2, 3, -4], [0_i32; 4]);
//! let (a, b) = (Strided::row_major(&a, 2, 2)?, Strided::row_major(&b, 2, 2)?);
//! Mixed::<(u8, i8)>::new().multiply(1, a, b, 0, StridedMut::row_major(&mut c, 2, 2)?)?;
//! assert_eq!(c, [100, 0, 25, 0]);
//! # Ok::<(), lightfoot_matrix::Error>(())
//! ```
//!
//! **Why this way.** Instructions for such products (VNNI, AVX512-BF16, AMX) take a 32-bit *word*
//! of each operand, which holds four bytes or two halves that follow each other along `k`, and add
//! their two or four products to one 32-bit sum. So both operands are copied block by block to
//! panels of such words, and one set of loops serves all types. A processor
//! without these instructions gets words of two widened 16-bit numbers (`vpmaddwd`, which is exact
//! where `vpmaddubsw` saturates) or of one `f32`.
//!
//! **What it promises.** Integers are the sums of all products modulo 2³², with every kernel.
//! Floats lie within γ of the number of terms. Threads never change a bit. If α = 0 the operands
//! are not read, and if β = 0 `C` is not read. Kernels with AVX512-BF16 and AMX take subnormal
//! numbers as zeros, because the instructions do. Where the processor has AMX, the first question
//! for kernels asks Linux for its registers, for the whole process and for good.
//!
//! **What it leaves out.** Zero points and scales of quantised numbers, sums in `f16`, and
//! `f16` in tile registers.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VPDPBUSD and
//! VDPBF16PS; Goto and van de Geijn 2008 (the loops).

mod blocks;
mod kernel;
mod narrow;
mod pack;
mod pairs;
mod product;
pub mod reference;
mod source;
#[cfg(test)]
mod tests;

pub use narrow::{Narrow, Sum};
pub use product::{Product, TileKernel};

use crate::gemm::{pool, threads};
use crate::{Error, Strided, StridedMut};
use blocks::{Block, Destination};
use source::Source;
use std::ops::Range;

/// With fewer multiply-adds a second thread costs more than it gains.
const WORTH_A_THREAD: usize = 1 << 22;

/// How to multiply narrow numbers: threads and kernel. The default is one thread and the fastest
/// kernel for each product's size.
#[derive(Debug)]
pub struct Mixed<P: Product> {
    /// The kernel that somebody chose.
    kernel: Option<&'static TileKernel<P>>,
    threads: usize,
}

impl<P: Product> Clone for Mixed<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Product> Copy for Mixed<P> {}

impl<P: Product> Default for Mixed<P> {
    fn default() -> Self {
        Mixed::new()
    }
}

impl<P: Product> Mixed<P> {
    /// One thread, the fastest kernel for each product's size.
    pub fn new() -> Mixed<P> {
        Mixed { kernel: None, threads: 1 }
    }

    /// Allows up to `threads` threads; 0 counts as 1. Results do not depend on the number.
    pub fn threads(self, threads: usize) -> Mixed<P> {
        Mixed { threads: threads.max(1), ..self }
    }

    /// Sets the kernel.
    pub fn kernel(self, kernel: &'static TileKernel<P>) -> Mixed<P> {
        Mixed { kernel: Some(kernel), ..self }
    }

    /// `C ← α·A·B + β·C`: `A` is m×k, `B` k×n, `C` m×n. Integers wrap around. Use
    /// [`Strided::transposed`] for transposed operands. It costs `2·m·n·k` operations and one copy
    /// of each operand for every 1,024 columns of `C` or every block of its rows.
    ///
    /// # Errors
    /// [`Error::Shape`] when shapes do not fit.
    pub fn multiply(
        &self,
        alpha: P::Sum,
        a: Strided<'_, P::Left>,
        b: Strided<'_, P::Right>,
        beta: P::Sum,
        c: StridedMut<'_, P::Sum>,
    ) -> Result<(), Error> {
        let (m, n, k) = (a.rows(), b.cols(), a.cols());
        if k != b.rows() {
            let what = "columns of A and rows of B";
            return Err(Error::Shape { what, left: (m, k), right: (b.rows(), n) });
        }
        if (m, n) != (c.rows(), c.cols()) {
            let what = "the shapes of A·B and of C";
            return Err(Error::Shape { what, left: (m, n), right: (c.rows(), c.cols()) });
        }
        // Tiles are written along columns. If the rows of C are contiguous, compute Cᵀ = Bᵀ·Aᵀ
        // with the kernel for exchanged operands.
        let work = m.saturating_mul(n).saturating_mul(k);
        let kernel = self.kernel.unwrap_or_else(|| TileKernel::best_for(work));
        let (row_stride, col_stride) = c.strides();
        if row_stride.unsigned_abs() <= col_stride.unsigned_abs() {
            self.run(kernel, alpha, a, b, beta, c)
        } else {
            let exchanged = kernel.exchanged();
            let whole = Mixed::<P::Exchanged> { kernel: Some(exchanged), threads: self.threads };
            whole.run(exchanged, alpha, b.transposed(), a.transposed(), beta, c.transposed())
        }
    }

    /// Multiplies with a kernel, on threads if there is work for them.
    fn run(
        &self,
        kernel: &'static TileKernel<P>,
        alpha: P::Sum,
        a: Strided<'_, P::Left>,
        b: Strided<'_, P::Right>,
        beta: P::Sum,
        mut c: StridedMut<'_, P::Sum>,
    ) -> Result<(), Error> {
        let (m, n, k) = (a.rows(), b.cols(), a.cols());
        if m == 0 || n == 0 {
            return Ok(());
        }
        let (start, row_stride, col_stride) = c.raw();
        let block = Block {
            kernel,
            // Nothing to multiply: the operands are not read.
            k: if alpha == P::Sum::ZERO { 0 } else { k },
            alpha,
            beta,
            a: Source::of(&a),
            b: Source::of(&b.transposed()),
            c: Destination { start, row_stride, col_stride },
        };
        let work = m.saturating_mul(n).saturating_mul(k);
        let threads = self.threads.min(work / WORTH_A_THREAD).max(1);
        if threads == 1 {
            // SAFETY: the views have these shapes, and that of `C` stands for a mutable borrow.
            return unsafe { block.run(0..m, 0..n) };
        }
        let by_rows = m >= n;
        let unit = if by_rows { kernel.rows } else { kernel.columns };
        let parts = threads::cut(if by_rows { m } else { n }, threads, unit);
        let part = |range: Range<usize>| if by_rows { (range, 0..n) } else { (0..m, range) };
        pool::try_run(threads, parts.len(), &|index| {
            let (rows, cols) = part(parts[index].clone());
            // SAFETY: the views have these shapes, that of `C` stands for a mutable borrow, and the
            // parts are disjoint.
            unsafe { block.run(rows, cols) }
        })
    }
}
