//! The merged report as JSON: a report as `count` and `cache` write it, with the spread of every
//! number.

use super::rows::Merged;
use super::spread::Spread;
use super::{Report, Source};
use crate::report::{Kind, Metric, SCHEMA};
use anyhow::Result;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{json, Map, Value};

/// Rows, as they are written one after the other: a list of them in memory would take more than all
/// else.
struct Rows<'a> {
    report: &'a Report,
    rows: &'a [Merged],
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(self.rows.len()))?;
        for row in self.rows {
            list.serialize_element(&self.report.row(row))?;
        }
        list.end()
    }
}

impl Report {
    /// The report with the first `top` rows of each table.
    pub(super) fn json(&self, top: usize) -> Result<String> {
        let mut out = Vec::new();
        let mut writer = serde_json::Serializer::pretty(&mut out);
        let mut map = writer.serialize_map(None)?;
        for (field, value) in self.head() {
            map.serialize_entry(&field, &value)?;
        }
        let tables = [
            ("functions", &self.functions),
            ("libraries", &self.libraries),
            ("opcodes", &self.opcodes),
            ("rows", &self.rows),
        ];
        for (field, rows) in tables {
            if field != "rows" || self.by.is_some() && self.objects.is_none() {
                map.serialize_entry(field, &Rows { report: self, rows: &rows[..top.min(rows.len())] })?;
            }
        }
        let statistic = self.statistic;
        let parts = [
            ("objects", self.objects.as_ref().map(|objects| objects.json(top))),
            ("curve", self.curve.as_ref().map(|curve| curve.json(statistic))),
            ("processes", self.processes.as_ref().map(|processes| processes.json(top))),
        ];
        for (field, part) in parts {
            if let Some(part) = part {
                map.serialize_entry(field, &part)?;
            }
        }
        SerializeMap::end(map)?;
        Ok(String::from_utf8(out)? + "\n")
    }

    /// Everything but the rows, in the order of the fields.
    fn head(&self) -> Vec<(&'static str, Value)> {
        let last = self.sources.last();
        let mut machine = self.machine.clone();
        // Which stream was simulated, and how many records it had, is a matter of each run.
        machine.as_object_mut().map(|machine| machine.remove("simulation"));
        let mut head = vec![
            ("schema", json!(SCHEMA)),
            ("version", json!(env!("CARGO_PKG_VERSION"))),
            ("kind", json!(if self.kind == Kind::Cache { "cache" } else { "count" })),
            ("command", json!(last.map_or(&[][..], |last| &last.command))),
            ("partial", json!(self.sources.iter().any(|source| source.partial))),
            ("rep", json!(self.rep)),
            ("machine", machine),
            (
                "merged",
                json!({
                    "as": self.statistic_name(),
                    "reports": self.sources.iter().map(|source| self.source(source)).collect::<Vec<_>>(),
                }),
            ),
            ("totals", self.values(|column| self.totals[column]).into()),
            ("spread", spreads(&self.columns, |column| Some(self.totals[column]))),
            ("warnings", json!(self.warnings)),
        ];
        head.extend(self.region.iter().map(|region| ("region", json!(region))));
        head.extend(self.sort.iter().map(|sort| ("sorted_by", json!(sort))));
        head.extend(self.by.iter().map(|by| ("by", json!(by))));
        head
    }

    fn source(&self, source: &Source) -> Value {
        let totals = self.columns.iter().zip(&source.totals);
        let totals: Map<String, Value> =
            totals.map(|(metric, total)| (metric.field.to_owned(), json!(total))).collect();
        json!({
            "file": source.path.to_string_lossy(), "command": source.command, "partial": source.partial,
            "wall_s": source.wall_s, "totals": totals,
        })
    }

    /// The numbers of a row or of the whole.
    fn values(&self, spread: impl Fn(usize) -> Spread) -> Map<String, Value> {
        let value = |(column, metric): (usize, &&Metric)| {
            (metric.field.to_owned(), json!(spread(column).value(self.statistic)))
        };
        self.columns.iter().enumerate().map(value).collect()
    }

    fn row(&self, row: &Merged) -> Value {
        let reports = self.sources.len();
        let mut fields = self.values(|column| row.spread(column, reports));
        let texts =
            [("library", &row.library), ("file", &row.file), ("text", &row.text), ("opcode", &row.opcode)];
        for (field, text) in texts {
            if let Some(text) = text {
                fields.insert(field.to_owned(), json!(text));
            }
        }
        fields.insert("name".to_owned(), json!(row.name));
        fields.insert("reports".to_owned(), json!(row.reports));
        if let Some(line) = row.line {
            fields.insert("line".to_owned(), json!(line));
        }
        // Most rows of a program that does the same every time have no spread.
        let mut spread = spreads(&self.columns, |column| {
            Some(row.spread(column, reports)).filter(|spread| !spread.is_equal())
        });
        if let Some(calls) = self.calls(row).filter(|calls| calls.most > 0) {
            fields.insert("calls".to_owned(), json!(calls.value(self.statistic)));
            if !calls.is_equal() {
                spread["calls"] = json!(calls);
            }
        }
        if spread.as_object().is_some_and(|spread| !spread.is_empty()) {
            fields.insert("spread".to_owned(), spread);
        }
        fields.into()
    }
}

/// The statistics of some columns, by their field.
fn spreads(columns: &[&'static Metric], spread: impl Fn(usize) -> Option<Spread>) -> Value {
    let mut fields = Map::new();
    for (column, metric) in columns.iter().enumerate() {
        if let Some(spread) = spread(column) {
            fields.insert(metric.field.to_owned(), json!(spread));
        }
    }
    fields.into()
}
