//! Solves with a small lower triangle: `B ← L⁻¹·B`.
//!
//! **Across.** If the entries of a row of `B` are adjacent, a vector holds entries of one row, and
//! the numbers of `L` are broadcast. **Down.** If the entries of a column are adjacent, a vector
//! holds a whole column of `B`. With `L = L′·D`, where `L′` has ones on its diagonal, step `k`
//! subtracts column `k` of `L′` times lane `k` of the vector, which a permutation broadcasts; at
//! the end one multiplication applies `D⁻¹`. Eight columns at once hide the latency. **Cost.** One
//! multiply-add, and one load or one permutation, for each vector and step.

use super::lanes::Lanes;
use super::triangle::{Order, SmallTriangle, MOST_LANES};

/// Solves where the entries of a row of `B` are adjacent.
///
/// # Safety
/// The processor has the instruction set; `cols` numbers are writable in each row of `B`, whose
/// rows lie `stride` apart.
#[inline(always)]
pub(super) unsafe fn across<V: Lanes>(
    t: &SmallTriangle<V::Real>,
    b: *mut V::Real,
    stride: isize,
    cols: usize,
) {
    let mut col = 0;
    // SAFETY: the strips lie in the rows.
    unsafe {
        while cols - col >= 4 * V::COUNT {
            strip::<V, 4>(t, b.wrapping_add(col), stride);
            col += 4 * V::COUNT;
        }
        while cols - col >= V::COUNT {
            strip::<V, 1>(t, b.wrapping_add(col), stride);
            col += V::COUNT;
        }
        if col < cols {
            tail::<V>(t, b.wrapping_add(col), stride, cols - col);
        }
    }
}

/// `P` vectors of every row.
///
/// # Safety
/// The requirements of [`across`], for `P` whole vectors.
#[inline(always)]
unsafe fn strip<V: Lanes, const P: usize>(t: &SmallTriangle<V::Real>, b: *mut V::Real, stride: isize) {
    let at = |row: usize, p: usize| b.wrapping_offset(row as isize * stride).wrapping_add(p * V::COUNT);
    for i in 0..t.size {
        // SAFETY: row `i` and the rows above it.
        unsafe {
            let mut sums = [V::splat(t.reciprocals[0]); P];
            for p in 0..P {
                sums[p] = V::load(at(i, p));
            }
            for k in 0..i {
                let factor = V::splat(t.entries[k * MOST_LANES + i]);
                for p in 0..P {
                    sums[p] = sums[p].minus_product(factor, V::load(at(k, p)));
                }
            }
            let reciprocal = V::splat(t.reciprocals[i]);
            for p in 0..P {
                sums[p].times(reciprocal).store(at(i, p));
            }
        }
    }
}

/// The last columns, which do not fill a vector.
///
/// # Safety
/// The requirements of [`across`] for `cols` columns.
#[inline(always)]
unsafe fn tail<V: Lanes>(t: &SmallTriangle<V::Real>, b: *mut V::Real, stride: isize, cols: usize) {
    let at = |row: usize| b.wrapping_offset(row as isize * stride);
    for i in 0..t.size {
        // SAFETY: row `i` and the rows above it.
        unsafe {
            let mut sum = V::load_some(at(i), 0..cols);
            for k in 0..i {
                let factor = V::splat(t.entries[k * MOST_LANES + i]);
                sum = sum.minus_product(factor, V::load_some(at(k), 0..cols));
            }
            sum.times(V::splat(t.reciprocals[i])).store_some(at(i), 0..cols);
        }
    }
}

/// Solves where the entries of a column of `B` are adjacent.
///
/// # Safety
/// The processor has the instruction set; as many numbers as the triangle has rows are writable in
/// each column of `B`, whose columns lie `stride` apart; the triangle has at most a vector's rows.
#[inline(always)]
pub(super) unsafe fn down<V: Lanes>(t: &SmallTriangle<V::Real>, b: *mut V::Real, stride: isize, cols: usize) {
    let mut col = 0;
    let at = |col: usize| b.wrapping_offset(col as isize * stride);
    // SAFETY: the groups lie among the columns.
    unsafe {
        while cols - col >= 8 {
            group::<V, 8>(t, at(col), stride);
            col += 8;
        }
        if cols - col >= 4 {
            group::<V, 4>(t, at(col), stride);
            col += 4;
        }
        while col < cols {
            group::<V, 1>(t, at(col), stride);
            col += 1;
        }
    }
}

/// `C` columns.
///
/// # Safety
/// The requirements of [`down`], for `C` columns.
#[inline(always)]
unsafe fn group<V: Lanes, const C: usize>(t: &SmallTriangle<V::Real>, b: *mut V::Real, stride: isize) {
    let at = |col: usize| b.wrapping_offset(col as isize * stride);
    // SAFETY: `size` entries of each column.
    unsafe {
        let mut x = [V::splat(t.reciprocals[0]); C];
        for c in 0..C {
            x[c] = V::load_some(at(c), 0..t.size);
        }
        for step in 0..t.size - 1 {
            let k = if t.order == Order::Forward { step } else { t.size - 1 - step };
            let column = V::load(t.scaled[k * MOST_LANES..].as_ptr());
            for c in 0..C {
                x[c] = x[c].minus_product(column, x[c].lane(k));
            }
        }
        let reciprocals = V::load(t.reciprocals.as_ptr());
        for c in 0..C {
            x[c].times(reciprocals).store_some(at(c), 0..t.size);
        }
    }
}
