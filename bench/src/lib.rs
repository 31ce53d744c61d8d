//! Benchmarks that are counted and not timed.
//!
//! ```
//! use lightfoot_bench::{bench, black_box, group};
//!
//! #[bench]
//! fn sum() -> u64 {
//!     (0..1000).map(black_box::<u64>).sum()
//! }
//!
//! fn reversed(count: u32) -> Vec<u32> {
//!     (0..count).rev().collect()
//! }
//!
//! // The set-up makes the input, which is not counted.
//! #[bench(setup = reversed, args(small = 100, large = 10_000))]
//! fn sort(mut numbers: Vec<u32>) -> Vec<u32> {
//!     numbers.sort();
//!     numbers
//! }
//!
//! #[group]
//! mod text {
//!     use lightfoot_bench::bench;
//!
//!     #[bench(args(words = "some words", none = ""))]
//!     fn split(text: &str) -> usize {
//!         text.split(' ').count()
//!     }
//! }
//!
//! lightfoot_bench::main!(sum, sort, text);
//! ```
//!
//! `cargo lightfoot bench` builds such programs and counts each benchmark: its instructions, its
//! accesses and misses in simulated caches, its estimated cycles. Equal code gives equal numbers,
//! on a busy machine too. Run natively, as `cargo bench` and `cargo test --benches` do, the program
//! calls each benchmark once and measures nothing.
//!
//! # What is counted
//!
//! A benchmark runs in a process of its own, a copy of the program as it was after its start. So
//! neither other benchmarks nor a filter change its numbers, and a panic ends nothing else. It is
//! called once, which fills caches and makes what is made lazily, and once more between two marks.
//! Between the marks are the call, its routine, and moving the input and the output: four or more
//! instructions of ours. The input is made before, and the output is dropped behind. All threads of
//! the process count.
//!
//! # In the attribute
//!
//! | setting | |
//! |---|---|
//! | `setup = function` | makes the input; with `args` from each value, else from nothing |
//! | `args(name = value, …)` | a benchmark for each value, `function/name`; a tuple for several parameters |
//!
//! A function may be `async`: it is polled on the calling thread until it is ready. `#[group]`
//! makes a module one name for [`main!`].
//!
//! # Benchmarks for criterion
//!
//! The types and macros of [`criterion`] are those that its benchmarks mostly use, so that a line
//! in `Cargo.toml` counts them:
//!
//! ```toml
//! [dev-dependencies]
//! criterion = { package = "lightfoot-bench", version = "0.1" }
//! ```
//!
//! A package depends on this crate under one name; the attributes need `lightfoot-bench`.
//!
//! # Leaves out
//!
//! Time: `criterion` and `divan` measure it. `lightfoot bench` shows clocks and random bytes that
//! are equal in every run; races of threads differ in counts too. On other systems than Linux on
//! x86-64 benchmarks run once and nothing counts them.

mod bencher;
mod block_on;
pub mod criterion;
mod process;
mod request;
mod runner;
mod settings;

pub use bench_macros::{bench, group};
pub use bencher::Bencher;
pub use block_on::block_on;
pub use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};
pub use runner::{run, Place, Runner};
pub use std::hint::black_box;

/// The function `main` of a program of benchmarks: functions with the attribute [`macro@bench`] and
/// modules with the attribute [`macro@group`].
#[macro_export]
macro_rules! main {
    ($($($segment:ident)::+),+ $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            $crate::run(|runner| { $($($segment)::+::__add_to(runner);)+ })
        }
    };
}

/// The examples of the README are tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
