//! Interval traces of metrics, and whether measuring disturbed the program.
//!
//! A run is recorded as a [`trace::Trace`]: at every interval one record with what each metric added. Traces are then compared:
//!
//! | given | plan | kernel | result |
//! |---|---|---|---|
//! | a program and [`counter`]s | an interval | [`collector`]: one read of everything, from outside the program | [`trace::Trace`] |
//! | two traces | a [`Band`](align::Band) | [`align`](mod@align): dynamic time warping in strips | pairs of records |
//! | traces with and without instrumentation | what is a sample, and what belongs together | [`rank`] and permutation | [`perturb`](mod@perturb): a word per comparison |
//! | many metrics | conflicts, colours | a [`Trial`](plan::Trial) of each set | [`plan`](mod@plan): metrics per run |
//!
//! ```
//! use measure::rank::spearman;
//! assert_eq!(spearman(&[1.0, 2.0, 3.0], &[10.0, 20.0, 15.0]), Some(0.5));
//! assert_eq!(spearman(&[1.0, 2.0, 3.0], &[7.0, 7.0, 7.0]), None, "a constant has no correlation");
//! ```
//!
//! # How to read this crate
//!
//! [`trace`] is the data: header, records, the file format, its checker. [`counter`] is where numbers come from (the kernel's perf events behind a small
//! trait, which other sources implement too). The rest are statistics on traces; `reference` modules are their slow twins, and scipy's and dtaidistance's
//! numbers are among the tests.
//!
//! # What it leaves out
//!
//! Instrumenting (that is the engine's), simulating (that is the simulator's), and every decision about files, formats for people and exit statuses.
//!
//! Source: Mytkowicz, Diwan, Hauswirth, Sweeney 2007, "Understanding Measurement Perturbation in Trace-based Data".
#![deny(unsafe_op_in_unsafe_fn)]

pub mod align;
pub mod collector;
pub mod counter;
mod error;
pub mod perturb;
pub mod plan;
pub mod random;
pub mod rank;
pub mod trace;

pub use error::Error;
