//! Views of a trace that was recorded: a table, a page, a picture, and formats of other viewers.
//!
//! A [`Shown`] is a part of a trace (some metrics, a range) with its phases; each view is a file of
//! this folder. Views of single records may join several of them ([`joined`]) or take the largest
//! ([`largest`]). **Leaves out** reading files and following one that grows: the command does that.

mod excerpt;
mod functions;
mod page;
mod perfetto;
mod picture;
mod summary;
mod table;

pub use excerpt::{excerpt, joined, largest, selected};
pub use page::page;
pub use perfetto::perfetto;
pub use picture::picture;
pub use table::{summary, table, Columns};

use functions::Top;
use measure::phase::phases;
use measure::trace::{Trace, Unit};
use serde::Serialize;
use std::ops::Range;

/// The most phases of a trace.
const PHASES_MAX: usize = 20;

/// A part of a trace, with its phases.
#[derive(Debug)]
pub struct Shown {
    /// The file's name.
    pub file: String,
    /// The records and metrics that are shown.
    pub trace: Trace,
    /// Phases, in their order; none if there are no records.
    pub phases: Vec<Phase>,
}

/// Records in which metrics stay near their means.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Its number, from 1.
    pub number: usize,
    /// Indices of its records.
    pub records: Range<usize>,
    /// Where it begins, in the unit of the trace.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// The functions with the most instructions, if functions were counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Top>,
}

impl Shown {
    /// Finds the phases of a trace. A last record that is shorter than an interval belongs to the
    /// last phase: its rates would make a phase of their own.
    pub fn new(file: String, trace: Trace) -> Shown {
        let whole = trace.whole().len().max(trace.records.len().min(1));
        let rates: Vec<Vec<f64>> = (0..trace.header.metrics.len())
            .map(|metric| trace.records[..whole].iter().map(|record| rate(&trace, record, metric)).collect())
            .collect();
        // Without metrics, or with constant ones alone, the trace is one phase.
        let mut ranges = phases(&rates, PHASES_MAX);
        if ranges.is_empty() {
            ranges.push(0..whole);
        }
        if let Some(last) = ranges.last_mut() {
            last.end = trace.records.len();
        }
        let phases = ranges.into_iter().enumerate().filter(|(_, records)| !records.is_empty());
        let phases = phases.map(|(index, records)| Phase::new(&trace, index + 1, records)).collect();
        Shown { file, trace, phases }
    }

    /// The program and its arguments.
    fn program(&self) -> String {
        self.trace.header.argv.join(" ")
    }

    /// What was measured, in half a sentence: `312 records of 1,000,000 instructions`.
    fn about(&self) -> String {
        let header = &self.trace.header;
        let machine = header.machine.as_ref().map(|name| format!(" on {name}")).unwrap_or_default();
        format!(
            "{} records of {}, {}{machine}",
            present::number::grouped(self.trace.records.len() as u64),
            length(header.interval.unit, header.interval.length),
            header.engine
        )
    }

    /// How the run ended.
    fn end(&self) -> String {
        match (&self.trace.cut, &self.trace.end) {
            (None, Some(end)) if end.interrupted => "interrupted".into(),
            (None, Some(end)) => {
                end.exit_status.map_or("the program ran on".into(), |status| format!("exit status {status}"))
            }
            _ => "cut: a part of the run".into(),
        }
    }
}

impl Phase {
    fn new(trace: &Trace, number: usize, records: Range<usize>) -> Phase {
        let (start, end) = (&trace.records[records.start], &trace.records[records.end - 1]);
        let functions = functions::top(trace, records.clone());
        Phase { number, start: start.start, end: end.start.saturating_add(end.dt), records, functions }
    }
}

/// What a metric added in a record, for one interval of it; NaN if it was not counted. A record
/// that is longer because the collector was late is scaled; one that the end of the program cut
/// short is taken as it is, because a few units say little about a rate.
fn rate(trace: &Trace, record: &measure::trace::Record, metric: usize) -> f64 {
    let value = record.values[metric].scaled().unwrap_or(f64::NAN);
    let length = trace.header.interval.length.max(1);
    value * length as f64 / record.dt.max(length) as f64
}

/// What a metric added in these records for each interval of their time; `None` if it was counted
/// in none of them. A record that the end of the program cut short is left out where there are
/// others, and counts as an interval where there are none.
fn mean(trace: &Trace, records: Range<usize>, metric: usize) -> Option<f64> {
    let length = trace.header.interval.length.max(1);
    let records = &trace.records[records];
    let has_whole = records.iter().any(|record| record.dt >= length);
    let (mut sum, mut time) = (0.0, 0.0);
    for record in records.iter().filter(|record| !has_whole || record.dt >= length) {
        if let Some(value) = record.values[metric].scaled() {
            (sum, time) = (sum + value, time + record.dt.max(length) as f64);
        }
    }
    (time > 0.0).then(|| sum / time * length as f64)
}

/// A place in the run, in a few characters.
pub fn place(unit: Unit, at: u64) -> String {
    match unit {
        Unit::Nanoseconds => time(at),
        Unit::Instructions | Unit::Cycles => present::number::brief(at),
    }
}

/// A length with its unit.
fn length(unit: Unit, units: u64) -> String {
    match unit {
        Unit::Nanoseconds => time(units),
        Unit::Instructions | Unit::Cycles => {
            format!("{} {}", present::number::grouped(units), unit.name())
        }
    }
}

fn time(ns: u64) -> String {
    match ns {
        0 => "0".into(),
        1..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.3} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use measure::trace::{End, Functions, Header, Interval, Metric, Record, Source, Value};

    /// 60 records of 1000 instructions and a short one: misses are 10 a record, and 500 from the
    /// thirtieth on, when `g` runs instead of `f`.
    pub(crate) fn stepped() -> Trace {
        let metrics = ["instructions", "l1d-misses", "fn:<x>"];
        let metrics = metrics.map(|name| Metric::new(name, Source::Simulated, "simulated")).to_vec();
        let interval = Interval { length: 1000, unit: Unit::Instructions };
        let mut trace = Trace::new(Header::new(vec!["prog".into(), "<b>".into()], interval, metrics));
        let names = vec!["f [prog]".into(), "g</script> [prog]".into()];
        let mut functions = Functions { names, instructions: Vec::new() };
        for sequence in 0..61 {
            let dt = if sequence < 60 { 1000 } else { 7 };
            let misses = if sequence < 30 { 10 + sequence % 2 } else { 500 + sequence % 2 };
            let values = [dt, misses, 3].map(Value::whole).to_vec();
            let start = 1000 * sequence;
            trace.records.push(Record { sequence, start, dt, missed_ticks: 0, threads: 1, values });
            let (f, g) = if sequence < 30 { (dt - 1, 1) } else { (0, dt) };
            functions.instructions.push([(0, f), (1, g)].into_iter().filter(|(_, n)| *n > 0).collect());
        }
        trace.functions = Some(functions);
        let totals = (0..3).map(|metric| trace.sum(metric)).collect();
        trace.end = Some(End { totals, exit_status: Some(3), interrupted: false });
        trace
    }

    pub(crate) fn shown() -> Shown {
        Shown::new("t.lft".into(), stepped())
    }

    #[test]
    fn phases_are_found_and_named_after_their_functions() {
        let shown = shown();
        let ranges: Vec<Range<usize>> = shown.phases.iter().map(|phase| phase.records.clone()).collect();
        assert_eq!(ranges, [0..30, 30..61]);
        assert_eq!((shown.phases[1].start, shown.phases[1].end), (30_000, 60_007));
        assert_eq!(shown.phases[0].functions[0].name, "f [prog]");
        assert_eq!(shown.phases[1].functions[0].instructions, 30_007);
    }

    #[test]
    fn one_record_and_none_have_phases_too() {
        let mut trace = stepped();
        trace.records.truncate(1);
        assert_eq!(Shown::new("t".into(), trace.clone()).phases.len(), 1);
        trace.records.clear();
        assert!(Shown::new("t".into(), trace).phases.is_empty());
    }

    #[test]
    fn places_are_short() {
        for (ns, text) in
            [(0, "0"), (999, "999 ns"), (1500, "1.5 us"), (20_000_000, "20.0 ms"), (3_210_000_000, "3.210 s")]
        {
            assert_eq!(place(Unit::Nanoseconds, ns), text);
        }
        assert_eq!(place(Unit::Cycles, 1_234_567), "1.23M");
    }
}
