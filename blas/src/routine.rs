//! The routines, for all four types and both languages.
//!
//! Parameters are those of the Fortran interface, checked in its order: `first` is the number of
//! the first of them in the caller's list, 1 in Fortran and 2 in C, where the order of entries
//! comes first.

use crate::arguments::{size, threads, Checked, Code, Coded, Form, Order, Shape};
use matrix::{Diagonal, Element, Error, Factor, Gemm, Side, Strided, StridedMut, Triangle, Triangular};
use std::ffi::c_int;

/// The order of entries, and the number of the first parameter after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) order: Order,
    pub(crate) first: c_int,
}

impl Call {
    /// A call from Fortran.
    pub(crate) const FORTRAN: Call = Call { order: Order::Columns, first: 1 };

    /// A call from C.
    pub(crate) fn c(layout: c_int) -> Checked<Call> {
        Ok(Call { order: Order::of(layout)?, first: 2 })
    }

    /// The position of a parameter of the Fortran list.
    fn at(self, position: c_int) -> c_int {
        self.first - 1 + position
    }
}

pub(crate) fn options() -> Factor {
    Factor::new().threads(threads())
}

/// Shapes were checked, so what is left is memory that cannot be had.
fn expect<V>(result: Result<V, Error>) -> V {
    result.unwrap_or_else(|error| panic!("a checked call: {error}"))
}

/// A copy with conjugated entries, column after column.
fn conjugated<T: Element>(a: Strided<'_, T>) -> Vec<T> {
    let entries = (0..a.cols()).flat_map(|j| (0..a.rows()).map(move |i| (i, j)));
    entries.map(|(i, j)| a.get(i, j).conj()).collect()
}

/// `?gemm`.
///
/// # Safety
/// The arrays are as the interface requires.
pub(crate) unsafe fn gemm<T: Element>(
    call: Call,
    forms: (Code, Code),
    (m, n, k): (c_int, c_int, c_int),
    (alpha, beta): (T, T),
    (a, lda): (*const T, c_int),
    (b, ldb): (*const T, c_int),
    (c, ldc): (*mut T, c_int),
) -> Checked<()> {
    let (form_a, form_b) = (Form::at(call.at(1), forms.0)?, Form::at(call.at(2), forms.1)?);
    let (m, n, k) = (size(call.at(3), m)?, size(call.at(4), n)?, size(call.at(5), k)?);
    let stored = |form: Form, rows: usize, cols: usize| match form {
        Form::Plain => (rows, cols),
        _ => (cols, rows),
    };
    let a_shape = Shape::new(call.at(8), call.order, stored(form_a, m, k), lda)?;
    let b_shape = Shape::new(call.at(10), call.order, stored(form_b, k, n), ldb)?;
    let c_shape = Shape::new(call.at(13), call.order, (m, n), ldc)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let (a, b, c) = unsafe { (a_shape.read(a), b_shape.read(b), c_shape.write(c)) };
    let gemm = Gemm::new().threads(threads());
    // Operands that are not read may be anything, so only the scaling is left of the product.
    if k == 0 || alpha == T::ZERO {
        let none = [T::ZERO; 0];
        let (a, b) = (Strided::new(&none, m, 0, 1, 1), Strided::new(&none, 0, n, 1, 1));
        expect(gemm.multiply_strided(alpha, expect(a), expect(b), beta, c));
        return Ok(());
    }
    let is_conjugated = |form: Form| form == Form::Adjoint && T::PARTS > 1;
    let a_copy = if is_conjugated(form_a) { conjugated(a) } else { Vec::new() };
    let b_copy = if is_conjugated(form_b) { conjugated(b) } else { Vec::new() };
    let a = formed(form_a, a, &a_copy);
    let b = formed(form_b, b, &b_copy);
    expect(gemm.multiply_strided(alpha, a, b, beta, c));
    Ok(())
}

/// An operand in its form; `copy` has its conjugated entries if it needs them.
fn formed<'a, T: Element>(form: Form, view: Strided<'a, T>, copy: &'a [T]) -> Strided<'a, T> {
    let view = match copy.is_empty() {
        true => view,
        false => expect(Strided::col_major(copy, view.rows(), view.cols())),
    };
    match form {
        Form::Plain => view,
        Form::Transposed | Form::Adjoint => view.transposed(),
    }
}

/// The kind of symmetry of a matrix or of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symmetry {
    Symmetric,
    Hermitian,
}

/// `?symm` and `?hemm`.
///
/// # Safety
/// The arrays are as the interface requires.
pub(crate) unsafe fn symm<T: Element>(
    call: Call,
    symmetry: Symmetry,
    (side, triangle): (Code, Code),
    (m, n): (c_int, c_int),
    (alpha, beta): (T, T),
    (a, lda): (*const T, c_int),
    (b, ldb): (*const T, c_int),
    (c, ldc): (*mut T, c_int),
) -> Checked<()> {
    let (side, triangle) = (Side::at(call.at(1), side)?, Triangle::at(call.at(2), triangle)?);
    let (m, n) = (size(call.at(3), m)?, size(call.at(4), n)?);
    let order = if side == Side::Left { m } else { n };
    let a_shape = Shape::new(call.at(7), call.order, (order, order), lda)?;
    let b_shape = Shape::new(call.at(9), call.order, (m, n), ldb)?;
    let c_shape = Shape::new(call.at(12), call.order, (m, n), ldc)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let (a, b, c) = unsafe { (a_shape.read(a), b_shape.read(b), c_shape.write(c)) };
    expect(match symmetry {
        Symmetry::Symmetric => options().multiply_symmetric(side, triangle, alpha, a, b, beta, c),
        Symmetry::Hermitian => options().multiply_hermitian(side, triangle, alpha, a, b, beta, c),
    });
    Ok(())
}

/// The array of an update, and its shape: A of n×k, or the array whose transpose that is.
///
/// # Safety
/// The array is as the interface requires.
unsafe fn updated<'a, T: Element>(
    call: Call,
    form: Form,
    (n, k): (usize, usize),
    (a, lda): (*const T, c_int),
) -> Checked<Strided<'a, T>> {
    let stored = if form == Form::Plain { (n, k) } else { (k, n) };
    let shape = Shape::new(call.at(7), call.order, stored, lda)?;
    // SAFETY: the caller's promise.
    let a = unsafe { shape.read(a) };
    Ok(if form == Form::Plain { a } else { a.transposed() })
}

/// `?syrk`.
///
/// # Safety
/// The arrays are as the interface requires.
pub(crate) unsafe fn syrk<T: Element>(
    call: Call,
    (triangle, form): (Code, Code),
    (n, k): (c_int, c_int),
    (alpha, beta): (T, T),
    a: (*const T, c_int),
    (c, ldc): (*mut T, c_int),
) -> Checked<()> {
    let (triangle, form) = (Triangle::at(call.at(1), triangle)?, Form::at(call.at(2), form)?);
    // Complex symmetric updates have no conjugate form.
    if form == Form::Adjoint && T::PARTS > 1 {
        return Err(call.at(2));
    }
    let (n, k) = (size(call.at(3), n)?, size(call.at(4), k)?);
    // SAFETY: the caller's promise.
    let a = unsafe { updated(call, form, (n, k), a)? };
    let shape = Shape::new(call.at(10), call.order, (n, n), ldc)?;
    if n > 0 {
        // SAFETY: the caller's promise.
        let c = unsafe { shape.write(c) };
        expect(options().rank_k_update(triangle, alpha, a, beta, c));
    }
    Ok(())
}

/// `?herk`.
///
/// # Safety
/// The arrays are as the interface requires.
pub(crate) unsafe fn herk<T: Element>(
    call: Call,
    (triangle, form): (Code, Code),
    (n, k): (c_int, c_int),
    (alpha, beta): (T::Real, T::Real),
    a: (*const T, c_int),
    (c, ldc): (*mut T, c_int),
) -> Checked<()> {
    let (triangle, form) = (Triangle::at(call.at(1), triangle)?, Form::at(call.at(2), form)?);
    if form == Form::Transposed {
        return Err(call.at(2));
    }
    let (n, k) = (size(call.at(3), n)?, size(call.at(4), k)?);
    // SAFETY: the caller's promise.
    let a = unsafe { updated(call, form, (n, k), a)? };
    let shape = Shape::new(call.at(10), call.order, (n, n), ldc)?;
    if n == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let c = unsafe { shape.write(c) };
    // Aᴴ·A of the array A is V·Vᴴ with V = Aᴴ, whose entries are conjugated ones.
    let copy = if form == Form::Adjoint { conjugated(a) } else { Vec::new() };
    let a = formed(Form::Plain, a, &copy);
    expect(options().hermitian_rank_k_update(triangle, alpha, a, beta, c));
    Ok(())
}

/// Whether a triangular matrix is multiplied with or divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Multiply,
    Solve,
}

/// `?trmm` and `?trsm`.
///
/// # Safety
/// The arrays are as the interface requires.
pub(crate) unsafe fn triangular<T: Element>(
    call: Call,
    operation: Operation,
    (side, triangle, form, diagonal): (Code, Code, Code, Code),
    (m, n): (c_int, c_int),
    alpha: T,
    (a, lda): (*const T, c_int),
    (b, ldb): (*mut T, c_int),
) -> Checked<()> {
    let (side, triangle) = (Side::at(call.at(1), side)?, Triangle::at(call.at(2), triangle)?);
    let (form, diagonal) = (Form::at(call.at(3), form)?, Diagonal::at(call.at(4), diagonal)?);
    let (m, n) = (size(call.at(5), m)?, size(call.at(6), n)?);
    let order = if side == Side::Left { m } else { n };
    let a_shape = Shape::new(call.at(9), call.order, (order, order), lda)?;
    let b_shape = Shape::new(call.at(11), call.order, (m, n), ldb)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let (array, mut b) = unsafe { (a_shape.read(a), b_shape.write(b)) };
    let a = Triangular::new(triangle, array);
    let a = if diagonal == Diagonal::Unit { a.unit() } else { a };
    let a = match form {
        Form::Plain => a,
        Form::Transposed => a.transposed(),
        Form::Adjoint => a.adjoint(),
    };
    match operation {
        Operation::Multiply => expect(options().multiply_triangular(side, alpha, a, b)),
        // The interface leaves it to the caller that the matrix can be inverted: entries become
        // infinite or NaN.
        Operation::Solve => match options().solve_triangular(side, alpha, a, b.reborrow()) {
            Err(Error::Singular { .. }) => poison(b),
            result => expect(result),
        },
    }
    Ok(())
}

/// Makes every entry NaN.
fn poison<T: Element>(mut b: StridedMut<'_, T>) {
    let nan = <T::Real as matrix::Real>::from_f64(f64::NAN);
    for j in 0..b.cols() {
        (0..b.rows()).for_each(|i| b.set(i, j, T::from_re_im(nan, nan)));
    }
}
