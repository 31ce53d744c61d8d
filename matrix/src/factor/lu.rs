//! LU with partial pivoting: `P·A = L·U`, in place.
//!
//! **The recursion** halves the columns: the left half is factorised with all its rows, its row
//! exchanges and the solve with its triangle are applied to the right half, whose lower part is
//! updated by one product and factorised in turn. Products have half the matrix's width for a
//! depth, the best shape that there is, and no block size has to be chosen. Panels of a few columns
//! are register kernels. Arrays with adjacent columns are factorised in place too, except for
//! panels, which pass through scratch memory.
//!
//! **Pivots** are LAPACK's: the first of the largest absolute values, `|re| + |im|` for complex
//! numbers, `ipiv` counted from 0. A column without a nonzero entry is passed over, as LAPACK does.
//!
//! Source: Toledo 1997 (recursion); Golub and Van Loan 2013, section 3.4.

use super::block::{self, Work, PANEL};
use super::options::{on_columns, Factor, WORTH_INSIDE};
use super::product::product;
use super::shape::{same, square, Conjugation, Diagonal, Side, Triangular};
use super::solve::{half, lower};
use crate::buffer::Buffer;
use crate::strided::{Strided, StridedMut};
use crate::{Element, Error};

/// A matrix that was factorised in place: `P·A = L·U`.
#[derive(Debug)]
pub struct Lu<'a, T: Element> {
    options: Factor,
    factors: Strided<'a, T>,
    pivots: Vec<usize>,
    singular: Option<usize>,
}

impl Factor {
    /// Factorises an m×n matrix in place: below the diagonal it then has `L`, whose diagonal of
    /// ones is not stored, and on and above it `U`. A singular matrix is factorised as well. Cost:
    /// mn² multiply-adds for m ≥ n, less n³/3.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when scratch memory cannot be addressed.
    pub fn lu<'a, T: Element>(&self, mut a: StridedMut<'a, T>) -> Result<Lu<'a, T>, Error> {
        let mut pivots = vec![0; a.rows().min(a.cols())];
        let singular = self.lu_with(a.reborrow(), &mut pivots)?;
        Ok(Lu { options: *self, factors: a.into_shared(), pivots, singular })
    }

    /// Factorises a matrix in place, as [`Self::lu`] does, into pivots of the caller's: row `j` was
    /// exchanged with row `pivots[j]`, in the order of `j`. Returns the first column without a
    /// pivot.
    ///
    /// # Errors
    /// [`Error::Shape`] when the number of pivots is not the smaller side, [`Error::TooLarge`] when
    /// scratch memory cannot be addressed.
    pub fn lu_with<T: Element>(
        &self,
        a: StridedMut<'_, T>,
        pivots: &mut [usize],
    ) -> Result<Option<usize>, Error> {
        let (rows, cols) = (a.rows(), a.cols());
        let steps = rows.min(cols);
        same("the number of pivots and the smaller side of the matrix", (pivots.len(), 1), (steps, 1))?;
        let singular = if T::PARTS == 1 && steps > 0 && !block::is_adjacent(a.strides()) {
            let mut copy = Buffer::<T>::scratch(rows * cols)?;
            let mut dense = StridedMut::col_major(&mut copy, rows, cols)?;
            block::copy(a.as_ref(), dense.reborrow());
            let singular = self.lu_of_adjacent(dense.reborrow(), pivots)?;
            block::copy(dense.as_ref(), a);
            singular
        } else {
            self.lu_of_adjacent(a, pivots)?
        };
        Ok(Some(singular).filter(|&column| column < steps))
    }

    /// Factorises an array whose rows or columns are adjacent; returns the first column without a
    /// pivot, or the number of columns.
    fn lu_of_adjacent<T: Element>(&self, a: StridedMut<'_, T>, pivots: &mut [usize]) -> Result<usize, Error> {
        let needs_copy = T::PARTS == 1 && a.strides().0 != 1;
        let scratch = if needs_copy { a.rows().next_multiple_of(16) * PANEL } else { 0 };
        let mut scratch = Buffer::<T>::scratch(scratch)?;
        match self.block {
            None => factorise(&self.inside(), a, pivots, &mut Work::new(), &mut scratch),
            Some(columns) => by_blocks(&self.inside(), columns, a, pivots, &mut scratch),
        }
    }
}

/// Factorises blocks of columns from left to right. Returns the first column without a pivot, or
/// the number of columns.
fn by_blocks<T: Element>(
    options: &Factor,
    columns: usize,
    mut a: StridedMut<'_, T>,
    pivots: &mut [usize],
    scratch: &mut [T],
) -> Result<usize, Error> {
    let (rows, cols) = (a.rows(), a.cols());
    let mut singular = cols;
    let mut work = Work::new();
    for first in (0..pivots.len()).step_by(columns) {
        let width = columns.min(pivots.len() - first);
        let own = &mut pivots[first..first + width];
        let (_, below) = a.reborrow().split_rows(first);
        let (left, rest) = below.split_cols(first);
        let (mut block, right) = rest.split_cols(width);
        let found = factorise(options, block.reborrow(), own, &mut work, scratch)?;
        if found < width {
            singular = singular.min(first + found);
        }
        block::swap_rows(left, own);
        apply_left(options, block.as_ref(), own, right, &mut work)?;
        own.iter_mut().for_each(|pivot| *pivot += first);
    }
    debug_assert!(pivots.iter().all(|&pivot| pivot < rows));
    Ok(singular)
}

/// Factorises all columns of `a`. Returns the first column without a pivot, or the number of
/// columns.
fn factorise<T: Element>(
    options: &Factor,
    mut a: StridedMut<'_, T>,
    pivots: &mut [usize],
    work: &mut Work<T>,
    scratch: &mut [T],
) -> Result<usize, Error> {
    let (rows, cols) = (a.rows(), a.cols());
    let steps = rows.min(cols);
    if steps == 0 {
        return Ok(cols);
    }
    if cols <= PANEL {
        return panel(options, a, pivots, scratch);
    }
    let at = if steps <= PANEL { steps } else { half(steps, PANEL) };
    let (mut left, mut right) = a.reborrow().split_cols(at);
    let (first, second) = pivots.split_at_mut(at);
    let singular = factorise(options, left.reborrow(), first, work, scratch)?;
    apply_left(options, left.as_ref(), first, right.reborrow(), work)?;
    let (_, mut lower_right) = right.split_rows(at);
    let found = factorise(options, lower_right.reborrow(), second, work, scratch)?;
    let (_, lower_left) = left.split_rows(at);
    let exchanged = lower_left.rows() * lower_left.cols();
    on_columns(options, exchanged, 4, lower_left, |part, _| {
        block::swap_rows(part, second);
        Ok(())
    })?;
    second.iter_mut().for_each(|pivot| *pivot += at);
    Ok(if singular < at { singular } else { (at + found).min(cols) })
}

/// Applies the factorised columns `left` to the columns right of them: row exchanges, the solve
/// with their triangle, and the product below it.
fn apply_left<T: Element>(
    options: &Factor,
    left: Strided<'_, T>,
    pivots: &[usize],
    right: StridedMut<'_, T>,
    work: &mut Work<T>,
) -> Result<(), Error> {
    let (rows, at) = (left.rows(), left.cols());
    let (triangle, below) = (left.part(0..at, 0..at), left.part(at..rows, 0..at));
    let minus = T::ZERO - T::ONE;
    let work_of_solve = at * at / 2 * right.cols();
    if options.threads == 1 || work_of_solve + rows * right.cols() < WORTH_INSIDE {
        let mut right = right;
        block::swap_rows(right.reborrow(), pivots);
        let (mut upper, rest) = right.split_rows(at);
        lower(&options.single(), triangle, Diagonal::Unit, upper.reborrow(), work)?;
        return product(&options.gemm, minus, below, upper.as_ref(), T::ONE, rest);
    }
    let total = rows * at * right.cols();
    on_columns(options, total, 8, right, |mut part, _| {
        let single = options.single();
        block::swap_rows(part.reborrow(), pivots);
        let (mut upper, rest) = part.split_rows(at);
        lower(&single, triangle, Diagonal::Unit, upper.reborrow(), &mut Work::new())?;
        product(&single.gemm, minus, below, upper.as_ref(), T::ONE, rest)
    })
}

/// Factorises a panel, through scratch memory if its rows are not adjacent.
fn panel<T: Element>(
    options: &Factor,
    mut a: StridedMut<'_, T>,
    pivots: &mut [usize],
    scratch: &mut [T],
) -> Result<usize, Error> {
    let (rows, cols) = (a.rows(), a.cols());
    if a.strides().0 == 1 || T::PARTS > 1 {
        return Ok(block::lu_panel(options.kernel, a, pivots));
    }
    let column = rows.next_multiple_of(16);
    let mut dense = StridedMut::new(scratch, rows, cols, 1, column as isize)?;
    block::copy(a.as_ref(), dense.reborrow());
    let singular = block::lu_panel(options.kernel, dense.reborrow(), pivots);
    block::copy(dense.as_ref(), a.reborrow());
    Ok(singular)
}

impl<T: Element> Lu<'_, T> {
    /// The array with both factors.
    pub fn factors(&self) -> Strided<'_, T> {
        self.factors
    }

    /// Row `j` was exchanged with row `pivots()[j]`, in the order of `j`.
    pub fn pivots(&self) -> &[usize] {
        &self.pivots
    }

    /// The first column whose pivot is exactly zero, if there is one.
    pub fn singular_column(&self) -> Option<usize> {
        self.singular
    }

    /// `B ← A⁻¹·B`. Cost: n² multiply-adds for each of the right-hand sides.
    ///
    /// # Errors
    /// [`Error::Shape`] when the matrix is not square or shapes differ, [`Error::Singular`] when a
    /// pivot is zero; `B` is then unchanged.
    pub fn solve(&self, mut b: StridedMut<'_, T>) -> Result<(), Error> {
        self.check(&b)?;
        block::swap_rows(b.reborrow(), &self.pivots);
        self.options.solve_lower(self.factors, Diagonal::Unit, b.reborrow())?;
        let upper = self.factors.rows_reversed().cols_reversed();
        self.options.solve_lower(upper, Diagonal::Stored, b.rows_reversed())
    }

    /// `B ← A⁻ᵀ·B`. Cost: n² multiply-adds for each of the right-hand sides.
    ///
    /// # Errors
    /// [`Error::Shape`] when the matrix is not square or shapes differ, [`Error::Singular`] when a
    /// pivot is zero; `B` is then unchanged.
    pub fn solve_transposed(&self, b: StridedMut<'_, T>) -> Result<(), Error> {
        self.solve_with_transpose(b, Conjugation::None)
    }

    /// `B ← A⁻ᴴ·B`, with the conjugate transpose. Cost: n² multiply-adds for each of the right-hand
    /// sides.
    ///
    /// # Errors
    /// [`Error::Shape`] when the matrix is not square or shapes differ, [`Error::Singular`] when a
    /// pivot is zero; `B` is then unchanged.
    pub fn solve_adjoint(&self, b: StridedMut<'_, T>) -> Result<(), Error> {
        self.solve_with_transpose(b, Conjugation::Conjugated)
    }

    fn solve_with_transpose(&self, mut b: StridedMut<'_, T>, conjugation: Conjugation) -> Result<(), Error> {
        self.check(&b)?;
        let upper = Triangular { conjugation, ..Triangular::upper(self.factors).transposed() };
        self.options.solve_triangular(Side::Left, T::ONE, upper, b.reborrow())?;
        let lower = Triangular { conjugation, ..Triangular::lower(self.factors).unit().transposed() };
        self.options.solve_triangular(Side::Left, T::ONE, lower, b.reborrow())?;
        // The exchanges are undone in the opposite order.
        let (rows, cols) = (b.rows(), b.cols());
        for (j, &pivot) in self.pivots.iter().enumerate().rev() {
            block::swap_rows(b.reborrow().part(j..rows, 0..cols), &[pivot - j]);
        }
        Ok(())
    }

    /// The determinant: the product of the pivots, with the sign of the exchanges. It may overflow
    /// or underflow; 0 if a pivot is zero.
    ///
    /// # Panics
    /// When the matrix is not square.
    pub fn determinant(&self) -> T {
        assert_eq!(self.factors.rows(), self.factors.cols(), "a determinant needs a square matrix");
        let odd = self.pivots.iter().enumerate().filter(|&(j, &pivot)| j != pivot).count() % 2 == 1;
        let sign = if odd { T::ZERO - T::ONE } else { T::ONE };
        (0..self.pivots.len()).fold(sign, |product, j| product * self.factors.get(j, j))
    }

    fn check(&self, b: &StridedMut<'_, T>) -> Result<(), Error> {
        let shape = (self.factors.rows(), self.factors.cols());
        let size = square("the rows and the columns of a system", shape)?;
        same("rows of the matrix and of the right-hand sides", (size, size), (b.rows(), size))?;
        self.singular.map_or(Ok(()), |column| Err(Error::Singular { column }))
    }
}
