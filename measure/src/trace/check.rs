//! Checks that a trace is consistent. Tests, commands and studies share this check.

use super::record::{Record, Value};
use super::whole::Trace;

/// Lists what is wrong with a trace; empty if it is consistent. A cut is a fact about the file and
/// no complaint.
pub fn check(trace: &Trace) -> Vec<String> {
    let mut complaints = Vec::new();
    names(trace, &mut complaints);
    let mut previous: Option<&Record> = None;
    for record in &trace.records {
        sequence(previous, record, &mut complaints);
        values(trace, record, &mut complaints);
        previous = Some(record);
    }
    totals(trace, &mut complaints);
    complaints
}

fn names(trace: &Trace, complaints: &mut Vec<String>) {
    let mut names: Vec<&str> = trace.header.metrics.iter().map(|metric| metric.name.as_str()).collect();
    names.sort_unstable();
    for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
        complaints.push(format!("two metrics are called {}", pair[0]));
    }
}

fn sequence(previous: Option<&Record>, record: &Record, complaints: &mut Vec<String>) {
    let (number, start) = previous.map_or((0, None), |previous| {
        (previous.sequence.wrapping_add(1), previous.start.checked_add(previous.dt))
    });
    if record.sequence != number {
        complaints.push(format!("record {} stands where {number} should", record.sequence));
    }
    if previous.is_some() && start != Some(record.start) {
        complaints.push(format!("record {} does not begin where the one before it ends", record.sequence));
    }
}

fn values(trace: &Trace, record: &Record, complaints: &mut Vec<String>) {
    if record.values.len() != trace.header.metrics.len() {
        complaints.push(format!("record {} has {} values", record.sequence, record.values.len()));
    }
    for (metric, value) in trace.header.metrics.iter().zip(&record.values) {
        if let Value { share: Some(share), .. } = value {
            if share.running_ns > share.enabled_ns {
                let name = &metric.name;
                complaints.push(format!("record {}: {name} ran longer than it was enabled", record.sequence));
            }
        }
    }
}

/// Checks that the differences add up exactly to the total, which was read separately.
fn totals(trace: &Trace, complaints: &mut Vec<String>) {
    let Some(end) = &trace.end else { return };
    for (index, metric) in trace.header.metrics.iter().enumerate() {
        let total = end.totals.get(index).copied().flatten();
        if let (Some(total), Some(sum)) = (total, trace.sum(index)) {
            if total != sum {
                complaints.push(format!("{} adds up to {sum} and its total is {total}", metric.name));
            }
        }
    }
}
