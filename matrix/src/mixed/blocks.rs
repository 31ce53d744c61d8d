//! The loops of a mixed product: blocks of both operands are packed and multiplied tile by tile.
//!
//! **What.** The loops of Goto and van de Geijn 2008: columns of `C` in blocks of [`BLOCK_COLUMNS`],
//! `k` in blocks of [`BLOCK_WORDS`] words, rows in blocks of [`BLOCK_ROWS`]. A block of `B` is packed
//! once for all rows, a block of `A` once for the columns of a block.
//!
//! **Why these sizes.** A panel of `Bᵀ` (8 columns of 512 words: 16 KB) stays in the first level
//! while all panels of `A`'s block pass it. That block (240 rows: 480 KB at most) stays in a second
//! level of 1 MB; its panels are read in order, 16 bytes a cycle. `docs/matrix.md` has a sweep.

use super::kernel::{Tile, TileKernel};
use super::product::{Product, Sum};
use crate::buffer::Buffer;
use crate::{Error, Strided};
use std::ops::Range;

/// Words of a row that are packed at a time.
const BLOCK_WORDS: usize = 512;
/// Rows that are packed at a time: a multiple of every kernel's panel.
const BLOCK_ROWS: usize = 240;
/// Columns that are packed at a time, rounded up to whole panels.
const BLOCK_COLUMNS: usize = 1024;

/// A plain array that is read.
#[derive(Debug)]
pub(super) struct Source<T> {
    start: *const T,
    row_stride: isize,
    col_stride: isize,
}

// SAFETY: a source stands for shared references to its entries, which its creator holds.
unsafe impl<T: Sync> Sync for Source<T> {}

impl<T> Source<T> {
    pub(super) fn of(view: &Strided<'_, T>) -> Source<T> {
        let (start, row_stride, col_stride) = view.raw();
        Source { start, row_stride, col_stride }
    }

    /// Row stride and column stride.
    pub(super) fn strides(&self) -> (isize, isize) {
        (self.row_stride, self.col_stride)
    }

    /// The place of an entry.
    #[inline(always)]
    pub(super) fn place(&self, row: usize, col: usize) -> *const T {
        self.start.wrapping_offset(row as isize * self.row_stride + col as isize * self.col_stride)
    }
}

/// The plain array that is written.
#[derive(Debug)]
pub(super) struct Destination<T> {
    pub(super) start: *mut T,
    pub(super) row_stride: isize,
    pub(super) col_stride: isize,
}

// SAFETY: a destination stands for a unique borrow, whose threads touch different entries.
unsafe impl<T: Send> Sync for Destination<T> {}

/// A product, as borrowed arrays.
#[derive(Debug)]
pub(super) struct Block<P: Product> {
    pub(super) kernel: &'static TileKernel<P>,
    /// Columns of `A` and of `Bᵀ`.
    pub(super) k: usize,
    pub(super) alpha: P::Sum,
    pub(super) beta: P::Sum,
    pub(super) a: Source<P::Left>,
    /// `Bᵀ`: a row is a column of `C`.
    pub(super) b: Source<P::Right>,
    pub(super) c: Destination<P::Sum>,
}

impl<P: Product> Block<P> {
    /// Computes the rows and columns of a part of `C`.
    ///
    /// # Safety
    /// The operands' entries of these rows and columns are readable; those of `C` are writable,
    /// initialised unless β is 0, and touched by nobody else.
    pub(super) unsafe fn run(&self, rows: Range<usize>, cols: Range<usize>) -> Result<(), Error> {
        let kernel = self.kernel;
        let block_k = BLOCK_WORDS * kernel.depth;
        let groups = self.k.min(block_k).div_ceil(kernel.depth);
        let words = |count: usize, most: usize, unit: usize| count.min(most).next_multiple_of(unit) * groups;
        let mut a_panels = Buffer::<u32>::scratch(words(rows.len(), BLOCK_ROWS, kernel.rows))?;
        let mut b_panels = Buffer::<u32>::scratch(words(cols.len(), BLOCK_COLUMNS, kernel.columns))?;
        for block_cols in pieces(cols, BLOCK_COLUMNS.next_multiple_of(kernel.columns)) {
            // One pass even if there is nothing to multiply: it scales `C`.
            let mut beta = self.beta;
            for ks in pieces(0..self.k.max(1), block_k) {
                let ks = ks.start..ks.end.min(self.k);
                // SAFETY: the caller's promise, for the columns of this block.
                unsafe { (kernel.pack_right)(&self.b, block_cols.clone(), ks.clone(), &mut b_panels) };
                for block_rows in pieces(rows.clone(), BLOCK_ROWS) {
                    // SAFETY: the caller's promise, for the rows of this block.
                    unsafe {
                        (kernel.pack_left)(&self.a, block_rows.clone(), ks.clone(), &mut a_panels);
                        self.tiles(&a_panels, &b_panels, block_rows, block_cols.clone(), ks.len(), beta);
                    }
                }
                // The blocks of `k` that follow are added.
                beta = P::Sum::ONE;
            }
        }
        Ok(())
    }

    /// Multiplies packed blocks.
    ///
    /// # Safety
    /// The requirements of [`Self::run`]; the panels hold `steps` steps of these rows and columns.
    unsafe fn tiles(
        &self,
        a_panels: &[u32],
        b_panels: &[u32],
        rows: Range<usize>,
        cols: Range<usize>,
        steps: usize,
        beta: P::Sum,
    ) {
        let kernel = self.kernel;
        let groups = steps.div_ceil(kernel.depth);
        let c = &self.c;
        // A panel of `Bᵀ` stays in the first level for all panels of `A`.
        for (panel, col) in cols.clone().step_by(kernel.columns).enumerate() {
            let b = b_panels[panel * groups * kernel.columns..].as_ptr();
            for (panel, row) in rows.clone().step_by(kernel.rows).enumerate() {
                let offset = row as isize * c.row_stride + col as isize * c.col_stride;
                let tile = Tile {
                    groups,
                    a: a_panels[panel * groups * kernel.rows..].as_ptr(),
                    b,
                    alpha: self.alpha,
                    beta,
                    c: c.start.wrapping_offset(offset),
                    row_stride: c.row_stride,
                    col_stride: c.col_stride,
                    rows: (rows.end - row).min(kernel.rows),
                    columns: (cols.end - col).min(kernel.columns),
                };
                // SAFETY: the panels hold these words, the tile lies in the part of `C`, and a
                // `TileKernel` exists only if the processor has its features.
                unsafe { (kernel.run)(&tile) };
            }
        }
    }
}

/// A range in pieces of `size`, the last one shorter.
fn pieces(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(size).map(move |start| start..(start + size).min(end))
}
