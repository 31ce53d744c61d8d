//! Solves systems and a least-squares problem, and times the three factorisations:
//! `cargo run --release --example factorize [N]`.

use lightfoot_matrix::{Error, Factor, Strided, StridedMut, Triangle};
use std::time::Instant;

/// Best of five, in GFLOP/s; every run works on a copy.
fn rate(flops: f64, a: &[f64], mut run: impl FnMut(&mut [f64]) -> Result<(), Error>) -> Result<f64, Error> {
    let (mut best, mut copy) = (f64::INFINITY, a.to_vec());
    for _ in 0..5 {
        copy.copy_from_slice(a);
        let start = Instant::now();
        run(&mut copy)?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(flops / best / 1e9)
}

fn main() -> Result<(), Error> {
    let n: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(256);
    let factor = Factor::new();

    // Numbers between −0.5 and 0.5, and the right-hand side for which every unknown is 1.
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let a: Vec<f64> = (0..n * n).map(|_| random()).collect();
    let sums: Vec<f64> = (0..n).map(|i| (0..n).map(|j| a[i + j * n]).sum()).collect();
    let error = |x: &[f64]| x.iter().map(|x| (x - 1.0).abs()).fold(0.0, f64::max);

    let (mut factors, mut x) = (a.clone(), sums.clone());
    let lu = factor.lu(StridedMut::col_major(&mut factors, n, n)?)?;
    lu.solve(StridedMut::col_major(&mut x, n, 1)?)?;
    println!("LU: largest error of a solution {:.1e}, determinant {:.3e}", error(&x), lu.determinant());

    let (mut factors, mut x) = (a.clone(), sums.clone());
    let qr = factor.qr(StridedMut::col_major(&mut factors, n, n)?)?;
    qr.solve_least_squares(StridedMut::col_major(&mut x, n, 1)?)?;
    println!("QR: largest error of a solution {:.1e}", error(&x));

    // A·Aᵀ + I is positive definite.
    let mut square = vec![0.0; n * n];
    let source = Strided::col_major(&a, n, n)?;
    factor.rank_k_update(Triangle::Lower, 1.0, source, 0.0, StridedMut::col_major(&mut square, n, n)?)?;
    (0..n).for_each(|i| square[i * (n + 1)] += 1.0);
    let mut copy = square.clone();
    let cholesky = factor.cholesky(Triangle::Lower, StridedMut::col_major(&mut copy, n, n)?)?;
    println!("Cholesky: logarithm of the determinant {:.3}", cholesky.log_determinant());

    let cube = (n as f64).powi(3);
    let (mut pivots, mut taus) = (vec![0; n], vec![0.0; n]);
    let lu = rate(cube * 2.0 / 3.0, &a, |a| {
        factor.lu_with(StridedMut::col_major(a, n, n)?, &mut pivots).map(drop)
    })?;
    let cholesky = rate(cube / 3.0, &square, |a| {
        factor.cholesky_in_place(Triangle::Lower, StridedMut::col_major(a, n, n)?)
    })?;
    let qr = rate(cube * 4.0 / 3.0, &a, |a| factor.qr_with(StridedMut::col_major(a, n, n)?, &mut taus))?;
    println!("{n}×{n}: LU {lu:.1} GFLOP/s, Cholesky {cholesky:.1}, QR {qr:.1}");
    Ok(())
}
