//! One interval's numbers, and what is known where records end.

use serde::{Deserialize, Serialize};

/// How long a counter was wanted and how long it counted, of a counter that had to share its
/// hardware.
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
    /// What was added; `None` where the counter never ran, or could not be read.
    pub delta: Option<u64>,
    /// Of a counter that did not run all the time: the delta is then of `running_ns` only.
    pub share: Option<Share>,
}

impl Value {
    /// A value that counted throughout.
    pub fn whole(delta: u64) -> Value {
        Value { delta: Some(delta), share: None }
    }

    /// The delta scaled up to the whole interval: an estimate where the counter ran only in part.
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

/// One interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The record's number, from 0 and without gaps.
    pub sequence: u64,
    /// When it began, since the program's start, in the interval's unit.
    pub start: u64,
    /// How long it really was, in the interval's unit.
    pub dt: u64,
    /// Ticks that passed unseen because the collector was late: the record stands for that many
    /// intervals more.
    pub missed_ticks: u32,
    /// Threads of the program at its end; 0 where that is not known.
    pub threads: u32,
    /// One per metric, in the header's order.
    pub values: Vec<Value>,
}

/// What is known at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Of each metric over the whole run, read by itself and not added up from the records; `None`
    /// where it is not known.
    pub totals: Vec<Option<u64>>,
    /// As a shell would say it; `None` when the measurement ended before the program.
    pub exit_status: Option<u8>,
    /// Whether the user ended it.
    pub interrupted: bool,
}

/// Where reading stopped before the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Bytes that were understood.
    pub at_byte: u64,
    /// Bytes of the file.
    pub of_bytes: u64,
    /// The reason, as a clause.
    pub why: &'static str,
}
