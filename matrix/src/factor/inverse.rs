//! Inverses in place. Solve a system instead where that is enough: it is faster and more accurate.
//!
//! **Triangular**: halves the triangle; the rectangle beside the diagonal becomes
//! `−L₂₂⁻¹·L₂₁·L₁₁⁻¹` by two solves, and the halves are inverted in turn. **General**: LU, then the
//! inverse of `U`, the solve `X·L = U⁻¹`, and the row exchanges applied to columns in the opposite
//! order, which is what LAPACK's `getri` does. Source: Golub and Van Loan 2013, section 3.1; Higham
//! 2002, section 14.3.

use super::block;
use super::options::Factor;
use super::shape::{square, Diagonal, Side, Triangle, Triangular};
use super::solve::half;
use crate::buffer::Buffer;
use crate::strided::StridedMut;
use crate::{Element, Error};

/// Triangles of this size are inverted entry by entry.
const LEAF: usize = 8;

impl Factor {
    /// Replaces a triangle by its inverse, which is a triangle too. The other half of the array is
    /// not touched, nor is the diagonal if it is [`Diagonal::Unit`]. Cost: n³/6 multiply-adds.
    ///
    /// # Errors
    /// [`Error::Shape`] when the array is not square, [`Error::Singular`] when the diagonal has a
    /// zero; the array is then unchanged.
    pub fn invert_triangular<T: Element>(
        &self,
        triangle: Triangle,
        diagonal: Diagonal,
        a: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        let size = square("the rows and the columns of a triangular matrix", (a.rows(), a.cols()))?;
        if diagonal == Diagonal::Stored {
            if let Some(column) = (0..size).find(|&i| a.get(i, i) == T::ZERO) {
                return Err(Error::Singular { column });
            }
        }
        // Of the two views that are lower triangles the one whose rows are adjacent is faster.
        let (triangle, a) = match a.strides() {
            (row, 1) if row != 1 => (triangle.transposed(), a.transposed()),
            _ => (triangle, a),
        };
        let a = if triangle == Triangle::Lower { a } else { a.rows_reversed().cols_reversed() };
        invert_lower(&self.inside(), diagonal, a)
    }

    /// Replaces a matrix by its inverse. Cost: n³ multiply-adds and a copy of the matrix.
    ///
    /// # Errors
    /// [`Error::Shape`] when the array is not square, [`Error::Singular`] when a pivot is zero; the
    /// array then holds the factors of [`Factor::lu`].
    pub fn invert<T: Element>(&self, mut a: StridedMut<'_, T>) -> Result<(), Error> {
        let size = square("the rows and the columns of a matrix with an inverse", (a.rows(), a.cols()))?;
        let mut pivots = vec![0; size];
        if let Some(column) = self.lu_with(a.reborrow(), &mut pivots)? {
            return Err(Error::Singular { column });
        }
        self.invert_triangular(Triangle::Upper, Diagonal::Stored, a.reborrow())?;
        let mut copy = Buffer::<T>::scratch(size * size)?;
        let mut lower = StridedMut::col_major(&mut copy, size, size)?;
        block::copy(a.as_ref(), lower.reborrow());
        for j in 0..size {
            (j + 1..size).for_each(|i| a.set(i, j, T::ZERO));
        }
        let unit = Triangular::lower(lower.as_ref()).unit();
        self.inside().solve_triangular(Side::Right, T::ONE, unit, a.reborrow())?;
        let mut columns = a.transposed();
        for (j, &pivot) in pivots.iter().enumerate().rev() {
            block::swap_rows(columns.reborrow().part(j..size, 0..size), &[pivot - j]);
        }
        Ok(())
    }
}

/// Inverts a lower triangle.
fn invert_lower<T: Element>(
    options: &Factor,
    diagonal: Diagonal,
    mut a: StridedMut<'_, T>,
) -> Result<(), Error> {
    let size = a.rows();
    if size <= LEAF {
        invert_plainly(diagonal, a);
        return Ok(());
    }
    let at = half(size, LEAF);
    let [upper, _, mut beside, lower] = a.reborrow().quarters(at, at);
    let form = |triangle| Triangular { diagonal, ..triangle };
    let (first, second) = (form(Triangular::lower(upper.as_ref())), form(Triangular::lower(lower.as_ref())));
    options.solve_triangular(Side::Left, T::ZERO - T::ONE, second, beside.reborrow())?;
    options.solve_triangular(Side::Right, T::ONE, first, beside.reborrow())?;
    invert_lower(options, diagonal, upper)?;
    invert_lower(options, diagonal, lower)
}

/// Inverts a lower triangle column by column: substitution of the unit vectors.
fn invert_plainly<T: Element>(diagonal: Diagonal, mut a: StridedMut<'_, T>) {
    let size = a.rows();
    let pivot = |a: &StridedMut<'_, T>, i: usize| match diagonal {
        Diagonal::Unit => T::ONE,
        Diagonal::Stored => a.get(i, i),
    };
    // Column j of the inverse needs the columns right of it, which are still those of the triangle,
    // so the first column comes first.
    for j in 0..size {
        let first = T::ONE / pivot(&a, j);
        for i in j + 1..size {
            let mut sum = a.get(i, j) * first;
            for k in j + 1..i {
                sum = sum + a.get(i, k) * a.get(k, j);
            }
            a.set(i, j, (T::ZERO - sum) / pivot(&a, i));
        }
        if diagonal == Diagonal::Stored {
            a.set(j, j, first);
        }
    }
}
