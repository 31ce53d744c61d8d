//! A lower triangle of at most a vector's size, by columns, with the reciprocals of its diagonal.

use super::lanes::{Float, Lanes};

/// The most lanes of a vector, and so the most rows of a [`SmallTriangle`].
pub(crate) const MOST_LANES: usize = 16;

/// The order in which columns of a vector's height are eliminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// From the first row to the last.
    Forward,
    /// From the last row to the first: `scaled` holds the triangle with rows and columns reversed,
    /// which is an upper triangle, and so do `reciprocals`.
    Backward,
}

/// A lower triangle with up to 16 rows. Column `k` begins at `entries[16·k]`; above the diagonal
/// lie zeros.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct SmallTriangle<T> {
    /// Rows and columns.
    pub(crate) size: usize,
    /// The order in which `solve::down` eliminates.
    pub(crate) order: Order,
    pub(crate) entries: [T; MOST_LANES * MOST_LANES],
    /// The reciprocals of the diagonal.
    pub(crate) reciprocals: [T; MOST_LANES],
    /// Column `k` of the triangle divided by its diagonal entry; see `solve::down`.
    pub(crate) scaled: [T; MOST_LANES * MOST_LANES],
}

impl<T: Copy> SmallTriangle<T> {
    /// An empty triangle whose memory holds `zero`.
    pub(crate) fn new(zero: T) -> SmallTriangle<T> {
        SmallTriangle {
            size: 0,
            order: Order::Forward,
            entries: [zero; MOST_LANES * MOST_LANES],
            reciprocals: [zero; MOST_LANES],
            scaled: [zero; MOST_LANES * MOST_LANES],
        }
    }
}

/// The place of a small triangle in memory: the address of its first row's entry in the first
/// column, the distance from one column to the next, and the number of rows.
pub(crate) type Place<P> = (P, isize, usize);

/// Reads a triangle whose columns' entries are adjacent, for `solve`: the lower one if `t.order` is
/// forward, otherwise the upper one, for `solve::down` only. A unit diagonal is not read.
///
/// # Safety
/// The processor has the instruction set; the square is readable and has at most a vector's rows.
#[inline(always)]
pub(super) unsafe fn read<V: Lanes>(
    t: &mut SmallTriangle<V::Real>,
    (start, stride, size): Place<*const V::Real>,
    is_unit: bool,
) {
    t.size = size;
    let column = |k: usize| start.wrapping_offset(k as isize * stride);
    // SAFETY: rows and columns of the square, and whole columns of the triangle's memory.
    unsafe {
        let ones = V::splat(V::Real::ONE);
        ones.store(t.reciprocals.as_mut_ptr());
        if !is_unit {
            (0..size).for_each(|k| t.reciprocals[k] = *column(k).wrapping_add(k));
            ones.over(V::load(t.reciprocals.as_ptr())).store(t.reciprocals.as_mut_ptr());
        }
        for k in 0..size {
            let lanes = if t.order == Order::Forward { k + 1..size } else { 0..k };
            let entries = V::load_some(column(k), lanes);
            entries.store(t.entries[k * MOST_LANES..].as_mut_ptr());
            let scaled = entries.times(V::splat(t.reciprocals[k]));
            scaled.store(t.scaled[k * MOST_LANES..].as_mut_ptr());
        }
    }
}

/// Reads the lower triangle of a matrix whose columns' entries are adjacent, with its diagonal, for
/// `cholesky`.
///
/// # Safety
/// The processor has the instruction set; the square is readable and has at most a vector's rows.
#[inline(always)]
pub(super) unsafe fn load<V: Lanes>(
    t: &mut SmallTriangle<V::Real>,
    (start, stride, size): Place<*const V::Real>,
) {
    (t.size, t.order) = (size, Order::Forward);
    for k in 0..size {
        // SAFETY: rows and columns of the square, and whole columns of the triangle's memory.
        unsafe {
            let column = V::load_some(start.wrapping_offset(k as isize * stride), k..size);
            column.store(t.entries[k * MOST_LANES..].as_mut_ptr());
        }
    }
}

/// Writes the first `count` columns of the triangle to a matrix whose columns' entries are
/// adjacent.
///
/// # Safety
/// The processor has the instruction set; the square is writable and has the triangle's size.
#[inline(always)]
pub(super) unsafe fn save<V: Lanes>(t: &SmallTriangle<V::Real>, (start, stride, count): Place<*mut V::Real>) {
    for k in 0..count {
        // SAFETY: rows and columns of the square, and whole columns of the triangle's memory.
        unsafe {
            let column = V::load(t.entries[k * MOST_LANES..].as_ptr());
            column.store_some(start.wrapping_offset(k as isize * stride), k..t.size);
        }
    }
}

/// The lower triangle of `C ← S + β·C` for a square `S` and columns whose entries are adjacent. If
/// β is 0, `C` is not read.
///
/// # Safety
/// The processor has the instruction set; both squares have `size` rows and columns.
#[inline(always)]
pub(super) unsafe fn merge<V: Lanes>(
    (square, square_stride): (*const V::Real, isize),
    (start, stride, size): Place<*mut V::Real>,
    beta: V::Real,
) {
    for k in 0..size {
        let from = square.wrapping_offset(k as isize * square_stride);
        let to = start.wrapping_offset(k as isize * stride);
        let mut top = k / V::COUNT * V::COUNT;
        while top < size {
            let lanes = k.saturating_sub(top)..V::COUNT.min(size - top);
            let (from, to) = (from.wrapping_add(top), to.wrapping_add(top));
            // SAFETY: the lanes that are named are rows of the squares.
            unsafe {
                let mut sum = V::load_some(from, lanes.clone());
                if beta != V::Real::ZERO {
                    sum = sum.plus_product(V::splat(beta), V::load_some(to, lanes.clone()));
                }
                sum.store_some(to, lanes);
            }
            top += V::COUNT;
        }
    }
}
