//! Factorisations of matrices in blocked storage, by way of a plain copy.
//!
//! **Why a copy.** A panel of LU or QR runs down whole columns, which blocked storage cuts into
//! pieces of a panel's height. Unpacking and packing are two passes over the matrix, n² against n³
//! steps; `docs/matrix.md` has what they cost.

use super::options::Factor;
use super::shape::Triangle;
use crate::blocked::BlockedMatrix;
use crate::buffer::Buffer;
use crate::strided::StridedMut;
use crate::{Element, Error};

impl Factor {
    /// Factorises a blocked matrix in place, as [`Factor::lu_with`] does.
    ///
    /// ```
    /// use lightfoot_matrix::{BlockedMatrix, Factor};
    /// let mut a = BlockedMatrix::from_fn(2, 2, |i, j| [[2.0, 3.0], [4.0, 8.0]][i][j])?;
    /// let mut pivots = [0; 2];
    /// assert_eq!(Factor::new().lu_blocked(&mut a, &mut pivots)?, None);
    /// assert_eq!((pivots, a.get(0, 0), a.get(1, 0), a.get(1, 1)), ([1, 1], 4.0, 0.5, -1.0));
    /// # Ok::<(), lightfoot_matrix::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] when the number of pivots is not the smaller side.
    pub fn lu_blocked<T: Element>(
        &self,
        a: &mut BlockedMatrix<T>,
        pivots: &mut [usize],
    ) -> Result<Option<usize>, Error> {
        self.unpacked(a, |view| self.lu_with(view, pivots))
    }

    /// Factorises a blocked matrix in place, as [`Factor::cholesky`] does.
    ///
    /// # Errors
    /// [`Error::Shape`] when the matrix is not square, [`Error::NotPositiveDefinite`] when a pivot
    /// is not above zero.
    pub fn cholesky_blocked<T: Element>(
        &self,
        triangle: Triangle,
        a: &mut BlockedMatrix<T>,
    ) -> Result<(), Error> {
        self.unpacked(a, |view| self.cholesky_in_place(triangle, view))
    }

    /// Factorises a blocked matrix in place, as [`Factor::qr_with`] does.
    ///
    /// # Errors
    /// [`Error::Shape`] when the number of factors is not the smaller side.
    pub fn qr_blocked<T: Element>(&self, a: &mut BlockedMatrix<T>, taus: &mut [T]) -> Result<(), Error> {
        self.unpacked(a, |view| self.qr_with(view, taus))
    }

    /// Runs `change` on a plain copy of the matrix, and copies it back, also after an error.
    fn unpacked<T: Element, R>(
        &self,
        a: &mut BlockedMatrix<T>,
        change: impl FnOnce(StridedMut<'_, T>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let (rows, cols) = (a.rows(), a.cols());
        // Columns on lines of their own, and not a whole number of pages apart.
        let stride = rows.next_multiple_of(16) + 16;
        let mut copy = Buffer::<T>::scratch(stride * cols)?;
        let mut plain = StridedMut::new(&mut copy, rows, cols, 1, stride as isize)?;
        a.copy_to(&mut plain)?;
        let result = change(plain.reborrow());
        a.copy_from(plain.as_ref())?;
        result
    }
}
