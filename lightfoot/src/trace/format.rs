//! Writes a trace: as a trace file, or in formats for spreadsheets and programs.

use super::firefox;
use crate::cli::TraceFormat;
use anyhow::Result;
use measure::trace::{Trace, Value};
use std::fmt::Write;

/// The trace in the given format.
///
/// # Errors
/// None in practice: everything in a trace has a form in JSON.
pub fn write(trace: &Trace, format: TraceFormat) -> Result<Vec<u8>> {
    Ok(match format {
        TraceFormat::Trace => trace.encode(),
        TraceFormat::Csv => csv(trace).into_bytes(),
        TraceFormat::Json => serde_json::to_vec(trace)?,
        TraceFormat::Firefox => serde_json::to_vec(&firefox::profile(trace))?,
    })
}

/// The trace as CSV with a row per record. A metric that shared its counter has two more columns; a
/// value that was not counted is empty.
fn csv(trace: &Trace) -> String {
    // A metric shared its counter if any of its records has times for it; its columns then exist in
    // all records.
    let shared: Vec<bool> = (0..trace.header.metrics.len())
        .map(|metric| trace.records.iter().any(|record| record.values[metric].share.is_some()))
        .collect();
    let mut text = String::from("sequence,start,dt,missed_ticks,threads");
    for (metric, shared) in trace.header.metrics.iter().zip(&shared) {
        let _ = write!(text, ",{}", quoted(&metric.name));
        if *shared {
            let _ = write!(
                text,
                ",{},{}",
                quoted(&format!("{} enabled_ns", metric.name)),
                quoted(&format!("{} running_ns", metric.name))
            );
        }
    }
    text.push('\n');
    for record in &trace.records {
        let _ = write!(
            text,
            "{},{},{},{},{}",
            record.sequence, record.start, record.dt, record.missed_ticks, record.threads
        );
        for (value, shared) in record.values.iter().zip(&shared) {
            cells(&mut text, value, *shared);
        }
        text.push('\n');
    }
    text
}

fn cells(text: &mut String, value: &Value, shared: bool) {
    let number = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
    let _ = write!(text, ",{}", number(value.delta));
    if shared {
        let _ = write!(
            text,
            ",{},{}",
            number(value.share.map(|share| share.enabled_ns)),
            number(value.share.map(|share| share.running_ns))
        );
    }
}

/// Quotes a field as RFC 4180 defines.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use measure::trace::{Header, Interval, Metric, Record, Share, Source, Unit};

    /// Two records of three metrics, one of which shared its counter and once was not counted.
    pub(crate) fn example() -> Trace {
        let metrics = vec![
            Metric::new("cycles", Source::Simulated, "simulated"),
            Metric::new("fn:a,b", Source::Software, "probe"),
            Metric::new("page-faults", Source::Kernel, "perf"),
        ];
        let interval = Interval { length: 1_000_000, unit: Unit::Nanoseconds };
        let mut trace = Trace::new(Header::new(vec!["prog".into()], interval, metrics));
        let share = Some(Share { enabled_ns: 9, running_ns: 3 });
        for sequence in 0..2 {
            let start = sequence * 1_000_000;
            let last = if sequence == 0 {
                Value { delta: Some(2), share }
            } else {
                Value { delta: None, share: None }
            };
            let values = vec![Value::whole(5 + sequence), Value::whole(1), last];
            trace.records.push(Record {
                sequence,
                start,
                dt: 1_000_000,
                missed_ticks: 0,
                threads: 1,
                values,
            });
        }
        trace
    }

    #[test]
    fn a_row_says_what_was_not_counted() {
        let text = csv(&example());
        let expected = "sequence,start,dt,missed_ticks,threads,cycles,\"fn:a,b\",page-faults,page-faults enabled_ns,page-faults running_ns\n\
                        0,0,1000000,0,1,5,1,2,9,3\n1,1000000,1000000,0,1,6,1,,,\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_trace_file_is_read_back() {
        let trace = example();
        let again = measure::trace::decode(&write(&trace, TraceFormat::Trace).unwrap()).unwrap();
        assert_eq!((again.header, again.records), (trace.header, trace.records));
    }
}
