//! A lower triangle of many blocks, `X ← L⁻¹·X` and `X ← L·X`, for a strip of columns of `X` whose
//! rows' entries are adjacent.
//!
//! **What.** `L` is copied to panels of [`HIGH`] rows, column by column, each with the square on
//! the diagonal at its end. A strip is up to [`Lanes::STRIP`] vectors wide, so [`HIGH`] rows of it
//! stay in registers: all rows above them are subtracted, then they are solved. **Cost.** One
//! multiply-add for each entry of `L` below the diagonal and each vector, and none for those above;
//! numbers of `L` come as broadcasts from memory. **Rounding.** As in [`super::solve`]: with `L =
//! L′·D` on the diagonal, where `L′` has ones there, steps subtract columns of `L′`, and the last
//! one multiplies by `D⁻¹`. **Products** go from the last panel to the first. Each entry's sum has
//! the same order whatever the strip's width.

use super::lanes::{Float, Lanes};
use std::ops::Range;

/// The rows of a panel.
pub(crate) const HIGH: usize = 8;

/// Where panel `index` begins in the memory of all of them.
#[inline(always)]
pub(crate) const fn panel_start(index: usize) -> usize {
    index * (index + 1) / 2 * HIGH * HIGH
}

/// Copies the lower triangle of `l` to panels. A column's entries are adjacent, `step` apart, which
/// is 1 or −1. Rows that fill the last panel are zeros. For solves there are reciprocals of the
/// diagonal, and columns of the squares there are multiplied by them; for products, `reciprocals`
/// is null.
///
/// # Safety
/// The processor has the instruction set; the triangle is readable, `size` rows whose columns lie
/// `stride` apart; so many panels are writable at `to`, and their rows at `reciprocals`.
#[inline(always)]
pub(super) unsafe fn pack<V: Lanes>(
    (l, step, (stride, size)): (*const V::Real, isize, (isize, usize)),
    is_unit: bool,
    to: *mut V::Real,
    reciprocals: *mut V::Real,
) {
    let at = |row: usize, col: usize| l.wrapping_offset(col as isize * stride + row as isize * step);
    for panel in 0..size.div_ceil(HIGH) {
        let (first, to) = (panel * HIGH, to.wrapping_add(panel_start(panel)));
        let rows = HIGH.min(size - first);
        // SAFETY: rows and columns of the triangle, and of the panel.
        unsafe {
            for col in 0..first {
                let to = to.wrapping_add(col * HIGH);
                if rows == HIGH {
                    let lowest = if step == 1 { first } else { first + HIGH - 1 };
                    let mut column = at(lowest, col).cast::<[V::Real; HIGH]>().read_unaligned();
                    if step != 1 {
                        column.reverse();
                    }
                    to.cast::<[V::Real; HIGH]>().write_unaligned(column);
                } else {
                    part::<V>((at(first, col), step), 0..rows, V::Real::ONE, to);
                }
            }
            for col in 0..HIGH {
                let is_stored = col < rows && !is_unit;
                let pivot = if is_stored { *at(first + col, first + col) } else { V::Real::ONE };
                let column = (at(first, first + col.min(rows - 1)), step);
                let (below, to) = ((col + 1).min(rows)..rows, to.wrapping_add((first + col) * HIGH));
                if reciprocals.is_null() {
                    part::<V>(column, below, V::Real::ONE, to);
                    *to.wrapping_add(col) = pivot;
                } else {
                    let reciprocal = V::Real::ONE / pivot;
                    *reciprocals.wrapping_add(first + col) = reciprocal;
                    part::<V>(column, below, reciprocal, to);
                }
            }
        }
    }
}

/// Writes a panel's column: these rows of `from`, which are `step` apart, times `factor`, and
/// zeros.
///
/// # Safety
/// The processor has the instruction set; the rows are readable, and a column is writable.
#[inline(always)]
unsafe fn part<V: Lanes>(
    (from, step): (*const V::Real, isize),
    rows: Range<usize>,
    factor: V::Real,
    to: *mut V::Real,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if V::COUNT >= HIGH && step == 1 {
            let column = V::load_some(from, rows).times(V::splat(factor));
            return match V::COUNT == HIGH {
                true => column.store(to),
                false => column.store_some(to, 0..HIGH),
            };
        }
        let mut column = [V::Real::ZERO; HIGH];
        for row in rows {
            column[row] = *from.wrapping_offset(row as isize * step) * factor;
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

/// Multiplies a strip of `vectors` vectors, at most [`Lanes::STRIP`].
///
/// # Safety
/// The processor has the instruction set; `panels` panels are readable at `l`; as many rows of the
/// strip are writable at `x`, `stride` apart.
#[inline(always)]
pub(super) unsafe fn multiply<V: Lanes>(
    (l, panels): (*const V::Real, usize),
    x: *mut V::Real,
    stride: isize,
    vectors: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match vectors {
            3 if V::STRIP >= 3 => products::<V, 3>((l, panels), x, stride),
            2 if V::STRIP >= 2 => products::<V, 2>((l, panels), x, stride),
            _ => products::<V, 1>((l, panels), x, stride),
        }
    }
}

/// Multiplies `P` vectors.
///
/// # Safety
/// The requirements of [`multiply`] for `P` vectors.
#[inline(always)]
unsafe fn products<V: Lanes, const P: usize>(
    (l, panels): (*const V::Real, usize),
    x: *mut V::Real,
    stride: isize,
) {
    for panel in (0..panels).rev() {
        let (mut l, mut known) = (l.wrapping_add(panel_start(panel)), x);
        // SAFETY: rows of the strip up to those of this panel, and the panel's columns. Rows above
        // have not been written yet.
        unsafe {
            let mut sums = [[V::splat(V::Real::ZERO); P]; HIGH];
            for _ in 0..panel * HIGH {
                column::<V, P, 0>(l, known, &mut sums);
                (l, known) = (l.wrapping_add(HIGH), known.wrapping_offset(stride));
            }
            let own = known;
            let row = |r: usize| own.wrapping_offset(r as isize * stride);
            // Written out, as places in registers have no index.
            column::<V, P, 0>(l, row(0), &mut sums);
            column::<V, P, 1>(l.wrapping_add(HIGH), row(1), &mut sums);
            column::<V, P, 2>(l.wrapping_add(2 * HIGH), row(2), &mut sums);
            column::<V, P, 3>(l.wrapping_add(3 * HIGH), row(3), &mut sums);
            column::<V, P, 4>(l.wrapping_add(4 * HIGH), row(4), &mut sums);
            column::<V, P, 5>(l.wrapping_add(5 * HIGH), row(5), &mut sums);
            column::<V, P, 6>(l.wrapping_add(6 * HIGH), row(6), &mut sums);
            column::<V, P, 7>(l.wrapping_add(7 * HIGH), row(7), &mut sums);
            for r in 0..HIGH {
                for p in 0..P {
                    sums[r][p].store(row(r).wrapping_add(p * V::COUNT));
                }
            }
        }
    }
}

/// Adds a column of a panel, from row `FIRST` on, times a row of the strip.
///
/// # Safety
/// The processor has the instruction set; the column is readable at `l`, and the row at `x`.
#[inline(always)]
unsafe fn column<V: Lanes, const P: usize, const FIRST: usize>(
    l: *const V::Real,
    x: *const V::Real,
    sums: &mut [[V; P]; HIGH],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut right = [sums[0][0]; P];
        for p in 0..P {
            right[p] = V::load(x.wrapping_add(p * V::COUNT));
        }
        for r in FIRST..HIGH {
            let factor = V::splat(*l.wrapping_add(r));
            for p in 0..P {
                sums[r][p] = sums[r][p].plus_product(factor, right[p]);
            }
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
