//! The Fortran interface of the BLAS: all arguments by address, letters for forms. The lengths of
//! letters, which compilers append, are not read.

use crate::arguments::{Checked, Code};
use crate::refuse;
use crate::routine::{gemm, herk, symm, syrk, triangular, Call, Operation, Symmetry};
use num_complex::Complex;
use std::ffi::{c_char, c_int};

/// Names a parameter that is not allowed; `name` ends in an underscore.
fn finish(name: &str, outcome: Checked<()>) {
    if let Err(position) = outcome {
        refuse::fortran(name, position);
    }
}

/// A product with a symmetric or Hermitian matrix.
macro_rules! symmetric {
    ($element:ty, $name:ident, $symmetry:expr) => {
        /// `C ← α·A·B + β·C` or `C ← α·B·A + β·C` with a matrix `A` of which one triangle is read.
        ///
        /// # Safety
        /// Addresses are valid, and the arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $name(
            side: *const c_char,
            triangle: *const c_char,
            m: *const c_int,
            n: *const c_int,
            alpha: *const $element,
            a: *const $element,
            lda: *const c_int,
            b: *const $element,
            ldb: *const c_int,
            beta: *const $element,
            c: *mut $element,
            ldc: *const c_int,
        ) {
            // SAFETY: the caller's promise.
            finish(stringify!($name), unsafe {
                let codes = (Code::letter(side), Code::letter(triangle));
                let (a, b, c) = ((a, *lda), (b, *ldb), (c, *ldc));
                symm(Call::FORTRAN, $symmetry, codes, (*m, *n), (*alpha, *beta), a, b, c)
            });
        }
    };
}

/// A product with a triangular matrix, or the solution of a triangular system.
macro_rules! triangle {
    ($element:ty, $name:ident, $operation:expr) => {
        /// `B ← α·op(A)·B` or `B ← α·B·op(A)` with a triangular matrix `A`, or with its inverse.
        ///
        /// # Safety
        /// Addresses are valid, and the arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $name(
            side: *const c_char,
            triangle: *const c_char,
            form: *const c_char,
            diagonal: *const c_char,
            m: *const c_int,
            n: *const c_int,
            alpha: *const $element,
            a: *const $element,
            lda: *const c_int,
            b: *mut $element,
            ldb: *const c_int,
        ) {
            // SAFETY: the caller's promise.
            finish(stringify!($name), unsafe {
                let triangle = (Code::letter(side), Code::letter(triangle));
                let codes = (triangle.0, triangle.1, Code::letter(form), Code::letter(diagonal));
                triangular(Call::FORTRAN, $operation, codes, (*m, *n), *alpha, (a, *lda), (b, *ldb))
            });
        }
    };
}

/// The functions of one type.
macro_rules! functions {
    ($element:ty, $gemm:ident, $symm:ident, $syrk:ident, $trmm:ident, $trsm:ident) => {
        /// `C ← α·op(A)·op(B) + β·C`.
        ///
        /// # Safety
        /// Addresses are valid, and the arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $gemm(
            form_a: *const c_char,
            form_b: *const c_char,
            m: *const c_int,
            n: *const c_int,
            k: *const c_int,
            alpha: *const $element,
            a: *const $element,
            lda: *const c_int,
            b: *const $element,
            ldb: *const c_int,
            beta: *const $element,
            c: *mut $element,
            ldc: *const c_int,
        ) {
            // SAFETY: the caller's promise.
            finish(stringify!($gemm), unsafe {
                let codes = (Code::letter(form_a), Code::letter(form_b));
                let (a, b, c) = ((a, *lda), (b, *ldb), (c, *ldc));
                gemm(Call::FORTRAN, codes, (*m, *n, *k), (*alpha, *beta), a, b, c)
            });
        }

        /// `C ← α·A·Aᵀ + β·C` or `C ← α·Aᵀ·A + β·C`, of which one triangle is written.
        ///
        /// # Safety
        /// Addresses are valid, and the arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $syrk(
            triangle: *const c_char,
            form: *const c_char,
            n: *const c_int,
            k: *const c_int,
            alpha: *const $element,
            a: *const $element,
            lda: *const c_int,
            beta: *const $element,
            c: *mut $element,
            ldc: *const c_int,
        ) {
            // SAFETY: the caller's promise.
            finish(stringify!($syrk), unsafe {
                let codes = (Code::letter(triangle), Code::letter(form));
                syrk(Call::FORTRAN, codes, (*n, *k), (*alpha, *beta), (a, *lda), (c, *ldc))
            });
        }

        symmetric!($element, $symm, Symmetry::Symmetric);
        triangle!($element, $trmm, Operation::Multiply);
        triangle!($element, $trsm, Operation::Solve);
    };
}

/// The functions that complex types have besides.
macro_rules! hermitian {
    ($real:ty, $hemm:ident, $herk:ident) => {
        symmetric!(Complex<$real>, $hemm, Symmetry::Hermitian);

        /// `C ← α·A·Aᴴ + β·C` or `C ← α·Aᴴ·A + β·C`, of which one triangle is written.
        ///
        /// # Safety
        /// Addresses are valid, and the arrays have the sizes that the parameters say.
        #[no_mangle]
        pub unsafe extern "C" fn $herk(
            triangle: *const c_char,
            form: *const c_char,
            n: *const c_int,
            k: *const c_int,
            alpha: *const $real,
            a: *const Complex<$real>,
            lda: *const c_int,
            beta: *const $real,
            c: *mut Complex<$real>,
            ldc: *const c_int,
        ) {
            // SAFETY: the caller's promise.
            finish(stringify!($herk), unsafe {
                let codes = (Code::letter(triangle), Code::letter(form));
                herk(Call::FORTRAN, codes, (*n, *k), (*alpha, *beta), (a, *lda), (c, *ldc))
            });
        }
    };
}

functions!(f32, sgemm_, ssymm_, ssyrk_, strmm_, strsm_);
functions!(f64, dgemm_, dsymm_, dsyrk_, dtrmm_, dtrsm_);
functions!(Complex<f32>, cgemm_, csymm_, csyrk_, ctrmm_, ctrsm_);
functions!(Complex<f64>, zgemm_, zsymm_, zsyrk_, ztrmm_, ztrsm_);
hermitian!(f32, chemm_, cherk_);
hermitian!(f64, zhemm_, zherk_);
