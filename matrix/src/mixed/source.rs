//! An operand as a borrowed plain array.

use crate::Strided;

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
