//! A trace: what was measured, how, and a record for every interval.
//!
//! The header says everything that may have influenced the numbers (layout seeds, environment
//! bytes, the pinned CPU), because two runs that differ in one of these are different samples.
//! Records hold what each metric *added* in the interval, not running totals, so that a trace that
//! was cut is true up to the cut. `trace/file.rs` has the format, [`check()`] what every trace
//! must fulfil.
//!
//! Deliberately absent: CSV and JSON, which are views and belong to programs that write reports.

mod alike;
mod check;
mod file;
mod header;
mod record;
mod whole;

pub use alike::doubts;
pub use check::check;
pub use file::{decode, Writer, VERSION};
pub use header::{Header, Interval, Layout, Metric, Source, Unit, SCHEMA};
pub use record::{Cut, End, Record, Share, Value};
pub use whole::Trace;
