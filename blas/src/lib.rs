//! The BLAS and LAPACK routines that `lightfoot-matrix` has, under their C and Fortran names, in a
//! shared library for programs that exist.
//!
//! ```text
//! cargo build --release -p lightfoot-blas
//! LD_PRELOAD=target/release/liblightfoot_blas.so python3 program.py
//! ```
//!
//! | you have | you want | names |
//! |---|---|---|
//! | a program that calls a BLAS | products | `cblas_?gemm`, `?gemm_` |
//! | … | symmetric products and updates | `?symm`, `?hemm`, `?syrk`, `?herk` |
//! | … | triangular products and systems | `?trmm`, `?trsm` |
//! | a program that calls LAPACK | LU and its solutions | `?getrf_`, `?getrs_`, `?gesv_` |
//! | … | Cholesky and its solutions | `?potrf_`, `?potrs_`, `?posv_` |
//! | … | QR and its orthogonal matrix | `?geqrf_`, `?orgqr_`, `?ungqr_` |
//!
//! `?` is `s`, `d`, `c` or `z`. What is not here comes from the library that the program loads by
//! itself, so preloading is enough.
//!
//! **Threads.** As many as `LIGHTFOOT_NUM_THREADS` says, else `OMP_NUM_THREADS`, else one for each
//! processor. Results do not depend on the number.
//!
//! **Errors.** A parameter that is not allowed is handed to the process's `xerbla_` or
//! `cblas_xerbla`; where there is none, a sentence on standard error names it. The routine returns
//! without a result. LAPACK routines set `info` as well.
//!
//! **What it leaves out.** Vectors and products of a matrix and a vector, 64-bit integers, packed
//! and banded matrices, LAPACKE.
//!
//! Source: Blackford et al. 2002, An updated set of basic linear algebra subprograms (BLAS), and
//! the interface of the reference LAPACK 3.11.

#![allow(clippy::too_many_arguments, reason = "the parameters of the BLAS and of LAPACK")]

mod arguments;
mod cblas;
mod fortran;
mod lapack;
mod refuse;
mod routine;

pub use cblas::*;
pub use fortran::*;
pub use lapack::*;

/// Makes the examples of the README doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
