//! Triangular systems: `X ← α·A⁻¹·X` and `X ← α·X·A⁻¹`.
//!
//! **One form for all.** Transposing a view exchanges sides and triangles, and reversing rows and
//! columns turns an upper triangle into a lower one, so every system is `L·X = B` with a lower
//! triangle. **The recursion** halves `L`: the upper half is solved, its product is subtracted from
//! the lower half of `B`, and that is solved. Nearly all work is in products. Triangles of up to
//! [`NEAR`] rows are solved by strips ([`near`]); those with pivots whose reciprocals are not
//! usable, and of complex numbers, take `B` a few columns at a time, so that everything stays in
//! the first-level cache.
//!
//! **Leaves out** the inversion of diagonal blocks, which is faster and less accurate.
//! Source: Golub and Van Loan 2013, section 3.1; Elmroth et al. 2004 (recursion).

use super::block::{self, fill, map, Work};
use super::near;
use super::options::{on_columns, Factor};
use super::product::{narrow_product, product};
use super::shape::{same, Conjugation, Diagonal, Side, Triangle, Triangular};
use crate::buffer::Buffer;
use crate::strided::{Strided, StridedMut};
use crate::{Element, Error};

/// Triangles of at most this many rows take [`STRIP`] columns of `B` at a time.
const NEAR: usize = 128;
/// See [`NEAR`].
const STRIP: usize = 32;

impl Factor {
    /// `B ← α·A⁻¹·B` ([`Side::Left`]) or `B ← α·B·A⁻¹`. If α = 0, `B` becomes 0 and `A` is not
    /// read. Cost: n²·k multiply-adds for n rows of `A` and k right-hand sides.
    ///
    /// # Errors
    /// [`Error::Shape`] when shapes do not fit, [`Error::Singular`] when the diagonal has a zero.
    pub fn solve_triangular<T: Element>(
        &self,
        side: Side,
        alpha: T,
        a: Triangular<'_, T>,
        mut b: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        let size = a.size()?;
        let (a, b) = match side {
            Side::Left => (a, b.reborrow()),
            Side::Right => (a.transposed(), b.transposed()),
        };
        same("rows of the triangular matrix and of the right-hand sides", (size, size), (b.rows(), size))?;
        let mut b = b;
        if alpha == T::ZERO {
            fill(&mut b, T::ZERO);
            return Ok(());
        }
        if a.diagonal == Diagonal::Stored {
            let zero = (0..size).find(|&i| a.array.get(i, i) == T::ZERO);
            if let Some(column) = zero {
                return Err(Error::Singular { column });
            }
        }
        if alpha != T::ONE {
            map(&mut b, |value| alpha * value);
        }
        // conj(A)·X = B is A·conj(X) = conj(B).
        let is_conjugated = a.conjugation == Conjugation::Conjugated && T::PARTS > 1;
        if is_conjugated {
            map(&mut b, T::conj);
        }
        let (l, mut b) = match a.triangle {
            Triangle::Lower => (a.array, b),
            Triangle::Upper => (a.array.rows_reversed().cols_reversed(), b.rows_reversed()),
        };
        self.solve_lower(l, a.diagonal, b.reborrow())?;
        if is_conjugated {
            map(&mut b, T::conj);
        }
        Ok(())
    }

    /// `B ← L⁻¹·B` with the lower triangle of `l`, on threads. The diagonal has no zero.
    pub(super) fn solve_lower<T: Element>(
        &self,
        l: Strided<'_, T>,
        diagonal: Diagonal,
        b: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        let (rows, cols) = (b.rows(), b.cols());
        let work = rows.saturating_mul(rows).saturating_mul(cols) / 2;
        on_columns(self, work, block::block_size::<T>(self.kernel), b, |mut part, _| {
            let single = self.single();
            if block::is_adjacent(part.strides()) || T::PARTS > 1 {
                return lower(&single, l, diagonal, part, &mut Work::new());
            }
            // Entries far apart: solve a copy.
            let (rows, cols) = (part.rows(), part.cols());
            let mut copy = Buffer::<T>::scratch(rows * cols)?;
            let mut dense = StridedMut::col_major(&mut copy, rows, cols)?;
            block::copy(part.as_ref(), dense.reborrow());
            lower(&single, l, diagonal, dense.reborrow(), &mut Work::new())?;
            block::copy(dense.as_ref(), part.reborrow());
            Ok(())
        })
    }
}

/// Half of `size` in whole blocks of `unit`, rounded up.
pub(super) fn half(size: usize, unit: usize) -> usize {
    size.div_ceil(2).next_multiple_of(unit).min(size.saturating_sub(1) / unit * unit).max(1)
}

/// `B ← L⁻¹·B` on one thread.
pub(super) fn lower<T: Element>(
    options: &Factor,
    l: Strided<'_, T>,
    diagonal: Diagonal,
    mut b: StridedMut<'_, T>,
    work: &mut Work<T>,
) -> Result<(), Error> {
    let (size, cols) = (b.rows(), b.cols());
    if size == 0 || cols == 0 {
        return Ok(());
    }
    let unit = block::block_size::<T>(options.kernel);
    if size <= unit {
        block::solve(options.kernel, l, diagonal, b, work);
        return Ok(());
    }
    if T::PARTS == 1 && size <= NEAR && near::solve(options.kernel, l, diagonal, b.reborrow())? {
        return Ok(());
    }
    let strip = if b.strides().0.abs() == 1 { STRIP } else { 2 * STRIP };
    if size <= NEAR && cols > strip {
        let mut rest = b;
        while rest.cols() > 0 {
            let (part, others) = {
                let at = strip.min(rest.cols());
                rest.split_cols(at)
            };
            rest = others;
            lower(options, l, diagonal, part, work)?;
        }
        return Ok(());
    }
    let at = half(size, unit);
    let (mut upper, mut rest) = b.reborrow().split_rows(at);
    lower(options, l.part(0..at, 0..at), diagonal, upper.reborrow(), work)?;
    let left = l.part(at..size, 0..at);
    let multiply = if size <= NEAR { narrow_product } else { product };
    multiply(&options.gemm, T::ZERO - T::ONE, left, upper.as_ref(), T::ONE, rest.reborrow())?;
    lower(options, l.part(at..size, at..size), diagonal, rest, work)
}
