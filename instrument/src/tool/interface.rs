//! The interface that a tool implements: instrumentation code, analysis code, a report.

use super::batch::Batch;
use super::report::Report;
use crate::instrumentation::instrumenter::{Instrumenter, Program, Sums};
use crate::instrumentation::request::Counter;
use crate::outcome::{ComplexCounts, Outcome, TurnStart};
use event::Stream;

/// A tool. Its methods are its analysis code; [`Tool::instrumenter`] returns its instrumentation
/// code.
pub trait Tool: Send {
    /// The stream of references to record beside the tool's events. It replaces the stream of
    /// [`Options`](crate::Options).
    fn stream(&self) -> Stream {
        Stream::Counts
    }

    /// The running sums that each thread keeps: what [`Value::Instructions`](super::Value) needs.
    fn sums(&self) -> Sums {
        Sums::None
    }

    /// Which side counts complex references: the engine, for the profile of the summary, or the
    /// tool, if it wants them.
    fn complex_counts(&self) -> ComplexCounts {
        ComplexCounts::ByEngine
    }

    /// Returns the instrumentation code; called once, before the program starts.
    fn instrumenter(&mut self) -> Instrumenter {
        Box::new(|_, _| {})
    }

    /// Called when a program starts, before any of its events, and again for every program that it
    /// executes.
    fn start(&mut self, _program: &Program) {}

    /// Called with records of one thread, in program order. A slow analysis slows the program down,
    /// but no record is lost.
    fn batch(&mut self, _batch: &Batch<'_>) {}

    /// Called when the turn of a thread begins, if the program's threads run in turns that have a
    /// length ([`ThreadOrder::InTurnsOf`](crate::virtual_machine::ThreadOrder::InTurnsOf)).
    fn turn(&mut self, _thread: u32, _start: TurnStart) {}

    /// Called when this thread has ended and others of the program have not: it has no more
    /// records.
    fn thread_ended(&mut self, _thread: u32) {}

    /// Called when the program has ended; returns the tool's results.
    ///
    /// # Errors
    /// If the tool cannot do its work, for example write a file. Then the run fails.
    fn finish(&mut self, summary: &Summary<'_>) -> std::io::Result<Report>;
}

/// A completed run.
pub struct Summary<'a> {
    pub(super) outcome: &'a Outcome,
    pub(super) counters: Vec<(Counter, u64)>,
}

impl Summary<'_> {
    /// The outcome of the run, with its profile.
    pub fn outcome(&self) -> &Outcome {
        self.outcome
    }

    /// The value of a counter; 0 if it was never requested.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters
            .binary_search_by_key(&counter, |entry| entry.0)
            .map_or(0, |index| self.counters[index].1)
    }

    /// All counters and their values, sorted by name.
    pub fn counters(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        self.counters.iter().copied()
    }
}
