//! Parts of plain arrays: rectangles, halves that are written independently, and arrays turned
//! around.
//!
//! **Why.** A factorisation in place reads one part of an array while it writes another. A view
//! that is cut into parts is gone, so the borrow checker sees that no part is written twice.
//! **Leaves out** parts that are not rectangles: a triangle is read as the square around it.

use crate::strided::{Strided, StridedMut};
use std::ops::Range;

macro_rules! parts {
    ($view:ident $(, $mut:tt)?) => {
        impl<'a, T: Copy> $view<'a, T> {
            /// The entries in these rows and columns.
            ///
            /// # Panics
            /// When the rectangle is not inside the array.
            #[inline]
            pub fn part(self, rows: Range<usize>, cols: Range<usize>) -> $view<'a, T> {
                let shape = (self.rows(), self.cols());
                assert!(
                    rows.start <= rows.end && rows.end <= shape.0 && cols.start <= cols.end && cols.end <= shape.1,
                    "rows {rows:?} and columns {cols:?} of a {}×{} array",
                    shape.0,
                    shape.1
                );
                let $($mut)? this = self;
                let (start, row, col) = this.raw();
                let start = start.wrapping_offset(rows.start as isize * row + cols.start as isize * col);
                // SAFETY: the entries are among those of this view, which is consumed.
                unsafe { $view::from_raw(start, (rows.len(), cols.len()), (row, col)) }
            }

            /// The array with its rows in reverse order. No entry moves.
            #[inline]
            pub(crate) fn rows_reversed(self) -> $view<'a, T> {
                let shape = (self.rows(), self.cols());
                let $($mut)? this = self;
                let (start, row, col) = this.raw();
                let start = start.wrapping_offset(shape.0.saturating_sub(1) as isize * row);
                // SAFETY: the entries are those of this view, which is consumed.
                unsafe { $view::from_raw(start, shape, (-row, col)) }
            }

            /// The array with its columns in reverse order. No entry moves.
            #[inline]
            pub(crate) fn cols_reversed(self) -> $view<'a, T> {
                self.transposed().rows_reversed().transposed()
            }
        }
    };
}

parts!(Strided);
parts!(StridedMut, mut);

impl<'a, T: Copy> StridedMut<'a, T> {
    /// A view of the same entries for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> StridedMut<'_, T> {
        let shape = (self.rows(), self.cols());
        let (start, row, col) = self.raw();
        // SAFETY: the entries are those of this view, which is borrowed mutably meanwhile.
        unsafe { StridedMut::from_raw(start, shape, (row, col)) }
    }

    /// The first `at` rows, and the others.
    ///
    /// # Panics
    /// When there are fewer rows.
    #[inline]
    pub fn split_rows(mut self, at: usize) -> (StridedMut<'a, T>, StridedMut<'a, T>) {
        let (rows, cols) = (self.rows(), self.cols());
        assert!(at <= rows, "row {at} of {rows}");
        let (start, row, col) = self.raw();
        let below = start.wrapping_offset(at as isize * row);
        // SAFETY: the two parts have no entry in common, and this view is consumed.
        unsafe {
            (
                StridedMut::from_raw(start, (at, cols), (row, col)),
                StridedMut::from_raw(below, (rows - at, cols), (row, col)),
            )
        }
    }

    /// The first `at` columns, and the others.
    ///
    /// # Panics
    /// When there are fewer columns.
    #[inline]
    pub fn split_cols(self, at: usize) -> (StridedMut<'a, T>, StridedMut<'a, T>) {
        let (left, right) = self.transposed().split_rows(at);
        (left.transposed(), right.transposed())
    }

    /// The four parts above and below row `row`, left and right of column `col`: first the upper
    /// two, from left to right.
    ///
    /// # Panics
    /// When there are fewer rows or columns.
    #[inline]
    pub fn quarters(self, row: usize, col: usize) -> [StridedMut<'a, T>; 4] {
        let (upper, lower) = self.split_rows(row);
        let (upper_left, upper_right) = upper.split_cols(col);
        let (lower_left, lower_right) = lower.split_cols(col);
        [upper_left, upper_right, lower_left, lower_right]
    }

    /// A shared view of the entries, for the rest of this view's time.
    #[inline]
    pub(crate) fn into_shared(mut self) -> Strided<'a, T> {
        let shape = (self.rows(), self.cols());
        let (start, row, col) = self.raw();
        // SAFETY: the entries are those of this view, which is consumed.
        unsafe { Strided::from_raw(start, shape, (row, col)) }
    }
}
