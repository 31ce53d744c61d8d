//! A trace: what was measured, how, and a record for every interval.
//!
//! The header says everything that may have influenced the numbers (layout seeds, environment bytes, the pinned CPU), because two runs that differ in one
//! of these are different samples. Records hold what each metric *added* in the interval, not running totals, so that a trace that was cut is true up to the
//! cut. [`file`](mod@file) is the format, [`check()`] what every trace must fulfil.
//!
//! Deliberately absent: CSV and JSON, which are views and belong to whoever writes reports.

mod check;
mod file;

pub use check::check;
pub use file::{decode, Cut, Writer, VERSION};

use serde::{Deserialize, Serialize};

/// The number of this shape of header.
pub const SCHEMA: u32 = 1;

/// Who counted a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The processor's performance-monitoring unit.
    Pmu,
    /// The kernel: page faults, context switches, time on a CPU.
    Kernel,
    /// A simulated machine that the program's events were fed to.
    Simulated,
    /// Code that was added to the program.
    Software,
    /// The engine, without charging the program for it: what a software metric would have been, undisturbed.
    Ghost,
    /// The collector about itself.
    Collector,
}

impl Source {
    /// As files and reports say it.
    pub fn name(self) -> &'static str {
        match self {
            Source::Pmu => "pmu",
            Source::Kernel => "kernel",
            Source::Simulated => "simulated",
            Source::Software => "software",
            Source::Ghost => "ghost",
            Source::Collector => "collector",
        }
    }

    /// Whether the metric exists without instrumentation, so that runs with and without can be compared by it.
    pub fn is_hardware(self) -> bool {
        matches!(self, Source::Pmu | Source::Kernel | Source::Simulated)
    }
}

/// A column of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name: an event (`page-faults`), or `fn:NAME`, `var:NAME`, `addr:RANGE`, `line:FILE:LINE`.
    pub name: String,
    /// Who counted.
    pub source: Source,
    /// By which mechanism: `perf`, `probe`, `probe-atomic`, `uprobe`, `jit`, `simulated`, ...
    pub mechanism: String,
}

impl Metric {
    /// A metric.
    pub fn new(name: impl Into<String>, source: Source, mechanism: impl Into<String>) -> Metric {
        Metric { name: name.into(), source, mechanism: mechanism.into() }
    }
}

/// What intervals, starts and lengths are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Nanoseconds of the monotonic clock.
    Nanoseconds,
    /// Instructions that the program retired.
    Instructions,
    /// Cycles of the simulated machine.
    Cycles,
}

impl Unit {
    /// As files and reports say it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Instructions => "instructions",
            Unit::Cycles => "cycles",
        }
    }
}

/// How long an interval is meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// In `unit`s; at least 1.
    pub length: u64,
    /// What is counted.
    pub unit: Unit,
}

/// Where the counters of added code lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// One after the other: eight to a cache line.
    Packed,
    /// One per cache line.
    Line,
    /// One per page, all in the same set of a first-level cache.
    Page,
    /// Shuffled by this seed.
    Seed(u64),
}

/// Everything about a run but its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of lightfoot that wrote it.
    pub version: String,
    /// The program and its arguments; what is not UTF-8 is shown with U+FFFD.
    pub argv: Vec<String>,
    /// The program's build id, or another fingerprint of its file, in hexadecimal.
    pub build_id: Option<String>,
    /// How often was recorded.
    pub interval: Interval,
    /// `native`, `probe`, `jit`, `uprobe` or `simulated`.
    pub engine: String,
    /// `host`, `signal` or `simulated`.
    pub collector: String,
    /// The columns.
    pub metrics: Vec<Metric>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The CPU that the program was bound to.
    pub cpu_pin: Option<u32>,
    /// Bytes of the program's environment, names and values with their ends.
    pub environment_bytes: Option<u64>,
    /// What stack, libraries and heap were placed by: `None` is the kernel's own chance, or none where randomisation is off.
    pub layout_seed: Option<u64>,
    /// Where software counters lie.
    pub counter_layout: Option<Layout>,
    /// The simulated machine's name.
    pub machine: Option<String>,
    /// Seed of simulated noise of an operating system.
    pub noise_seed: Option<u64>,
    /// What could not be measured and why, and other things a reader should know.
    pub notes: Vec<String>,
}

impl Header {
    /// A header with nothing optional.
    pub fn new(argv: Vec<String>, interval: Interval, metrics: Vec<Metric>) -> Header {
        Header {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").into(),
            argv,
            build_id: None,
            interval,
            engine: "native".into(),
            collector: "host".into(),
            metrics,
            kernel: None,
            cpu_pin: None,
            environment_bytes: None,
            layout_seed: None,
            counter_layout: None,
            machine: None,
            noise_seed: None,
            notes: Vec::new(),
        }
    }
}

/// How long a counter was wanted and how long it counted, of a counter that had to share its hardware.
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
    /// From 0, without gaps.
    pub sequence: u64,
    /// When it began, since the program's start, in the interval's unit.
    pub start: u64,
    /// How long it really was, in the interval's unit.
    pub dt: u64,
    /// Ticks that passed unseen because the collector was late: the record stands for that many intervals more.
    pub missed_ticks: u32,
    /// Threads of the program at its end; 0 where that is not known.
    pub threads: u32,
    /// One per metric, in the header's order.
    pub values: Vec<Value>,
}

/// What is known at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Of each metric over the whole run, read by itself and not added up from the records; `None` where it is not known.
    pub totals: Vec<Option<u64>>,
    /// As a shell would say it; `None` when the measurement ended before the program.
    pub exit_status: Option<u8>,
    /// Whether the user ended it.
    pub interrupted: bool,
}

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

    /// A metric over the whole intervals, scaled where its counter shared its hardware; NaN where it was not counted. The last record is left out when the program
    /// ended inside it.
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
