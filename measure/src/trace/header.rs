//! The header of a trace: everything besides its records that may have influenced the numbers.

use serde::{Deserialize, Serialize};

/// The version of the header's fields.
pub const SCHEMA: u32 = 1;

/// The origin of a metric's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The processor's performance-monitoring unit.
    Pmu,
    /// The kernel: page faults, context switches, time on a CPU.
    Kernel,
    /// A simulated machine, which processes the program's events.
    Simulated,
    /// Code that was added to the program.
    Software,
    /// The engine counted a software metric without cost for the program: the value that the metric
    /// would have had undisturbed. Files and reports call it `ghost`.
    #[serde(rename = "ghost")]
    UnchargedMetric,
    /// The collector, which measures its own cost.
    Collector,
}

impl Source {
    /// The word in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Source::Pmu => "pmu",
            Source::Kernel => "kernel",
            Source::Simulated => "simulated",
            Source::Software => "software",
            Source::UnchargedMetric => "ghost",
            Source::Collector => "collector",
        }
    }

    /// Whether the metric exists without instrumentation, so that runs with and without
    /// instrumentation can be compared by it.
    pub fn is_hardware(self) -> bool {
        matches!(self, Source::Pmu | Source::Kernel | Source::Simulated)
    }
}

/// A column of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name: an event (`page-faults`), or `fn:NAME`, `var:NAME`, `addr:RANGE`,
    /// `line:FILE:LINE`.
    pub name: String,
    /// The origin of its numbers.
    pub source: Source,
    /// The mechanism that counted it: `perf`, `probe`, `probe-atomic`, `uprobe`, `jit`,
    /// `simulated`, ...
    pub mechanism: String,
}

impl Metric {
    /// A metric.
    pub fn new(name: impl Into<String>, source: Source, mechanism: impl Into<String>) -> Metric {
        Metric { name: name.into(), source, mechanism: mechanism.into() }
    }
}

/// The unit of intervals, starts and lengths.
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
    /// The word in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Instructions => "instructions",
            Unit::Cycles => "cycles",
        }
    }
}

/// The nominal length of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// In `unit`s; at least 1.
    pub length: u64,
    /// The unit of `length`.
    pub unit: Unit,
}

/// The placement of the counters of added code.
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

/// The header of a trace: everything but its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version of lightfoot that wrote the trace.
    pub version: String,
    /// The program and its arguments; bytes that are not UTF-8 are shown as U+FFFD.
    pub argv: Vec<String>,
    /// The program's build id, or another fingerprint of its file, in hexadecimal.
    pub build_id: Option<String>,
    /// The nominal interval of records.
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
    /// Size in bytes of the program's environment, including the terminating zeros.
    pub environment_bytes: Option<u64>,
    /// The seed of the addresses of stack, libraries and heap. `None` if the kernel chose them at
    /// random, or if randomisation was off.
    pub layout_seed: Option<u64>,
    /// The placement of software counters.
    pub counter_layout: Option<Layout>,
    /// The simulated machine's name.
    pub machine: Option<String>,
    /// Seed of simulated noise of an operating system.
    pub noise_seed: Option<u64>,
    /// Notes for the reader: what could not be measured and why, and others.
    pub notes: Vec<String>,
}

impl Header {
    /// A header without optional fields.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_reports_use_the_same_words_for_sources() {
        use Source::{Collector, Kernel, Pmu, Simulated, Software, UnchargedMetric};
        let words = [Pmu, Kernel, Simulated, Software, UnchargedMetric, Collector].map(Source::name);
        assert_eq!(words, ["pmu", "kernel", "simulated", "software", "ghost", "collector"]);
        for source in [Pmu, Kernel, Simulated, Software, UnchargedMetric, Collector] {
            let written = serde_json::to_string(&source).unwrap();
            assert_eq!(written, format!("\"{}\"", source.name()));
            assert_eq!(serde_json::from_str::<Source>(&written).unwrap(), source);
        }
    }
}
