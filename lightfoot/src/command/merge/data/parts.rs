//! The miss curve and the processes of several reports.

use super::super::rows::base;
use super::super::text::Line;
use super::count;
use super::table::{Column, DataTable, Found, Matching};
use crate::cli::Statistic;
use crate::command::diff::mapping;
use crate::command::diff::read::{Mapped, Read};
use crate::report::curve::size;
use crate::report::Metric;
use serde_json::{json, Map, Value};
use std::collections::HashMap;

/// Misses of caches of other sizes.
pub(in super::super) struct Curve {
    line_bytes: Value,
    sets: Value,
    points: DataTable,
}

impl Curve {
    /// The curve of the last report, if it has one.
    pub(in super::super) fn new(last: &Read, reports: usize) -> Option<Curve> {
        let curve = last.curve.as_ref()?;
        let points = DataTable::new(&[count("load_misses"), count("store_misses")], reports);
        Some(Curve { line_bytes: curve["line_bytes"].clone(), sets: curve["sets"].clone(), points })
    }

    /// Adds the curve of a report. Returns whether it has one of this shape.
    pub(in super::super) fn add(&mut self, report: usize, read: &Read) -> bool {
        let Some(curve) = &read.curve else { return false };
        if curve["line_bytes"] != self.line_bytes || curve["sets"] != self.sets {
            return false;
        }
        let points = curve["points"].as_array().into_iter().flatten().filter_map(Value::as_object);
        let point = |point: &Map<String, Value>| {
            let number = |field: &str| point.get(field).and_then(Value::as_u64).unwrap_or(0);
            let order = vec![number("size_bytes"), number("ways")];
            Found {
                label: size(order[0]),
                near: String::new(),
                exact: format!("{order:?}"),
                order,
                fields: point.clone(),
                stack: Vec::new(),
            }
        };
        self.points.add(report, points.map(point).collect(), Matching::Exact);
        true
    }

    pub(in super::super) fn json(&self, statistic: Statistic) -> Value {
        let points: Vec<_> = self.points.rows.iter().map(|row| self.points.json(row, statistic)).collect();
        json!({ "line_bytes": self.line_bytes, "sets": self.sets, "points": points })
    }

    /// The points for people, by size.
    pub(in super::super) fn lines(&self) -> Vec<Line> {
        let line = |row| self.points.line(row, &["load_misses", "store_misses"]);
        self.points.rows.iter().map(line).collect()
    }
}

/// The processes of runs with `--follow-children`.
pub(in super::super) struct Processes {
    statistic: Statistic,
    sorted_by: Vec<&'static str>,
    table: DataTable,
}

/// Fields that belong to one run.
const OF_ONE_RUN: [&str; 7] =
    ["pid", "parent", "place", "parent_place", "exit_status", "signal", "cycle_parts"];

impl Processes {
    /// The processes of the last report, if it has several.
    pub(in super::super) fn new(
        last: &Read,
        reports: usize,
        statistic: Statistic,
        columns: &[&'static Metric],
        sorted_by: &[&'static str],
    ) -> Option<Processes> {
        last.processes.as_ref()?;
        let columns: Vec<Column> = columns.iter().map(|metric| count(metric.field)).collect();
        let table = DataTable::new(&columns, reports);
        Some(Processes { statistic, sorted_by: sorted_by.to_vec(), table })
    }

    /// Adds the processes of a report. Returns whether it has any.
    ///
    /// A process is the one with an equal command; of several of these each is another row, in the
    /// order of their beginning. A command that no other report has, such as one with the name of
    /// a temporary file, is that of a process of the same program.
    pub(in super::super) fn add(&mut self, report: usize, read: &Read, mapped: &Mapped<'_>) -> bool {
        let Some(processes) = &read.processes else { return false };
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut found = Vec::new();
        for (place, process) in processes.iter().enumerate() {
            let words = process.get("command").and_then(Value::as_array).into_iter().flatten();
            let mut command: Vec<String> =
                words.filter_map(Value::as_str).map(|word| mapping::path(word, mapped.paths)).collect();
            if let Some(program) = command.first_mut() {
                *program = base(program).to_owned();
            }
            let words = command.join("\n");
            let times = seen.entry(words.clone()).or_insert(0);
            *times += 1;
            let exact = format!("{words}\n{times}");
            let mut fields = process.clone();
            OF_ONE_RUN.iter().for_each(|field| drop(fields.remove(*field)));
            found.push(Found {
                near: command.first().cloned().unwrap_or_default(),
                exact,
                order: vec![place as u64],
                label: command.join(" "),
                fields,
                stack: Vec::new(),
            });
        }
        self.table.add(report, found, Matching::Nearest);
        true
    }

    pub(in super::super) fn json(&self, top: usize) -> Value {
        let order = self.order().into_iter().take(top);
        order.map(|index| self.table.json(&self.table.rows[index], self.statistic)).collect()
    }

    /// The processes for people, the greatest first.
    pub(in super::super) fn lines(&self) -> Vec<Line> {
        let line = |index: usize| self.table.line(&self.table.rows[index], &self.sorted_by);
        self.order().into_iter().map(line).collect()
    }

    fn order(&self) -> Vec<usize> {
        self.table.order(&self.sorted_by, self.statistic)
    }
}
