//! Factorisations and solutions under LAPACK's names. Matrices are stored column after column, and
//! `info` is 0, −i for a parameter that is not allowed, or the number of the column at which a
//! factorisation failed.

use crate::arguments::{size, Checked, Code, Coded, Form, Order, Shape, Triangle};
use crate::refuse;
use crate::routine::options;
use matrix::{Element, Error, Qr, Side, Strided, StridedMut, Triangular};
use num_complex::Complex;
use std::ffi::{c_char, c_int};

/// Sets `info`, and names a parameter that is not allowed.
///
/// # Safety
/// `info` is writable.
unsafe fn finish(name: &str, info: *mut c_int, outcome: Checked<c_int>) {
    if let Err(position) = outcome {
        refuse::fortran(name, position);
    }
    // SAFETY: the caller's promise.
    unsafe { *info = outcome.unwrap_or_else(|position| -position) }
}

/// A column as LAPACK counts it.
fn number(column: usize) -> c_int {
    c_int::try_from(column + 1).unwrap_or(c_int::MAX)
}

fn columns(position: c_int, shape: (usize, usize), leading: c_int) -> Checked<Shape> {
    Shape::new(position, Order::Columns, shape, leading)
}

/// Shapes were checked, so what is left is memory that cannot be had.
fn expect<V>(result: Result<V, Error>) -> V {
    result.unwrap_or_else(|error| panic!("a checked call: {error}"))
}

/// Factorises, and stores the pivots from 1.
///
/// # Safety
/// `pivots` is writable as far as the smaller side.
unsafe fn factorise<T: Element>(a: StridedMut<'_, T>, pivots: *mut c_int) -> c_int {
    let mut rows = vec![0; a.rows().min(a.cols())];
    let singular = expect(options().lu_with(a, &mut rows));
    for (j, &row) in rows.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { *pivots.add(j) = number(row) };
    }
    singular.map_or(0, number)
}

/// Exchanges row `j` of `b` with row `pivots[j]`, in the order of `j` or against it.
fn exchange<T: Element>(b: &mut StridedMut<'_, T>, exchanges: impl Iterator<Item = (usize, usize)>) {
    for (row, other) in exchanges.filter(|(row, other)| row != other) {
        for j in 0..b.cols() {
            let (first, second) = (b.get(row, j), b.get(other, j));
            b.set(row, j, second);
            b.set(other, j, first);
        }
    }
}

/// Solves `op(A)·X = B` from the factors of `P·A = L·U`.
fn solve<T: Element>(form: Form, factors: Strided<'_, T>, pivots: &[c_int], mut b: StridedMut<'_, T>) {
    let exchanges = pivots.iter().enumerate().map(|(j, &pivot)| (j, (pivot - 1) as usize));
    let (lower, upper) = (Triangular::lower(factors).unit(), Triangular::upper(factors));
    let step = |triangle: Triangular<'_, T>, b: StridedMut<'_, T>| {
        let triangle = match form {
            Form::Plain => triangle,
            Form::Transposed => triangle.transposed(),
            Form::Adjoint => triangle.adjoint(),
        };
        // A zero on the diagonal of `U` was reported by the factorisation.
        match options().solve_triangular(Side::Left, T::ONE, triangle, b) {
            Err(Error::Singular { .. }) => (),
            result => expect(result),
        }
    };
    if form == Form::Plain {
        exchange(&mut b, exchanges);
        step(lower, b.reborrow());
        step(upper, b);
    } else {
        step(upper, b.reborrow());
        step(lower, b.reborrow());
        exchange(&mut b, exchanges.rev());
    }
}

/// # Safety
/// The arrays are as the interface requires.
unsafe fn getrf<T: Element>(
    (m, n): (c_int, c_int),
    (a, lda): (*mut T, c_int),
    pivots: *mut c_int,
) -> Checked<c_int> {
    let (m, n) = (size(1, m)?, size(2, n)?);
    let shape = columns(4, (m, n), lda)?;
    if m == 0 || n == 0 {
        return Ok(0);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { factorise(shape.write(a), pivots) })
}

/// # Safety
/// The arrays are as the interface requires.
unsafe fn getrs<T: Element>(
    form: Code,
    (n, count): (c_int, c_int),
    (a, lda): (*const T, c_int),
    pivots: *const c_int,
    (b, ldb): (*mut T, c_int),
) -> Checked<c_int> {
    let (form, n, count) = (Form::at(1, form)?, size(2, n)?, size(3, count)?);
    let (a_shape, b_shape) = (columns(5, (n, n), lda)?, columns(8, (n, count), ldb)?);
    if n > 0 && count > 0 {
        // SAFETY: the caller's promise.
        unsafe {
            solve(form, a_shape.read(a), std::slice::from_raw_parts(pivots, n), b_shape.write(b));
        }
    }
    Ok(0)
}

/// # Safety
/// The arrays are as the interface requires.
unsafe fn gesv<T: Element>(
    (n, count): (c_int, c_int),
    (a, lda): (*mut T, c_int),
    pivots: *mut c_int,
    (b, ldb): (*mut T, c_int),
) -> Checked<c_int> {
    let (n, count) = (size(1, n)?, size(2, count)?);
    let (a_shape, b_shape) = (columns(4, (n, n), lda)?, columns(7, (n, count), ldb)?);
    if n == 0 {
        return Ok(0);
    }
    // SAFETY: the caller's promise; the factorisation is over when its array is read.
    unsafe {
        let info = factorise(a_shape.write(a), pivots);
        if info == 0 && count > 0 {
            let pivots = std::slice::from_raw_parts(pivots.cast_const(), n);
            solve(Form::Plain, a_shape.read(a.cast_const()), pivots, b_shape.write(b));
        }
        Ok(info)
    }
}

/// # Safety
/// The array is as the interface requires.
unsafe fn potrf<T: Element>(triangle: Code, n: c_int, (a, lda): (*mut T, c_int)) -> Checked<c_int> {
    let (triangle, n) = (Triangle::at(1, triangle)?, size(2, n)?);
    let shape = columns(4, (n, n), lda)?;
    if n == 0 {
        return Ok(0);
    }
    // SAFETY: the caller's promise.
    match options().cholesky_in_place(triangle, unsafe { shape.write(a) }) {
        Err(Error::NotPositiveDefinite { column }) => Ok(number(column)),
        result => {
            expect(result);
            Ok(0)
        }
    }
}

/// # Safety
/// The arrays are as the interface requires.
unsafe fn potrs<T: Element>(
    triangle: Code,
    (n, count): (c_int, c_int),
    (a, lda): (*const T, c_int),
    (b, ldb): (*mut T, c_int),
) -> Checked<c_int> {
    let (triangle, n, count) = (Triangle::at(1, triangle)?, size(2, n)?, size(3, count)?);
    let (a_shape, b_shape) = (columns(5, (n, n), lda)?, columns(7, (n, count), ldb)?);
    if n == 0 || count == 0 {
        return Ok(0);
    }
    // SAFETY: the caller's promise.
    let (factor, mut b) = unsafe { (Triangular::new(triangle, a_shape.read(a)), b_shape.write(b)) };
    let (first, second) = match triangle {
        Triangle::Lower => (factor, factor.adjoint()),
        Triangle::Upper => (factor.adjoint(), factor),
    };
    for factor in [first, second] {
        match options().solve_triangular(Side::Left, T::ONE, factor, b.reborrow()) {
            Err(Error::Singular { .. }) => (),
            result => expect(result),
        }
    }
    Ok(0)
}

/// # Safety
/// The arrays are as the interface requires.
unsafe fn posv<T: Element>(
    triangle: Code,
    (n, count): (c_int, c_int),
    (a, lda): (*mut T, c_int),
    (b, ldb): (*mut T, c_int),
) -> Checked<c_int> {
    Triangle::at(1, triangle)?;
    let (rows, count_checked) = (size(2, n)?, size(3, count)?);
    columns(5, (rows, rows), lda)?;
    columns(7, (rows, count_checked), ldb)?;
    // SAFETY: the caller's promise.
    unsafe {
        match potrf(triangle, n, (a, lda))? {
            0 => potrs(triangle, (n, count), (a.cast_const(), lda), (b, ldb)),
            info => Ok(info),
        }
    }
}

/// The room of which a routine says that it wants it: one number, because it has memory of its own.
///
/// # Safety
/// `work` is writable.
unsafe fn answer_query<T: Element>(work: *mut T) {
    // SAFETY: the caller's promise.
    unsafe { *work = T::ONE };
}

/// # Safety
/// The arrays are as the interface requires.
unsafe fn geqrf<T: Element>(
    (m, n): (c_int, c_int),
    (a, lda): (*mut T, c_int),
    taus: *mut T,
    (work, lwork): (*mut T, c_int),
) -> Checked<c_int> {
    let (m, n) = (size(1, m)?, size(2, n)?);
    let shape = columns(4, (m, n), lda)?;
    // SAFETY: the caller's promise.
    unsafe {
        answer_query(work);
        if lwork == -1 || m == 0 || n == 0 {
            return Ok(0);
        }
        let taus = std::slice::from_raw_parts_mut(taus, m.min(n));
        expect(options().qr_with(shape.write(a), taus));
    }
    Ok(0)
}

/// # Safety
/// The arrays are as the interface requires.
unsafe fn orgqr<T: Element>(
    (m, n, k): (c_int, c_int, c_int),
    (a, lda): (*mut T, c_int),
    taus: *const T,
    (work, lwork): (*mut T, c_int),
) -> Checked<c_int> {
    let m = size(1, m)?;
    let n = size(2, n).and_then(|n| if n <= m { Ok(n) } else { Err(2) })?;
    let k = size(3, k).and_then(|k| if k <= n { Ok(k) } else { Err(3) })?;
    let (whole, reflectors) = (columns(5, (m, n), lda)?, columns(5, (m, k), lda)?);
    // SAFETY: the caller's promise.
    unsafe {
        answer_query(work);
        if lwork == -1 || n == 0 {
            return Ok(0);
        }
        // The columns of Q are those of Q·I.
        let mut q = vec![T::ZERO; m * n];
        (0..n).for_each(|j| q[j * m + j] = T::ONE);
        let taus = if k == 0 { Vec::new() } else { std::slice::from_raw_parts(taus, k).to_vec() };
        let factors = expect(Qr::from_factors(options(), reflectors.read(a.cast_const()), taus));
        expect(factors.apply_q(expect(StridedMut::col_major(&mut q, m, n))));
        let mut a = whole.write(a);
        for j in 0..n {
            (0..m).for_each(|i| a.set(i, j, q[j * m + i]));
        }
    }
    Ok(0)
}

/// The routines of one type.
macro_rules! routines {
    ($element:ty, $getrf:ident, $getrs:ident, $gesv:ident, $potrf:ident, $potrs:ident, $posv:ident,
     $geqrf:ident, $orgqr:ident) => {
        /// `P·A = L·U`, in place, with pivots from 1.
        ///
        /// # Safety
        /// Addresses are valid, and the arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $getrf(
            m: *const c_int,
            n: *const c_int,
            a: *mut $element,
            lda: *const c_int,
            pivots: *mut c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller's promise.
            unsafe { finish(stringify!($getrf), info, getrf((*m, *n), (a, *lda), pivots)) }
        }

        /// `B ← op(A)⁻¹·B` from the factors of `A`.
        ///
        /// # Safety
        /// Addresses are valid, and the arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $getrs(
            form: *const c_char,
            n: *const c_int,
            count: *const c_int,
            a: *const $element,
            lda: *const c_int,
            pivots: *const c_int,
            b: *mut $element,
            ldb: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                let outcome = getrs(Code::letter(form), (*n, *count), (a, *lda), pivots, (b, *ldb));
                finish(stringify!($getrs), info, outcome);
            }
        }

        /// `B ← A⁻¹·B`; `A` becomes its factors.
        ///
        /// # Safety
        /// Addresses are valid, and the arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $gesv(
            n: *const c_int,
            count: *const c_int,
            a: *mut $element,
            lda: *const c_int,
            pivots: *mut c_int,
            b: *mut $element,
            ldb: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller's promise.
            unsafe { finish(stringify!($gesv), info, gesv((*n, *count), (a, *lda), pivots, (b, *ldb))) }
        }

        /// `A = L·Lᴴ` or `A = Uᴴ·U`, in place.
        ///
        /// # Safety
        /// Addresses are valid, and the array has the size that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $potrf(
            triangle: *const c_char,
            n: *const c_int,
            a: *mut $element,
            lda: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller's promise.
            unsafe { finish(stringify!($potrf), info, potrf(Code::letter(triangle), *n, (a, *lda))) }
        }

        /// `B ← A⁻¹·B` from the Cholesky factor of `A`.
        ///
        /// # Safety
        /// Addresses are valid, and the arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $potrs(
            triangle: *const c_char,
            n: *const c_int,
            count: *const c_int,
            a: *const $element,
            lda: *const c_int,
            b: *mut $element,
            ldb: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                let outcome = potrs(Code::letter(triangle), (*n, *count), (a, *lda), (b, *ldb));
                finish(stringify!($potrs), info, outcome);
            }
        }

        /// `B ← A⁻¹·B` for a positive definite `A`, which becomes its factor.
        ///
        /// # Safety
        /// Addresses are valid, and the arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $posv(
            triangle: *const c_char,
            n: *const c_int,
            count: *const c_int,
            a: *mut $element,
            lda: *const c_int,
            b: *mut $element,
            ldb: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                let outcome = posv(Code::letter(triangle), (*n, *count), (a, *lda), (b, *ldb));
                finish(stringify!($posv), info, outcome);
            }
        }

        /// `A = Q·R`, in place, with the factors τ of the reflectors.
        ///
        /// # Safety
        /// Addresses are valid, and the arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $geqrf(
            m: *const c_int,
            n: *const c_int,
            a: *mut $element,
            lda: *const c_int,
            taus: *mut $element,
            work: *mut $element,
            lwork: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller's promise.
            unsafe { finish(stringify!($geqrf), info, geqrf((*m, *n), (a, *lda), taus, (work, *lwork))) }
        }

        /// The first columns of `Q` in place of its reflectors.
        ///
        /// # Safety
        /// Addresses are valid, and the arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $orgqr(
            m: *const c_int,
            n: *const c_int,
            k: *const c_int,
            a: *mut $element,
            lda: *const c_int,
            taus: *const $element,
            work: *mut $element,
            lwork: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: the caller's promise.
            unsafe { finish(stringify!($orgqr), info, orgqr((*m, *n, *k), (a, *lda), taus, (work, *lwork))) }
        }
    };
}

routines!(f32, sgetrf_, sgetrs_, sgesv_, spotrf_, spotrs_, sposv_, sgeqrf_, sorgqr_);
routines!(f64, dgetrf_, dgetrs_, dgesv_, dpotrf_, dpotrs_, dposv_, dgeqrf_, dorgqr_);
routines!(Complex<f32>, cgetrf_, cgetrs_, cgesv_, cpotrf_, cpotrs_, cposv_, cgeqrf_, cungqr_);
routines!(Complex<f64>, zgetrf_, zgetrs_, zgesv_, zpotrf_, zpotrs_, zposv_, zgeqrf_, zungqr_);
