//! Reports of measurements, as plain data and in several formats: text for people, JSON for
//! programs, CSV for spreadsheets.
//!
//! [`Report`] is the JSON, field for field, in this order; the other shapes are views of it. A
//! number that was not measured is `null` with a sentence in `null_reasons`, never 0. Schema 1
//! stays readable: fields may be added, none renamed or removed, without a new number.

pub mod cachegrind;
pub mod callgrind;
pub mod csv;
pub mod curve;
pub mod detail;
pub mod firefox;
pub mod group;
pub mod html;
mod measurement;
mod metric;
mod process;
mod row;
mod simulated;
pub mod text;
mod view;

pub use measurement::{Engine, Order, Report, SCHEMA};
pub use metric::{sortable, Kind, Metric, CACHE_METRICS, COUNT_METRICS, L1D};
pub use process::ProcessRow;
pub use row::{Frame, Row};
pub use view::View;

#[cfg(test)]
pub(crate) mod tests;
