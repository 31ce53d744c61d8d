//! Writes a profile for <https://www.speedscope.app>: stacks are calling contexts, and each column
//! of the report is a profile of its own.
//!
//! Samples are in the order of time: each slice has one for each context that ran in it. Values are
//! counts, so their unit is none. **Leaves out** threads, which share contexts. Source:
//! speedscope's file format, `file-format-schema.json`.

use super::detail::Detail;
use super::measurement::Report;
use serde_json::{json, Value};

/// The profile.
pub fn show(report: &Report, detail: &Detail) -> String {
    let none = Default::default();
    let calls = detail.calls.as_ref().unwrap_or(&none);
    let frames: Vec<Value> = detail
        .functions
        .iter()
        .map(|function| {
            let mut frame = json!({ "name": function.name });
            if function.file != symbol::UNKNOWN {
                frame["file"] = json!(function.file);
            }
            if function.first_line > 0 {
                frame["line"] = json!(function.first_line);
            }
            frame
        })
        .collect();
    let stacks: Vec<Vec<u32>> = (0..calls.contexts.len() as u32)
        .map(|context| {
            let mut stack: Vec<u32> = calls.functions_of(context).collect();
            stack.reverse();
            stack
        })
        .collect();
    let profile = |metric: &super::Metric| {
        let samples: Vec<(usize, u64)> = calls
            .samples
            .iter()
            .filter(|sample| sample.node > 0)
            .filter_map(|sample| Some((sample.node as usize, (metric.value)(&sample.counts)?)))
            .filter(|(_, weight)| *weight > 0)
            .collect();
        let sum: u64 = samples.iter().map(|(_, weight)| weight).sum();
        (sum > 0).then(|| {
            json!({
                "type": "sampled", "name": metric.label, "unit": "none", "startValue": 0, "endValue": sum,
                "samples": samples.iter().map(|(context, _)| &stacks[*context]).collect::<Vec<_>>(),
                "weights": samples.iter().map(|(_, weight)| weight).collect::<Vec<_>>(),
            })
        })
    };
    let profiles: Vec<Value> = report.metrics().filter_map(profile).collect();
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("lightfoot ", env!("CARGO_PKG_VERSION")),
        "name": report.command.join(" "),
        "activeProfileIndex": 0,
        "shared": { "frames": frames },
        "profiles": profiles,
    });
    file.to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::detail::tests::called;
    use crate::report::tests::{cache_report, count_report};

    #[test]
    fn each_column_is_a_profile_whose_weights_add_up() {
        let file: Value = serde_json::from_str(&show(&count_report(), &called())).unwrap();
        assert_eq!(
            file["shared"]["frames"],
            json!([{"name": "leaf"}, {"name": "main", "file": "a.c", "line": 3}])
        );
        let profiles = file["profiles"].as_array().unwrap();
        let named: Vec<&str> = profiles.iter().map(|profile| profile["name"].as_str().unwrap()).collect();
        assert_eq!(named, ["instructions", "loads"]);
        assert_eq!(profiles[0]["samples"], json!([[1], [1, 0], [1, 0]]));
        assert_eq!(profiles[0]["weights"], json!([5, 7, 9]));
        assert_eq!((&profiles[0]["startValue"], &profiles[0]["endValue"]), (&json!(0), &json!(21)));
        assert_eq!(profiles[1]["weights"], json!([2]));
        let file: Value = serde_json::from_str(&show(&cache_report(), &Detail::default())).unwrap();
        assert_eq!(file["profiles"], json!([]));
    }
}
