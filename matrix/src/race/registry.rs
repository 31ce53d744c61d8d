//! The contestants of a race.

use super::contest::Run;
use super::dynamic::{self, Blasfeo};
use super::peer::{Crate, Threads};
use super::{crates, peak};
use crate::{BlockedMatrix, Gemm, Op, Operand, Strided, StridedMut};
use std::ffi::c_int;

/// The element types of the race.
pub trait Number: crate::Real {
    /// The competing crates; none without feature `peers`.
    const CRATES: &'static [Crate<Self>];
    /// The letter of this type in the names of BLAS functions.
    const LETTER: char;
    /// GFLOP/s of the core's fused multiply-adds at this moment.
    fn peak_gflops() -> f64;
    /// The next number, in −0.5 … 0.5.
    fn random(state: &mut u64) -> Self;
}

impl Number for f64 {
    const CRATES: &'static [Crate<f64>] = crates::F64;
    const LETTER: char = 'd';
    fn peak_gflops() -> f64 {
        peak::f64_gflops()
    }
    fn random(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }
}

impl Number for f32 {
    const CRATES: &'static [Crate<f32>] = crates::F32;
    const LETTER: char = 's';
    fn peak_gflops() -> f64 {
        2.0 * peak::f64_gflops()
    }
    fn random(state: &mut u64) -> f32 {
        f64::random(state) as f32
    }
}

/// All contestants, ready to run on the same n×n numbers. The others are compared with the first
/// one.
pub fn contestants<T: Number>(n: usize, threads: usize) -> Vec<(String, Run)> {
    let mut state = 1;
    let a: Vec<T> = (0..n * n).map(|_| T::random(&mut state)).collect();
    let b: Vec<T> = (0..n * n).map(|_| T::random(&mut state)).collect();
    let mut all = blocked(n, threads, &a, &b);
    all.push(("plain".into(), plain((n, n), threads, &a, &b)));
    if WIDE.contains(&n) {
        all.push((format!("plain-ld{WIDE_COLUMN}"), plain((n, WIDE_COLUMN), threads, &a, &b)));
    }
    if let Some(mut blasfeo) = (threads == 1).then(|| Blasfeo::new(T::LETTER, n, &a, &b)).flatten() {
        all.push(("blasfeo-nt".into(), Box::new(move || blasfeo.multiply(n, T::ONE, T::ZERO))));
    }
    for peer in T::CRATES.iter().filter(|peer| threads == 1 || peer.threads == Threads::Any) {
        let (a, b, mut c) = (a.clone(), b.clone(), vec![T::ZERO; n * n]);
        all.push((peer.name.into(), Box::new(move || (peer.multiply)(n, threads, &a, &b, &mut c))));
    }
    for (name, function) in dynamic::cblas::<T>(&format!("cblas_{}gemm\0", T::LETTER), threads) {
        let (a, b, mut c) = (a.clone(), b.clone(), vec![T::ZERO; n * n]);
        let (order, op, ld) = (dynamic::COLUMN_MAJOR, dynamic::NO_TRANSPOSITION, n as c_int);
        all.push((
            name.into(),
            // SAFETY: three arrays of n² numbers, column-major with leading dimension n.
            Box::new(move || unsafe {
                let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
                function(order, op, op, ld, ld, ld, T::ONE, a, ld, b, ld, T::ZERO, c, ld);
            }),
        ));
    }
    all
}

/// This library on blocked operands: `A·Bᵀ`, then `A·B`.
fn blocked<T: Number>(n: usize, threads: usize, a: &[T], b: &[T]) -> Vec<(String, Run)> {
    let matrix = |data: &[T]| {
        BlockedMatrix::from_strided(Strided::col_major(data, n, n).expect("n² numbers")).expect("it fits")
    };
    [("blocked-nt", Op::Transposed), ("blocked-nn", Op::Plain)]
        .into_iter()
        .map(|(name, op)| {
            let (a, b, mut c) = (matrix(a), matrix(b), BlockedMatrix::<T>::zeros(n, n).expect("it fits"));
            let gemm = Gemm::new().threads(threads);
            let run = move || {
                gemm.multiply(T::ONE, &a, Operand::new(&b, op), T::ZERO, &mut c).expect("shapes fit");
            };
            (name.to_owned(), Box::new(run) as Run)
        })
        .collect()
}

/// A leading dimension just above a power of two, where columns compete for the same sets and each
/// lies on a page of its own.
const WIDE_COLUMN: usize = 4096 + 8;
/// The sizes for which that leading dimension is run too. With smaller ones both cases are in the
/// same pages, and larger ones take gigabytes.
const WIDE: std::ops::RangeInclusive<usize> = 250..=1100;

/// This library on plain column-major arrays with leading dimension `ld`, with conversion inside.
fn plain<T: Number>((n, ld): (usize, usize), threads: usize, a: &[T], b: &[T]) -> Run {
    let spread = |data: &[T]| {
        let mut out = vec![T::ZERO; n * ld];
        out.chunks_mut(ld).zip(data.chunks(n)).for_each(|(to, from)| to[..n].copy_from_slice(from));
        out
    };
    let (a, b, mut c) = (spread(a), spread(b), vec![T::ZERO; n * ld]);
    let stride = ld as isize;
    Box::new(move || {
        let a = Strided::new(&a, n, n, 1, stride).expect("n columns of ld numbers");
        let b = Strided::new(&b, n, n, 1, stride).expect("n columns of ld numbers");
        let c = StridedMut::new(&mut c, n, n, 1, stride).expect("n columns of ld numbers");
        Gemm::new().threads(threads).multiply_strided(T::ONE, a, b, T::ZERO, c).expect("shapes fit");
    })
}
