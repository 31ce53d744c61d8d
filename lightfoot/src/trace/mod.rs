//! Traces of metrics: one runner for all engines, which the command, plans and studies share.
//!
//! A [`Request`] describes the program and the metrics; [`run`] returns a [`measure::trace::Trace`]
//! with one record per interval. Engines differ in what counts:
//!
//! | engine | hardware metrics | software metrics |
//! |---|---|---|
//! | `native` | the kernel's counters (`native.rs`) | none |
//! | `probe` | the kernel's counters | patched function entries that count in shared memory |
//! | `uprobe` | the kernel's counters | the kernel's breakpoints at function entries |
//! | `simulated` | the simulated machine (`simulated.rs`) | probes, charged; `--uncharged` metrics, not charged |
//! | `jit` | instructions | the engine, as it translates |
//!
//! Names are resolved before the program starts (`lookup.rs`), so that a wrong one costs no time.
//! Configuration is never passed by environment or arguments: both would move the program's stack
//! (Mytkowicz et al. 2007 measured the effect).

mod attached;
mod finder;
mod firefox;
pub mod format;
mod function;
mod kernel;
mod launch;
mod libraries;
mod lookup;
pub mod metric;
mod native;
mod noise;
pub mod partial;
mod recorder;
mod request;
mod runner;
pub mod show;
mod signal;
mod simulated;
mod summed;
pub mod target;

pub use noise::Noise;
pub use request::{By, Collector, Engine, Request};
pub use runner::run;
