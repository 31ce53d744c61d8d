//! Times one product on slices and on blocked matrices:
//! `cargo run --release --example multiply [N]`.

use lightfoot_matrix::{gemm, BlockedMatrix, Error, Gemm, Op, Operand, Strided};
use std::time::Instant;

/// Best of five, in GFLOP/s.
fn rate(n: usize, mut multiply: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        multiply()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(2.0 * (n as f64).powi(3) / best / 1e9)
}

fn main() -> Result<(), Error> {
    let n: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(256);
    let numbers = |seed: usize| (0..n * n).map(|i| ((i * seed) % 17) as f64).collect::<Vec<f64>>();
    let (a, b, mut c) = (numbers(3), numbers(5), vec![0.0; n * n]);
    let stride = n as isize;

    let slices = rate(n, || gemm(n, n, n, 1.0, &a, stride, 1, &b, stride, 1, 0.0, &mut c, stride, 1))?;

    // Kept blocked: B is stored transposed, so that both operands are used as they lie.
    let blocked_a = BlockedMatrix::from_strided(Strided::row_major(&a, n, n)?)?;
    let blocked_b = BlockedMatrix::from_strided(Strided::row_major(&b, n, n)?.transposed())?;
    let mut blocked_c = BlockedMatrix::zeros(n, n)?;
    let blocked = rate(n, || {
        Gemm::new().multiply(1.0, &blocked_a, Operand::new(&blocked_b, Op::Transposed), 0.0, &mut blocked_c)
    })?;

    assert_eq!(blocked_c.to_row_major(), c, "both ways give the same numbers");
    println!("{n}×{n}: slices {slices:.1} GFLOP/s, blocked {blocked:.1} GFLOP/s");
    Ok(())
}
