//! A trace for <https://ui.perfetto.dev> and `chrome://tracing`: counters, phases and functions.
//!
//! A counter holds from its time stamp to the next one, so each record is written at its start, and
//! a 0 at the end. Phases are slices of a thread of their own, and so is the function with the most
//! instructions. Times are microseconds; where intervals are counted in instructions or cycles, one
//! of them is a nanosecond. Source: "Trace Event Format" (Google).

use super::Shown;
use measure::trace::Unit;
use serde_json::{json, Value};

const PHASES: u32 = 1;
const FUNCTIONS: u32 = 2;

/// The trace as JSON.
pub fn perfetto(shown: &Shown) -> Value {
    let trace = &shown.trace;
    let mut events = vec![named("process_name", 0, &shown.program()), named("thread_name", PHASES, "phases")];
    for phase in &shown.phases {
        events.push(slice(PHASES, &format!("phase {}", phase.number), phase.start, phase.end));
    }
    if trace.functions.is_some() {
        events.push(named("thread_name", FUNCTIONS, "most instructions"));
        functions(shown, &mut events);
    }
    for (metric, about) in trace.header.metrics.iter().enumerate() {
        let counter = |at: u64, value: f64| json!({ "ph": "C", "pid": 1, "tid": 0, "name": about.name, "ts": us(at), "args": { "value": value } });
        let counted = trace
            .records
            .iter()
            .filter_map(|record| Some(counter(record.start, record.values[metric].scaled()?)));
        events.extend(counted);
        events.extend(trace.records.last().map(|last| counter(last.start.saturating_add(last.dt), 0.0)));
    }
    let unit = match trace.header.interval.unit {
        Unit::Nanoseconds => "a nanosecond is one of the program's".into(),
        unit => format!("a nanosecond stands for one of the program's {}", unit.name()),
    };
    json!({
        "displayTimeUnit": "ns",
        "otherData": { "exporter": concat!("lightfoot ", env!("CARGO_PKG_VERSION")), "unit": unit },
        "traceEvents": events,
    })
}

/// The function with the most instructions of each record; equal ones that follow each other are
/// one slice.
fn functions(shown: &Shown, events: &mut Vec<Value>) {
    let Some(functions) = &shown.trace.functions else { return };
    let mut open: Option<(u32, u64, u64)> = None;
    let close = |open: Option<(u32, u64, u64)>, events: &mut Vec<Value>| {
        let slice =
            open.map(|(function, from, to)| slice(FUNCTIONS, &functions.names[function as usize], from, to));
        events.extend(slice);
    };
    for (record, row) in shown.trace.records.iter().zip(&functions.instructions) {
        let most = row.iter().max_by_key(|(function, executed)| (*executed, u32::MAX - function));
        let end = record.start.saturating_add(record.dt);
        match (&mut open, most) {
            (Some((function, _, to)), Some((now, _))) if function == now => *to = end,
            _ => {
                close(open.take(), events);
                open = most.map(|(function, _)| (*function, record.start, end));
            }
        }
    }
    close(open, events);
}

fn slice(thread: u32, name: &str, from: u64, to: u64) -> Value {
    json!({ "ph": "X", "pid": 1, "tid": thread, "name": name, "ts": us(from), "dur": us(to.saturating_sub(from)) })
}

fn named(kind: &str, thread: u32, name: &str) -> Value {
    json!({ "ph": "M", "pid": 1, "tid": thread, "name": kind, "args": { "name": name } })
}

fn us(units: u64) -> f64 {
    units as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::super::tests::shown;
    use super::*;

    #[test]
    fn counters_add_up_and_slices_follow_each_other() {
        let shown = shown();
        let file = perfetto(&shown);
        let events = file["traceEvents"].as_array().unwrap();
        let of = |phase: &'static str| events.iter().filter(move |event| event["ph"] == phase);
        let sum: f64 = of("C")
            .filter(|event| event["name"] == "l1d-misses")
            .map(|event| event["args"]["value"].as_f64().unwrap())
            .sum();
        assert_eq!(Some(sum as u64), shown.trace.sum(1));
        assert_eq!(of("C").count(), 3 * 62);
        for thread in [PHASES, FUNCTIONS] {
            let slices: Vec<(f64, f64)> = of("X")
                .filter(|event| event["tid"] == thread)
                .map(|event| (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap()))
                .collect();
            assert_eq!(slices, [(0.0, 30.0), (30.0, 30.007)]);
        }
        // What the format requires of every event.
        assert!(events
            .iter()
            .all(|event| event["ph"].is_string() && event["pid"].is_u64() && event["name"].is_string()));
        assert!(events.iter().filter(|event| event["ph"] != "M").all(|event| event["ts"].is_f64()));
    }
}
