//! Writes a processed profile for the Firefox Profiler: stacks are calling contexts, weighted by a
//! column of the report.
//!
//! Each slice of time has one sample for each context that ran in it; its weight is instructions,
//! or the column that sorts the report. Time is instructions: one is drawn as a nanosecond, because
//! the clock of the measured run is not that of the program. The format is the one that
//! <https://profiler.firefox.com> calls processed, version 55; newer versions of the page convert
//! it when they load it. **Leaves out** threads, which share contexts. Source: "Processed profile
//! format" and its changelog, in the profiler's developer documentation.

use super::detail::Detail;
use super::measurement::Report;
use serde_json::{json, Value};
use std::collections::HashMap;

const VERSION: u32 = 55;
const INSTRUCTIONS_PER_MS: f64 = 1e6;

/// The profile.
pub fn show(report: &Report, detail: &Detail) -> String {
    let product = "lightfoot (1 ns stands for an instruction of the program)";
    let mut strings = Strings::default();
    let thread = thread(report, detail, &mut strings);
    // The page smooths its graphs by this interval.
    let slice = detail.calls.as_ref().map_or(0, |calls| calls.slice_instructions);
    let interval_ms = slice.max(1) as f64 / INSTRUCTIONS_PER_MS;
    let profile = json!({
        "meta": {
            "version": 24, "preprocessedProfileVersion": VERSION, "product": product, "startTime": 0.0, "interval": interval_ms, "processType": 0,
            "debug": false, "symbolicated": true, "usesOnlyOneStackType": true, "sourceCodeIsNotOnSearchfox": true,
            "categories": [{ "name": "Other", "color": "grey", "subcategories": ["Other"] }],
            "extensions": { "length": 0, "baseURL": [], "id": [], "name": [] },
            "pausedRanges": [], "markerSchema": [], "arguments": report.command.join(" "),
        },
        "libs": [], "pages": [], "profilerOverhead": [], "counters": [], "threads": [thread],
    });
    profile.to_string() + "\n"
}

/// Strings by number.
#[derive(Default)]
struct Strings {
    all: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Strings {
    fn number(&mut self, text: &str) -> usize {
        let next = self.all.len();
        let number = *self.numbers.entry(text.to_owned()).or_insert(next);
        if number == next {
            self.all.push(text.to_owned());
        }
        number
    }
}

fn thread(report: &Report, detail: &Detail, strings: &mut Strings) -> Value {
    let none = Default::default();
    let calls = detail.calls.as_ref().unwrap_or(&none);
    let functions = &detail.functions;
    let names: Vec<usize> = functions.iter().map(|function| strings.number(&function.name)).collect();
    let files: Vec<Value> = functions
        .iter()
        .map(|function| match function.file.as_str() {
            symbol::UNKNOWN => Value::Null,
            file => json!(strings.number(file)),
        })
        .collect();
    let lines: Vec<Value> = functions
        .iter()
        .map(|function| if function.first_line > 0 { json!(function.first_line) } else { Value::Null })
        .collect();
    let libraries: Vec<&str> = functions.iter().map(|function| function.library.as_str()).collect();
    let mut known: Vec<&str> = libraries.clone();
    known.sort_unstable();
    known.dedup();
    let resources: Vec<usize> =
        libraries.iter().filter_map(|library| known.binary_search(library).ok()).collect();
    let resource_names: Vec<usize> =
        known.iter().map(|library| strings.number(library.rsplit('/').next().unwrap_or(library))).collect();
    // Context 0 is the root: stack n - 1 is context n.
    let stacks = calls.contexts.len().saturating_sub(1);
    let prefix: Vec<Value> = calls
        .contexts
        .iter()
        .skip(1)
        .map(|context| context.parent.checked_sub(1).map_or(Value::Null, |parent| json!(parent)))
        .collect();
    let frames: Vec<u32> = calls.contexts.iter().skip(1).map(|context| context.function).collect();
    let (count, nulls) = (functions.len(), vec![Value::Null; functions.len()]);
    let samples: Vec<(f64, usize, u64)> = calls
        .samples
        .iter()
        .filter(|sample| sample.node > 0)
        .map(|sample| {
            let time = (sample.slice as u64 * calls.slice_instructions) as f64 / INSTRUCTIONS_PER_MS;
            (time, sample.node as usize - 1, report.weight(&sample.counts).0)
        })
        .filter(|(_, _, weight)| *weight > 0)
        .collect();
    let name = report.command.first().map_or("program", String::as_str);
    json!({
        "name": name, "processName": name, "processType": "default", "isMainThread": true, "pid": "1", "tid": "1",
        "processStartupTime": 0.0, "processShutdownTime": null, "registerTime": 0.0, "unregisterTime": null, "pausedRanges": [],
        "showMarkersInTimeline": false,
        "samples": {
            "length": samples.len(), "weightType": "samples",
            "weight": samples.iter().map(|sample| sample.2).collect::<Vec<_>>(),
            "stack": samples.iter().map(|sample| sample.1).collect::<Vec<_>>(),
            "time": samples.iter().map(|sample| sample.0).collect::<Vec<_>>(),
        },
        "stackTable": { "length": stacks, "prefix": prefix, "frame": frames },
        "frameTable": {
            "length": count, "address": vec![-1; count], "inlineDepth": vec![0; count], "category": vec![0; count], "subcategory": vec![0; count],
            "func": (0..count).collect::<Vec<_>>(), "nativeSymbol": nulls, "innerWindowID": nulls, "line": lines, "column": nulls,
        },
        "funcTable": {
            "length": count, "name": names, "isJS": vec![false; count], "relevantForJS": vec![false; count], "resource": resources,
            "fileName": files, "lineNumber": lines, "columnNumber": nulls,
        },
        "resourceTable": {
            "length": known.len(), "lib": vec![Value::Null; known.len()], "name": resource_names, "host": vec![Value::Null; known.len()],
            "type": vec![1; known.len()],
        },
        "nativeSymbols": { "length": 0, "address": [], "functionSize": [], "libIndex": [], "name": [] },
        "markers": { "length": 0, "category": [], "data": [], "endTime": [], "name": [], "phase": [], "startTime": [] },
        "stringArray": strings.all,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::detail::tests::called;
    use crate::report::tests::count_report;

    #[test]
    fn tables_are_as_long_as_they_say_and_weights_add_up() {
        let profile: Value = serde_json::from_str(&show(&count_report(), &called())).unwrap();
        let thread = &profile["threads"][0];
        // The profiler reads columns by index: a column of another length shifts its rows without
        // an error.
        for table in thread.as_object().unwrap().values() {
            let Some(length) = table["length"].as_u64() else { continue };
            for (name, column) in table.as_object().unwrap() {
                assert!(column.as_array().is_none_or(|column| column.len() as u64 == length), "{name}");
            }
        }
        assert_eq!(thread["samples"]["weight"], json!([5, 7, 9]));
        assert_eq!(thread["stackTable"], json!({"length": 2, "prefix": [null, 0], "frame": [1, 0]}));
        assert_eq!(thread["stringArray"][thread["funcTable"]["name"][1].as_u64().unwrap() as usize], "main");
    }
}
