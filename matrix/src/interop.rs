//! Views of `ndarray` and `faer` as [`Strided`]. A view copies nothing and takes shapes and
//! strides, also negative ones, from its owner. `BlockedMatrix::from_strided` and the
//! multiplication read through it.

use crate::{Element, Strided};

#[cfg(feature = "faer")]
mod faer_views {
    use super::{Element, Strided};
    use crate::StridedMut;

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
}

#[cfg(feature = "faer")]
pub use faer_views::{from_faer, from_faer_mut};

#[cfg(feature = "ndarray")]
mod ndarray_views {
    use super::{Element, Strided};
    use crate::BlockedMatrix;
    use ndarray::{Array2, ArrayView2, ShapeBuilder};

    /// An `ndarray` view as [`Strided`].
    pub fn from_ndarray<'a, T: Element>(view: &ArrayView2<'a, T>) -> Strided<'a, T> {
        let strides = (view.strides()[0], view.strides()[1]);
        // SAFETY: the view guarantees that every entry is readable during its lifetime.
        unsafe { Strided::from_raw(view.as_ptr(), view.dim(), strides) }
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
