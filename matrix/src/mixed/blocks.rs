//! The loops of a mixed product: blocks of both operands are packed and multiplied tile by tile.
//!
//! **What.** The loops of Goto and van de Geijn 2008: `k` in blocks of words and rows in blocks, of
//! the kernel's sizes ([`Blocks`](super::product::Blocks)), columns of `C` in blocks of
//! [`BLOCK_COLUMNS`] where `B` is packed. A block of `A` is packed once for the columns of a block.
//!
//! **Why this way.** A kernel repeats single words of `B`, so it can read them where they lie if a
//! word is four bytes of `B`: that is 1 to 4 % faster on a Zen 5 than packing from N = 256 to
//! 1,024, 20 % at 64, and no slower at 4,096, where rows of `B` share the sets of the first level.

use super::kernel::Tile;
use super::narrow::Sum;
use super::product::{Around, Product, RightWords, TileKernel};
use super::source::Source;
use crate::buffer::Buffer;
use crate::Error;
use std::ops::Range;

/// Columns that are packed at a time, rounded up to whole panels.
const BLOCK_COLUMNS: usize = 1024;

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
        let (most_words, most_rows) = (kernel.blocks.words, kernel.blocks.rows);
        let block_k = most_words * kernel.depth;
        let groups_of = |steps: usize| steps.div_ceil(kernel.depth).next_multiple_of(kernel.blocks.unit);
        let groups = groups_of(self.k.min(block_k));
        let words = |count: usize, most: usize, unit: usize| count.min(most).next_multiple_of(unit) * groups;
        let columns = kernel.columns as isize;
        // Kernels repeat single words of `B`, which they can read anywhere, or take its columns
        // where their words are adjacent and every tile is whole.
        let unpacked = kernel.takes_right_unpacked()
            && self.b.strides().1 == 1
            && self.k.is_multiple_of(kernel.depth * kernel.blocks.unit)
            && (kernel.blocks.right == RightWords::ByGroup || cols.len().is_multiple_of(kernel.columns));
        let b_words = if unpacked { 0 } else { words(cols.len(), BLOCK_COLUMNS, kernel.columns) };
        let mut a_panels = Buffer::<u32>::scratch(words(rows.len(), most_rows, kernel.rows))?;
        let mut b_panels = Buffer::<u32>::scratch(b_words)?;
        let _prepared = Prepared::new(kernel.blocks.around);
        let block_columns =
            if unpacked { cols.len() } else { BLOCK_COLUMNS.next_multiple_of(kernel.columns) };
        for block_cols in pieces(cols, block_columns) {
            // One pass even if there is nothing to multiply: it scales `C`.
            let mut beta = self.beta;
            for ks in pieces(0..self.k.max(1), block_k) {
                let ks = ks.start..ks.end.min(self.k);
                let groups = groups_of(ks.len());
                let right = if unpacked {
                    let bytes = size_of::<P::Right>() as isize;
                    let start = self.b.place(block_cols.start, ks.start).cast();
                    let column = self.b.strides().0 * bytes;
                    Right { start, column, step: WORD, panel: columns * column }
                } else {
                    // SAFETY: the caller's promise, for the columns of this block.
                    unsafe {
                        (kernel.pack_right)(&self.b, block_cols.clone(), ks.clone(), groups, &mut b_panels)
                    };
                    let (column, step) = match kernel.blocks.right {
                        RightWords::ByGroup => (WORD, columns * WORD),
                        RightWords::ByColumn => {
                            // Columns of the last panel that do not exist.
                            let words = block_cols.len() * groups;
                            b_panels[words..words.next_multiple_of(kernel.columns * groups.max(1))].fill(0);
                            (groups as isize * WORD, WORD)
                        }
                    };
                    let start = b_panels.as_ptr().cast();
                    Right { start, column, step, panel: groups as isize * columns * WORD }
                };
                for block_rows in pieces(rows.clone(), most_rows) {
                    // SAFETY: the caller's promise, for the rows of this block.
                    unsafe {
                        (kernel.pack_left)(&self.a, block_rows.clone(), ks.clone(), groups, &mut a_panels);
                        self.tiles(&a_panels, &right, block_rows, block_cols.clone(), groups, beta);
                    }
                }
                // The blocks of `k` that follow are added.
                beta = P::Sum::ONE;
            }
        }
        Ok(())
    }

    /// Multiplies a packed block of `A` with one of `B`.
    ///
    /// # Safety
    /// The requirements of [`Self::run`]; the operands hold `groups` groups of these rows and
    /// columns.
    unsafe fn tiles(
        &self,
        a_panels: &[u32],
        right: &Right,
        rows: Range<usize>,
        cols: Range<usize>,
        groups: usize,
        beta: P::Sum,
    ) {
        let kernel = self.kernel;
        let c = &self.c;
        // A panel of `Bᵀ` stays in the first level for all panels of `A`.
        for (panel, col) in cols.clone().step_by(kernel.columns).enumerate() {
            let b = right.start.wrapping_offset(panel as isize * right.panel);
            for (panel, row) in rows.clone().step_by(kernel.rows).enumerate() {
                let offset = row as isize * c.row_stride + col as isize * c.col_stride;
                let tile = Tile {
                    groups,
                    a: a_panels[panel * groups * kernel.rows..].as_ptr(),
                    b,
                    b_column: right.column,
                    b_step: right.step,
                    alpha: self.alpha,
                    beta,
                    c: c.start.wrapping_offset(offset),
                    row_stride: c.row_stride,
                    col_stride: c.col_stride,
                    rows: (rows.end - row).min(kernel.rows),
                    columns: (cols.end - col).min(kernel.columns),
                };
                // SAFETY: the operands hold these words, the tile lies in the part of `C`, and a
                // `TileKernel` exists only if the processor has its features.
                unsafe { (kernel.run)(&tile) };
            }
        }
    }
}

/// Bytes of a word.
const WORD: isize = size_of::<u32>() as isize;

/// The words of a block of `B`, packed or where they lie.
struct Right {
    start: *const u8,
    /// Bytes from one column to the next.
    column: isize,
    /// Bytes from one group to the next.
    step: isize,
    /// Bytes from one panel of columns to the next.
    panel: isize,
}

/// Stands for the time between a kernel's functions around the tiles of a part.
struct Prepared(Option<Around>);

impl Prepared {
    fn new(around: Option<Around>) -> Prepared {
        if let Some(around) = around {
            // SAFETY: a `TileKernel` exists only if the processor has its features.
            unsafe { (around.before)() };
        }
        Prepared(around)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(around) = self.0 {
            // SAFETY: as before the first tile.
            unsafe { (around.behind)() };
        }
    }
}

/// A range in pieces of `size`, the last one shorter.
fn pieces(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(size).map(move |start| start..(start + size).min(end))
}
