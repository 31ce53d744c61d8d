//! What a report says about a program that ran before the measurement.

use instrument::{Exit, Outcome, Running};
use present::number::seconds;
use serde::Serialize;

/// The measurement of a program that ran before it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Attached {
    /// The process.
    pub pid: i32,
    /// Whether the process runs on; else it has ended by itself.
    pub runs_on: bool,
    /// Seconds for which the process stood still at the beginning.
    pub still_at_begin_s: f64,
    /// Seconds from the end of the measurement until the process ran natively.
    pub still_at_end_s: f64,
}

impl Attached {
    /// What an outcome says about it.
    pub fn new(running: Option<Running>, outcome: &Outcome) -> Option<Attached> {
        let (running, still) = running.zip(outcome.standstill)?;
        Some(Attached {
            pid: running.pid,
            runs_on: outcome.exit == Exit::RunsOn,
            still_at_begin_s: still.at_begin.as_secs_f64(),
            still_at_end_s: still.at_end.as_secs_f64(),
        })
    }

    /// How it ended, for the report's first line.
    pub fn end(&self) -> String {
        match self.runs_on {
            true => format!("process {} runs on", self.pid),
            false => format!("process {} has ended", self.pid),
        }
    }

    /// How long it stood still.
    pub fn text(&self) -> String {
        let [begin, end] = [self.still_at_begin_s, self.still_at_end_s].map(seconds);
        format!("  {:<16} {begin} at the beginning, {end} at the end\n", "stood still")
    }
}
