//! Views of `ndarray`, `nalgebra` and `faer` as [`Strided`] and [`StridedMut`], and back. A view
//! copies nothing and takes shapes and strides, also negative ones, from its owner.
//! `BlockedMatrix::from_strided`, the multiplication and [`Factor`](crate::Factor) read and write
//! through it.
//!
//! Strides of `nalgebra` and of `ndarray`'s constructors are not negative, so a reversed view has
//! no view of theirs: the functions say `None`.

use crate::{BlockedMatrix, Element, Strided, StridedMut};

/// Two strides without sign, where neither is negative.
#[cfg(any(feature = "ndarray", feature = "nalgebra"))]
fn unsigned((row, col): (isize, isize)) -> Option<(usize, usize)> {
    Some((row.try_into().ok()?, col.try_into().ok()?))
}

#[cfg(feature = "faer")]
mod faer_views {
    use super::{BlockedMatrix, Element, Strided, StridedMut};

    /// A `faer` view as [`Strided`].
    pub fn from_faer<T: Element>(view: faer::MatRef<'_, T>) -> Strided<'_, T> {
        let strides = (view.row_stride(), view.col_stride());
        // SAFETY: the view guarantees that every entry is readable during its lifetime.
        unsafe { Strided::from_raw(view.as_ptr(), view.shape(), strides) }
    }

    /// A mutable `faer` view as [`StridedMut`].
    pub fn from_faer_mut<T: Element>(view: faer::MatMut<'_, T>) -> StridedMut<'_, T> {
        let strides = (view.row_stride(), view.col_stride());
        // SAFETY: the view owns every entry during its lifetime, and its entries are distinct.
        unsafe { StridedMut::from_raw(view.as_ptr_mut(), view.shape(), strides) }
    }

    /// A [`Strided`] as `faer`'s view.
    pub fn to_faer<T: Element>(view: Strided<'_, T>) -> faer::MatRef<'_, T> {
        let (start, row, col) = view.raw();
        // SAFETY: the view guarantees that every entry is readable during its lifetime.
        unsafe { faer::MatRef::from_raw_parts(start, view.rows(), view.cols(), row, col) }
    }

    /// A [`StridedMut`] as `faer`'s mutable view.
    pub fn to_faer_mut<T: Element>(mut view: StridedMut<'_, T>) -> faer::MatMut<'_, T> {
        let (start, row, col) = view.raw();
        // SAFETY: the view owns every entry during its lifetime and is given up; its entries are
        // distinct.
        unsafe { faer::MatMut::from_raw_parts_mut(start, view.rows(), view.cols(), row, col) }
    }

    impl<T: Element> BlockedMatrix<T> {
        /// A copy as a `faer` matrix.
        pub fn to_faer(&self) -> faer::Mat<T> {
            faer::Mat::from_fn(self.rows(), self.cols(), |row, col| self.get(row, col))
        }
    }
}

#[cfg(feature = "faer")]
pub use faer_views::{from_faer, from_faer_mut, to_faer, to_faer_mut};

#[cfg(feature = "nalgebra")]
mod nalgebra_views {
    use super::{unsigned, BlockedMatrix, Element, Strided, StridedMut};
    use nalgebra::{
        DMatrix, DMatrixView, DMatrixViewMut, Dim, Dyn, Matrix, RawStorage, RawStorageMut, Scalar,
        ViewStorage, ViewStorageMut,
    };

    /// Any `nalgebra` matrix or view, its sizes static or dynamic, as [`Strided`].
    pub fn from_nalgebra<T: Element, R: Dim, C: Dim, S: RawStorage<T, R, C>>(
        matrix: &Matrix<T, R, C, S>,
    ) -> Strided<'_, T> {
        let (row, col) = matrix.strides();
        // SAFETY: a storage promises its entries at these strides from its pointer on, and the
        // matrix is borrowed.
        unsafe { Strided::from_raw(matrix.as_ptr(), matrix.shape(), (row as isize, col as isize)) }
    }

    /// Any `nalgebra` matrix or view that can be written, as [`StridedMut`].
    pub fn from_nalgebra_mut<T: Element, R: Dim, C: Dim, S: RawStorageMut<T, R, C>>(
        matrix: &mut Matrix<T, R, C, S>,
    ) -> StridedMut<'_, T> {
        let (shape, (row, col)) = (matrix.shape(), matrix.strides());
        // SAFETY: a storage that can be written promises distinct entries at these strides from its
        // pointer on, and the matrix is borrowed exclusively.
        unsafe { StridedMut::from_raw(matrix.as_mut_ptr(), shape, (row as isize, col as isize)) }
    }

    /// A [`Strided`] as `nalgebra`'s view; `None` where a stride is negative.
    pub fn to_nalgebra<T: Element + Scalar>(view: Strided<'_, T>) -> Option<DMatrixView<'_, T, Dyn, Dyn>> {
        let (start, row, col) = view.raw();
        let (row, col) = unsigned((row, col))?;
        let shape = (Dyn(view.rows()), Dyn(view.cols()));
        // SAFETY: the view guarantees that every entry at these strides is readable during its
        // lifetime.
        let storage = unsafe { ViewStorage::from_raw_parts(start, shape, (Dyn(row), Dyn(col))) };
        Some(Matrix::from_data(storage))
    }

    /// A [`StridedMut`] as `nalgebra`'s mutable view; `None` where a stride is negative.
    pub fn to_nalgebra_mut<T: Element + Scalar>(
        mut view: StridedMut<'_, T>,
    ) -> Option<DMatrixViewMut<'_, T, Dyn, Dyn>> {
        let (start, row, col) = view.raw();
        let (row, col) = unsigned((row, col))?;
        let shape = (Dyn(view.rows()), Dyn(view.cols()));
        // SAFETY: the view owns every entry at these strides during its lifetime and is given up;
        // its entries are distinct.
        let storage = unsafe { ViewStorageMut::from_raw_parts(start, shape, (Dyn(row), Dyn(col))) };
        Some(Matrix::from_data(storage))
    }

    impl<T: Element + Scalar> BlockedMatrix<T> {
        /// A copy as a `nalgebra` matrix, column-major.
        pub fn to_nalgebra(&self) -> DMatrix<T> {
            DMatrix::from_vec(self.rows(), self.cols(), self.to_col_major())
        }
    }
}

#[cfg(feature = "nalgebra")]
pub use nalgebra_views::{from_nalgebra, from_nalgebra_mut, to_nalgebra, to_nalgebra_mut};

#[cfg(feature = "ndarray")]
mod ndarray_views {
    use super::{unsigned, BlockedMatrix, Element, Strided, StridedMut};
    use ndarray::{Array2, ArrayView2, ArrayViewMut2, ShapeBuilder};

    /// An `ndarray` view as [`Strided`].
    pub fn from_ndarray<'a, T: Element>(view: &ArrayView2<'a, T>) -> Strided<'a, T> {
        let strides = (view.strides()[0], view.strides()[1]);
        // SAFETY: the view guarantees that every entry is readable during its lifetime.
        unsafe { Strided::from_raw(view.as_ptr(), view.dim(), strides) }
    }

    /// A mutable `ndarray` view as [`StridedMut`].
    pub fn from_ndarray_mut<T: Element>(mut view: ArrayViewMut2<'_, T>) -> StridedMut<'_, T> {
        let (shape, strides) = (view.dim(), (view.strides()[0], view.strides()[1]));
        // SAFETY: the view owns every entry during its lifetime and is given up; its entries are
        // distinct.
        unsafe { StridedMut::from_raw(view.as_mut_ptr(), shape, strides) }
    }

    /// A [`Strided`] as `ndarray`'s view; `None` where a stride is negative.
    pub fn to_ndarray<T: Element>(view: Strided<'_, T>) -> Option<ArrayView2<'_, T>> {
        let (start, row, col) = view.raw();
        let shape = (view.rows(), view.cols()).strides(unsigned((row, col))?);
        // SAFETY: the view guarantees that every entry at these strides is readable during its
        // lifetime.
        Some(unsafe { ArrayView2::from_shape_ptr(shape, start) })
    }

    /// A [`StridedMut`] as `ndarray`'s mutable view; `None` where a stride is negative.
    pub fn to_ndarray_mut<T: Element>(mut view: StridedMut<'_, T>) -> Option<ArrayViewMut2<'_, T>> {
        let (start, row, col) = view.raw();
        let shape = (view.rows(), view.cols()).strides(unsigned((row, col))?);
        // SAFETY: the view owns every entry at these strides during its lifetime and is given up;
        // its entries are distinct.
        Some(unsafe { ArrayViewMut2::from_shape_ptr(shape, start) })
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
pub use ndarray_views::{from_ndarray, from_ndarray_mut, to_ndarray, to_ndarray_mut};
