//! Solves with a lower triangle of many blocks: `X ← L⁻¹·X` for a strip of right-hand sides whose
//! rows' entries are adjacent.
//!
//! **What.** `L` is copied to panels of [`HIGH`] rows, column by column, each with the square on
//! the diagonal at its end. A strip is up to [`Lanes::STRIP`] vectors wide, so [`HIGH`] rows of it
//! stay in registers: all rows above them are subtracted, then they are solved. **Cost.** One
//! multiply-add for each entry of `L` below the diagonal and each vector, and none for those above;
//! numbers of `L` come as broadcasts from memory. **Rounding.** As in [`super::solve`]: with `L =
//! L′·D` on the diagonal, where `L′` has ones there, steps subtract columns of `L′`, and the last
//! one multiplies by `D⁻¹`. Each entry's sum has the same order whatever the strip's width.

use super::lanes::{Float, Lanes};
use std::ops::Range;

/// The rows of a panel.
pub(crate) const HIGH: usize = 8;

/// Where panel `index` begins in the memory of all of them.
#[inline(always)]
pub(crate) const fn panel_start(index: usize) -> usize {
    index * (index + 1) / 2 * HIGH * HIGH
}

/// Copies the lower triangle of `l` to panels, and the reciprocals of its diagonal. A column's
/// entries are adjacent. Rows that fill the last panel are zeros, with reciprocals of 1.
///
/// # Safety
/// The triangle is readable, `size` rows whose columns lie `stride` apart; so many panels are
/// writable at `to`, and their rows at `reciprocals`.
#[inline(always)]
pub(super) unsafe fn pack<V: Lanes>(
    (l, stride, size): (*const V::Real, isize, usize),
    is_unit: bool,
    to: *mut V::Real,
    reciprocals: *mut V::Real,
) {
    let at = |row: usize, col: usize| l.wrapping_offset(col as isize * stride).wrapping_add(row);
    for panel in 0..size.div_ceil(HIGH) {
        let (first, to) = (panel * HIGH, to.wrapping_add(panel_start(panel)));
        let rows = HIGH.min(size - first);
        // SAFETY: rows and columns of the triangle, and of the panel.
        unsafe {
            for col in 0..first {
                let to = to.wrapping_add(col * HIGH);
                if rows == HIGH {
                    let column = at(first, col).cast::<[V::Real; HIGH]>().read_unaligned();
                    to.cast::<[V::Real; HIGH]>().write_unaligned(column);
                } else {
                    part::<V>(at(first, col), 0..rows, V::Real::ONE, to);
                }
            }
            for col in 0..HIGH {
                let is_stored = col < rows && !is_unit;
                let pivot = if is_stored { *at(first + col, first + col) } else { V::Real::ONE };
                let reciprocal = V::Real::ONE / pivot;
                *reciprocals.wrapping_add(first + col) = reciprocal;
                let column = at(first, first + col.min(rows - 1));
                part::<V>(
                    column,
                    (col + 1).min(rows)..rows,
                    reciprocal,
                    to.wrapping_add((first + col) * HIGH),
                );
            }
        }
    }
}

/// Writes a panel's column: these rows of `from` times `factor`, and zeros.
///
/// # Safety
/// The processor has the instruction set; the rows are readable, and a column is writable.
#[inline(always)]
unsafe fn part<V: Lanes>(from: *const V::Real, rows: Range<usize>, factor: V::Real, to: *mut V::Real) {
    // SAFETY: the caller's promise.
    unsafe {
        if V::COUNT >= HIGH {
            let column = V::load_some(from, rows).times(V::splat(factor));
            return match V::COUNT == HIGH {
                true => column.store(to),
                false => column.store_some(to, 0..HIGH),
            };
        }
        let mut column = [V::Real::ZERO; HIGH];
        for row in rows {
            column[row] = *from.wrapping_add(row) * factor;
        }
        to.cast::<[V::Real; HIGH]>().write_unaligned(column);
    }
}

/// Solves a strip of `vectors` vectors, at most [`Lanes::STRIP`].
///
/// # Safety
/// The processor has the instruction set; `panels` panels are readable at `l`, and their rows at
/// `reciprocals`; as many rows of the strip are writable at `x`, `stride` apart.
#[inline(always)]
pub(super) unsafe fn solve<V: Lanes>(
    (l, reciprocals, panels): (*const V::Real, *const V::Real, usize),
    x: *mut V::Real,
    stride: isize,
    vectors: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match vectors {
            3 if V::STRIP >= 3 => strip::<V, 3>((l, reciprocals, panels), x, stride),
            2 if V::STRIP >= 2 => strip::<V, 2>((l, reciprocals, panels), x, stride),
            _ => strip::<V, 1>((l, reciprocals, panels), x, stride),
        }
    }
}

/// Solves `P` vectors.
///
/// # Safety
/// The requirements of [`solve`] for `P` vectors.
#[inline(always)]
unsafe fn strip<V: Lanes, const P: usize>(
    (l, reciprocals, panels): (*const V::Real, *const V::Real, usize),
    x: *mut V::Real,
    stride: isize,
) {
    let (mut l, mut reciprocals, mut own) = (l, reciprocals, x);
    for panel in 0..panels {
        // SAFETY: rows of the strip up to those of this panel, and the panel's columns.
        unsafe {
            let mut sums = [[V::splat(V::Real::ZERO); P]; HIGH];
            for r in 0..HIGH {
                for p in 0..P {
                    let at = own.wrapping_offset(r as isize * stride).wrapping_add(p * V::COUNT);
                    sums[r][p] = V::load(at);
                }
            }
            let mut known = x;
            for _ in 0..panel * HIGH {
                let mut right = [sums[0][0]; P];
                for p in 0..P {
                    right[p] = V::load(known.wrapping_add(p * V::COUNT));
                }
                for r in 0..HIGH {
                    let factor = V::splat(*l.wrapping_add(r));
                    for p in 0..P {
                        sums[r][p] = sums[r][p].minus_product(factor, right[p]);
                    }
                }
                (l, known) = (l.wrapping_add(HIGH), known.wrapping_offset(stride));
            }
            // Written out, as places in registers have no index.
            let mut column = Column { l, reciprocals, row: own };
            column = column.eliminate::<V, P, 0>(stride, &mut sums);
            column = column.eliminate::<V, P, 1>(stride, &mut sums);
            column = column.eliminate::<V, P, 2>(stride, &mut sums);
            column = column.eliminate::<V, P, 3>(stride, &mut sums);
            column = column.eliminate::<V, P, 4>(stride, &mut sums);
            column = column.eliminate::<V, P, 5>(stride, &mut sums);
            column = column.eliminate::<V, P, 6>(stride, &mut sums);
            column = column.eliminate::<V, P, 7>(stride, &mut sums);
            (l, reciprocals, own) = (column.l, column.reciprocals, column.row);
        }
    }
}

/// A column of a square on the diagonal, its reciprocal, and the row of the strip.
struct Column<R> {
    l: *const R,
    reciprocals: *const R,
    row: *mut R,
}

impl<R: Float> Column<R> {
    /// Subtracts column `I` times row `I` from the rows below it, writes that row, and returns the
    /// next column.
    ///
    /// # Safety
    /// The processor has the instruction set; the column, its reciprocal and the row are there.
    #[inline(always)]
    unsafe fn eliminate<V: Lanes<Real = R>, const P: usize, const I: usize>(
        self,
        stride: isize,
        sums: &mut [[V; P]; HIGH],
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            for r in I + 1..HIGH {
                let factor = V::splat(*self.l.wrapping_add(r));
                for p in 0..P {
                    sums[r][p] = sums[r][p].minus_product(factor, sums[I][p]);
                }
            }
            let reciprocal = V::splat(*self.reciprocals);
            for p in 0..P {
                sums[I][p].times(reciprocal).store(self.row.wrapping_add(p * V::COUNT));
            }
        }
        Column {
            l: self.l.wrapping_add(HIGH),
            reciprocals: self.reciprocals.wrapping_add(1),
            row: self.row.wrapping_offset(stride),
        }
    }
}
