//! Reads reports for `diff` and `merge`, and checks that two of them can be compared.

use super::mapping;
use crate::cli::{DiffBy, Replaced};
use crate::report::SCHEMA;
use anyhow::Result;
use present::exit::refused;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Columns that are compared unless the user names others.
const DEFAULT: &[&str] = &["instructions", "l1d_misses", "l2_misses", "l3_misses", "estimated_cycles"];

/// The numbers of a row or of the whole run, by field.
#[derive(Debug, Default, Deserialize)]
pub(in crate::command) struct Counts(Map<String, Value>);

impl Counts {
    /// The number of a field; `l1d_misses` is the sum of the misses of loads and stores.
    pub(in crate::command) fn get(&self, metric: &str) -> u64 {
        let number = |field: &str| self.0.get(field).and_then(Value::as_u64).unwrap_or(0);
        match metric {
            "l1d_misses" => number("l1d_load_misses") + number("l1d_store_misses"),
            _ => number(metric),
        }
    }

    /// Whether there is a number of that name.
    pub(in crate::command) fn has(&self, metric: &str) -> bool {
        let field = if metric == "l1d_misses" { "l1d_load_misses" } else { metric };
        self.0.get(field).is_some_and(Value::is_u64)
    }
}

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::command) enum Place {
    /// A function, or a line that is unknown.
    Named(String),
    /// A line of a file.
    Line(String, u32),
}

/// How names of a report become those of the other one.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::command) struct Mapped<'a> {
    /// Of files and libraries.
    pub(in crate::command) paths: &'a [Replaced],
    /// Of functions.
    pub(in crate::command) names: &'a [Replaced],
}

/// A row.
#[derive(Debug, Deserialize)]
pub(in crate::command) struct Row {
    pub(in crate::command) name: String,
    pub(in crate::command) library: Option<String>,
    pub(in crate::command) file: Option<String>,
    pub(in crate::command) line: Option<u32>,
    pub(in crate::command) opcode: Option<String>,
    /// What stands in the line.
    pub(in crate::command) text: Option<String>,
    #[serde(flatten)]
    pub(in crate::command) counts: Counts,
}

impl Row {
    /// What the row is about. Its names are those that the mappings give.
    pub(in crate::command) fn place(&self, by: DiffBy, mapped: &Mapped<'_>) -> Place {
        if let (DiffBy::Line, Some(file), Some(line)) = (by, &self.file, self.line) {
            return Place::Line(mapping::path(file, mapped.paths), line);
        }
        let name = mapping::name(&self.name, mapped.names);
        Place::Named(match &self.library {
            None => name,
            Some(library) => {
                let path = mapping::path(library, mapped.paths);
                format!("{name} [{}]", path.rsplit('/').next().unwrap_or(&path))
            }
        })
    }

    /// Whether `text` occurs in one of the row's names.
    pub(in crate::command) fn is_about(&self, text: &str) -> bool {
        let names = [Some(&self.name), self.library.as_ref(), self.file.as_ref()];
        names.into_iter().flatten().any(|name| name.contains(text))
    }
}

/// A report.
#[derive(Debug, Deserialize)]
pub(in crate::command) struct Read {
    #[serde(skip)]
    pub(in crate::command) path: PathBuf,
    pub(in crate::command) kind: String,
    pub(in crate::command) command: Vec<String>,
    pub(in crate::command) partial: bool,
    pub(in crate::command) rep: String,
    pub(in crate::command) region: Option<String>,
    pub(in crate::command) machine: Value,
    /// Seconds from start to end of the run; a merged report has none.
    pub(in crate::command) wall_s: Option<f64>,
    pub(in crate::command) totals: Counts,
    pub(in crate::command) functions: Vec<Row>,
    #[serde(default)]
    pub(in crate::command) libraries: Vec<Row>,
    #[serde(default)]
    pub(in crate::command) opcodes: Vec<Row>,
    /// Misses by what lay at their addresses.
    pub(in crate::command) objects: Option<Value>,
    /// Misses of caches of other sizes.
    pub(in crate::command) curve: Option<Value>,
    /// The processes of a run with `--follow-children`.
    pub(in crate::command) processes: Option<Vec<Map<String, Value>>>,
    /// The column that the report is sorted by, if the user chose one.
    pub(in crate::command) sorted_by: Option<String>,
    pub(in crate::command) by: Option<Vec<String>>,
    pub(in crate::command) rows: Option<Vec<Row>>,
}

/// Whether reports of different programs may stand beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::command) enum Programs {
    /// Only those of one program.
    One,
    /// Those of any programs.
    Any,
}

impl Read {
    /// Reads a report from a file.
    ///
    /// # Errors
    /// One sentence with the path and what was found there.
    pub(in crate::command) fn open(path: &Path) -> Result<Read> {
        let shown = path.display();
        let bytes = std::fs::read(path).map_err(|error| refused(format!("cannot read {shown}: {error}")))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
            refused(match error.is_eof() {
                true => format!(
                    "{shown} is truncated: it ends in the middle of a report, after {} bytes",
                    bytes.len()
                ),
                false => format!("{shown} is no report: give what --format json writes ({error})"),
            })
        })?;
        match value.get("schema").and_then(Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {}
            Some(schema) => {
                let sentence = format!("{shown} has schema {schema}, and this lightfoot reads schema {SCHEMA}: make both reports with one version");
                return Err(refused(sentence));
            }
            None => return Err(refused(format!("{shown} is no report: it has no schema"))),
        }
        let read: Result<Read, _> = serde_json::from_value(value);
        let read =
            read.map_err(|error| refused(format!("{shown} is no report of count or cache: {error}")))?;
        Ok(Read { path: path.to_owned(), ..read })
    }

    fn program(&self) -> &str {
        let path = self.command.first().map_or("", String::as_str);
        path.rsplit('/').next().unwrap_or(path)
    }

    /// Returns an error if the two reports cannot be compared.
    pub(in crate::command) fn comparable(&self, other: &Read, programs: Programs) -> Result<()> {
        let differ = |what: &str, own: &str, others: &str, remedy: &str| {
            let (before, after) = (self.path.display(), other.path.display());
            Err(refused(format!("{before} is {what} {own} and {after} is {what} {others}: {remedy}")))
        };
        if self.kind != other.kind {
            return differ("a report of", &self.kind, &other.kind, "give reports of one command");
        }
        if self.program() != other.program() && programs == Programs::One {
            let (before, after) = (self.program(), other.program());
            return Err(refused(format!(
                "different programs ({before}, {after}); add --any-program to go on anyway"
            )));
        }
        let whole = |region: &Option<String>| region.clone().unwrap_or_else(|| "(the whole run)".into());
        if self.region != other.region {
            return differ(
                "of region",
                &whole(&self.region),
                &whole(&other.region),
                "give reports of the same region",
            );
        }
        if self.rep != other.rep {
            return differ("with --rep", &self.rep, &other.rep, "count repeated instructions alike");
        }
        Ok(())
    }

    /// The columns to compare.
    ///
    /// # Errors
    /// When a named one is in neither report.
    pub(in crate::command) fn metrics(&self, other: &Read, wanted: &[String]) -> Result<Vec<String>> {
        let known = |metric: &str| self.totals.has(metric) || other.totals.has(metric);
        if let Some(unknown) = wanted.iter().find(|metric| !known(metric)) {
            let columns: Vec<&str> =
                self.totals.0.keys().map(String::as_str).filter(|key| known(key)).collect();
            let sentence = format!("the reports have no column {unknown}: they have {}", columns.join(", "));
            return Err(refused(sentence));
        }
        Ok(match wanted {
            [] => DEFAULT.iter().filter(|metric| known(metric)).map(|metric| (*metric).to_owned()).collect(),
            wanted => wanted.to_vec(),
        })
    }

    /// The rows that are compared.
    ///
    /// # Errors
    /// If rows are to be lines and the report has none.
    pub(in crate::command) fn rows(&self, by: DiffBy) -> Result<&[Row]> {
        match (by, &self.by, &self.rows) {
            (DiffBy::Function, ..) => Ok(&self.functions),
            (DiffBy::Line, Some(by), Some(rows)) if by.iter().any(|by| by == "line") => Ok(rows),
            (DiffBy::Line, ..) => {
                Err(refused(format!("{} has no lines: make it with --by line", self.path.display())))
            }
        }
    }

    /// A sentence for users who leave rows out of the totals, if the report does not have all rows.
    pub(in crate::command) fn shortened(&self, by: DiffBy) -> Option<String> {
        let rows = self.rows(by).ok()?;
        let shown: u64 = rows.iter().map(|row| row.counts.get("instructions")).sum();
        (shown < self.totals.get("instructions")).then(|| {
            let path = self.path.display();
            format!("note: {path} has its heaviest rows only: --ignore takes no others from the totals; make it without --top")
        })
    }

    /// Notes about differences between two comparable reports.
    pub(in crate::command) fn notes(&self, other: &Read) -> Vec<String> {
        let mut notes = Vec::new();
        for report in [self, other].into_iter().filter(|report| report.partial) {
            notes.push(format!("note: {} was interrupted: its numbers are partial", report.path.display()));
        }
        let name =
            |report: &Read| report.machine.get("name").and_then(Value::as_str).unwrap_or("?").to_owned();
        if self.kind == "cache" && self.machine.get("cache") != other.machine.get("cache") {
            let (before, after) = (name(self), name(other));
            notes.push(format!("note: the simulated machines differ: {before} before, {after} after"));
        }
        if self.command.get(1..) != other.command.get(1..) {
            let arguments = |report: &Read| report.command.get(1..).unwrap_or_default().join(" ");
            notes.push(format!(
                "note: the arguments differ: \"{}\" before, \"{}\" after",
                arguments(self),
                arguments(other)
            ));
        }
        notes
    }
}
