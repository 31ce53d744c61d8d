//! Plain arrays of any shape and any strides, also negative ones, which are checked once when the
//! view is made.
//!
//! A view has a pointer and not a slice: the memory between its entries may belong to another owner
//! (for example to other columns of a larger array), and is never touched.

use crate::Error;
use std::marker::PhantomData;

/// The places of a plain array's entries, relative to the start of a slice: entry (i, j) is element
/// `origin + i·row_stride + j·col_stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StridedShape {
    rows: usize,
    cols: usize,
    row_stride: isize,
    col_stride: isize,
    origin: usize,
}

/// Shapes with fewer rows and columns than this, and with strides below [`NEAR_STRIDE`], reach no
/// place that overflows.
const FEW: usize = 1 << 20;
/// See [`FEW`].
const NEAR_STRIDE: usize = 1 << 40;

impl StridedShape {
    /// `rows`×`cols` entries with these strides, the first of which is element 0 of the slice.
    pub fn new(rows: usize, cols: usize, row_stride: isize, col_stride: isize) -> StridedShape {
        StridedShape { rows, cols, row_stride, col_stride, origin: 0 }
    }

    /// `rows`×`cols` entries, row after row.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the row stride overflows.
    pub fn row_major(rows: usize, cols: usize) -> Result<StridedShape, Error> {
        Ok(StridedShape::new(rows, cols, stride(rows, cols)?, 1))
    }

    /// `rows`×`cols` entries, column after column.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the column stride overflows.
    pub fn col_major(rows: usize, cols: usize) -> Result<StridedShape, Error> {
        Ok(StridedShape::new(rows, cols, 1, stride(cols, rows)?))
    }

    /// This shape with entry (0, 0) at element `origin`, for negative strides.
    pub fn with_origin(self, origin: usize) -> StridedShape {
        StridedShape { origin, ..self }
    }

    /// The shape with rows and columns exchanged. No entry moves.
    #[inline]
    pub fn transposed(self) -> StridedShape {
        StridedShape {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// The number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    #[inline]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row stride and column stride.
    #[inline]
    pub fn strides(&self) -> (isize, isize) {
        (self.row_stride, self.col_stride)
    }

    /// The index of entry (0, 0).
    #[inline]
    pub(crate) fn origin(&self) -> usize {
        self.origin
    }

    /// The length of the shortest slice that holds all entries.
    pub(crate) fn length(&self) -> Result<usize, Error> {
        self.checked(isize::MAX as usize)?;
        if self.rows == 0 || self.cols == 0 {
            return Ok(0);
        }
        let last = |count: usize, stride: isize| (count - 1) as isize * stride.max(0);
        Ok(self.origin + (last(self.rows, self.row_stride) + last(self.cols, self.col_stride)) as usize + 1)
    }

    /// Refuses shapes of which two entries share a place.
    #[inline]
    pub(crate) fn check_injective(&self) -> Result<(), Error> {
        // The usual cases first: rows or columns that follow each other.
        let (row, col) = (self.row_stride, self.col_stride);
        let usual = row == 1 && col >= self.rows as isize || col == 1 && row >= self.cols as isize;
        match usual || self.is_injective() {
            true => Ok(()),
            false => Err(Error::Overlap { shape: (self.rows, self.cols), strides: (row, col) }),
        }
    }

    /// Refuses shapes that reach outside of `len` elements.
    #[inline]
    fn checked(self, len: usize) -> Result<StridedShape, Error> {
        if self.rows == 0 || self.cols == 0 {
            return Ok(self);
        }
        let strides = self.row_stride.unsigned_abs() | self.col_stride.unsigned_abs();
        if self.rows | self.cols | (self.origin >> 20) < FEW && strides < NEAR_STRIDE {
            let span = |count: usize, stride: isize| (count - 1) as isize * stride;
            let (rows, cols) = (span(self.rows, self.row_stride), span(self.cols, self.col_stride));
            let low = self.origin as isize + rows.min(0) + cols.min(0);
            let high = self.origin as isize + rows.max(0) + cols.max(0);
            if low >= 0 && (high as usize) < len {
                return Ok(self);
            }
        }
        self.checked_slowly(len)
    }

    /// Does what [`Self::checked`] does, for numbers of any size.
    #[cold]
    fn checked_slowly(self, len: usize) -> Result<StridedShape, Error> {
        let too_large = Error::TooLarge { rows: self.rows, cols: self.cols };
        let span = |count: usize, stride: isize| isize::try_from(count - 1).ok()?.checked_mul(stride);
        let rows = span(self.rows, self.row_stride).ok_or(too_large.clone())?;
        let cols = span(self.cols, self.col_stride).ok_or(too_large.clone())?;
        let origin = isize::try_from(self.origin).map_err(|_| too_large.clone())?;
        let low = origin.checked_add(rows.min(0)).and_then(|low| low.checked_add(cols.min(0)));
        let high = origin.checked_add(rows.max(0)).and_then(|high| high.checked_add(cols.max(0)));
        let (Some(low), Some(high)) = (low, high) else { return Err(too_large) };
        if low < 0 || high as usize >= len {
            return Err(Error::OutOfBounds { reach: (low, high), len });
        }
        Ok(self)
    }

    /// Whether all entries have different places. That is so if the finer stride stays within one
    /// step of the coarser one.
    fn is_injective(&self) -> bool {
        if self.rows == 0 || self.cols == 0 {
            return true;
        }
        let row = (self.row_stride.unsigned_abs(), self.rows);
        let col = (self.col_stride.unsigned_abs(), self.cols);
        let used: Vec<_> = [row, col].into_iter().filter(|&(_, count)| count > 1).collect();
        match used.as_slice() {
            [] => true,
            [(stride, _)] => *stride > 0,
            [a, b] => {
                let (fine, coarse) = if a.0 <= b.0 { (a, b) } else { (b, a) };
                fine.0 > 0 && (coarse.0 > fine.0.saturating_mul(fine.1 - 1) || interleaves(*fine, *coarse))
            }
            _ => false,
        }
    }

    fn offset(&self, row: usize, col: usize) -> usize {
        let at = self.origin as isize + row as isize * self.row_stride + col as isize * self.col_stride;
        at as usize
    }
}

/// Whether two progressions with overlapping ranges still never meet: they do only if
/// `i·fine = j·coarse` for small `i`, `j`.
fn interleaves(fine: (usize, usize), coarse: (usize, usize)) -> bool {
    let (mut a, mut b) = (fine.0, coarse.0);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    coarse.0 / a >= fine.1 || fine.0 / a >= coarse.1
}

/// A plain array that is read.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a, T> {
    /// The place from which entry (0, 0) is `origin` elements away.
    data: *const T,
    shape: StridedShape,
    borrow: PhantomData<&'a T>,
}

/// A plain array that is written.
#[derive(Debug)]
pub struct StridedMut<'a, T> {
    /// The place from which entry (0, 0) is `origin` elements away.
    data: *mut T,
    shape: StridedShape,
    borrow: PhantomData<&'a mut T>,
}

// SAFETY: a view stands for shared references to its entries.
unsafe impl<T: Sync> Send for Strided<'_, T> {}
// SAFETY: a view only reads, as shared references to its entries would.
unsafe impl<T: Sync> Sync for Strided<'_, T> {}
// SAFETY: a view stands for unique references to its entries.
unsafe impl<T: Send> Send for StridedMut<'_, T> {}
// SAFETY: `&StridedMut` only reads, as shared references to the entries would.
unsafe impl<T: Sync> Sync for StridedMut<'_, T> {}

impl<'a, T> Strided<'a, T> {
    /// A view whose entry (0, 0) is `data[origin]`, for negative strides.
    ///
    /// # Errors
    /// The errors of [`Strided::new`].
    #[inline]
    pub fn with_origin(
        data: &'a [T],
        origin: usize,
        rows: usize,
        cols: usize,
        row_stride: isize,
        col_stride: isize,
    ) -> Result<Self, Error> {
        let shape = StridedShape { rows, cols, row_stride, col_stride, origin }.checked(data.len())?;
        Ok(Strided { data: data.as_ptr(), shape, borrow: PhantomData })
    }

    /// A view of a slice with a shape.
    pub(crate) fn with_shape(data: &'a [T], shape: StridedShape) -> Result<Self, Error> {
        Ok(Strided { data: data.as_ptr(), shape: shape.checked(data.len())?, borrow: PhantomData })
    }

    /// First entry, row stride, column stride.
    #[inline]
    pub(crate) fn raw(&self) -> (*const T, isize, isize) {
        (self.data.wrapping_add(self.shape.origin), self.shape.row_stride, self.shape.col_stride)
    }

    /// A view of memory of another owner.
    ///
    /// # Safety
    /// Every entry, `start.offset(i·row_stride + j·col_stride)`, is readable and unchanged during
    /// `'a`.
    pub unsafe fn from_raw(
        start: *const T,
        (rows, cols): (usize, usize),
        (row_stride, col_stride): (isize, isize),
    ) -> Self {
        let shape = StridedShape { rows, cols, row_stride, col_stride, origin: 0 };
        Strided { data: start, shape, borrow: PhantomData }
    }
}

impl<'a, T> StridedMut<'a, T> {
    /// A view to write to, whose entry (0, 0) is `data[origin]`, for negative strides.
    ///
    /// # Errors
    /// The errors of [`StridedMut::new`].
    #[inline]
    pub fn with_origin(
        data: &'a mut [T],
        origin: usize,
        rows: usize,
        cols: usize,
        row_stride: isize,
        col_stride: isize,
    ) -> Result<Self, Error> {
        let shape = StridedShape { rows, cols, row_stride, col_stride, origin }.checked(data.len())?;
        shape.check_injective()?;
        Ok(StridedMut { data: data.as_mut_ptr(), shape, borrow: PhantomData })
    }

    /// A view of a slice with a shape, for writing.
    pub(crate) fn with_shape(data: &'a mut [T], shape: StridedShape) -> Result<Self, Error> {
        let shape = shape.checked(data.len())?;
        shape.check_injective()?;
        Ok(StridedMut { data: data.as_mut_ptr(), shape, borrow: PhantomData })
    }

    /// First entry, row stride, column stride.
    #[inline]
    pub(crate) fn raw(&mut self) -> (*mut T, isize, isize) {
        let StridedShape { row_stride, col_stride, origin, .. } = self.shape;
        (self.data.wrapping_add(origin), row_stride, col_stride)
    }

    /// A view of memory of another owner.
    ///
    /// # Safety
    /// Every entry, `start.offset(i·row_stride + j·col_stride)`, is accessible only through this
    /// view during `'a`; no two coincide.
    pub unsafe fn from_raw(
        start: *mut T,
        (rows, cols): (usize, usize),
        (row_stride, col_stride): (isize, isize),
    ) -> Self {
        let shape = StridedShape { rows, cols, row_stride, col_stride, origin: 0 };
        StridedMut { data: start, shape, borrow: PhantomData }
    }
}

fn stride(count: usize, length: usize) -> Result<isize, Error> {
    isize::try_from(length.max(1)).map_err(|_| Error::TooLarge { rows: count, cols: length })
}

macro_rules! constructors {
    ($view:ident, $slice:ty, $errors:literal) => {
        impl<'a, T> $view<'a, T> {
            /// A view whose entry (i, j) is `data[i·row_stride + j·col_stride]`.
            ///
            /// # Errors
            #[doc = $errors]
            #[inline]
            pub fn new(
                data: $slice,
                rows: usize,
                cols: usize,
                row_stride: isize,
                col_stride: isize,
            ) -> Result<Self, Error> {
                Self::with_origin(data, 0, rows, cols, row_stride, col_stride)
            }

            /// A view of an array that is stored row after row.
            ///
            /// # Errors
            /// The errors of [`Self::new`].
            #[inline]
            pub fn row_major(data: $slice, rows: usize, cols: usize) -> Result<Self, Error> {
                Self::new(data, rows, cols, stride(rows, cols)?, 1)
            }

            /// A view of an array that is stored column after column.
            ///
            /// # Errors
            /// The errors of [`Self::new`].
            #[inline]
            pub fn col_major(data: $slice, rows: usize, cols: usize) -> Result<Self, Error> {
                Self::new(data, rows, cols, 1, stride(cols, rows)?)
            }

            /// The array with rows and columns exchanged. No entry moves.
            #[inline]
            pub fn transposed(self) -> Self {
                $view { shape: self.shape.transposed(), ..self }
            }
        }
    };
}

constructors!(Strided, &'a [T], "[`Error::OutOfBounds`] when an entry would lie outside the slice.");
constructors!(
    StridedMut,
    &'a mut [T],
    "[`Error::OutOfBounds`] when an entry would lie outside the slice, [`Error::Overlap`] when two share a place."
);

macro_rules! accessors {
    ($view:ident) => {
        impl<T: Copy> $view<'_, T> {
            /// The number of rows.
            #[inline]
            pub fn rows(&self) -> usize {
                self.shape.rows
            }

            /// The number of columns.
            #[inline]
            pub fn cols(&self) -> usize {
                self.shape.cols
            }

            /// Row stride and column stride.
            #[inline]
            pub fn strides(&self) -> (isize, isize) {
                (self.shape.row_stride, self.shape.col_stride)
            }

            /// Entry (`row`, `col`).
            ///
            /// # Panics
            /// When the entry is outside the shape.
            pub fn get(&self, row: usize, col: usize) -> T {
                assert!(
                    row < self.shape.rows && col < self.shape.cols,
                    "({row}, {col}) outside {:?}",
                    self.shape
                );
                // SAFETY: every entry of the view was checked, or guaranteed by the caller, when
                // the view was made.
                unsafe { *self.data.wrapping_add(self.shape.offset(row, col)) }
            }
        }
    };
}

accessors!(Strided);
accessors!(StridedMut);

impl<T: Copy> StridedMut<'_, T> {
    /// Writes entry (`row`, `col`).
    ///
    /// # Panics
    /// When the entry is outside the shape.
    pub fn set(&mut self, row: usize, col: usize, value: T) {
        assert!(row < self.shape.rows && col < self.shape.cols, "({row}, {col}) outside {:?}", self.shape);
        // SAFETY: every entry of the view was checked, or guaranteed by the caller, when the view
        // was made.
        unsafe { *self.data.wrapping_add(self.shape.offset(row, col)) = value };
    }

    /// This array, to read from.
    pub fn as_ref(&self) -> Strided<'_, T> {
        Strided { data: self.data, shape: self.shape, borrow: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_overlaps_are_found() {
        let mut data = [0; 24];
        assert!(Strided::new(&data, 4, 6, 6, 1).is_ok());
        assert!(matches!(
            Strided::new(&data, 4, 7, 6, 1),
            Err(Error::OutOfBounds { reach: (0, 24), len: 24 })
        ));
        assert!(Strided::with_origin(&data, 23, 4, 6, -6, -1).is_ok());
        assert!(Strided::new(&data, 4, 6, -6, 1).is_err());
        assert!(Strided::new(&data, 4, 6, isize::MAX, 1).is_err());
        assert!(Strided::<i32>::new(&[], 0, 9, 1, 1).is_ok());
        assert!(matches!(StridedMut::new(&mut data, 4, 6, 0, 1), Err(Error::Overlap { .. })));
        assert!(matches!(StridedMut::new(&mut data, 4, 6, 2, 1), Err(Error::Overlap { .. })));
        assert!(StridedMut::new(&mut data, 2, 3, 3, 2).is_ok());
        assert!(StridedMut::new(&mut data, 1, 6, 0, 1).is_ok());
    }

    #[test]
    fn injectivity_agrees_with_enumeration() {
        for (rows, cols) in [(2, 3), (3, 3), (4, 2)] {
            for row_stride in -7isize..8 {
                for col_stride in -7isize..8 {
                    let shape = StridedShape { rows, cols, row_stride, col_stride, origin: 100 };
                    let mut places: Vec<_> =
                        (0..rows).flat_map(|i| (0..cols).map(move |j| shape.offset(i, j))).collect();
                    places.sort_unstable();
                    places.dedup();
                    assert_eq!(shape.is_injective(), places.len() == rows * cols, "{shape:?}");
                }
            }
        }
    }
}
