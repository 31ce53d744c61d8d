//! Blocks of a vector's height: the bridge from views to the register kernels, and plain loops for
//! complex numbers.
//!
//! A real view is an array of the kernel's type, so addresses are passed on as they are. Blocks
//! have adjacent rows or adjacent columns: whoever starts a factorisation copies arrays that have
//! neither.

use super::shape::Diagonal;
use crate::kernel::factor::{FactorKernels, Order, SmallTriangle, MOST_LANES};
use crate::kernel::Kernel;
use crate::strided::{Strided, StridedMut};
use crate::transpose::BlockTranspose;
use crate::{Element, Real};

/// Memory that blocks need, which is made once for a whole factorisation.
pub(super) struct Work<T: Element> {
    pub(super) triangle: SmallTriangle<T::Real>,
}

impl<T: Element> Work<T> {
    #[inline]
    pub(super) fn new() -> Work<T> {
        Work { triangle: SmallTriangle::new(T::Real::ZERO) }
    }
}

/// The kernels for the parts of `T`.
#[inline]
pub(super) fn kernels<T: Element>(kernel: &'static Kernel) -> &'static FactorKernels<T::Real> {
    <T::Real as Real>::factor(kernel).0
}

/// Rows and columns of the largest block.
#[inline]
pub(super) fn block_size<T: Element>(kernel: &'static Kernel) -> usize {
    match T::PARTS {
        1 => kernels::<T>(kernel).lanes,
        _ => 8,
    }
}

/// Whether a row's or a column's entries are adjacent.
#[inline]
pub(super) fn is_adjacent((row, col): (isize, isize)) -> bool {
    row.abs() == 1 || col.abs() == 1
}

/// Reads the lower triangle of `view`, which is at most a block. `order` tells the order of rows in
/// memory. Returns whether all reciprocals of the diagonal are usable.
fn read_triangle<T: Element>(
    kernels: &FactorKernels<T::Real>,
    view: &Strided<'_, T>,
    diagonal: Diagonal,
    order: Order,
    t: &mut SmallTriangle<T::Real>,
) -> bool {
    let (start, row, col) = view.raw();
    let size = view.rows();
    t.order = order;
    // The view's place in memory, where rows come in ascending order.
    let last = (size - 1) as isize;
    let (first, stride, step) = match order {
        Order::Forward => (start, col, row),
        Order::Backward => (start.wrapping_offset(last * (row + col)), -col, -row),
    };
    if step == 1 {
        let place = (first.cast::<T::Real>(), stride, size);
        // SAFETY: the view is readable, and its rows are adjacent; a `Kernel` exists only if the
        // processor has its features.
        unsafe { (kernels.read)(t, place, diagonal == Diagonal::Unit) };
    } else {
        // SAFETY: rows and columns are those of the view.
        let entry = |i: usize, k: usize| unsafe {
            (*first.wrapping_offset(i as isize * step + k as isize * stride)).re()
        };
        t.size = size;
        for k in 0..size {
            let pivot = if diagonal == Diagonal::Unit { T::Real::ONE } else { entry(k, k) };
            let reciprocal = T::Real::ONE / pivot;
            t.reciprocals[k] = reciprocal;
            let entries = &mut t.entries[k * MOST_LANES..][..MOST_LANES];
            let scaled = &mut t.scaled[k * MOST_LANES..][..MOST_LANES];
            scaled[..kernels.lanes].fill(T::Real::ZERO);
            for i in if order == Order::Forward { k + 1..size } else { 0..k } {
                entries[i] = entry(i, k);
                scaled[i] = entries[i] * reciprocal;
            }
        }
    }
    t.reciprocals[..size].iter().all(|&reciprocal| is_usable(reciprocal))
}

/// Whether a number can be divided by with this reciprocal of it: that of a tiny number is
/// infinite, that of a huge one loses digits.
#[inline]
pub(super) fn is_usable<R: Real>(reciprocal: R) -> bool {
    // No product with the smallest number: results below it take a hundred cycles on some
    // processors.
    let (size, largest) = (reciprocal.abs(), R::ONE / R::MIN_POSITIVE);
    size >= R::MIN_POSITIVE && size <= largest
}

/// `B ← L⁻¹·B` with the lower triangle of a block.
pub(super) fn solve<T: Element>(
    kernel: &'static Kernel,
    l: Strided<'_, T>,
    diagonal: Diagonal,
    b: StridedMut<'_, T>,
    work: &mut Work<T>,
) {
    let mut b = if b.strides().1 == -1 { b.cols_reversed() } else { b };
    let (cols, (row, col)) = (b.cols(), b.strides());
    if T::PARTS > 1 || !is_adjacent((row, col)) {
        return solve_plainly(l, diagonal, b);
    }
    let kernels = kernels::<T>(kernel);
    let across = col == 1 && (cols > 1 || row.abs() != 1);
    // Rows of B in reverse order: the last one comes first in memory.
    let order = if across || row == 1 { Order::Forward } else { Order::Backward };
    if !read_triangle(kernels, &l, diagonal, order, &mut work.triangle) {
        return solve_plainly(l, diagonal, b);
    }
    let first = if order == Order::Forward { 0 } else { (l.rows() - 1) as isize * row };
    let start = b.raw().0.wrapping_offset(first).cast::<T::Real>();
    // SAFETY: the view is writable and has as many rows as the triangle; rows or columns are
    // adjacent; a `Kernel` exists only if the processor has its features.
    unsafe {
        match across {
            true => (kernels.solve_across)(&work.triangle, start, row, cols),
            false => (kernels.solve_down)(&work.triangle, start, col, cols),
        }
    }
}

/// `B ← L⁻¹·B` with the block that [`cholesky`] has just factorised, which is still in `work`.
pub(super) fn solve_again<T: Element>(
    kernel: &'static Kernel,
    l: Strided<'_, T>,
    mut b: StridedMut<'_, T>,
    work: &mut Work<T>,
) {
    let (cols, (row, col)) = (b.cols(), b.strides());
    let t = &work.triangle;
    let known = T::PARTS == 1 && (row == 1 || col == 1) && t.size == l.rows();
    if !known || !t.reciprocals[..t.size].iter().all(|&value| is_usable(value)) {
        return solve(kernel, l, Diagonal::Stored, b, work);
    }
    let kernels = kernels::<T>(kernel);
    let start = b.raw().0.cast::<T::Real>();
    // SAFETY: the view is writable and has as many rows as the triangle; rows or columns are
    // adjacent; a `Kernel` exists only if the processor has its features.
    unsafe {
        match col == 1 {
            true => (kernels.solve_across)(&work.triangle, start, row, cols),
            false => (kernels.solve_down)(&work.triangle, start, col, cols),
        }
    }
}

/// `B ← L⁻¹·B`, entry by entry.
pub(super) fn solve_plainly<T: Element>(l: Strided<'_, T>, diagonal: Diagonal, mut b: StridedMut<'_, T>) {
    for j in 0..b.cols() {
        for i in 0..b.rows() {
            let mut sum = b.get(i, j);
            for k in 0..i {
                sum = sum - l.get(i, k) * b.get(k, j);
            }
            b.set(i, j, if diagonal == Diagonal::Unit { sum } else { sum / l.get(i, i) });
        }
    }
}

/// Replaces the lower triangle of a block by its Cholesky factor. Returns the first column whose
/// pivot is not positive, or the number of columns.
pub(super) fn cholesky<T: Element>(
    kernel: &'static Kernel,
    mut a: StridedMut<'_, T>,
    work: &mut Work<T>,
) -> usize {
    if T::PARTS > 1 {
        return cholesky_plainly(a);
    }
    let kernels = kernels::<T>(kernel);
    let (start, row, col) = a.raw();
    let (size, t) = (a.rows(), &mut work.triangle);
    if row == 1 {
        let place = start.cast::<T::Real>();
        // SAFETY: the view is writable, and its rows are adjacent; a `Kernel` exists only if the
        // processor has its features.
        return unsafe {
            (kernels.load)(t, (place.cast_const(), col, size));
            let good = (kernels.cholesky)(t);
            (kernels.save)(t, (place, col, good));
            good
        };
    }
    (t.size, t.order) = (size, Order::Forward);
    let at = |i: usize, k: usize| start.wrapping_offset(i as isize * row + k as isize * col);
    for k in 0..size {
        let column = &mut t.entries[k * MOST_LANES..][..MOST_LANES];
        column[..kernels.lanes].fill(T::Real::ZERO);
        for i in k..size {
            // SAFETY: rows and columns are those of the view.
            column[i] = unsafe { (*at(i, k)).re() };
        }
    }
    // SAFETY: a `Kernel` exists only if the processor has its features.
    let good = unsafe { (kernels.cholesky)(t) };
    for k in 0..good {
        let column = &t.entries[k * MOST_LANES..][..MOST_LANES];
        for i in k..size {
            // SAFETY: rows and columns are those of the view.
            unsafe { *at(i, k) = T::from_re_im(column[i], T::Real::ZERO) };
        }
    }
    good
}

/// The lower triangle of `C ← S + β·C`. Both arrays have adjacent rows, or both have not.
pub(super) fn merge<T: Element>(
    kernel: &'static Kernel,
    square: Strided<'_, T>,
    beta: T,
    mut c: StridedMut<'_, T>,
) {
    let size = c.rows();
    let (from, square_row, square_col) = square.raw();
    let (to, row, col) = c.raw();
    if T::PARTS == 1 && square_row == 1 && row == 1 {
        let place = (to.cast::<T::Real>(), col, size);
        // SAFETY: both views have `size` rows and columns, and adjacent rows; a `Kernel` exists
        // only if the processor has its features.
        return unsafe { (kernels::<T>(kernel).merge)((from.cast(), square_col), place, beta.re()) };
    }
    for j in 0..size {
        for i in j..size {
            let at = to.wrapping_offset(i as isize * row + j as isize * col);
            // SAFETY: an entry of each view. That of `C` is not read if β is 0.
            unsafe {
                let sum = *from.wrapping_offset(i as isize * square_row + j as isize * square_col);
                *at = if beta == T::ZERO { sum } else { sum + beta * *at };
            }
        }
    }
}

/// The Cholesky factor of a Hermitian block, entry by entry.
fn cholesky_plainly<T: Element>(mut a: StridedMut<'_, T>) -> usize {
    let size = a.rows();
    for j in 0..size {
        let mut pivot = a.get(j, j).re();
        for k in 0..j {
            let value = a.get(j, k);
            pivot = pivot - (value * value.conj()).re();
        }
        // NaN is not positive either.
        let is_positive = pivot > T::Real::ZERO;
        if !is_positive {
            return j;
        }
        let root = T::from_re_im(pivot.sqrt(), T::Real::ZERO);
        a.set(j, j, root);
        for i in j + 1..size {
            let mut sum = a.get(i, j);
            for k in 0..j {
                sum = sum - a.get(i, k) * a.get(j, k).conj();
            }
            a.set(i, j, sum / root);
        }
    }
    size
}

/// The columns of a panel of LU and of QR.
pub(super) const PANEL: usize = 8;

/// Factorises a panel with adjacent rows. Returns the first column without a pivot, or the number
/// of columns.
pub(super) fn lu_panel<T: Element>(
    kernel: &'static Kernel,
    mut a: StridedMut<'_, T>,
    pivots: &mut [usize],
) -> usize {
    let (rows, cols) = (a.rows(), a.cols());
    if T::PARTS > 1 {
        return lu_plainly(a, pivots);
    }
    debug_assert!(a.strides().0 == 1 || rows == 1);
    let (start, _, stride) = a.raw();
    assert!(pivots.len() >= rows.min(cols), "a place for every pivot");
    // SAFETY: the panel is writable, its rows are adjacent, and `pivots` is long enough; a `Kernel`
    // exists only if the processor has its features.
    unsafe { (kernels::<T>(kernel).lu_panel)(start.cast(), stride, rows, cols, pivots) }
}

/// The panel of LU, entry by entry.
fn lu_plainly<T: Element>(mut a: StridedMut<'_, T>, pivots: &mut [usize]) -> usize {
    let (rows, cols) = (a.rows(), a.cols());
    let mut singular = cols;
    for j in 0..rows.min(cols) {
        // LAPACK compares |re| + |im|.
        let size = |value: T| value.re().abs() + value.im().abs();
        let mut pivot = j;
        for i in j + 1..rows {
            if size(a.get(i, j)) > size(a.get(pivot, j)) {
                pivot = i;
            }
        }
        pivots[j] = pivot;
        if a.get(pivot, j) == T::ZERO {
            singular = singular.min(j);
            continue;
        }
        for c in 0..cols {
            let (upper, lower) = (a.get(j, c), a.get(pivot, c));
            a.set(j, c, lower);
            a.set(pivot, c, upper);
        }
        for i in j + 1..rows {
            let factor = a.get(i, j) / a.get(j, j);
            a.set(i, j, factor);
            for c in j + 1..cols {
                a.set(i, c, a.get(i, c) - factor * a.get(j, c));
            }
        }
    }
    singular
}

/// Bytes of a cache line, and of the widest vector.
const LINE_BYTES: usize = 64;

/// Copies entries between two views of one shape.
pub(super) fn copy<T: Element>(from: Strided<'_, T>, mut to: StridedMut<'_, T>) {
    assert_eq!((from.rows(), from.cols()), (to.rows(), to.cols()), "copies have one shape");
    let (rows, cols) = (from.rows(), from.cols());
    let ((source, row, col), (target, to_row, to_col)) = (from.raw(), to.raw());
    // The inner loop runs along the adjacent entries of the target.
    let by_rows = to_col.abs() < to_row.abs();
    let (outer, inner) = if by_rows { (rows, cols) } else { (cols, rows) };
    let (outer_from, inner_from) = if by_rows { (row, col) } else { (col, row) };
    let (outer_to, inner_to) = if by_rows { (to_row, to_col) } else { (to_col, to_row) };
    // Rows that become columns are transposed in registers.
    let side = LINE_BYTES / size_of::<T>();
    let is_transposed = outer_from == 1 && inner_from != 1 && inner_to == 1;
    if is_transposed && outer.min(inner) >= side {
        // Incomplete blocks at the ends begin earlier and copy some entries again.
        let transpose = BlockTranspose::<T>::of(side);
        for i in (0..outer).step_by(side).map(|i| i.min(outer - side) as isize) {
            for j in (0..inner).step_by(side).map(|j| j.min(inner - side) as isize) {
                let source = source.wrapping_offset(i + j * inner_from);
                let target = target.wrapping_offset(i * outer_to + j);
                // SAFETY: the block lies in both views, which do not overlap.
                unsafe { transpose.block(source, inner_from, target, outer_to) };
            }
        }
        return;
    }
    for i in 0..outer as isize {
        let (source, target) = (source.wrapping_offset(i * outer_from), target.wrapping_offset(i * outer_to));
        // SAFETY: rows and columns are those of the views.
        unsafe {
            if inner_from == 1 && inner_to == 1 {
                target.copy_from(source, inner);
            } else {
                for j in 0..inner as isize {
                    *target.wrapping_offset(j * inner_to) = *source.wrapping_offset(j * inner_from);
                }
            }
        }
    }
}

/// Exchanges row `j` with row `pivots[j]` for each `j` in turn.
pub(super) fn swap_rows<T: Element>(mut a: StridedMut<'_, T>, pivots: &[usize]) {
    let (rows, cols) = (a.rows(), a.cols());
    assert!(pivots.len() <= rows && pivots.iter().all(|&pivot| pivot < rows), "pivots are rows");
    let (start, row, col) = a.raw();
    if col.abs() <= row.abs() {
        for (j, &pivot) in pivots.iter().enumerate().filter(|&(j, &pivot)| j != pivot) {
            let (upper, lower) =
                (start.wrapping_offset(j as isize * row), start.wrapping_offset(pivot as isize * row));
            for c in 0..cols as isize {
                // SAFETY: two entries of the view.
                unsafe { std::ptr::swap(upper.wrapping_offset(c * col), lower.wrapping_offset(c * col)) };
            }
        }
        return;
    }
    // Column by column, so that a column's lines are fetched once for all exchanges; four columns
    // together, because exchanges of one column wait for each other.
    let mut c = 0;
    while c < cols {
        let width = (cols - c).min(4);
        let columns = start.wrapping_offset(c as isize * col);
        for (j, &pivot) in pivots.iter().enumerate() {
            if j == pivot {
                continue;
            }
            let (upper, lower) =
                (columns.wrapping_offset(j as isize * row), columns.wrapping_offset(pivot as isize * row));
            for k in 0..width as isize {
                // SAFETY: two entries of the view.
                unsafe { std::ptr::swap(upper.wrapping_offset(k * col), lower.wrapping_offset(k * col)) };
            }
        }
        c += width;
    }
}

/// Factorises a panel of QR: reflectors below the diagonal, `R` on and above it, `Tᴴ` in `t`. `v`
/// is scratch memory of the panel's shape with adjacent rows.
pub(super) fn qr_panel<T: Element>(
    kernel: &'static Kernel,
    mut a: StridedMut<'_, T>,
    mut v: StridedMut<'_, T>,
    mut t: StridedMut<'_, T>,
    taus: &mut [T],
) {
    let (rows, cols) = (a.rows(), a.cols());
    if T::PARTS > 1 {
        for j in 0..cols {
            taus[j] = reflect_plainly(&mut a, j);
            let dots: Vec<T> = (0..j).map(|i| dot_of_reflectors(&a, i, j)).collect();
            extend_triangle(&mut t, j, taus[j], &dots);
        }
        return;
    }
    let is_direct = a.strides().0 == 1;
    if !is_direct {
        copy(a.as_ref(), v.reborrow());
    }
    let (start, _, stride) = if is_direct { a.raw() } else { v.raw() };
    assert!(is_direct || v.strides().0 == 1, "scratch memory has adjacent rows");
    let kernels = kernels::<T>(kernel);
    let mut dots = [T::Real::ZERO; MOST_LANES];
    for j in 0..cols {
        // SAFETY: the panel is writable, its rows are adjacent, and it has at least as many rows as
        // columns; a `Kernel` exists only if the processor has its features.
        let tau = unsafe { (kernels.reflect)(start.cast(), stride, rows, cols, j, &mut dots) };
        taus[j] = T::from_re_im(tau, T::Real::ZERO);
        extend_triangle(&mut t, j, taus[j], &dots.map(|dot| T::from_re_im(dot, T::Real::ZERO)));
    }
    if !is_direct {
        copy(v.as_ref(), a);
    }
}

/// Row `j` of `Tᴴ`, and zeros above the diagonal in its column. `dots[i]` is the product of the
/// reflectors `i` and `j`.
pub(super) fn extend_triangle<T: Element>(t: &mut StridedMut<'_, T>, j: usize, tau: T, dots: &[T]) {
    let factor = T::ZERO - tau.conj();
    for i in 0..j {
        let sum = (i..j).fold(T::ZERO, |sum, k| sum + t.get(k, i) * dots[k].conj());
        t.set(j, i, factor * sum);
        t.set(i, j, T::ZERO);
    }
    t.set(j, j, tau.conj());
}

/// Makes the reflector of column `j`, applies its adjoint to the columns right of it, and returns
/// τ.
fn reflect_plainly<T: Element>(a: &mut StridedMut<'_, T>, j: usize) -> T {
    let (rows, cols) = (a.rows(), a.cols());
    let alpha = a.get(j, j);
    // The largest part scales the squares, so that they neither overflow nor vanish.
    let part = |value: T| [value.re().abs(), value.im().abs()];
    let larger = |best: T::Real, size: T::Real| if size <= best { best } else { size };
    let below = (j + 1..rows).flat_map(|i| part(a.get(i, j))).fold(T::Real::ZERO, larger);
    if below == T::Real::ZERO && alpha.im() == T::Real::ZERO {
        return T::ZERO;
    }
    let unit = part(alpha).into_iter().fold(below, larger);
    let square = |value: T| {
        let (re, im) = (value.re() / unit, value.im() / unit);
        re * re + im * im
    };
    let norm = (j..rows).fold(T::Real::ZERO, |sum, i| sum + square(a.get(i, j))).sqrt() * unit;
    let beta = if alpha.re() < T::Real::ZERO { norm } else { T::Real::ZERO - norm };
    let beta = T::from_re_im(beta, T::Real::ZERO);
    let tau = (beta - alpha) / beta;
    let divisor = alpha - beta;
    for i in j + 1..rows {
        a.set(i, j, a.get(i, j) / divisor);
    }
    a.set(j, j, beta);
    for c in j + 1..cols {
        let dot = (j + 1..rows).fold(a.get(j, c), |sum, i| sum + a.get(i, j).conj() * a.get(i, c));
        let factor = tau.conj() * dot;
        a.set(j, c, a.get(j, c) - factor);
        for i in j + 1..rows {
            a.set(i, c, a.get(i, c) - a.get(i, j) * factor);
        }
    }
    tau
}

/// `v_iᴴ·v_j` for `i < j`, from the columns below the diagonal.
fn dot_of_reflectors<T: Element>(a: &StridedMut<'_, T>, i: usize, j: usize) -> T {
    let first = a.get(j, i).conj();
    (j + 1..a.rows()).fold(first, |sum, row| sum + a.get(row, i).conj() * a.get(row, j))
}

/// Copies reflectors to `v`, with ones on the diagonal and zeros above it, and their conjugate
/// transpose to `adjoint`.
pub(super) fn copy_reflectors<T: Element>(
    a: Strided<'_, T>,
    mut v: StridedMut<'_, T>,
    mut adjoint: StridedMut<'_, T>,
) {
    let cols = a.cols();
    copy(a, v.reborrow());
    for j in 0..cols {
        (0..j).for_each(|i| v.set(i, j, T::ZERO));
        v.set(j, j, T::ONE);
    }
    copy(v.as_ref().transposed(), adjoint.reborrow());
    if T::PARTS > 1 {
        map(&mut adjoint, T::conj);
    }
}

/// Replaces every entry.
pub(super) fn map<T: Element>(view: &mut StridedMut<'_, T>, change: impl Fn(T) -> T) {
    for j in 0..view.cols() {
        for i in 0..view.rows() {
            view.set(i, j, change(view.get(i, j)));
        }
    }
}

/// Sets every entry.
pub(super) fn fill<T: Element>(view: &mut StridedMut<'_, T>, value: T) {
    for j in 0..view.cols() {
        for i in 0..view.rows() {
            view.set(i, j, value);
        }
    }
}
