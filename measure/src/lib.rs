//! Interval traces of metrics, their comparison, and whether measuring disturbed the program.
//!
//! A run is recorded as a [`trace::Trace`]: at every interval, a record of what each metric added.
//! Counters are read from outside the program: no signal, timer or library enters it.
//!
//! ```no_run
//! use lightfoot_measure::collector::{Collector, Pace};
//! use lightfoot_measure::counter::{find, Group, Whose};
//! use lightfoot_measure::trace::{Header, Interval, Trace, Unit};
//! use std::{process::Command, time::Duration};
//!
//! // Opened first: what this thread starts from now on is counted, with its threads and children.
//! let mut counters = Group::open(&[find("task-clock")?, find("page-faults")?], Whose::Children)?;
//! let mut collector = Collector::new(vec![&mut counters], Pace::Time(Duration::from_millis(1)))?;
//! let interval = Interval { length: 1_000_000, unit: Unit::Nanoseconds };
//! let header = Header::new(vec!["ls".into()], interval, collector.metrics().to_vec());
//! let mut trace = Trace::new(header);
//! let mut program = Command::new("ls").spawn()?;
//! let (_, end) = collector.run(program.id(), || false, |record| Ok(trace.records.push(record)))?;
//! trace.end = Some(end);
//! program.wait()?;
//! std::fs::write("ls.trace", trace.encode())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Two traces are compared by aligning them, and sides of several traces by
//! [`perturb`](mod@perturb):
//!
//! ```
//! use lightfoot_measure::align::{align, normalised, Band};
//! use lightfoot_measure::rank::spearman;
//!
//! // Two runs of one program; the second took longer in the middle.
//! let first = [1.0, 2.0, 9.0, 9.0, 2.0, 1.0, 1.0];
//! let second = [1.0, 2.0, 9.0, 9.0, 9.0, 9.0, 2.0, 1.0, 1.0];
//! let aligned = align(&[normalised(&first)], &[normalised(&second)], Band::Whole);
//! let (one, other) = aligned.along(&first, &second);
//! assert_eq!(spearman(&one, &other), Some(1.0), "once aligned, they are the same course");
//! ```
//!
//! | you have | you want | call | cost |
//! |---|---|---|---|
//! | a program | a trace of metrics | [`collector::Collector`] | one read an interval |
//! | a program | a trace by samples | [`collector::Sampling`] | the kernel's notes |
//! | a trace | a file, and back | [`trace::Writer`], [`trace::decode`] | some 30 bytes a record |
//! | two traces | which records correspond | [`align::align`] | half a nanosecond a pair |
//! | two series | whether they move together | [`rank::spearman`] | a sort of each |
//! | a trace | its phases | [`phase::phases`] | some milliseconds |
//! | traces of two sides | a verdict | [`perturb::perturb`] | an alignment per pair of traces |
//! | many metrics | which to measure together | [`plan::plan`] | trials, which you make |
//! | a machine | sizes and latencies of its caches and TLBs | [`chase::measure`] | two seconds |
//!
//! # What is needed
//!
//! Linux. Counters are the kernel's perf events: software metrics (`task-clock`, `page-faults`, …)
//! exist everywhere; hardware metrics take a performance-monitoring unit and
//! `kernel.perf_event_paranoid` of at most 2 (user mode) or 1. Uprobes take root. What cannot be
//! counted is refused with the reason ([`Error`]); it never reads as zero. Statistics need no
//! rights and run anywhere.
//!
//! # What it promises
//!
//! The deltas of a trace add up to totals that were read by themselves at the end
//! ([`trace::check()`]). A verdict controls the error of the whole family of comparisons, says
//! *cannot tell* where the runs do not suffice, and how many would. `reference` modules are the
//! slow twins of the statistics, and numbers of scipy and dtaidistance are among the tests.
//!
//! # What it leaves out
//!
//! Instrumenting, simulating, and every decision about files, formats for people and exit statuses.
//!
//! Sources: Mytkowicz, Diwan, Hauswirth, Sweeney 2007, "Understanding Measurement Perturbation in
//! Trace-based Data"; Spearman 1904; Sakoe and Chiba 1978 (alignment); Westfall and Young 1993
//! (families of tests).

#![deny(unsafe_op_in_unsafe_fn)]

pub mod align;
pub mod chase;
pub mod collector;
pub mod counter;
mod error;
pub mod perturb;
pub mod phase;
pub mod plan;
pub mod random;
pub mod rank;
pub mod trace;

pub use error::Error;

/// The examples of the README are tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
