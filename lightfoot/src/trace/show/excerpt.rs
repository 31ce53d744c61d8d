//! A part of a trace: some metrics, a range, joined records, the largest ones.
//!
//! Each is again a trace, so that every view and format works for it. Values stay exact: those of
//! joined records are added. A joined value is missing where one of its parts is.

use super::functions::summed;
use super::length;
use crate::trace::metric::matches;
use anyhow::{bail, Result};
use measure::counter::nearest;
use measure::trace::{Functions, Record, Share, Trace, Value};
use std::ops::Range;

/// The columns of the metrics in a list, in the list's order; each may have `*` and `?`.
///
/// # Errors
/// If the trace has no such metric: the nearest names.
pub fn selected(trace: &Trace, list: &str) -> Result<Vec<usize>> {
    let names = || trace.header.metrics.iter().map(|metric| metric.name.as_str());
    let mut columns = Vec::new();
    // A name of a software metric may hold commas.
    if let Some(column) = trace.position(list) {
        return Ok(vec![column]);
    }
    for wanted in list.split(',').filter(|name| !name.is_empty()) {
        let before = columns.len();
        let found = names().enumerate().filter(|(_, name)| *name == wanted || matches(wanted, name));
        columns.extend(found.map(|(column, _)| column));
        if columns.len() == before {
            let candidates = nearest(wanted, names());
            match candidates.is_empty() {
                true => bail!(
                    "the trace has no metric {wanted}; it has {}",
                    names().collect::<Vec<_>>().join(", ")
                ),
                false => bail!("the trace has no metric {wanted}: did you mean {}?", candidates.join(" or ")),
            }
        }
    }
    let mut seen = vec![false; trace.header.metrics.len()];
    columns.retain(|&column| !std::mem::replace(&mut seen[column], true));
    if columns.is_empty() {
        bail!("--metrics names no metric: the trace has {}", names().collect::<Vec<_>>().join(", "));
    }
    Ok(columns)
}

/// The trace with these columns alone, and with the records that overlap the range alone. Totals of
/// the run are those of the columns; of a part of the run they are unknown.
///
/// # Errors
/// If no record overlaps the range.
pub fn excerpt(mut trace: Trace, columns: &[usize], range: &Range<u64>) -> Result<Trace> {
    let unit = trace.header.interval.unit;
    let ends = |record: &Record| record.start.saturating_add(record.dt);
    let overlaps = |record: &Record| record.start < range.end && ends(record) > range.start;
    let count = trace.records.len();
    let first = trace.records.iter().position(overlaps).unwrap_or(count);
    let behind = trace.records.iter().rposition(overlaps).map_or(first, |last| last + 1);
    if first == behind && count > 0 {
        let last = trace.records.last().map_or(0, ends);
        bail!("no record lies between --from and --to: the trace ends at {}", length(unit, last));
    }
    let is_whole = first == 0 && behind == count;
    trace.records = trace.records.drain(first..behind).collect();
    for record in &mut trace.records {
        record.values = columns.iter().map(|&column| record.values[column]).collect();
    }
    if let Some(functions) = &mut trace.functions {
        functions.instructions = functions.instructions.drain(first..behind).collect();
    }
    trace.header.metrics = columns.iter().map(|&column| trace.header.metrics[column].clone()).collect();
    if let Some(end) = &mut trace.end {
        let total = |&column: &usize| end.totals[column].filter(|_| is_whole);
        end.totals = columns.iter().map(total).collect();
    }
    Ok(trace)
}

/// The trace with `every` records joined to one; fewer make the last one.
pub fn joined(trace: &Trace, every: usize) -> Trace {
    let every = every.max(1);
    let starts = (0..trace.records.len()).step_by(every);
    let part = |start: usize| start..(start + every).min(trace.records.len());
    let mut out =
        Trace { records: starts.clone().map(|at| sum(&trace.records[part(at)])).collect(), ..trace.clone() };
    out.header.interval.length = trace.header.interval.length.saturating_mul(every as u64);
    out.functions = trace.functions.as_ref().map(|functions| Functions {
        names: functions.names.clone(),
        instructions: starts.map(|at| summed(functions, part(at))).collect(),
    });
    out
}

/// One record for several that follow each other.
fn sum(records: &[Record]) -> Record {
    let mut out = records[0].clone();
    for record in &records[1..] {
        out.dt = out.dt.saturating_add(record.dt);
        out.missed_ticks = out.missed_ticks.saturating_add(record.missed_ticks);
        out.threads = record.threads;
        for (sum, value) in out.values.iter_mut().zip(&record.values) {
            *sum = both(sum, value);
        }
    }
    out
}

/// The sum of two values; missing if one is, or if it has no room.
fn both(one: &Value, other: &Value) -> Value {
    let delta = one.delta.zip(other.delta).and_then(|(one, other)| one.checked_add(other));
    // A counter shares its hardware throughout a run or not at all: where one value has no times,
    // the sum has none.
    let share = one.share.zip(other.share).map(|(one, other)| Share {
        enabled_ns: one.enabled_ns.saturating_add(other.enabled_ns),
        running_ns: one.running_ns.saturating_add(other.running_ns),
    });
    Value { delta, share: share.filter(|_| delta.is_some()) }
}

/// The `count` records with the most of the first metric, the most first.
pub fn largest(trace: &Trace, count: usize) -> Trace {
    // A value is no less than 0, so its bits are in its order; what was not counted is the least.
    let weight = |record: &Record| {
        record.values.first().and_then(Value::scaled).map_or(0, |value| 1 + value.to_bits())
    };
    let keyed = trace.records.iter().enumerate().map(|(at, record)| (u64::MAX - weight(record), at));
    let mut order: Vec<(u64, usize)> = keyed.collect();
    order.sort_unstable();
    order.truncate(count);
    let mut out = Trace { records: Vec::new(), ..trace.clone() };
    order.iter().for_each(|(_, at)| out.records.push(trace.records[*at].clone()));
    if let Some(functions) = &mut out.functions {
        let row = |&(_, at): &(u64, usize)| functions.instructions.get(at).cloned().unwrap_or_default();
        functions.instructions = order.iter().map(row).collect();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::stepped;
    use super::*;

    #[test]
    fn metrics_are_chosen_by_name_and_pattern() {
        let trace = stepped();
        assert_eq!(selected(&trace, "l1d-misses,instructions").unwrap(), [1, 0]);
        assert_eq!(selected(&trace, "*s,fn:*,instructions").unwrap(), [0, 1, 2]);
        let said = |list| selected(&trace, list).unwrap_err().to_string();
        assert_eq!(said("l1-misses"), "the trace has no metric l1-misses: did you mean l1d-misses?");
        assert_eq!(said("zzzz"), "the trace has no metric zzzz; it has instructions, l1d-misses, fn:<x>");
        assert!(said(",").contains("names no metric"));
    }

    #[test]
    fn a_range_keeps_the_records_that_it_touches() {
        let part = excerpt(stepped(), &[1], &(1999..4001)).unwrap();
        let starts: Vec<u64> = part.records.iter().map(|record| record.start).collect();
        assert_eq!(starts, [1000, 2000, 3000, 4000]);
        assert_eq!((part.records[0].values.len(), part.end.unwrap().totals), (1, vec![None]));
        assert_eq!(part.functions.unwrap().instructions.len(), 4);
        let whole = excerpt(stepped(), &[1], &(0..u64::MAX)).unwrap();
        assert_eq!(whole.end.unwrap().totals, [stepped().sum(1)]);
        let said = excerpt(stepped(), &[1], &(70_000..80_000)).unwrap_err().to_string();
        assert!(said.contains("the trace ends at 60,007 instructions"), "{said}");
    }

    #[test]
    fn joined_records_add_up() {
        let (whole, part) = (stepped(), joined(&stepped(), 7));
        assert_eq!(part.records.len(), 9);
        for metric in 0..3 {
            assert_eq!(part.sum(metric), whole.sum(metric));
        }
        assert_eq!((part.records[8].start, part.records[8].dt), (56_000, 4007));
        let instructions = |trace: &Trace| -> u64 {
            trace.functions.as_ref().unwrap().instructions.iter().flatten().map(|(_, sum)| sum).sum()
        };
        assert_eq!(instructions(&part), instructions(&whole));
    }

    #[test]
    fn what_is_missing_in_a_part_is_missing_in_the_sum() {
        let mut trace = stepped();
        trace.records[1].values[1].delta = None;
        let part = joined(&trace, 2);
        assert_eq!((part.records[0].values[1].delta, part.records[1].values[1].delta), (None, Some(21)));
    }

    #[test]
    fn the_largest_come_first() {
        let trace = excerpt(stepped(), &[1], &(0..u64::MAX)).unwrap();
        let top = largest(&trace, 3);
        assert!(top.records.iter().all(|record| record.values[0].delta == Some(501)));
        assert_eq!(top.functions.unwrap().instructions.len(), 3);
        assert_eq!(largest(&trace, 1000).records.len(), 61);
    }
}
