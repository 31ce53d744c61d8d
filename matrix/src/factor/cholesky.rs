//! Cholesky: `A = L·Lᵀ` or `A = Uᵀ·U` in place, with conjugate transposes for complex numbers.
//!
//! **The recursion** halves the matrix: the upper left half is factorised, the rows below it are
//! solved with its triangle, their rank-k update is subtracted from the lower right half, and that
//! is factorised in turn. The upper form is the lower one of the transposed view. Blocks of a
//! vector's height are factorised in registers.
//!
//! The other triangle is neither read nor written. Source: Golub and Van Loan 2013, section 4.2;
//! Andersen et al. 2001 (recursion).

use super::block::{self, Work};
use super::options::{on_columns, Factor, WORTH_INSIDE};
use super::rank_update;
use super::shape::{same, square, Diagonal, Side, Triangle, Triangular};
use super::solve::{self, half};
use crate::buffer::Buffer;
use crate::strided::{Strided, StridedMut};
use crate::{Element, Error, Real};

/// A positive definite matrix that was factorised in place.
#[derive(Debug)]
pub struct Cholesky<'a, T: Element> {
    options: Factor,
    triangle: Triangle,
    factor: Strided<'a, T>,
}

impl Factor {
    /// Factorises a symmetric or Hermitian positive definite matrix in place, of which one triangle
    /// is given: `A = L·Lᴴ` for the lower one, `A = Uᴴ·U` for the upper one. Imaginary parts of the
    /// diagonal are not read. Cost: n³/6 multiply-adds.
    ///
    /// # Errors
    /// [`Error::Shape`] when the array is not square, [`Error::NotPositiveDefinite`] when a pivot
    /// is not above zero.
    pub fn cholesky<'a, T: Element>(
        &self,
        triangle: Triangle,
        mut a: StridedMut<'a, T>,
    ) -> Result<Cholesky<'a, T>, Error> {
        self.cholesky_in_place(triangle, a.reborrow())?;
        Ok(Cholesky { options: *self, triangle, factor: a.into_shared() })
    }

    /// Factorises as [`Self::cholesky`] does, without a value to solve with.
    ///
    /// # Errors
    /// [`Error::Shape`] when the array is not square, [`Error::NotPositiveDefinite`] when a pivot
    /// is not above zero.
    pub fn cholesky_in_place<T: Element>(
        &self,
        triangle: Triangle,
        mut a: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        let size = square("the rows and the columns of a symmetric matrix", (a.rows(), a.cols()))?;
        let mut a = match triangle {
            Triangle::Lower => a.reborrow(),
            Triangle::Upper => a.transposed(),
        };
        // A = Uᴴ·U means Aᵀ = L·Lᴴ with L = Uᵀ, so the transposed view needs no conjugation.
        let mut work = Work::new();
        let good = if T::PARTS > 1 || block::is_adjacent(a.strides()) {
            factorise(&self.inside(), a, &mut work)?
        } else {
            let mut copy = Buffer::<T>::scratch(size * size)?;
            let mut dense = StridedMut::col_major(&mut copy, size, size)?;
            block::copy(a.as_ref(), dense.reborrow());
            let good = factorise(&self.inside(), dense.reborrow(), &mut work)?;
            for j in 0..size {
                (j..size).for_each(|i| a.set(i, j, dense.get(i, j)));
            }
            good
        };
        match good == size {
            true => Ok(()),
            false => Err(Error::NotPositiveDefinite { column: good }),
        }
    }
}

/// Factorises the lower triangle. Returns the first column whose pivot is not positive, or the
/// number of columns.
fn factorise<T: Element>(
    options: &Factor,
    mut a: StridedMut<'_, T>,
    work: &mut Work<T>,
) -> Result<usize, Error> {
    let size = a.rows();
    let unit = block::block_size::<T>(options.kernel);
    if size <= unit {
        return Ok(block::cholesky(options.kernel, a, work));
    }
    let at = half(size, unit);
    let [mut upper, _, mut below, lower] = a.reborrow().quarters(at, at);
    let good = factorise(options, upper.reborrow(), work)?;
    if good < at {
        return Ok(good);
    }
    solve_below(options, upper.as_ref(), below.reborrow(), work)?;
    subtract_square(options, below.as_ref(), lower)?;
    let lower = a.part(at..size, at..size);
    Ok(at + factorise(options, lower, work)?)
}

/// `B ← B·L⁻ᴴ`.
fn solve_below<T: Element>(
    options: &Factor,
    l: Strided<'_, T>,
    b: StridedMut<'_, T>,
    work: &mut Work<T>,
) -> Result<(), Error> {
    if T::PARTS > 1 {
        return options.solve_triangular(Side::Right, T::ONE, Triangular::lower(l).adjoint(), b);
    }
    let (size, b) = (l.rows(), b.transposed());
    let unit = block::block_size::<T>(options.kernel);
    let cost = size * size / 2 * b.cols();
    if options.threads > 1 && cost >= 2 * WORTH_INSIDE {
        return on_columns(options, cost, unit, b, |part, _| {
            solve::lower(&options.single(), l, Diagonal::Stored, part, &mut Work::new())
        });
    }
    if size <= unit {
        block::solve_again(options.kernel, l, b, work);
        return Ok(());
    }
    solve::lower(&options.single(), l, Diagonal::Stored, b, work)
}

/// The lower triangle of `C ← C − B·Bᴴ`.
fn subtract_square<T: Element>(
    options: &Factor,
    b: Strided<'_, T>,
    c: StridedMut<'_, T>,
) -> Result<(), Error> {
    let minus = T::ZERO - T::ONE;
    let cost = c.rows() * c.rows() * b.cols() / 2;
    let options = &if cost < 2 * WORTH_INSIDE { options.single() } else { *options };
    match T::PARTS {
        1 => rank_update::lower(options, (minus, b, b.transposed(), T::ONE), c),
        _ => options.hermitian_rank_k_update(Triangle::Lower, minus.re(), b, T::Real::ONE, c),
    }
}

impl<T: Element> Cholesky<'_, T> {
    /// The array with the factor in its triangle.
    pub fn factor(&self) -> Strided<'_, T> {
        self.factor
    }

    /// `B ← A⁻¹·B`. Cost: n² multiply-adds for each of the right-hand sides.
    ///
    /// # Errors
    /// [`Error::Shape`] when shapes do not fit.
    pub fn solve(&self, mut b: StridedMut<'_, T>) -> Result<(), Error> {
        let size = self.factor.rows();
        same("rows of the matrix and of the right-hand sides", (size, size), (b.rows(), size))?;
        let (first, second) = match self.triangle {
            Triangle::Lower => {
                let lower = Triangular::lower(self.factor);
                (lower, lower.adjoint())
            }
            Triangle::Upper => {
                let upper = Triangular::upper(self.factor);
                (upper.adjoint(), upper)
            }
        };
        self.options.solve_triangular(Side::Left, T::ONE, first, b.reborrow())?;
        self.options.solve_triangular(Side::Left, T::ONE, second, b)
    }

    /// The determinant: the square of the product of the factor's diagonal. It may overflow or
    /// underflow; [`Self::log_determinant`] does not.
    pub fn determinant(&self) -> T::Real {
        let root = (0..self.factor.rows()).fold(T::Real::ONE, |root, j| root * self.factor.get(j, j).re());
        root * root
    }

    /// The natural logarithm of the determinant.
    pub fn log_determinant(&self) -> f64 {
        (0..self.factor.rows()).map(|j| 2.0 * self.factor.get(j, j).re().to_f64().ln()).sum()
    }
}
