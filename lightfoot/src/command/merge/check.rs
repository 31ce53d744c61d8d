//! Whether reports can be added up, and what a reader must know of them.

use super::super::diff::read::Read;
use anyhow::Result;
use present::exit::refused;
use serde_json::Value;

/// Parts of a machine that decide its numbers. The others are names, origins, and the clock at the
/// time of reading.
const DECISIVE: &[&str] = &["cache", "tlb", "cycle", "features"];

/// How a machine was simulated, as far as it decides numbers.
const SIMULATED: &[&str] = &["pages", "huge_pages", "predictor"];

/// Returns an error if the two reports are of different machines.
pub(super) fn of_one_machine(one: &Read, other: &Read) -> Result<()> {
    let differs = |part: &&&str| one.machine.get(**part) != other.machine.get(**part);
    let simulated = |part: &&&str| {
        let of = |read: &Read| {
            read.machine.get("simulation").and_then(|simulation| simulation.get(**part)).cloned()
        };
        // A merged report says nothing of it.
        of(one).zip(of(other)).is_some_and(|(one, other)| one != other)
    };
    let found = DECISIVE.iter().find(differs).or_else(|| SIMULATED.iter().find(simulated));
    let Some(part) = found else { return Ok(()) };
    let name = |read: &Read| read.machine.get("name").and_then(Value::as_str).unwrap_or("?").to_owned();
    Err(refused(format!(
        "{} is of machine {} and {} of machine {}, and their {part} differs: make both on one machine",
        one.path.display(),
        name(one),
        other.path.display(),
        name(other)
    )))
}

/// Returns an error if the two reports have other columns or other rows.
pub(super) fn of_one_shape(one: &Read, other: &Read, columns: &[String]) -> Result<()> {
    let (path, last) = (one.path.display(), other.path.display());
    if let Some(column) = columns.iter().find(|column| !one.totals.has(column)) {
        return Err(refused(format!(
            "{last} has {column} and {path} has none: make both with the same options"
        )));
    }
    let keys = |by: &Option<Vec<String>>| by.as_ref().map_or("function".into(), |by| by.join(","));
    if one.by != other.by {
        return Err(refused(format!(
            "{path} has rows by {} and {last} by {}: make both with the same --by",
            keys(&one.by),
            keys(&other.by)
        )));
    }
    Ok(())
}

/// Sentences about a report whose numbers do not say everything.
pub(super) fn doubts(read: &Read) -> Vec<String> {
    let path = read.path.display();
    let mut doubts = Vec::new();
    if read.partial {
        doubts.push(format!("{path} was interrupted: its numbers are partial"));
    }
    if super::data::has_page(read) {
        doubts.push(format!("which fields of a type are used together in {path} is left out"));
    }
    let shown = read.functions.iter().map(|row| row.counts.get("instructions")).fold(0, u64::saturating_add);
    if shown < read.totals.get("instructions") {
        doubts.push(format!(
            "{path} has its heaviest rows only, and each other row counts as 0: make it without --top"
        ));
    }
    doubts
}
