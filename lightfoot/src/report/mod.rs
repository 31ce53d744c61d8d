//! Reports of measurements, as plain data and in several formats: text for people, JSON for
//! programs, CSV for spreadsheets.
//!
//! [`Report`] is the JSON, field for field, in this order; the other formats are views of it. A
//! number that was not measured is `null`, and `null_reasons` has a sentence that says why; it is
//! never 0. Readers of schema 1 stay compatible: fields may be added, but a field is renamed or
//! removed only with a new schema number.

mod abbreviation;
pub mod attached;
pub mod cachegrind;
pub mod call_rows;
pub mod callgrind;
pub mod coherence;
pub mod csv;
pub mod curve;
pub mod cycles;
pub mod detail;
pub mod firefox;
pub mod flame;
pub mod group;
pub mod heap;
pub mod html;
pub mod layouts;
mod measurement;
mod metric;
pub mod objects;
pub mod otlp;
pub mod parts;
pub mod pprof;
mod process;
mod protobuf;
mod row;
mod simulated;
mod source_text;
pub mod speedscope;
pub mod text;
mod view;

pub use measurement::{Engine, Order, Report, SCHEMA};
pub use metric::{sortable, Kind, Metric, CACHE_METRICS, COUNT_METRICS, L1D};
pub use process::ProcessRow;
pub use row::{Frame, Row};
pub use view::View;

#[cfg(test)]
pub(crate) mod tests;
