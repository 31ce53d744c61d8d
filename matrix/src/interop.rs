//! Views of `ndarray` and `faer` as [`Strided`]: nothing is copied on the way in, shapes and strides are taken as
//! they are (also negative ones), so that `BlockedMatrix::from_strided` and the multiplication read what the owner sees.

#[cfg(feature = "faer")]
mod faer_views {
    use crate::{Element, Error, Strided, StridedMut};

    /// A `faer` view.
    ///
    /// # Errors
    /// None that a valid view can cause.
    pub fn from_faer<T: Element>(view: faer::MatRef<'_, T>) -> Result<Strided<'_, T>, Error> {
        let (rows, cols) = view.shape();
        let (row_stride, col_stride) = (view.row_stride(), view.col_stride());
        let (origin, len) = super::extent((rows, cols), (row_stride, col_stride));
        if len == 0 {
            return Strided::new(&[], rows, cols, row_stride, col_stride);
        }
        // SAFETY: the view vouches for every entry, and all places between them belong to the same allocation.
        let data = unsafe { std::slice::from_raw_parts(view.as_ptr().wrapping_sub(origin), len) };
        Strided::with_origin(data, origin, rows, cols, row_stride, col_stride)
    }

    /// A mutable `faer` view, where its entries are the only ones between its first and its last.
    ///
    /// # Errors
    /// [`Error::Overlap`] when entries coincide; [`Error::Invalid`] when the view skips elements that others may own.
    pub fn from_faer_mut<T: Element>(view: faer::MatMut<'_, T>) -> Result<StridedMut<'_, T>, Error> {
        let (rows, cols) = view.shape();
        let (row_stride, col_stride) = (view.row_stride(), view.col_stride());
        let (origin, len) = super::extent((rows, cols), (row_stride, col_stride));
        if len == 0 {
            return StridedMut::new(&mut [], rows, cols, row_stride, col_stride);
        }
        if len != rows * cols {
            let expected = "a contiguous view (elements in the gaps may belong to somebody else)";
            return Err(Error::Invalid { field: "span of the view", value: len, expected });
        }
        // SAFETY: the view owns all its entries, and they fill the span without gaps.
        let data = unsafe { std::slice::from_raw_parts_mut(view.as_ptr_mut().wrapping_sub(origin), len) };
        StridedMut::with_origin(data, origin, rows, cols, row_stride, col_stride)
    }
}

#[cfg(feature = "faer")]
pub use faer_views::{from_faer, from_faer_mut};

#[cfg(feature = "ndarray")]
mod ndarray_views {
    use crate::{BlockedMatrix, Element, Error, Strided};
    use ndarray::{Array2, ArrayView2, ShapeBuilder};

    /// An `ndarray` view.
    ///
    /// # Errors
    /// None that a valid view can cause.
    pub fn from_ndarray<T: Element>(view: ArrayView2<'_, T>) -> Result<Strided<'_, T>, Error> {
        let (rows, cols) = view.dim();
        let strides = view.strides();
        let (row_stride, col_stride) = (strides[0], strides[1]);
        let (origin, len) = super::extent((rows, cols), (row_stride, col_stride));
        if len == 0 {
            return Strided::new(&[], rows, cols, row_stride, col_stride);
        }
        // SAFETY: the view vouches for every entry, and all places between them belong to the same allocation.
        let data = unsafe { std::slice::from_raw_parts(view.as_ptr().wrapping_sub(origin), len) };
        Strided::with_origin(data, origin, rows, cols, row_stride, col_stride)
    }

    impl<T: Element> BlockedMatrix<T> {
        /// A copy as an `ndarray` array, column-major.
        pub fn to_ndarray(&self) -> Array2<T> {
            let shape = (self.rows(), self.cols()).f();
            Array2::from_shape_vec(shape, self.to_col_major()).expect("as many entries as the shape has")
        }
    }
}

#[cfg(feature = "ndarray")]
pub use ndarray_views::from_ndarray;

/// Where entry (0, 0) lies above the lowest entry, and how many elements the view spans.
#[cfg(any(feature = "ndarray", feature = "faer"))]
fn extent((rows, cols): (usize, usize), (row_stride, col_stride): (isize, isize)) -> (usize, usize) {
    if rows == 0 || cols == 0 {
        return (0, 0);
    }
    let spans = [(rows - 1) as isize * row_stride, (cols - 1) as isize * col_stride];
    let below: isize = spans.iter().map(|span| (*span).min(0)).sum();
    let above: isize = spans.iter().map(|span| (*span).max(0)).sum();
    (below.unsigned_abs(), (above - below) as usize + 1)
}
