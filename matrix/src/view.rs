//! Views: whole matrices, tiles and ranges of tiles, without copying.
//!
//! A view starts at a tile and may end anywhere inside one. Multiplications take views, so parts of
//! blocked matrices can be multiplied in place.

use crate::kernel::Kernel;
use crate::layout::Layout;
use crate::{BlockedMatrix, Element, Error};
use std::ops::Range;

/// The rows and columns of the matrix that a view covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) layout: Layout,
    pub(crate) first_row: usize,
    pub(crate) first_col: usize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
}

impl Part {
    #[inline]
    fn whole(layout: Layout) -> Part {
        Part { layout, first_row: 0, first_col: 0, rows: layout.rows(), cols: layout.cols() }
    }

    /// A part whose rows and columns are given in tiles.
    fn tiles(layout: Layout, rows: Range<usize>, cols: Range<usize>) -> Result<Part, Error> {
        let (down, across) = layout.tiles();
        let check = |field, range: &Range<usize>, count: usize| match range.start <= range.end
            && range.end <= count
        {
            true => Ok(()),
            false => Err(Error::Invalid {
                field,
                value: range.end,
                expected: "a range within the tiles of the matrix",
            }),
        };
        check("tile rows", &rows, down)?;
        check("tile columns", &cols, across)?;
        let span = |range: &Range<usize>, len: usize| {
            let (start, end) = (range.start * layout.tile(), (range.end * layout.tile()).min(len));
            (start, end.saturating_sub(start))
        };
        let ((first_row, rows), (first_col, cols)) = (span(&rows, layout.rows()), span(&cols, layout.cols()));
        Ok(Part { layout, first_row, first_col, rows, cols })
    }

    fn offset(&self, row: usize, col: usize) -> usize {
        assert!(
            row < self.rows && col < self.cols,
            "entry ({row}, {col}) of a {}×{} view",
            self.rows,
            self.cols
        );
        self.layout.offset(self.first_row + row, self.first_col + col)
    }
}

/// A part of a blocked matrix that is read.
#[derive(Clone, Copy)]
pub struct View<'a, T: Element> {
    pub(crate) part: Part,
    pub(crate) storage: &'a [T],
}

/// A part of a blocked matrix that is written.
pub struct ViewMut<'a, T: Element> {
    pub(crate) part: Part,
    pub(crate) kernel: &'static Kernel,
    pub(crate) storage: &'a mut [T],
}

impl<T: Element> BlockedMatrix<T> {
    /// A view of the whole matrix.
    #[inline]
    pub fn view(&self) -> View<'_, T> {
        View { part: Part::whole(*self.layout()), storage: self.storage() }
    }

    /// A view of the whole matrix, for writing.
    #[inline]
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        let (part, kernel) = (Part::whole(*self.layout()), self.kernel());
        ViewMut { part, kernel, storage: self.storage_mut() }
    }

    /// A view of tile (`row`, `col`).
    ///
    /// # Errors
    /// [`Error::Invalid`] when the matrix has no such tile.
    pub fn tile(&self, row: usize, col: usize) -> Result<View<'_, T>, Error> {
        self.tiles(row..row.saturating_add(1), col..col.saturating_add(1))
    }

    /// A view of a rectangle of tiles.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it reaches outside.
    pub fn tiles(&self, rows: Range<usize>, cols: Range<usize>) -> Result<View<'_, T>, Error> {
        let part = Part::tiles(*self.layout(), rows, cols)?;
        Ok(View { part, storage: self.storage() })
    }

    /// A view of a rectangle of tiles, for writing.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it reaches outside.
    pub fn tiles_mut(&mut self, rows: Range<usize>, cols: Range<usize>) -> Result<ViewMut<'_, T>, Error> {
        let part = Part::tiles(*self.layout(), rows, cols)?;
        let kernel = self.kernel();
        Ok(ViewMut { part, kernel, storage: self.storage_mut() })
    }

    /// Views of all tiles with their places in the grid, in storage order.
    pub fn iter_tiles(&self) -> impl Iterator<Item = (usize, usize, View<'_, T>)> {
        let (down, across) = self.layout().tiles();
        (0..across).flat_map(move |col| {
            (0..down).map(move |row| (row, col, self.tile(row, col).expect("inside the grid")))
        })
    }
}

macro_rules! accessors {
    ($view:ident) => {
        impl<T: Element> $view<'_, T> {
            /// The number of rows.
            #[inline]
            pub fn rows(&self) -> usize {
                self.part.rows
            }

            /// The number of columns.
            #[inline]
            pub fn cols(&self) -> usize {
                self.part.cols
            }

            /// Entry (`row`, `col`) of the view.
            ///
            /// # Panics
            /// When the entry is outside the view.
            pub fn get(&self, row: usize, col: usize) -> T {
                self.storage[self.part.offset(row, col)]
            }
        }
    };
}

accessors!(View);
accessors!(ViewMut);

impl<T: Element> ViewMut<'_, T> {
    /// Writes entry (`row`, `col`) of the view.
    ///
    /// # Panics
    /// When the entry is outside the view.
    pub fn set(&mut self, row: usize, col: usize, value: T) {
        let at = self.part.offset(row, col);
        self.storage[at] = value;
    }

    /// This view, borrowed for a shorter time.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut { part: self.part, kernel: self.kernel, storage: self.storage }
    }
}

impl<'a, T: Element> From<&'a BlockedMatrix<T>> for View<'a, T> {
    #[inline]
    fn from(matrix: &'a BlockedMatrix<T>) -> Self {
        matrix.view()
    }
}

impl<'a, T: Element> From<&'a mut BlockedMatrix<T>> for ViewMut<'a, T> {
    #[inline]
    fn from(matrix: &'a mut BlockedMatrix<T>) -> Self {
        matrix.view_mut()
    }
}
