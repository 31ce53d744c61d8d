//! Times of the loops and of the kernel for every tile of a grid, and the regret of a choice.

use matrix::paper::Loop;
use matrix::race::{Contest, Number};
use matrix::{BlockedMatrix, Gemm, Kernel, Op, Operand, Tiling};
use std::fmt::Debug;

/// One point of a grid.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Timed {
    /// T.
    pub tile: usize,
    /// Median GFLOP/s over the passes.
    pub gflops: f64,
    /// Median share of the FMA peak sampled beside each run.
    pub share_of_peak: f64,
}

/// What is timed.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// A version of the paper's loops, on some threads.
    Loops(&'static Loop, usize),
    /// The register-tile kernel on operands kept blocked, `B` transposed.
    Kernel,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Interleaved passes.
    pub passes: usize,
    /// Seconds for each run.
    pub seconds: f64,
}

/// Times every tile of `tiles` for N×N, in interleaved passes.
///
/// # Errors
/// When a tile cannot be used or the arrays are too large.
pub fn grid<T: Real>(
    subject: Subject,
    n: usize,
    tiles: &[Tiling],
    effort: Effort,
) -> Result<Vec<Timed>, matrix::Error> {
    let contest = contest::<T>(subject, n, tiles, effort)?;
    let timed = |(i, tiling): (usize, &Tiling)| Timed {
        tile: tiling.tile,
        gflops: contest.gflops(i)[1],
        share_of_peak: contest.share_of_peak(i),
    };
    Ok(tiles.iter().enumerate().map(timed).collect())
}

/// Time with `chosen` over time with `best`, less 1: the median over pairs of runs, timed again.
/// Below 0 when the best of the search was luck.
///
/// # Errors
/// As for [`grid`].
pub fn regret<T: Real>(
    subject: Subject,
    n: usize,
    chosen: Tiling,
    best: Tiling,
    effort: Effort,
) -> Result<f64, matrix::Error> {
    if chosen == best {
        return Ok(0.0);
    }
    let effort = Effort { passes: 2 * effort.passes + 1, ..effort };
    let contest = contest::<T>(subject, n, &[best, chosen], effort)?;
    Ok(contest.ratio(0, 1) - 1.0)
}

/// The types that are timed.
pub trait Real: Number + matrix::paper::multiply::Number + Debug {}
impl Real for f32 {}
impl Real for f64 {}

fn contest<T: Real>(
    subject: Subject,
    n: usize,
    tiles: &[Tiling],
    effort: Effort,
) -> Result<Contest, matrix::Error> {
    let mut contest = Contest::new(2.0 * (n as f64).powi(3), effort.seconds, T::peak_gflops);
    let mut state = 1;
    let mut numbers = || (0..n * n).map(|_| T::random(&mut state)).collect::<Vec<T>>();
    let (a, b) = (numbers(), numbers());
    for &tiling in tiles {
        let run: Box<dyn FnMut()> = match subject {
            Subject::Loops(version, threads) => {
                let mut arrays = version.arrays(n, tiling.tile, &a, &b)?;
                Box::new(move || version.run(&mut arrays, threads))
            }
            Subject::Kernel => {
                let matrix = |data: &[T]| -> Result<BlockedMatrix<T>, matrix::Error> {
                    let mut matrix = BlockedMatrix::with(Kernel::best(), n, n, tiling.tile)?;
                    matrix.copy_from(matrix::Strided::col_major(data, n, n)?)?;
                    Ok(matrix)
                };
                let (a, b, mut c) = (matrix(&a)?, matrix(&b)?, matrix(&b)?);
                let gemm = Gemm::new().tiling(tiling);
                Box::new(move || {
                    gemm.multiply(T::ONE, &a, Operand::new(&b, Op::Transposed), T::ZERO, &mut c)
                        .expect("shapes fit");
                })
            }
        };
        contest.add(tiling.tile.to_string(), run);
    }
    contest.run(effort.passes);
    Ok(contest)
}
