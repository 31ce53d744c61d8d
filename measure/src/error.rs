//! Errors: events that do not exist or are not allowed, and files that are not traces.
//!
//! Every message names the value and the remedy in one sentence. Statistics do not fail: if there
//! is no answer they return `None` or a verdict that says so.

use std::fmt;

/// Why something was refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no event of this name.
    NoSuchEvent {
        /// The name that was requested.
        name: String,
        /// Names with similar spelling.
        nearest: Vec<&'static str>,
        /// The names of all events.
        known: Vec<&'static str>,
    },
    /// The machine has no performance-monitoring unit that the kernel knows.
    NoPmu {
        /// The event that was requested.
        event: &'static str,
    },
    /// There is a performance-monitoring unit, but it does not count this event.
    Unsupported {
        /// The event that was requested.
        event: &'static str,
    },
    /// The kernel's settings do not allow it.
    NotAllowed {
        /// The event that was requested.
        event: &'static str,
        /// The value of `/proc/sys/kernel/perf_event_paranoid`, if it can be read.
        paranoid: Option<i32>,
    },
    /// Functions cannot be counted by uprobes.
    NoUprobes {
        /// The reason, as a clause.
        why: String,
    },
    /// The bytes do not begin like a trace file.
    Foreign,
    /// The file was written by a newer version of this library.
    Newer {
        /// The file's format version.
        version: u32,
        /// The newest version that this library reads.
        known: u32,
    },
    /// The file ends, or is damaged, before its header is complete.
    NoHeader {
        /// Bytes that are there.
        bytes: u64,
    },
    /// The header is whole but makes no sense.
    Header {
        /// What is wrong, as a clause.
        what: String,
    },
    /// Traces that cannot be compared.
    Different {
        /// The property that differs, in the plural: `programs`, `intervals`.
        what: &'static str,
        /// The first trace's value.
        first: String,
        /// The other trace's value.
        other: String,
    },
    /// A side has no traces.
    TooFewTraces {
        /// Baselines that were given.
        baselines: usize,
        /// Runs that were given.
        runs: usize,
    },
    /// The traces share fewer than two hardware metrics.
    TooFewMetrics {
        /// Hardware metrics that all traces have.
        metrics: Vec<String>,
    },
    /// The system refused.
    Io {
        /// What was being done, as a clause: `read the counters`.
        doing: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, error: impl Into<std::io::Error>) -> Error {
        Error::Io { doing, error: error.into() }
    }
}

/// The remedy where hardware events cannot be counted.
const REMEDY: &str =
    "count kernel events (task-clock, page-faults), or simulate the machine with --engine simulated";

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoSuchEvent { name, nearest, known } if nearest.is_empty() => {
                write!(f, "there is no event {name}: the events are {}", known.join(", "))
            }
            Error::NoSuchEvent { name, nearest, .. } => {
                write!(f, "there is no event {name}: did you mean {}?", nearest.join(" or "))
            }
            Error::NoPmu { event } => {
                write!(f, "cannot count {event}: this machine shows no performance-monitoring unit; {REMEDY}")
            }
            Error::Unsupported { event } => {
                write!(f, "cannot count {event}: this processor's performance-monitoring unit does not have it; {REMEDY}")
            }
            // The setting is named only if it is the reason.
            Error::NotAllowed { event, paranoid: Some(value) } => write!(
                f,
                "cannot count {event}: kernel.perf_event_paranoid is {value}; set it to 2 or less (sysctl kernel.perf_event_paranoid=2), or simulate the \
                 machine with --engine simulated"
            ),
            Error::NotAllowed { event, paranoid: None } => {
                write!(f, "cannot count {event}: perf_event_open is not allowed here (a container's filter?); {REMEDY}")
            }
            Error::NoUprobes { why } => {
                write!(f, "cannot count functions by uprobes: {why}; count them with --engine probe")
            }
            Error::Foreign => write!(f, "not a trace file"),
            Error::Newer { version, known } => {
                write!(f, "trace file of format {version}, newer than this program understands ({known})")
            }
            Error::NoHeader { bytes } => {
                write!(f, "trace file is cut after {bytes} bytes, inside its header: nothing can be read from it")
            }
            Error::Header { what } => write!(f, "trace file's header is wrong: {what}"),
            Error::Different { what, first, other } => {
                write!(f, "traces of different {what} cannot be compared: {first}, and {other}")
            }
            Error::TooFewTraces { baselines, runs } => {
                write!(f, "{baselines} baselines and {runs} runs: give at least one of each, better five")
            }
            Error::TooFewMetrics { metrics } => {
                let shown = if metrics.is_empty() { "none".into() } else { metrics.join(", ") };
                write!(f, "the traces share too few hardware metrics ({shown}): trace at least two in every run")
            }
            Error::Io { doing, error } => write!(f, "cannot {doing}: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The message already holds the system's words: a printed chain would repeat them.
            Error::Io { error, .. } => error.source(),
            _ => None,
        }
    }
}
