//! A panel of LU with partial pivoting, column after column.
//!
//! **The problem.** Every column needs a search for the largest entry before anything can be
//! divided, and a search over a column is a pass over memory. **The idea.** The update of the next
//! column and the search in it are one pass: while column `j` is subtracted, the vectors of column
//! `j + 1` pass by a running maximum. Vectors always begin at a multiple of their width from the
//! panel's first row, so rows above are masked and not shifted. **Cost.** For each step and vector
//! one load and store of column `j`, and of every column right of it.
//!
//! A column without a nonzero entry has no pivot: it is left alone, as LAPACK leaves it.

use super::lanes::{Float, Lanes};

/// The most columns right of a pivot's that one pass updates.
const TOGETHER: usize = 7;

/// Factorises a panel of `rows`×`cols` whose columns lie `stride` apart. `pivots[j]` is the row
/// that was exchanged with row `j`. Returns the first column without a pivot, or the number of
/// columns.
///
/// # Safety
/// The processor has the instruction set; the panel is writable; `pivots` has a place for each of
/// the first `min(rows, cols)` columns.
#[inline(always)]
pub(super) unsafe fn panel<V: Lanes>(
    a: *mut V::Real,
    stride: isize,
    (rows, cols): (usize, usize),
    pivots: &mut [usize],
) -> usize {
    let column = |j: usize| a.wrapping_offset(j as isize * stride);
    let steps = rows.min(cols);
    let mut singular = cols;
    // SAFETY: all rows and columns below lie in the panel.
    unsafe {
        let mut size = search::<V>(column(0), rows);
        for j in 0..steps {
            let pivot_row = position::<V>(column(j), j, rows, size);
            pivots[j] = pivot_row;
            let pivot = *column(j).wrapping_add(pivot_row);
            if pivot == V::Real::ZERO {
                singular = singular.min(j);
                if j + 1 < steps {
                    size = search_from::<V>(column(j + 1), j + 1, rows);
                }
                continue;
            }
            if pivot_row != j {
                for c in 0..cols {
                    std::ptr::swap(column(c).wrapping_add(j), column(c).wrapping_add(pivot_row));
                }
            }
            size = step::<V>(column(j), stride, j, rows, cols - j - 1, pivot);
        }
    }
    singular
}

/// Divides column `j` by its pivot below the diagonal, updates the `right` columns after it, and
/// returns the largest absolute value of the next column below its diagonal.
///
/// # Safety
/// The requirements of [`panel`]; `first` is the address of column `j`.
#[inline(always)]
unsafe fn step<V: Lanes>(
    first: *mut V::Real,
    stride: isize,
    j: usize,
    rows: usize,
    right: usize,
    pivot: V::Real,
) -> V::Real {
    // SAFETY: the caller's promise; columns beyond the first `TOGETHER` are updated by passes of
    // their own, which find column `j` divided.
    unsafe {
        // The first pass divides, unless there is none or the reciprocal would be infinite.
        let is_tiny = pivot.abs() < V::Real::SAFE_MIN;
        if right == 0 || is_tiny {
            divide::<V>(first, j, rows, pivot);
        }
        let mut reciprocal = if is_tiny { V::Real::ONE } else { V::Real::ONE / pivot };
        let mut size = V::Real::ZERO;
        let mut done = 0;
        while done < right {
            let count = (right - done).min(TOGETHER);
            let to = first.wrapping_offset((1 + done) as isize * stride);
            let found = match count {
                1 => update::<V, 1>(first, to, stride, (j, rows), reciprocal),
                2 => update::<V, 2>(first, to, stride, (j, rows), reciprocal),
                3 => update::<V, 3>(first, to, stride, (j, rows), reciprocal),
                4 => update::<V, 4>(first, to, stride, (j, rows), reciprocal),
                5 => update::<V, 5>(first, to, stride, (j, rows), reciprocal),
                6 => update::<V, 6>(first, to, stride, (j, rows), reciprocal),
                _ => update::<V, 7>(first, to, stride, (j, rows), reciprocal),
            };
            if done == 0 {
                size = found;
            }
            done += count;
            reciprocal = V::Real::ONE;
        }
        size
    }
}

/// Divides rows `j + 1..rows` of a column by `pivot`.
///
/// # Safety
/// The requirements of [`panel`].
#[inline(always)]
unsafe fn divide<V: Lanes>(column: *mut V::Real, j: usize, rows: usize, pivot: V::Real) {
    // SAFETY: the lanes that are named are rows below `j`.
    unsafe {
        if pivot.abs() < V::Real::SAFE_MIN {
            // The reciprocal would be infinite.
            for row in j + 1..rows {
                let at = column.wrapping_add(row);
                *at = *at / pivot;
            }
            return;
        }
        let reciprocal = V::splat(V::Real::ONE / pivot);
        let mut top = (j + 1) / V::COUNT * V::COUNT;
        while top < rows {
            let (at, lanes) =
                (column.wrapping_add(top), (j + 1).saturating_sub(top)..V::COUNT.min(rows - top));
            match lanes.len() == V::COUNT {
                true => V::load(at).times(reciprocal).store(at),
                false => V::load_some(at, lanes.clone()).times(reciprocal).store_some(at, lanes),
            }
            top += V::COUNT;
        }
    }
}

/// Multiplies column `j` below its pivot by `reciprocal`, and subtracts it times row `j` from `C`
/// columns at `to`; returns the largest absolute value
/// of the first of them below row `j`.
///
/// # Safety
/// The requirements of [`panel`].
#[inline(always)]
unsafe fn update<V: Lanes, const C: usize>(
    left: *mut V::Real,
    to: *mut V::Real,
    stride: isize,
    (j, rows): (usize, usize),
    reciprocal: V::Real,
) -> V::Real {
    // SAFETY: row `j` of each column, then the lanes of rows below it.
    unsafe {
        let mut factors = [V::splat(V::Real::ZERO); C];
        for c in 0..C {
            factors[c] = V::splat(*to.wrapping_offset(c as isize * stride).wrapping_add(j));
        }
        let (mut best, by) = (V::splat(V::Real::ZERO), V::splat(reciprocal));
        let mut top = (j + 1) / V::COUNT * V::COUNT;
        while top < rows {
            let lanes = (j + 1).saturating_sub(top)..V::COUNT.min(rows - top);
            let (from, to) = (left.wrapping_add(top), to.wrapping_add(top));
            if lanes.len() == V::COUNT {
                let column = V::load(from).times(by);
                column.store(from);
                for c in 0..C {
                    let at = to.wrapping_offset(c as isize * stride);
                    let value = V::load(at).minus_product(column, factors[c]);
                    value.store(at);
                    if c == 0 {
                        best = best.max_abs(value);
                    }
                }
            } else {
                let column = V::load_some(from, lanes.clone()).times(by);
                column.store_some(from, lanes.clone());
                for c in 0..C {
                    let at = to.wrapping_offset(c as isize * stride);
                    let value = V::load_some(at, lanes.clone()).minus_product(column, factors[c]);
                    value.store_some(at, lanes.clone());
                    if c == 0 {
                        // Lanes that were not loaded are 0, and so are their products.
                        best = best.max_abs(value);
                    }
                }
            }
            top += V::COUNT;
        }
        best.greatest()
    }
}

/// The largest absolute value of a column.
///
/// # Safety
/// The requirements of [`panel`].
#[inline(always)]
unsafe fn search<V: Lanes>(column: *const V::Real, rows: usize) -> V::Real {
    // SAFETY: the caller's promise.
    unsafe { search_from::<V>(column, 0, rows) }
}

/// The largest absolute value of rows `first..rows` of a column.
///
/// # Safety
/// The requirements of [`panel`].
#[inline(always)]
unsafe fn search_from<V: Lanes>(column: *const V::Real, first: usize, rows: usize) -> V::Real {
    let mut top = first / V::COUNT * V::COUNT;
    // SAFETY: the lanes that are named are rows of the column.
    unsafe {
        let mut best = V::splat(V::Real::ZERO);
        while top < rows {
            let lanes = first.saturating_sub(top)..V::COUNT.min(rows - top);
            best = best.max_abs(V::load_some(column.wrapping_add(top), lanes));
            top += V::COUNT;
        }
        best.greatest()
    }
}

/// The first row from `first` on whose absolute value is `size`, or `first` if there is none, which
/// is so if the column is NaN.
///
/// # Safety
/// The requirements of [`panel`].
#[inline(always)]
unsafe fn position<V: Lanes>(column: *const V::Real, first: usize, rows: usize, size: V::Real) -> usize {
    if size == V::Real::ZERO {
        return first;
    }
    let mut top = first / V::COUNT * V::COUNT;
    while top < rows {
        // The vectors of 64 rows are compared before the first branch, whose outcome is hard to
        // foresee.
        let (start, mut bits) = (top, 0u64);
        while top < rows && top - start < 64 {
            let lanes = first.saturating_sub(top)..V::COUNT.min(rows - top);
            // SAFETY: the lanes that are named are rows of the column. The others hold 0, which is
            // not `size`.
            let equal = unsafe { V::load_some(column.wrapping_add(top), lanes).equal_abs(size) };
            bits |= u64::from(equal) << (top - start);
            top += V::COUNT;
        }
        if bits != 0 {
            return start + bits.trailing_zeros() as usize;
        }
    }
    first
}
