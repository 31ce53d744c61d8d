//! The numbers of one interval, and the end of a trace.

use serde::{Deserialize, Serialize};

/// How long a counter that shared its hardware was enabled, and how long it counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Nanoseconds of the interval in which it was enabled.
    pub enabled_ns: u64,
    /// Nanoseconds in which it counted.
    pub running_ns: u64,
}

/// One metric in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// The difference of the interval; `None` if the counter never ran or could not be read.
    pub delta: Option<u64>,
    /// Set if the counter did not run all the time: the difference then covers `running_ns` only.
    pub share: Option<Share>,
}

impl Value {
    /// A value of a counter that ran throughout the interval.
    pub fn whole(delta: u64) -> Value {
        Value { delta: Some(delta), share: None }
    }

    /// The difference scaled to the whole interval, which is an estimate if the counter ran only
    /// for a part of it.
    pub fn scaled(&self) -> Option<f64> {
        let delta = self.delta? as f64;
        Some(match self.share {
            Some(Share { enabled_ns, running_ns }) if running_ns > 0 => {
                delta * enabled_ns as f64 / running_ns as f64
            }
            _ => delta,
        })
    }
}

/// The numbers of one interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The record's number, from 0 and without gaps.
    pub sequence: u64,
    /// Its beginning since the program's start, in the interval's unit.
    pub start: u64,
    /// Its true length, in the interval's unit.
    pub dt: u64,
    /// Edges that the collector missed because it was late: the record represents this many further
    /// intervals.
    pub missed_ticks: u32,
    /// Threads of the program at the end of the interval; 0 if unknown.
    pub threads: u32,
    /// One per metric, in the header's order.
    pub values: Vec<Value>,
}

/// The end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The total of each metric over the whole run, read separately and not added up from records;
    /// `None` if unknown.
    pub totals: Vec<Option<u64>>,
    /// The exit status as a shell reports it; `None` if the measurement ended before the program.
    pub exit_status: Option<u8>,
    /// Whether the user ended it.
    pub interrupted: bool,
}

/// Where and why reading stopped before the end of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Bytes that could be read.
    pub at_byte: u64,
    /// Bytes of the file.
    pub of_bytes: u64,
    /// The reason, as a clause.
    pub why: &'static str,
}
