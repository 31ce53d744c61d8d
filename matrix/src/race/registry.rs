//! The contestants of a race.

use super::contest::Run;
use super::dynamic::{self, Blasfeo, Xsmm};
use super::operation::Operation;
use super::peer::{Crate, Threads};
use super::{crates, peak};
use crate::{BlockedMatrix, Gemm, Op, Operand, Strided, StridedMut, StridedShape, Tiling};
use std::ffi::c_int;

/// The element types of the race.
pub trait Number: crate::Real {
    /// The competing crates; none without feature `peers`.
    const CRATES: &'static [Crate<Self>];
    /// The letter of this type in the names of BLAS functions.
    const LETTER: char;
    /// The number of this type in libxsmm.
    const XSMM_TYPE: u32;
    /// GFLOP/s of the core's fused multiply-adds at this moment.
    fn peak_gflops() -> f64;
    /// The next number, in −0.5 … 0.5.
    fn random(state: &mut u64) -> Self;
    /// A run of crate `faer` on copies of these n×n arrays, with feature `peers`.
    fn faer(operation: Operation, n: usize, threads: usize, inputs: (Vec<Self>, Vec<Self>)) -> Option<Run>;
}

/// [`Number::faer`] for a type.
macro_rules! faer {
    () => {
        #[cfg(feature = "peers")]
        fn faer(
            operation: Operation,
            n: usize,
            threads: usize,
            inputs: (Vec<Self>, Vec<Self>),
        ) -> Option<Run> {
            super::factor_crate::run(operation, n, threads, 1.0, inputs)
        }
        #[cfg(not(feature = "peers"))]
        fn faer(_: Operation, _: usize, _: usize, _: (Vec<Self>, Vec<Self>)) -> Option<Run> {
            None
        }
    };
}

impl Number for f64 {
    faer!();
    const CRATES: &'static [Crate<f64>] = crates::F64;
    const LETTER: char = 'd';
    const XSMM_TYPE: u32 = 0;
    fn peak_gflops() -> f64 {
        peak::f64_gflops()
    }
    fn random(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }
}

impl Number for f32 {
    faer!();
    const CRATES: &'static [Crate<f32>] = crates::F32;
    const LETTER: char = 's';
    const XSMM_TYPE: u32 = 1;
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
    let (a, b) = inputs::<T>(n);
    let (a, b, c) = (&a[..], &b[..], vec![T::ZERO; n * n]);
    let mut all = blocked(n, threads, a, b);
    all.push(("plain".into(), plain((n, n), threads, a, b)));
    if n <= SMALL {
        all.push(("prepared".into(), prepared(n, a, b)));
        all.push(("plain-rows".into(), plain_rows(n, a, b)));
        if let Some(xsmm) = Xsmm::new(n, T::XSMM_TYPE) {
            let (a, b, mut c) = (Array::of(a), Array::of(b), Array::of(&c));
            all.push(("libxsmm".into(), Box::new(move || xsmm.multiply(&a, &b, &mut c))));
        }
    }
    if WIDE.contains(&n) {
        all.push((format!("plain-ld{WIDE_COLUMN}"), plain((n, WIDE_COLUMN), threads, a, b)));
    }
    if let Some(mut blasfeo) = (threads == 1).then(|| Blasfeo::new(T::LETTER, n, a, b)).flatten() {
        all.push(("blasfeo-nt".into(), Box::new(move || blasfeo.multiply(n, T::ONE, T::ZERO))));
    }
    for peer in T::CRATES.iter().filter(|peer| threads == 1 || peer.threads == Threads::Any) {
        let (a, b, mut c) = (Array::of(a), Array::of(b), Array::of(&c));
        all.push((peer.name.into(), Box::new(move || (peer.multiply)(n, threads, &a, &b, &mut c))));
    }
    for (name, function) in dynamic::cblas::<T>(&format!("cblas_{}gemm\0", T::LETTER), threads) {
        let (a, b, mut c) = (Array::of(a), Array::of(b), Array::of(&c));
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

/// The two n×n arrays that all contestants multiply.
fn inputs<T: Number>(n: usize) -> (Vec<T>, Vec<T>) {
    let mut state = 1;
    let mut array = || (0..n * n).map(|_| T::random(&mut state)).collect();
    (array(), array())
}

/// Products of the plain n×n arrays with these tile sizes in place of the default's, under the
/// name `tile-DEPTHxROWSxCOLUMNS`.
pub fn tiled<T: Number>(n: usize, threads: usize, tilings: &[Tiling]) -> Vec<(String, Run)> {
    let (a, b) = inputs::<T>(n);
    let contestant = |&tiling: &Tiling| {
        let (a, b, mut c) = (Array::of(&a), Array::of(&b), Array::of(&vec![T::ZERO; n * n]));
        let gemm = Gemm::new().threads(threads).tiling(tiling);
        let run = move || {
            let view = |array| Strided::col_major(array, n, n).expect("n² numbers");
            let (a, b, c) = (view(&a), view(&b), StridedMut::new(&mut c, n, n, 1, n as isize));
            gemm.multiply_strided(T::ONE, a, b, T::ZERO, c.expect("n² numbers")).expect("shapes fit");
        };
        let Tiling { tile, rows, cols } = tiling;
        (format!("tile-{tile}x{rows}x{cols}"), Box::new(run) as Run)
    };
    tilings.iter().map(contestant).collect()
}

/// A copy of an array that begins on a cache line: how lines are cut decides up to a tenth of a
/// small product's time, so all contestants get the same cut.
pub(super) struct Array<T> {
    data: Vec<T>,
    places: std::ops::Range<usize>,
}

impl<T: Number> Array<T> {
    pub(super) fn of(source: &[T]) -> Array<T> {
        let line = 64 / size_of::<T>();
        let mut data = vec![T::ZERO; source.len() + line];
        let start = data.as_ptr().align_offset(64).min(line);
        let places = start..start + source.len();
        data[places.clone()].copy_from_slice(source);
        Array { data, places }
    }
}

impl<T> std::ops::Deref for Array<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.data[self.places.clone()]
    }
}

impl<T> std::ops::DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data[self.places.clone()]
    }
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

/// The largest size for which prepared products and row-major arrays are run too.
const SMALL: usize = 128;

/// This library on column-major arrays, with a product that is prepared once.
fn prepared<T: Number>(n: usize, a: &[T], b: &[T]) -> Run {
    let square = StridedShape::col_major(n, n).expect("a small size");
    let product = Gemm::new().prepare(T::ONE, square, square, T::ZERO, square).expect("shapes fit");
    let (a, b, mut c) = (Array::of(a), Array::of(b), Array::of(&vec![T::ZERO; n * n]));
    Box::new(move || product.multiply(&a, &b, &mut c).expect("n² numbers each"))
}

/// This library on plain row-major arrays.
fn plain_rows<T: Number>(n: usize, a: &[T], b: &[T]) -> Run {
    let (a, b, mut c, ld) = (Array::of(a), Array::of(b), Array::of(&vec![T::ZERO; n * n]), n as isize);
    Box::new(move || {
        crate::gemm(n, n, n, T::ONE, &a, ld, 1, &b, ld, 1, T::ZERO, &mut c, ld, 1).expect("n² numbers each");
    })
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
        let mut out = Array::of(&vec![T::ZERO; n * ld]);
        out.chunks_mut(ld).zip(data.chunks(n)).for_each(|(to, from)| to[..n].copy_from_slice(from));
        out
    };
    let (a, b, mut c) = (spread(a), spread(b), Array::of(&vec![T::ZERO; n * ld]));
    let stride = ld as isize;
    if threads == 1 {
        return Box::new(move || {
            crate::gemm(n, n, n, T::ONE, &a, 1, stride, &b, 1, stride, T::ZERO, &mut c, 1, stride)
                .expect("n columns of ld numbers");
        });
    }
    Box::new(move || {
        let a = Strided::new(&a, n, n, 1, stride).expect("n columns of ld numbers");
        let b = Strided::new(&b, n, n, 1, stride).expect("n columns of ld numbers");
        let c = StridedMut::new(&mut c, n, n, 1, stride).expect("n columns of ld numbers");
        Gemm::new().threads(threads).multiply_strided(T::ONE, a, b, T::ZERO, c).expect("shapes fit");
    })
}
