//! Products inside of factorisations: `C ← α·A·B + β·C` on parts of one array.
//!
//! **The problem.** The parts have shapes that a product seldom has: a few columns, thousands of
//! rows, and a depth of eight. Packing them takes as long as multiplying them. **The idea.** Small
//! products are computed by direct kernels on the arrays, so a long part is cut into pieces that
//! are small. Arrays whose rows or columns are reversed, which upper triangles are, are turned back
//! before they are multiplied: the order of the sum changes, and nothing else.

use super::options::WORTH_INSIDE;
use crate::gemm::Gemm;
use crate::strided::{Strided, StridedMut};
use crate::{Element, Error};

/// The depth up to which long products are cut into pieces.
const SHALLOW: usize = 32;
/// The rows and columns of a piece. Pieces of this size fit into the first-level cache, and far
/// apart columns of it into the first-level TLB.
const PIECE_ROWS: usize = 96;
/// See [`PIECE_ROWS`].
const PIECE_COLS: usize = 32;
/// Columns that are further apart lie in pages of their own; direct kernels take [`SHALLOW`] of
/// them.
const FAR_BYTES: usize = 4096;
/// Products that are wider than this are packed however shallow they are.
const WIDE: usize = 128;

/// `C ← α·A·B + β·C`.
pub(super) fn product<T: Element>(
    gemm: &Gemm,
    alpha: T,
    a: Strided<'_, T>,
    b: Strided<'_, T>,
    beta: T,
    c: StridedMut<'_, T>,
) -> Result<(), Error> {
    let (mut a, mut b, mut c) = (a, b, c);
    if c.rows() == 0 || c.cols() == 0 || a.cols() == 0 {
        return match beta == T::ONE {
            true => Ok(()),
            false => gemm.multiply_strided(alpha, a, b, beta, c),
        };
    }
    if c.strides().0 < 0 {
        (a, c) = (a.rows_reversed(), c.rows_reversed());
    }
    if c.strides().1 < 0 {
        (b, c) = (b.cols_reversed(), c.cols_reversed());
    }
    if a.strides().1 < 0 {
        (a, b) = (a.cols_reversed(), b.rows_reversed());
    }
    let (rows, cols, depth) = (c.rows(), c.cols(), a.cols());
    let long = rows.max(cols);
    if T::PARTS == 1 && depth <= SHALLOW && rows.min(cols) <= WIDE && long > PIECE_ROWS {
        return pieces(gemm, alpha, a, b, beta, c);
    }
    match rows.saturating_mul(cols).saturating_mul(depth) < WORTH_INSIDE {
        true => gemm.threads(1).multiply_strided(alpha, a, b, beta, c),
        false => gemm.multiply_strided(alpha, a, b, beta, c),
    }
}

/// `C ← α·A·B + β·C` for a few columns or rows of `C` and a depth of at most [`WIDE`]. If columns
/// lie in pages of their own, it takes [`SHALLOW`] steps of the sum at a time, so that direct
/// kernels can be used. That rounds `C` more often, so the choice depends on the strides and the
/// depth alone, and not on a thread's share of the columns.
pub(super) fn narrow_product<T: Element>(
    gemm: &Gemm,
    alpha: T,
    a: Strided<'_, T>,
    b: Strided<'_, T>,
    beta: T,
    mut c: StridedMut<'_, T>,
) -> Result<(), Error> {
    let (rows, cols, depth) = (c.rows(), c.cols(), a.cols());
    let is_far =
        |(row, col): (isize, isize)| row.unsigned_abs().max(col.unsigned_abs()) * size_of::<T>() >= FAR_BYTES;
    if T::PARTS > 1 || depth <= SHALLOW || !(is_far(a.strides()) || is_far(b.strides())) {
        return product(gemm, alpha, a, b, beta, c);
    }
    for first in (0..depth).step_by(SHALLOW) {
        let last = depth.min(first + SHALLOW);
        let (left, right) = (a.part(0..rows, first..last), b.part(first..last, 0..cols));
        product(gemm, alpha, left, right, if first == 0 { beta } else { T::ONE }, c.reborrow())?;
    }
    Ok(())
}

/// Computes a long, shallow product piece by piece.
fn pieces<T: Element>(
    gemm: &Gemm,
    alpha: T,
    a: Strided<'_, T>,
    b: Strided<'_, T>,
    beta: T,
    mut c: StridedMut<'_, T>,
) -> Result<(), Error> {
    // Panels of kernels run along the adjacent entries of C, so pieces are longer there.
    let (high, wide) = match c.strides().0 == 1 {
        true => (PIECE_ROWS, PIECE_COLS),
        false => (PIECE_COLS, PIECE_ROWS),
    };
    let (rows, cols, depth) = (c.rows(), c.cols(), a.cols());
    for col in (0..cols).step_by(wide) {
        let last_col = cols.min(col + wide);
        for row in (0..rows).step_by(high) {
            let last_row = rows.min(row + high);
            let to = c.reborrow().part(row..last_row, col..last_col);
            let (left, right) = (a.part(row..last_row, 0..depth), b.part(0..depth, col..last_col));
            gemm.multiply_strided(alpha, left, right, beta, to)?;
        }
    }
    Ok(())
}
