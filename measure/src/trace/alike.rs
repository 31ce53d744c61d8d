//! Describes what makes a comparison of traces doubtful.
//!
//! **What.** [`doubts`] lists in sentences which traces are incomplete, and in what the runs
//! differed: program, build, interval, machine, exit status. **Why this way.** A comparison of
//! unlike traces yields numbers like any other, and some such comparisons are intended (two builds,
//! two programs). So differences are named and not forbidden here. **Leaves out** which differences
//! a statistic tolerates: the statistic decides that.

use super::whole::Trace;

impl Trace {
    /// Why the trace is incomplete, as a clause; `None` if it is complete.
    pub fn partial(&self) -> Option<String> {
        let records = self.records.len();
        match (&self.cut, &self.end) {
            (Some(cut), _) => Some(format!(
                "a trace was cut at byte {} ({}): its first {records} records are used",
                cut.at_byte, cut.why
            )),
            (None, None) => {
                Some(format!("a trace has no end: its {records} records may be a part of the run"))
            }
            (None, Some(end)) if end.interrupted => {
                Some(format!("a run was interrupted: the {records} records of its trace are a part of it"))
            }
            _ => None,
        }
    }
}

/// Sentences about what makes a comparison of these traces doubtful; empty if nothing does.
pub fn doubts(traces: &[&Trace]) -> Vec<String> {
    let mut doubts = distinct(traces, Trace::partial);
    let interval =
        |trace: &Trace| format!("{} {}", trace.header.interval.length, trace.header.interval.unit.name());
    let machine = |trace: &Trace| trace.header.machine.clone().unwrap_or_else(|| "the host".into());
    let status = |trace: &Trace| Some(trace.end.as_ref()?.exit_status?.to_string());
    let build = |trace: &Trace| Some(trace.header.build_id.as_ref()?.chars().take(12).collect::<String>());
    let kinds = [
        ("programs", distinct(traces, |trace| Some(trace.header.argv.join(" ")))),
        ("builds of the program", distinct(traces, build)),
        ("intervals", distinct(traces, |trace| Some(interval(trace)))),
        ("machines", distinct(traces, |trace| Some(machine(trace)))),
        ("exit statuses", distinct(traces, status)),
    ];
    for (what, values) in kinds.into_iter().filter(|(_, values)| values.len() > 1) {
        doubts.push(format!("the traces are of different {what}: {}", values.join(", and ")));
    }
    doubts
}

/// The different values of the traces, in the order of the traces.
fn distinct(traces: &[&Trace], value: impl Fn(&Trace) -> Option<String>) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for value in traces.iter().filter_map(|trace| value(trace)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}
