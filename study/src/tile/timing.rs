//! Times the loops and the kernel for every tile of a grid, and computes the regret of a choice.

use matrix::paper::Loop;
use matrix::race::{Contest, Number};
use matrix::{BlockedMatrix, Gemm, Kernel, Op, Operand, Tiling};
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use std::cell::RefCell;
use std::fmt::Debug;
use std::rc::Rc;

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

/// Threads and the CPUs that they may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crew {
    /// What a result calls it.
    pub name: String,
    /// How many threads.
    pub threads: usize,
    /// CPUs by number.
    pub cpus: Vec<usize>,
}

/// The speed of one crew with one T.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Rate {
    /// A crew's name.
    pub crew: String,
    /// T.
    pub tile: usize,
    /// First quartile, median, third quartile of GFLOP/s.
    pub gflops: [f64; 3],
}

/// Times every crew with every T for N×N, all in the same interleaved passes.
///
/// The crews of one T share its arrays. Memory: three arrays of N² for each T.
///
/// # Errors
/// When a tile cannot be used or the arrays are too large.
pub fn crews<T: Real>(
    version: &'static Loop,
    n: usize,
    tiles: &[usize],
    crews: &[Crew],
    effort: Effort,
) -> Result<Vec<Rate>, matrix::Error> {
    let mut contest = Contest::new(2.0 * (n as f64).powi(3), effort.seconds, || 1.0);
    let mut state = 1;
    let mut numbers = || (0..n * n).map(|_| T::random(&mut state)).collect::<Vec<T>>();
    let (a, b) = (numbers(), numbers());
    let mut entered = Vec::new();
    for &tile in tiles {
        let arrays = Rc::new(RefCell::new(version.arrays(n, tile, &a, &b)?));
        for crew in crews {
            let (arrays, own) = (Rc::clone(&arrays), crew.clone());
            let run = move || {
                // Where the system forbids it, threads run where it puts them.
                let _ = sched_setaffinity(None, &set(&own.cpus));
                version.run(&mut arrays.borrow_mut(), own.threads);
            };
            contest.add(format!("{} {tile}", crew.name), Box::new(run));
            entered.push((crew.name.clone(), tile));
        }
    }
    let before = sched_getaffinity(None);
    contest.run(effort.passes);
    let _ = before.map(|before| sched_setaffinity(None, &before));
    let rate = |(i, (crew, tile))| Rate { crew, tile, gflops: contest.gflops(i) };
    Ok(entered.into_iter().enumerate().map(rate).collect())
}

fn set(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
    set
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
    // The seed is fixed and all tiles multiply the same numbers.
    let mut state = 1;
    let mut numbers = || (0..n * n).map(|_| T::random(&mut state)).collect::<Vec<T>>();
    let (a, b) = (numbers(), numbers());
    // Each run owns its arrays in the layout of its tile: converting them is not a part of the
    // time.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crew_has_a_rate_for_every_tile_and_the_cpus_are_given_back() {
        let before = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|&cpu| before.is_set(cpu)).unwrap();
        let crew = |name: &str, threads| Crew { name: name.into(), threads, cpus: vec![first] };
        let version = Loop::named("MBaLt").unwrap();
        let effort = Effort { passes: 2, seconds: 0.0 };
        let rates = crews::<f32>(version, 32, &[8, 16], &[crew("one", 1), crew("two", 2)], effort).unwrap();
        let names: Vec<_> = rates.iter().map(|rate| (rate.crew.as_str(), rate.tile)).collect();
        assert_eq!(names, [("one", 8), ("two", 8), ("one", 16), ("two", 16)]);
        assert!(rates.iter().all(|rate| rate.gflops[0] > 0.0 && rate.gflops[0] <= rate.gflops[2]));
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
