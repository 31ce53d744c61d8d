//! Writes a trace as counter tracks for the Firefox Profiler.
//!
//! One process with one empty thread carries a counter per metric, in the format that
//! <https://profiler.firefox.com> calls processed, version 55; newer versions of the page convert
//! it when they load it. Times are milliseconds: where an interval is counted in instructions or
//! cycles, one of them is drawn as a nanosecond. **Leaves out** stacks: a trace has none. Source:
//! "Processed profile format" and its changelog, in the profiler's developer documentation.

use measure::trace::{Record, Trace, Unit};
use serde_json::{json, Value};

/// Version of the format.
const VERSION: u32 = 55;
const NS_PER_MS: f64 = 1e6;
const COLORS: &[&str] = &["blue", "green", "magenta", "orange", "purple", "red", "teal", "yellow"];

/// The profile.
pub(super) fn profile(trace: &Trace) -> Value {
    let header = &trace.header;
    let product = match header.interval.unit {
        Unit::Nanoseconds => "lightfoot trace".to_owned(),
        unit => format!("lightfoot trace (1 ns stands for one of the program's {})", unit.name()),
    };
    let counters: Vec<Value> = (0..header.metrics.len()).map(|metric| counter(trace, metric)).collect();
    json!({
        "meta": {
            "version": 24,
            "preprocessedProfileVersion": VERSION,
            "product": product,
            "startTime": 0.0,
            // The profiler knows only time, so the header gives the interval in milliseconds
            // whatever its unit is.
            "interval": header.interval.length as f64 / NS_PER_MS,
            "processType": 0,
            "debug": false,
            "symbolicated": true,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "categories": [{ "name": "Other", "color": "grey", "subcategories": ["Other"] }],
            "extensions": { "length": 0, "baseURL": [], "id": [], "name": [] },
            "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs" },
            "pausedRanges": [],
            "markerSchema": [],
            "arguments": header.argv.join(" "),
        },
        "libs": [],
        "pages": [],
        "profilerOverhead": [],
        "counters": counters,
        "threads": [thread(trace)],
    })
}

/// A track: the difference of each interval, drawn at the interval's end. An interval that was not
/// counted has no sample.
fn counter(trace: &Trace, metric: usize) -> Value {
    let about = &trace.header.metrics[metric];
    let sample =
        |record: &Record| Some((ms(record.start.saturating_add(record.dt)), record.values[metric].scaled()?));
    let (ends, counts): (Vec<f64>, Vec<f64>) = trace.records.iter().filter_map(sample).unzip();
    json!({
        "name": about.name,
        "category": about.source.name(),
        "description": format!("{}, counted by {}", about.name, about.mechanism),
        "color": COLORS[metric % COLORS.len()],
        "pid": "1",
        "mainThreadIndex": 0,
        "samples": { "length": ends.len(), "time": ends, "count": counts },
    })
}

/// The only thread: two samples without a stack, which give the timeline its length.
fn thread(trace: &Trace) -> Value {
    let end = trace.records.last().map_or(0.0, |record| ms(record.start.saturating_add(record.dt)));
    let name = trace.header.argv.first().map_or("program", String::as_str);
    // Every thread of the format has all tables; without stacks they are empty.
    json!({
        "name": name,
        "processName": name,
        "processType": "default",
        "isMainThread": true,
        "pid": "1",
        "tid": "1",
        "processStartupTime": 0.0,
        "processShutdownTime": null,
        "registerTime": 0.0,
        "unregisterTime": null,
        "pausedRanges": [],
        "showMarkersInTimeline": false,
        "stringArray": [],
        "samples": {
            "length": 2, "weightType": "samples", "weight": [1, 1], "stack": [null, null], "time": [0.0, end],
            "threadCPUDelta": [0, 0],
        },
        "stackTable": { "length": 0, "prefix": [], "frame": [] },
        "frameTable": {
            "length": 0, "address": [], "inlineDepth": [], "category": [], "subcategory": [], "func": [], "nativeSymbol": [],
            "innerWindowID": [], "line": [], "column": [],
        },
        "funcTable": {
            "length": 0, "name": [], "isJS": [], "relevantForJS": [], "resource": [], "fileName": [], "lineNumber": [], "columnNumber": [],
        },
        "resourceTable": { "length": 0, "lib": [], "name": [], "host": [], "type": [] },
        "nativeSymbols": { "length": 0, "address": [], "functionSize": [], "libIndex": [], "name": [] },
        "markers": { "length": 0, "category": [], "data": [], "endTime": [], "name": [], "phase": [], "startTime": [] },
    })
}

fn ms(units: u64) -> f64 {
    units as f64 / NS_PER_MS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::format::tests::example;

    #[test]
    fn every_metric_is_a_track_of_the_intervals_that_were_counted() {
        let profile = profile(&example());
        let counters = profile["counters"].as_array().unwrap();
        assert_eq!(counters.len(), 3);
        for (counter, times) in counters.iter().zip([json!([1.0, 2.0]), json!([1.0, 2.0]), json!([1.0])]) {
            assert_eq!(counter["samples"]["time"], times);
            assert_eq!(counter["samples"]["length"], times.as_array().unwrap().len());
        }
        assert_eq!(counters[0]["samples"]["count"], json!([5.0, 6.0]));
        assert_eq!(counters[2]["samples"]["count"], json!([6.0]));
        assert_eq!(profile["threads"][0]["samples"]["time"], json!([0.0, 2.0]));
    }

    #[test]
    fn tables_are_as_long_as_they_say() {
        let profile = profile(&example());
        let table = |table: &Value| {
            let Some(length) = table["length"].as_u64() else { return };
            for (name, column) in table.as_object().unwrap() {
                assert!(column.as_array().is_none_or(|column| column.len() as u64 == length), "{name}");
            }
        };
        profile["threads"][0].as_object().unwrap().values().for_each(table);
        assert_eq!(profile["meta"]["preprocessedProfileVersion"], VERSION);
    }
}
