//! The C interface: `cblas_…`.

use crate::arguments::{Checked, Code};
use crate::refuse;
use crate::routine::{gemm, herk, symm, syrk, triangular, Call, Operation, Symmetry};
use num_complex::Complex;
use std::ffi::{c_int, c_void};

use Code::Number;

/// Runs a routine, and names a parameter that is not allowed.
fn run(name: &str, layout: c_int, routine: impl FnOnce(Call) -> Checked<()>) {
    if let Err(position) = Call::c(layout).and_then(routine) {
        refuse::c(name, position);
    }
}

/// Functions of real types, whose factors are values.
macro_rules! real {
    ($real:ty, $gemm:ident, $symm:ident, $syrk:ident, $trmm:ident, $trsm:ident) => {
        functions!($real, $real, $real, |factor| factor, $gemm, $symm, $syrk, $trmm, $trsm);
    };
}

/// Functions of complex types, whose factors are addresses.
macro_rules! complex {
    ($real:ty, $gemm:ident, $symm:ident, $syrk:ident, $trmm:ident, $trsm:ident, $hemm:ident, $herk:ident) => {
        functions!(
            Complex<$real>,
            *const c_void,
            c_void,
            |factor| *factor.cast::<Complex<$real>>(),
            $gemm,
            $symm,
            $syrk,
            $trmm,
            $trsm
        );
        symmetric!(
            Complex<$real>,
            *const c_void,
            c_void,
            |factor| *factor.cast::<Complex<$real>>(),
            $hemm,
            Symmetry::Hermitian
        );

        /// `C ← α·A·Aᴴ + β·C` or `C ← α·Aᴴ·A + β·C`, of which one triangle is written.
        ///
        /// # Safety
        /// The arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $herk(
            layout: c_int,
            triangle: c_int,
            form: c_int,
            n: c_int,
            k: c_int,
            alpha: $real,
            a: *const c_void,
            lda: c_int,
            beta: $real,
            c: *mut c_void,
            ldc: c_int,
        ) {
            run(stringify!($herk), layout, |call| {
                let codes = (Number(triangle), Number(form));
                let (a, c) = ((a.cast::<Complex<$real>>(), lda), (c.cast(), ldc));
                // SAFETY: the caller's promise.
                unsafe { herk(call, codes, (n, k), (alpha, beta), a, c) }
            });
        }
    };
}

/// A product with a symmetric or Hermitian matrix.
macro_rules! symmetric {
    ($element:ty, $factor:ty, $pointee:ty, |$given:ident| $value:expr, $name:ident, $symmetry:expr) => {
        /// `C ← α·A·B + β·C` or `C ← α·B·A + β·C` with a matrix `A` of which one triangle is read.
        ///
        /// # Safety
        /// The arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $name(
            layout: c_int,
            side: c_int,
            triangle: c_int,
            m: c_int,
            n: c_int,
            alpha: $factor,
            a: *const $pointee,
            lda: c_int,
            b: *const $pointee,
            ldb: c_int,
            beta: $factor,
            c: *mut $pointee,
            ldc: c_int,
        ) {
            run(stringify!($name), layout, |call| {
                let codes = (Number(side), Number(triangle));
                // SAFETY: the caller's promise.
                unsafe {
                    let value = |$given: $factor| -> $element { $value };
                    let factors = (value(alpha), value(beta));
                    let (a, b) = ((a.cast(), lda), (b.cast(), ldb));
                    symm(call, $symmetry, codes, (m, n), factors, a, b, (c.cast(), ldc))
                }
            });
        }
    };
}

/// A product with a triangular matrix, or the solution of a triangular system.
macro_rules! triangle {
    ($element:ty, $factor:ty, $pointee:ty, |$given:ident| $value:expr, $name:ident, $operation:expr) => {
        /// `B ← α·op(A)·B` or `B ← α·B·op(A)` with a triangular matrix `A`, or with its inverse.
        ///
        /// # Safety
        /// The arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $name(
            layout: c_int,
            side: c_int,
            triangle: c_int,
            form: c_int,
            diagonal: c_int,
            m: c_int,
            n: c_int,
            alpha: $factor,
            a: *const $pointee,
            lda: c_int,
            b: *mut $pointee,
            ldb: c_int,
        ) {
            run(stringify!($name), layout, |call| {
                let codes = (Number(side), Number(triangle), Number(form), Number(diagonal));
                // SAFETY: the caller's promise.
                unsafe {
                    let value = |$given: $factor| -> $element { $value };
                    let a = (a.cast(), lda);
                    triangular(call, $operation, codes, (m, n), value(alpha), a, (b.cast(), ldb))
                }
            });
        }
    };
}

/// The functions of one type.
macro_rules! functions {
    ($element:ty, $factor:ty, $pointee:ty, |$given:ident| $value:expr,
     $gemm:ident, $symm:ident, $syrk:ident, $trmm:ident, $trsm:ident) => {
        /// `C ← α·op(A)·op(B) + β·C`.
        ///
        /// # Safety
        /// The arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $gemm(
            layout: c_int,
            form_a: c_int,
            form_b: c_int,
            m: c_int,
            n: c_int,
            k: c_int,
            alpha: $factor,
            a: *const $pointee,
            lda: c_int,
            b: *const $pointee,
            ldb: c_int,
            beta: $factor,
            c: *mut $pointee,
            ldc: c_int,
        ) {
            run(stringify!($gemm), layout, |call| {
                let codes = (Number(form_a), Number(form_b));
                // SAFETY: the caller's promise.
                unsafe {
                    let value = |$given: $factor| -> $element { $value };
                    let factors = (value(alpha), value(beta));
                    let (a, b) = ((a.cast(), lda), (b.cast(), ldb));
                    gemm(call, codes, (m, n, k), factors, a, b, (c.cast(), ldc))
                }
            });
        }

        /// `C ← α·A·Aᵀ + β·C` or `C ← α·Aᵀ·A + β·C`, of which one triangle is written.
        ///
        /// # Safety
        /// The arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $syrk(
            layout: c_int,
            triangle: c_int,
            form: c_int,
            n: c_int,
            k: c_int,
            alpha: $factor,
            a: *const $pointee,
            lda: c_int,
            beta: $factor,
            c: *mut $pointee,
            ldc: c_int,
        ) {
            run(stringify!($syrk), layout, |call| {
                let codes = (Number(triangle), Number(form));
                // SAFETY: the caller's promise.
                unsafe {
                    let value = |$given: $factor| -> $element { $value };
                    let factors = (value(alpha), value(beta));
                    syrk(call, codes, (n, k), factors, (a.cast(), lda), (c.cast(), ldc))
                }
            });
        }

        symmetric!($element, $factor, $pointee, |$given| $value, $symm, Symmetry::Symmetric);
        triangle!($element, $factor, $pointee, |$given| $value, $trmm, Operation::Multiply);
        triangle!($element, $factor, $pointee, |$given| $value, $trsm, Operation::Solve);
    };
}

real!(f32, cblas_sgemm, cblas_ssymm, cblas_ssyrk, cblas_strmm, cblas_strsm);
real!(f64, cblas_dgemm, cblas_dsymm, cblas_dsyrk, cblas_dtrmm, cblas_dtrsm);
complex!(f32, cblas_cgemm, cblas_csymm, cblas_csyrk, cblas_ctrmm, cblas_ctrsm, cblas_chemm, cblas_cherk);
complex!(f64, cblas_zgemm, cblas_zsymm, cblas_zsyrk, cblas_ztrmm, cblas_ztrsm, cblas_zhemm, cblas_zherk);
