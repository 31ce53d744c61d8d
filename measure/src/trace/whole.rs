//! A whole trace in memory, and its metrics as series.

use super::header::Header;
use super::record::{Cut, End, Record};
use serde::Serialize;

/// A trace of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// The header: what was measured, and how.
    pub header: Header,
    /// The records, one for each interval.
    pub records: Vec<Record>,
    /// The end of the run; `None` if the file was cut.
    pub end: Option<End>,
    /// Where and why reading stopped early.
    pub cut: Option<Cut>,
    /// What each function executed in each record; `None` if that was not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functions: Option<Functions>,
}

/// Instructions of each function in each record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Functions {
    /// Names by number.
    pub names: Vec<String>,
    /// For each record: functions by number, with the instructions that they executed.
    pub instructions: Vec<Vec<(u32, u64)>>,
}

impl Trace {
    /// A trace in memory.
    pub fn new(header: Header) -> Trace {
        Trace { header, records: Vec::new(), end: None, cut: None, functions: None }
    }

    /// The column of a metric.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.header.metrics.iter().position(|metric| metric.name == name)
    }

    /// The values of a metric in all whole intervals, scaled if its counter shared its hardware;
    /// NaN where it was not counted. The last record is left out if the program ended inside it.
    pub fn series(&self, metric: usize) -> Vec<f64> {
        self.whole().iter().map(|record| record.values[metric].scaled().unwrap_or(f64::NAN)).collect()
    }

    /// The records, without the last one if it is shorter than an interval.
    pub fn whole(&self) -> &[Record] {
        match self.records.split_last() {
            Some((last, rest)) if last.dt < self.header.interval.length => rest,
            _ => &self.records,
        }
    }

    /// The sum of a metric over all records; `None` if it is unknown in one of them.
    pub fn sum(&self, metric: usize) -> Option<u64> {
        self.records.iter().try_fold(0_u64, |sum, record| sum.checked_add(record.values.get(metric)?.delta?))
    }
}
