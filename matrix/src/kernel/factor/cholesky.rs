//! The Cholesky factor of a matrix that fits into registers, a vector a column.
//!
//! **The problem.** A square root, a division and a multiplication for every column, one after the
//! other, take longer than all the rest. **The idea.** `A = L′·D·L′ᵀ` needs a division only; the
//! square roots of `D` are independent of each other and come at the end. Step `j` subtracts column
//! `j` times lane `c` of `column j / dⱼ` from column `c`.

use super::lanes::{Float, Lanes};
use super::triangle::{SmallTriangle, MOST_LANES};

/// Replaces the triangle by its Cholesky factor, with reciprocals and scaled columns. Returns the
/// first column whose pivot is not positive, or the number of columns.
///
/// # Safety
/// The processor has the instruction set; the triangle has at most a vector's rows.
#[inline(always)]
pub(super) unsafe fn factorise<V: Lanes>(t: &mut SmallTriangle<V::Real>) -> usize {
    let size = t.size;
    // SAFETY: whole columns of the triangle's memory.
    unsafe {
        match V::COUNT {
            16 => eliminate::<V, 16>(t),
            8 => eliminate::<V, 8>(t),
            _ => eliminate::<V, 4>(t),
        }
    }
    let mut good = 0;
    while good < size && t.reciprocals[good] > V::Real::ZERO {
        good += 1;
    }
    // `reciprocals` holds the pivots. Infinite ones are passed on, as LAPACK does.
    for k in 0..good {
        let pivot = t.reciprocals[k];
        let root = pivot.sqrt();
        t.reciprocals[k] = V::Real::ONE / root;
        // Column k of L is column k of L′ times the root.
        // SAFETY: a whole column of the triangle's memory.
        unsafe {
            let column = V::load(t.scaled[k * MOST_LANES..].as_ptr());
            column
                .times(V::splat(root))
                .store_some(t.entries[k * MOST_LANES..].as_mut_ptr(), k + 1..V::COUNT);
        }
        t.entries[k * MOST_LANES + k] = root;
    }
    good
}

/// Leaves the pivots in `reciprocals` and the columns of L′ in `scaled`, with zeros up to the
/// diagonal.
///
/// # Safety
/// The requirements of [`factorise`]; `N` is the number of lanes.
#[inline(always)]
unsafe fn eliminate<V: Lanes, const N: usize>(t: &mut SmallTriangle<V::Real>) {
    // SAFETY: whole columns of the triangle's memory.
    unsafe {
        let mut columns = [V::splat(V::Real::ZERO); N];
        for j in 0..N {
            columns[j] = V::load(t.entries[j * MOST_LANES..].as_ptr());
        }
        for j in 0..N {
            if j >= t.size {
                break;
            }
            columns[j].store_some(t.reciprocals.as_mut_ptr(), j..j + 1);
            let pivot = columns[j].lane(j);
            // All lanes divide; that of the diagonal becomes 1.
            let scaled = columns[j].over(pivot);
            for c in j + 1..N {
                columns[c] = columns[c].minus_product(columns[j], scaled.lane(c));
            }
            V::splat(V::Real::ZERO).store_some(t.scaled[j * MOST_LANES..].as_mut_ptr(), 0..j + 1);
            scaled.store_some(t.scaled[j * MOST_LANES..].as_mut_ptr(), j + 1..N);
        }
    }
}
