//! A run in memory, and its metrics as series.

use super::header::Header;
use super::record::{Cut, End, Record};
use serde::Serialize;

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// What was measured and how.
    pub header: Header,
    /// The intervals.
    pub records: Vec<Record>,
    /// What was known at the end; `None` where the file was cut.
    pub end: Option<End>,
    /// Where and why reading stopped early.
    pub cut: Option<Cut>,
}

impl Trace {
    /// A trace in memory.
    pub fn new(header: Header) -> Trace {
        Trace { header, records: Vec::new(), end: None, cut: None }
    }

    /// The column of a metric.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.header.metrics.iter().position(|metric| metric.name == name)
    }

    /// A metric over the whole intervals, scaled where its counter shared its hardware; NaN where
    /// it was not counted. The last record is left out when the program ended inside it.
    pub fn series(&self, metric: usize) -> Vec<f64> {
        self.whole().iter().map(|record| record.values[metric].scaled().unwrap_or(f64::NAN)).collect()
    }

    /// The records without a last one that is shorter than an interval.
    pub fn whole(&self) -> &[Record] {
        match self.records.split_last() {
            Some((last, rest)) if last.dt < self.header.interval.length => rest,
            _ => &self.records,
        }
    }

    /// What a metric added in all records; `None` where one of them does not know.
    pub fn sum(&self, metric: usize) -> Option<u64> {
        self.records.iter().try_fold(0_u64, |sum, record| sum.checked_add(record.values.get(metric)?.delta?))
    }
}
