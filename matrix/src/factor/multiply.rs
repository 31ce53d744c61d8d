//! Products with triangular and symmetric matrices.
//!
//! **Triangular**, in place: every product is brought to `B ← L·B` with a lower triangle (see
//! `solve`), which halves `L`: the lower half of `B` comes first, because the upper half is its
//! input. Smaller triangles are multiplied by strips ([`near`]), or copied in blocks of a few rows,
//! with zeros above the diagonal, and multiplied by a copy of a few columns of `B` at a time.
//! **Symmetric**: blocks of columns of the whole matrix are made in scratch memory and multiplied,
//! one pass over the matrix for all columns of `B`.
//!
//! **Leaves out** the skipping of zeros: NaN and infinities of `B` may spread to all rows of a
//! leaf.

use super::block::{self, block_size, fill, map};
use super::near;
use super::options::{on_columns, Factor, WORTH_INSIDE};
use super::product::product;
use super::shape::{same, square, Conjugation, Diagonal, Side, Triangle, Triangular};
use super::solve::half;
use crate::buffer::Buffer;
use crate::strided::{Strided, StridedMut};
use crate::{Element, Error};
use std::ops::Range;

/// Rows of a triangle that is multiplied as a square: two vectors of 512 bits, or more where
/// entries are complex.
const fn leaf<T>() -> usize {
    if size_of::<T>() < 8 {
        128 / size_of::<T>()
    } else {
        16
    }
}

/// Triangles of at most this many rows take [`strip`] columns of `B` at a time.
const NEAR: usize = 128;

/// Columns that are in the first-level cache with [`NEAR`] rows.
const fn strip<T>() -> usize {
    if size_of::<T>() < 8 {
        64
    } else {
        32
    }
}

/// Columns of a symmetric matrix that are made whole at once.
const BLOCK: usize = 512;
/// Columns of a symmetric matrix with one square on the diagonal.
const STRIP: usize = 16;

impl Factor {
    /// `B ← α·A·B` ([`Side::Left`]) or `B ← α·B·A` with a triangular matrix. Cost: n²·k/2
    /// multiply-adds for n rows of `A` and k columns of `B`.
    ///
    /// # Errors
    /// [`Error::Shape`] when shapes do not fit.
    pub fn multiply_triangular<T: Element>(
        &self,
        side: Side,
        alpha: T,
        a: Triangular<'_, T>,
        b: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        let size = a.size()?;
        let (a, mut b) = match side {
            Side::Left => (a, b),
            Side::Right => (a.transposed(), b.transposed()),
        };
        same("rows of the triangular matrix and of the other one", (size, size), (b.rows(), size))?;
        if alpha == T::ZERO {
            fill(&mut b, T::ZERO);
            return Ok(());
        }
        // conj(A)·B is conj(A·conj(B)).
        let is_conjugated = a.conjugation == Conjugation::Conjugated && T::PARTS > 1;
        if is_conjugated {
            map(&mut b, T::conj);
        }
        let (l, mut b) = match a.triangle {
            Triangle::Lower => (a.array, b),
            Triangle::Upper => (a.array.rows_reversed().cols_reversed(), b.rows_reversed()),
        };
        let (cost, unit) = (size * size / 2 * b.cols(), block_size::<T>(self.kernel));
        on_columns(self, cost, unit, b.reborrow(), |part, _| {
            let mut scratch = Buffer::<T>::scratch(blocks_len::<T>() + NEAR * 2 * strip::<T>())?;
            multiply_lower(&self.single(), l, a.diagonal, part, &mut scratch)
        })?;
        if is_conjugated {
            map(&mut b, T::conj);
        }
        if alpha != T::ONE {
            map(&mut b, |value| alpha * value);
        }
        Ok(())
    }

    /// `C ← α·A·B + β·C` ([`Side::Left`]) or `C ← α·B·A + β·C` with a symmetric matrix `A`, of
    /// which one triangle is read. Cost: that of the product, and one copy of `A`.
    ///
    /// # Errors
    /// [`Error::Shape`] when shapes do not fit.
    #[allow(clippy::too_many_arguments, reason = "the operands of the BLAS")]
    pub fn multiply_symmetric<T: Element>(
        &self,
        side: Side,
        triangle: Triangle,
        alpha: T,
        a: Strided<'_, T>,
        b: Strided<'_, T>,
        beta: T,
        c: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        self.multiply_whole(side, (triangle, Conjugation::None), alpha, a, b, beta, c)
    }

    /// `C ← α·A·B + β·C` ([`Side::Left`]) or `C ← α·B·A + β·C` with a Hermitian matrix `A`, of
    /// which one triangle is read, without imaginary parts on its diagonal. Cost: that of the
    /// product, and one copy of `A`.
    ///
    /// # Errors
    /// [`Error::Shape`] when shapes do not fit.
    #[allow(clippy::too_many_arguments, reason = "the operands of the BLAS")]
    pub fn multiply_hermitian<T: Element>(
        &self,
        side: Side,
        triangle: Triangle,
        alpha: T,
        a: Strided<'_, T>,
        b: Strided<'_, T>,
        beta: T,
        c: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        self.multiply_whole(side, (triangle, Conjugation::Conjugated), alpha, a, b, beta, c)
    }

    #[allow(clippy::too_many_arguments, reason = "the operands of the BLAS")]
    fn multiply_whole<T: Element>(
        &self,
        side: Side,
        (triangle, conjugation): (Triangle, Conjugation),
        alpha: T,
        a: Strided<'_, T>,
        b: Strided<'_, T>,
        beta: T,
        c: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        let size = square("the rows and the columns of a symmetric matrix", (a.rows(), a.cols()))?;
        same("the shapes of B and of the result", (b.rows(), b.cols()), (c.rows(), c.cols()))?;
        // B·A is (Aᵀ·Bᵀ)ᵀ; the transpose of the matrix has the other triangle.
        let (triangle, a, b, mut c) = match side {
            Side::Left => (triangle, a, b, c),
            Side::Right => (triangle.transposed(), a.transposed(), b.transposed(), c.transposed()),
        };
        same("rows of the symmetric matrix and of the result", (size, size), (c.rows(), size))?;
        if size == 0 || alpha == T::ZERO {
            return self.gemm.multiply_strided(T::ZERO, a, b, beta, c);
        }
        let mut scratch = Buffer::<T>::scratch(size * BLOCK.min(size))?;
        for first in (0..size).step_by(BLOCK) {
            let last = size.min(first + BLOCK);
            let mut whole = StridedMut::col_major(&mut scratch, size, last - first)?;
            on_columns(self, size * (last - first), STRIP, whole.reborrow(), |part, at| {
                complete(a, (triangle, conjugation), first + at, part)
            })?;
            let beta = if first == 0 { beta } else { T::ONE };
            let rows = b.part(first..last, 0..b.cols());
            // This thread has just written the columns, and another one would have to fetch them,
            // so small products stay on it. Smaller entries take less time.
            let work = size.saturating_mul(last - first).saturating_mul(c.cols());
            let work = work / size_of::<f64>() * size_of::<T>().min(size_of::<f64>());
            let gemm = if work < WORTH_INSIDE / 2 { self.gemm.threads(1) } else { self.gemm };
            gemm.multiply_strided(alpha, whole.as_ref(), rows, beta, c.reborrow())?;
        }
        Ok(())
    }
}

/// Makes the columns from `first` on of the matrix whose triangle `a` holds.
fn complete<T: Element>(
    a: Strided<'_, T>,
    (triangle, conjugation): (Triangle, Conjugation),
    first: usize,
    mut whole: StridedMut<'_, T>,
) -> Result<(), Error> {
    let (size, cols) = (a.rows(), whole.cols());
    for start in (0..cols).step_by(STRIP) {
        // The rows above and below the square on the diagonal are all given, or all mirrored.
        let end = cols.min(start + STRIP);
        let columns = first + start..first + end;
        for (rows, given) in [(0..columns.start, Triangle::Upper), (columns.end..size, Triangle::Lower)] {
            let mut part = whole.reborrow().part(rows.clone(), start..end);
            if triangle == given {
                block::copy(a.part(rows, columns.clone()), part);
            } else {
                block::copy(a.part(columns.clone(), rows).transposed(), part.reborrow());
                if T::PARTS > 1 {
                    map(&mut part, |value| conjugation.of(value));
                }
            }
        }
        let square = whole.reborrow().part(columns.clone(), start..end);
        complete_square(a.part(columns.clone(), columns), (triangle, conjugation), square)?;
    }
    Ok(())
}

/// Makes a square of at most [`STRIP`] rows on the diagonal.
fn complete_square<T: Element>(
    a: Strided<'_, T>,
    (triangle, conjugation): (Triangle, Conjugation),
    square: StridedMut<'_, T>,
) -> Result<(), Error> {
    let size = a.rows();
    let (mut given, mut mirrored) = ([T::ZERO; STRIP * STRIP], [T::ZERO; STRIP * STRIP]);
    block::copy(a, StridedMut::new(&mut given, size, size, 1, STRIP as isize)?);
    block::copy(a.transposed(), StridedMut::new(&mut mirrored, size, size, 1, STRIP as isize)?);
    for j in 0..size {
        let other = j * STRIP..j * STRIP + size;
        let other = match triangle {
            Triangle::Lower => other.start..other.start + j,
            Triangle::Upper => other.start + j + 1..other.end,
        };
        for (given, &mirrored) in given[other.clone()].iter_mut().zip(&mirrored[other]) {
            *given = conjugation.of(mirrored);
        }
        if T::PARTS > 1 && conjugation == Conjugation::Conjugated {
            let pivot = &mut given[j * STRIP + j];
            *pivot = T::from_re_im(pivot.re(), <T::Real as Element>::ZERO);
        }
    }
    block::copy(StridedMut::new(&mut given, size, size, 1, STRIP as isize)?.as_ref(), square);
    Ok(())
}

/// `B ← L·B` on one thread.
fn multiply_lower<T: Element>(
    options: &Factor,
    l: Strided<'_, T>,
    diagonal: Diagonal,
    mut b: StridedMut<'_, T>,
    scratch: &mut [T],
) -> Result<(), Error> {
    let size = b.rows();
    if size > NEAR {
        let at = half(size, NEAR);
        let (mut upper, mut rest) = b.reborrow().split_rows(at);
        multiply_lower(options, l.part(at..size, at..size), diagonal, rest.reborrow(), scratch)?;
        product(&options.gemm, T::ONE, l.part(at..size, 0..at), upper.as_ref(), T::ONE, rest)?;
        return multiply_lower(options, l.part(0..at, 0..at), diagonal, upper.reborrow(), scratch);
    }
    if near::multiply(options.kernel, l, diagonal, b.reborrow())? {
        return Ok(());
    }
    let (blocks, copy) = scratch.split_at_mut(blocks_len::<T>());
    copy_row_blocks(l, diagonal, blocks)?;
    // A strip of columns is in the first-level cache while all blocks of rows are multiplied.
    let strip = if b.strides().0.abs() == 1 { strip::<T>() } else { 2 * strip::<T>() };
    let mut others = b;
    while others.cols() > 0 {
        let at = strip.min(others.cols());
        let (part, rest) = others.split_cols(at);
        others = rest;
        multiply_strip(options, blocks, part, copy)?;
    }
    Ok(())
}

/// Where the blocks of [`leaf`] rows of a triangle begin in scratch memory, one after the other:
/// block `index` has `index + 1` squares.
const fn block_start<T>(index: usize) -> usize {
    index * (index + 1) / 2 * leaf::<T>() * leaf::<T>()
}

/// The rows of the blocks of a triangle. An incomplete block comes first, where it is the shortest.
fn row_blocks<T>(size: usize) -> impl Iterator<Item = Range<usize>> {
    let leaf = leaf::<T>();
    let rest = (size + leaf - 1) % leaf + 1;
    (0..size.div_ceil(leaf)).map(move |index| (rest + index * leaf).saturating_sub(leaf)..rest + index * leaf)
}

/// The elements of all blocks of a triangle with [`NEAR`] rows.
const fn blocks_len<T>() -> usize {
    block_start::<T>(NEAR / leaf::<T>())
}

/// Copies the lower triangle of `l` in blocks of [`leaf`] rows, which end with the square on the
/// diagonal. Above the diagonal they have zeros.
fn copy_row_blocks<T: Element>(l: Strided<'_, T>, diagonal: Diagonal, blocks: &mut [T]) -> Result<(), Error> {
    let (size, leaf) = (l.rows(), leaf::<T>());
    for (index, Range { start: first, end: last }) in row_blocks::<T>(size).enumerate() {
        let block = &mut blocks[block_start::<T>(index)..];
        let rows = StridedMut::new(&mut block[..last * leaf], last - first, last, 1, leaf as isize)?;
        block::copy(l.part(first..last, 0..last), rows);
        // What the other triangle holds is not wanted.
        for (j, column) in block[first * leaf..last * leaf].chunks_exact_mut(leaf).enumerate() {
            column[..j].fill(T::ZERO);
            if diagonal == Diagonal::Unit {
                column[j] = T::ONE;
            }
        }
    }
    Ok(())
}

/// `B ← L·B` for a few columns of `B`, block of rows by block of rows, from a copy of `B`.
fn multiply_strip<T: Element>(
    options: &Factor,
    blocks: &[T],
    mut b: StridedMut<'_, T>,
    copy: &mut [T],
) -> Result<(), Error> {
    let (size, cols, leaf) = (b.rows(), b.cols(), leaf::<T>());
    let mut copy = match b.strides().1 == 1 && b.strides().0 != 1 {
        true => StridedMut::row_major(copy, size, cols)?,
        false => StridedMut::col_major(copy, size, cols)?,
    };
    block::copy(b.as_ref(), copy.reborrow());
    for (index, Range { start: first, end: last }) in row_blocks::<T>(size).enumerate() {
        let block = &blocks[block_start::<T>(index)..];
        let block = Strided::new(block, last - first, last, 1, leaf as isize)?;
        let (rows, right) = (b.reborrow().part(first..last, 0..cols), copy.as_ref().part(0..last, 0..cols));
        product(&options.gemm, T::ONE, block, right, T::ZERO, rows)?;
    }
    Ok(())
}
