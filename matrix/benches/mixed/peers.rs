//! Libraries that multiply narrow numbers, found at run time by their C interfaces.

use super::{contestant, Contestant};
use half::{bf16, f16};
use libloading::Library;
use std::ffi::{c_char, c_int, c_void};

/// `dnnl_gemm_u8s8s32`, row-major.
type DnnlBytes = unsafe extern "C" fn(
    c_char,
    c_char,
    c_char,
    i64,
    i64,
    i64,
    f32,
    *const u8,
    i64,
    u8,
    *const i8,
    i64,
    i8,
    f32,
    *mut i32,
    i64,
    *const i32,
) -> c_int;
/// `dnnl_gemm_bf16bf16f32`, row-major; it is exported, and in no header.
type DnnlBf16 = unsafe extern "C" fn(
    c_char,
    c_char,
    i64,
    i64,
    i64,
    f32,
    *const bf16,
    i64,
    *const bf16,
    i64,
    f32,
    *mut f32,
    i64,
) -> c_int;
/// `cblas_gemm_s8u8s32`: in row-major order `A` is unsigned.
type MklBytes = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    f32,
    *const c_void,
    c_int,
    i8,
    *const c_void,
    c_int,
    i8,
    f32,
    *mut i32,
    c_int,
    *const i32,
);
/// `cblas_gemm_bf16bf16f32` and `cblas_gemm_f16f16f32`.
type MklHalves = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    f32,
    *const c_void,
    c_int,
    *const c_void,
    c_int,
    f32,
    *mut f32,
    c_int,
);

/// `CblasRowMajor`, `CblasNoTrans`, `CblasFixOffset`.
const ROWS: c_int = 101;
const PLAIN: c_int = 111;
const FIXED: c_int = 173;

fn open(threads: usize, variable: &str, file: &str) -> Option<&'static Library> {
    let threads = threads.to_string();
    for variable in ["MKL_NUM_THREADS", "OMP_NUM_THREADS"] {
        std::env::set_var(variable, &threads);
    }
    std::env::set_var("MKL_THREADING_LAYER", if threads == "1" { "SEQUENTIAL" } else { "GNU" });
    let file = std::env::var(variable).unwrap_or_else(|_| file.into());
    // SAFETY: loading runs the library's own initialisers; these libraries are known to be
    // harmless.
    unsafe { Library::new(file) }.ok().map(|library| &*Box::leak(Box::new(library)))
}

fn function<F: Copy>(library: &'static Library, name: &[u8]) -> Option<F> {
    // SAFETY: the caller names a function of type `F` in that library's interface.
    unsafe { library.get::<F>(name) }.ok().map(|function| *function)
}

/// Contestants for bytes.
pub(super) fn bytes(n: usize, threads: usize, a: &'static [u8], b: &'static [i8]) -> Vec<Contestant<i32>> {
    let mut all = Vec::new();
    let dnnl = open(threads, "LIGHTFOOT_ONEDNN", "libdnnl.so.2");
    if let Some(multiply) = dnnl.and_then(|library| function::<DnnlBytes>(library, b"dnnl_gemm_u8s8s32")) {
        all.push(contestant("onednn", n, move |c: &mut [i32]| {
            let (d, plain, zero) = (n as i64, b'N' as c_char, 0);
            // SAFETY: three n×n arrays, of which the last is written.
            unsafe {
                multiply(
                    plain,
                    plain,
                    b'F' as c_char,
                    d,
                    d,
                    d,
                    1.0,
                    a.as_ptr(),
                    d,
                    0,
                    b.as_ptr(),
                    d,
                    0,
                    0.0,
                    c.as_mut_ptr(),
                    d,
                    &zero,
                )
            };
        }));
    }
    let mkl = open(threads, "LIGHTFOOT_MKL", "libmkl_rt.so.2");
    if let Some(multiply) = mkl.and_then(|library| function::<MklBytes>(library, b"cblas_gemm_s8u8s32")) {
        all.push(contestant("mkl", n, move |c: &mut [i32]| {
            let (d, zero) = (n as c_int, 0);
            // SAFETY: three n×n arrays, of which the last is written.
            unsafe {
                multiply(
                    ROWS,
                    PLAIN,
                    PLAIN,
                    FIXED,
                    d,
                    d,
                    d,
                    1.0,
                    a.as_ptr().cast(),
                    d,
                    0,
                    b.as_ptr().cast(),
                    d,
                    0,
                    0.0,
                    c.as_mut_ptr(),
                    d,
                    &zero,
                )
            };
        }));
    }
    all
}

/// MKL's function `name` for 16-bit numbers.
fn mkl_halves<T: 'static>(
    name: &[u8],
    (n, threads): (usize, usize),
    a: &'static [T],
    b: &'static [T],
) -> Option<Contestant<f32>> {
    let library = open(threads, "LIGHTFOOT_MKL", "libmkl_rt.so.2")?;
    let multiply = function::<MklHalves>(library, name)?;
    let (a, b) = (a.as_ptr() as usize, b.as_ptr() as usize);
    Some(contestant("mkl", n, move |c: &mut [f32]| {
        let (d, a, b) = (n as c_int, a as *const c_void, b as *const c_void);
        // SAFETY: three n×n arrays, of which the last is written.
        unsafe { multiply(ROWS, PLAIN, PLAIN, d, d, d, 1.0, a, d, b, d, 0.0, c.as_mut_ptr(), d) };
    }))
}

/// Contestants for `bf16`.
pub(super) fn bf16s(
    n: usize,
    threads: usize,
    a: &'static [bf16],
    b: &'static [bf16],
) -> Vec<Contestant<f32>> {
    let mut all = Vec::new();
    let dnnl = open(threads, "LIGHTFOOT_ONEDNN", "libdnnl.so.2");
    if let Some(multiply) = dnnl.and_then(|library| function::<DnnlBf16>(library, b"dnnl_gemm_bf16bf16f32")) {
        all.push(contestant("onednn", n, move |c: &mut [f32]| {
            let (d, plain) = (n as i64, b'N' as c_char);
            // SAFETY: three n×n arrays, of which the last is written.
            unsafe {
                multiply(plain, plain, d, d, d, 1.0, a.as_ptr(), d, b.as_ptr(), d, 0.0, c.as_mut_ptr(), d)
            };
        }));
    }
    all.extend(mkl_halves(b"cblas_gemm_bf16bf16f32", (n, threads), a, b));
    all
}

/// Contestants for `f16`.
pub(super) fn f16s(n: usize, threads: usize, a: &'static [f16], b: &'static [f16]) -> Vec<Contestant<f32>> {
    mkl_halves(b"cblas_gemm_f16f16f32", (n, threads), a, b).into_iter().collect()
}
