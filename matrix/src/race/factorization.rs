//! The contestants of a race of factorisations.
//!
//! Every run works on a fresh copy of its input, because factorisations work in place: the copy is
//! part of everybody's time, and is less than a tenth of it from N = 32 on.

use super::contest::Run;
use super::lapack::Lapack;
use super::operation::Operation;
use super::registry::{Array, Number};
use crate::{Factor, Side, Strided, StridedMut, Triangle, Triangular};

/// The inputs: `A` with a dominant diagonal if that is needed, and `B`.
fn inputs<T: Number>(operation: Operation, n: usize) -> (Vec<T>, Vec<T>) {
    let mut state = 1;
    let mut a: Vec<T> = (0..n * n).map(|_| T::random(&mut state)).collect();
    let b: Vec<T> = (0..n * n).map(|_| T::random(&mut state)).collect();
    let diagonal = match operation {
        Operation::Cholesky | Operation::Solve => T::from_f64(n as f64),
        _ => T::ZERO,
    };
    for i in 0..n {
        a[i * n + i] = a[i * n + i] + diagonal;
    }
    (a, b)
}

/// All contestants, ready to run. The others are compared with the first one.
/// `blocks` adds this library with such blocks.
pub fn factorizations<T: Number>(
    operation: Operation,
    n: usize,
    threads: usize,
    blocks: &[usize],
) -> Vec<(String, Run)> {
    let (a, b) = inputs::<T>(operation, n);
    let options = Factor::new().threads(threads);
    let mut all = vec![("ours".to_owned(), ours(operation, n, options, &a, &b))];
    for &block in blocks {
        all.push((format!("block-{block}"), ours(operation, n, options.block(block), &a, &b)));
    }
    if let Some(run) = T::faer(operation, n, threads, (a.clone(), b.clone())) {
        all.push(("faer".into(), run));
    }
    for lapack in Lapack::found(T::LETTER, threads) {
        all.push((lapack.name.into(), library(lapack, operation, n, &a, &b)));
    }
    all
}

/// This library, on column-major arrays.
fn ours<T: Number>(operation: Operation, n: usize, options: Factor, a: &[T], b: &[T]) -> Run {
    let (a, b, mut c) = (Array::of(a), Array::of(b), Array::of(b));
    let (mut pivots, mut taus) = (vec![0; n], vec![T::ZERO; n]);
    Box::new(move || {
        match operation {
            Operation::Solve | Operation::Multiply => c.copy_from_slice(&b),
            Operation::RankUpdate | Operation::Symmetric => (),
            _ => c.copy_from_slice(&a),
        }
        let view = StridedMut::col_major(&mut c, n, n).expect("n² numbers");
        let left = Strided::col_major(&a, n, n).expect("n² numbers");
        let right = Strided::col_major(&b, n, n).expect("n² numbers");
        match operation {
            Operation::Lu => drop(options.lu_with(view, &mut pivots).expect("it fits")),
            Operation::Cholesky => options.cholesky_in_place(Triangle::Lower, view).expect("it fits"),
            Operation::Qr => options.qr_with(view, &mut taus).expect("it fits"),
            Operation::Solve => {
                options.solve_triangular(Side::Left, T::ONE, Triangular::lower(left), view).expect("it fits");
            }
            Operation::RankUpdate => {
                options.rank_k_update(Triangle::Lower, T::ONE, left, T::ZERO, view).expect("it fits");
            }
            Operation::Multiply => {
                options
                    .multiply_triangular(Side::Left, T::ONE, Triangular::lower(left), view)
                    .expect("it fits");
            }
            Operation::Symmetric => options
                .multiply_symmetric(Side::Left, Triangle::Lower, T::ONE, left, right, T::ZERO, view)
                .expect("it fits"),
            Operation::Inverse => options.invert(view).expect("it has an inverse"),
        }
    })
}

/// A library with LAPACK's symbols.
fn library<T: Number>(lapack: Lapack<T>, operation: Operation, n: usize, a: &[T], b: &[T]) -> Run {
    let (a, b, mut c) = (Array::of(a), Array::of(b), Array::of(b));
    let (mut pivots, mut taus, mut work) = (vec![0; n], vec![T::ZERO; n], vec![T::ZERO; 64 * n]);
    Box::new(move || {
        match operation {
            Operation::Solve | Operation::Multiply => c.copy_from_slice(&b),
            Operation::RankUpdate | Operation::Symmetric => (),
            _ => c.copy_from_slice(&a),
        }
        match operation {
            Operation::Lu => lapack.lu(n, &mut c, &mut pivots),
            Operation::Cholesky => lapack.cholesky(n, &mut c),
            Operation::Qr => lapack.qr(n, &mut c, &mut taus, &mut work),
            Operation::Solve => lapack.solve(n, T::ONE, &a, &mut c),
            Operation::RankUpdate => lapack.update(n, T::ONE, T::ZERO, &a, &mut c),
            Operation::Multiply => lapack.multiply(n, T::ONE, &a, &mut c),
            Operation::Symmetric => lapack.symmetric(n, (T::ONE, T::ZERO), (&a, &b), &mut c),
            Operation::Inverse => lapack.inverse(n, &mut c, &mut pivots, &mut work),
        }
    })
}
