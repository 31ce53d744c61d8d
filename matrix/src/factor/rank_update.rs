//! Symmetric and Hermitian rank-k updates: one triangle of `C ← α·A·Aᵀ + β·C`.
//!
//! **The recursion** halves `C`: the rectangle beside the two halves of its diagonal is one
//! product, so the larger part of the work is products of half the matrix's size. Blocks on the
//! diagonal that are small are computed whole, in scratch memory, and their triangle is added to
//! `C`.
//!
//! **Leaves out** the other triangle, which is not touched. Source: Golub and Van Loan 2013,
//! section 1.3 (products that are symmetric); Elmroth et al. 2004 (recursion).

use super::block;
use super::options::Factor;
use super::product::{narrow_product, product};
use super::shape::{same, square, Conjugation, Triangle};
use super::solve::half;
use crate::buffer::Buffer;
use crate::strided::{Strided, StridedMut};
use crate::{Element, Error};

/// The largest block on the diagonal that is computed whole.
const LEAF: usize = 16;
/// Larger results are computed by one product of which only a triangle is written.
const RECURSION: usize = 192;

impl Factor {
    /// One triangle of `C ← α·A·Aᵀ + β·C`, for `A` of n×k. Pass `a.transposed()` for `Aᵀ·A`. Cost:
    /// n²·k/2 multiply-adds. If β = 0, `C` is not read.
    ///
    /// # Errors
    /// [`Error::Shape`] when `C` is not n×n.
    pub fn rank_k_update<T: Element>(
        &self,
        triangle: Triangle,
        alpha: T,
        a: Strided<'_, T>,
        beta: T,
        c: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        self.update_triangle(triangle, (alpha, a, a.transposed(), beta), c)
    }

    /// One triangle of `C ← α·A·Aᴴ + β·C`, for `A` of n×k and real factors. The diagonal of `C`
    /// becomes real. Cost: n²·k/2 multiply-adds, and for complex types a conjugated copy of `A`.
    ///
    /// # Errors
    /// [`Error::Shape`] when `C` is not n×n.
    pub fn hermitian_rank_k_update<T: Element>(
        &self,
        triangle: Triangle,
        alpha: T::Real,
        a: Strided<'_, T>,
        beta: T::Real,
        mut c: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        let factor = |value: T::Real| T::from_re_im(value, T::Real::ZERO);
        if T::PARTS == 1 {
            return self.rank_k_update(triangle, factor(alpha), a, factor(beta), c);
        }
        let (rows, cols) = (a.rows(), a.cols());
        let mut copy = Buffer::<T>::scratch(rows * cols)?;
        let mut conjugated = StridedMut::col_major(&mut copy, rows, cols)?;
        for j in 0..cols {
            for i in 0..rows {
                conjugated.set(i, j, Conjugation::Conjugated.of(a.get(i, j)));
            }
        }
        let product = (factor(alpha), a, conjugated.as_ref().transposed(), factor(beta));
        self.update_triangle(triangle, product, c.reborrow())?;
        for i in 0..c.rows() {
            c.set(i, i, factor(c.get(i, i).re()));
        }
        Ok(())
    }

    /// One triangle of `C ← α·A·B + β·C`, where the product is known to be square.
    pub(super) fn update_triangle<T: Element>(
        &self,
        triangle: Triangle,
        (alpha, a, b, beta): (T, Strided<'_, T>, Strided<'_, T>, T),
        c: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        let size = square("the rows and the columns of a symmetric matrix", (c.rows(), c.cols()))?;
        same("rows of A and of the symmetric result", (a.rows(), size), (size, size))?;
        match triangle {
            Triangle::Lower => lower(self, (alpha, a, b, beta), c),
            Triangle::Upper => lower(self, (alpha, b.transposed(), a.transposed(), beta), c.transposed()),
        }
    }
}

/// The lower triangle of `C ← α·A·B + β·C`.
pub(super) fn lower<T: Element>(
    options: &Factor,
    (alpha, a, b, beta): (T, Strided<'_, T>, Strided<'_, T>, T),
    c: StridedMut<'_, T>,
) -> Result<(), Error> {
    let (size, depth) = (c.rows(), a.cols());
    if size <= LEAF {
        return leaf(options, (alpha, a, b, beta), c);
    }
    let is_usual = depth > 0 && alpha != T::ZERO && c.strides().0 >= 0 && c.strides().1 >= 0;
    if size > RECURSION && is_usual {
        return options.gemm.multiply_lower(alpha, a, b, beta, c);
    }
    let at = half(size, LEAF);
    let [upper_left, _, beside, lower_right] = c.quarters(at, at);
    let (above, below) = (a.part(0..at, 0..depth), a.part(at..size, 0..depth));
    let (left, right) = (b.part(0..depth, 0..at), b.part(0..depth, at..size));
    lower(options, (alpha, above, left, beta), upper_left)?;
    let multiply = if size <= RECURSION && depth <= RECURSION { narrow_product } else { product };
    multiply(&options.gemm, alpha, below, left, beta, beside)?;
    lower(options, (alpha, below, right, beta), lower_right)
}

/// A block on the diagonal.
fn leaf<T: Element>(
    options: &Factor,
    (alpha, a, b, beta): (T, Strided<'_, T>, Strided<'_, T>, T),
    c: StridedMut<'_, T>,
) -> Result<(), Error> {
    let size = c.rows();
    if size == 0 {
        return Ok(());
    }
    let mut whole = [T::ZERO; LEAF * LEAF];
    let by_rows = c.strides().1 == 1 && c.strides().0 != 1;
    let (row, col) = if by_rows { (LEAF as isize, 1) } else { (1, LEAF as isize) };
    let view = StridedMut::new(&mut whole, size, size, row, col)?;
    narrow_product(&options.gemm, alpha, a, b, T::ZERO, view)?;
    let square = Strided::new(&whole, size, size, row, col)?;
    block::merge(options.kernel, square, beta, c);
    Ok(())
}
