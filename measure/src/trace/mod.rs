//! Traces: a header that says what was measured and how, and a record for every interval.
//!
//! The header states everything that may have influenced the numbers (layout seeds, environment
//! bytes, the pinned CPU), because runs that differ in one of these are different samples. Records
//! hold differences, that is, what each metric *added* in the interval, and not running totals, so
//! a cut trace is correct up to the cut. `trace/file.rs` defines the format; [`check()`] checks
//! that a trace is consistent.
//!
//! **Leaves out** CSV and JSON: they are views, and belong to programs that write reports.

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
pub use whole::{Functions, Trace};
