//! What a measurement says, as plain data, and its shapes: text for people, JSON for programs, CSV for spreadsheets.
//!
//! [`Report`] is the JSON, field for field, in this order; the other shapes are views of it. A number that was not measured is `null` with
//! a sentence in `null_reasons`, never 0. Schema 1 stays readable: fields may be added, none renamed or removed, without a new number.

pub mod csv;
pub mod number;
pub mod output;
pub mod svg;
pub mod terminal;
pub mod text;

use crate::cli::{By, Format, Rep};
use crate::estimate::Estimate;
use crate::symbol::{demangle, Symbolizer};
use crate::tally::{Counts, Tally};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The number of this shape of report.
pub const SCHEMA: u32 = 1;

/// Which command made a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `lightfoot count`
    Count,
    /// `lightfoot cache`
    Cache,
}

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Of lightfoot.
    pub version: &'static str,
    /// Which command made it.
    pub kind: Kind,
    /// The program and its arguments; what is not UTF-8 is shown with U+FFFD.
    pub command: Vec<String>,
    /// As a shell would say it.
    pub exit_status: u8,
    /// The signal that ended the program, if one did.
    pub signal: Option<i32>,
    /// Whether the measurement was interrupted: the numbers are true up to there.
    pub partial: bool,
    /// How repeated string instructions were counted.
    pub rep: Rep,
    /// What was simulated, or what the program ran on.
    pub machine: serde_json::Value,
    /// Time from start to end of the measured run.
    pub wall_s: f64,
    /// Speed of the measured run.
    pub instructions_per_s: Option<u64>,
    /// Time of a native run, if one was asked for.
    pub native_wall_s: Option<f64>,
    /// `wall_s / native_wall_s`.
    pub slowdown: Option<f64>,
    /// What the measuring itself did.
    pub engine: Engine,
    /// The whole program.
    pub totals: Counts,
    /// Of `cache`: cycles by the machine's declared model, with its constants.
    pub cycles: Option<Estimate>,
    /// Of `cache`: dirty lines that each level gave up.
    pub write_backs: Option<BTreeMap<String, u64>>,
    /// Of `cache`: conditional branches that were predicted.
    pub conditional_branches: Option<u64>,
    /// Why a number is null, by its field's name.
    pub null_reasons: BTreeMap<String, String>,
    /// What the user should know before using the numbers.
    pub warnings: Vec<String>,
    /// By function, most first.
    pub functions: Vec<Row>,
    /// By executable and shared library, most first.
    pub libraries: Vec<Row>,
    /// By mnemonic, most first.
    pub opcodes: Vec<Row>,
    /// Where child processes were followed: each process as it was born, the program first. The totals are their sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<ProcessRow>>,
}

/// One process of a run.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessRow {
    /// Its number in the system.
    pub pid: i32,
    /// Its parent's; null for the program itself.
    pub parent: Option<i32>,
    /// Its place and its parent's among the processes, from 1.
    pub place: usize,
    /// As above.
    pub parent_place: Option<usize>,
    /// What it executed last; of a child that executed nothing, its parent's.
    pub command: Vec<String>,
    /// As a shell would say it; null where it ran on without being counted.
    pub exit_status: Option<u8>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// What it did, over all programs that it executed.
    #[serde(flatten)]
    pub counts: Counts,
}

/// What the measuring itself did: where a slow run spent its time.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Engine {
    /// Pieces of code translated.
    pub fragments: u64,
    /// Bytes of generated code.
    pub code_bytes: u64,
    /// Times that the program was stopped: for code, for system calls, for signals, for a full ring.
    pub stops: u64,
    /// Time spent translating.
    pub translating_s: f64,
    /// Time that the program waited for the simulator.
    pub waiting_s: f64,
}

/// One line of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Function (demangled), library or mnemonic.
    pub name: String,
    /// File that a function lies in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Address of a function in its file, before relocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// What happened there.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A number that a report holds per row.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its field in JSON and CSV.
    pub field: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// Its value.
    pub value: fn(&Counts) -> Option<u64>,
}

const fn metric(field: &'static str, label: &'static str, value: fn(&Counts) -> Option<u64>) -> Metric {
    Metric { field, label, value }
}

/// What `count` reports.
pub const COUNT_METRICS: &[Metric] = &[
    metric("instructions", "instructions", |c| Some(c.instructions)),
    metric("blocks", "blocks", |c| Some(c.blocks)),
    metric("loads", "loads", |c| Some(c.loads)),
    metric("stores", "stores", |c| Some(c.stores)),
];

/// What `cache` reports on top of that.
pub const CACHE_METRICS: &[Metric] = &[
    metric("l1i_misses", "L1I misses", |c| c.misses?.l1i_misses),
    metric("l1d_load_misses", "L1D load misses", |c| c.misses?.l1d_load_misses),
    metric("l1d_store_misses", "L1D store misses", |c| c.misses?.l1d_store_misses),
    metric("l2_misses", "L2 misses", |c| c.misses?.l2_misses),
    metric("l3_misses", "L3 misses", |c| c.misses?.l3_misses),
    metric("dtlb_misses", "dTLB misses", |c| c.misses?.dtlb_misses),
    metric("branch_mispredictions", "mispredictions", |c| c.misses?.branch_mispredictions),
];

impl Report {
    /// Rows for `by`.
    pub fn rows(&self, by: By) -> &[Row] {
        match by {
            By::Function => &self.functions,
            By::Library => &self.libraries,
            By::Opcode => &self.opcodes,
        }
    }

    /// All metrics of this kind of report.
    pub fn metrics(&self) -> impl Iterator<Item = &'static Metric> {
        let misses = if self.kind == Kind::Cache { CACHE_METRICS } else { &[] };
        COUNT_METRICS.iter().chain(misses)
    }

    /// Fills the tables from a tally, most first.
    pub fn fill(&mut self, tally: &Tally, symbols: &Symbolizer) {
        self.totals = tally.totals;
        self.functions =
            tally.functions.iter().map(|(index, counts)| function_row(symbols, *index, counts)).collect();
        self.libraries =
            tally.libraries.iter().map(|(index, counts)| library_row(symbols, *index, counts)).collect();
        let opcode = |(name, counts): &(String, Counts)| Row {
            name: name.clone(),
            library: None,
            address: None,
            counts: *counts,
        };
        self.opcodes = tally.opcodes.iter().map(opcode).collect();
        let kind = self.kind;
        for rows in [&mut self.functions, &mut self.libraries, &mut self.opcodes] {
            rows.sort_by(|a, b| {
                let order = weight(kind, &b.counts).cmp(&weight(kind, &a.counts));
                order.then_with(|| (&a.library, &a.name, a.address).cmp(&(&b.library, &b.name, b.address)))
            });
        }
    }
}

/// What the tables are sorted by, and what their percentages are of: instructions, or first-level misses.
pub fn weight(kind: Kind, counts: &Counts) -> (u64, u64) {
    match (kind, counts.misses) {
        (Kind::Cache, Some(misses)) => (misses.l1d() + misses.l1i_misses.unwrap_or(0), counts.instructions),
        _ => (counts.instructions, 0),
    }
}

fn function_row(symbols: &Symbolizer, index: usize, counts: &Counts) -> Row {
    let function = &symbols.functions()[index];
    let path = &symbols.libraries()[function.library].path;
    Row {
        name: demangle(&function.name),
        library: Some(plain(path)),
        address: (function.address != 0).then_some(function.address),
        counts: *counts,
    }
}

fn library_row(symbols: &Symbolizer, index: usize, counts: &Counts) -> Row {
    Row { name: plain(&symbols.libraries()[index].path), library: None, address: None, counts: *counts }
}

fn plain(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// How a report is shown.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Its shape.
    pub format: Format,
    /// What the rows are.
    pub by: By,
    /// How many rows; `None` is the shape's own choice.
    pub top: Option<usize>,
    /// For text.
    pub page: terminal::Page,
}

impl View {
    /// The report's bytes.
    ///
    /// # Errors
    /// When it cannot be put in JSON, which would be a defect.
    pub fn show(&self, report: &Report) -> anyhow::Result<String> {
        Ok(match self.format {
            Format::Text => text::show(report, self.by, rows_shown(self.top, 20), &self.page),
            Format::Csv => csv::show(report, self.by, rows_shown(self.top, usize::MAX)),
            Format::Json => {
                let rows = rows_shown(self.top, usize::MAX);
                let mut report = report.clone();
                report.functions.truncate(rows);
                report.libraries.truncate(rows);
                report.opcodes.truncate(rows);
                serde_json::to_string_pretty(&report)? + "\n"
            }
        })
    }
}

fn rows_shown(top: Option<usize>, default: usize) -> usize {
    match top {
        None => default,
        Some(0) => usize::MAX,
        Some(rows) => rows,
    }
}

#[cfg(test)]
pub(crate) mod tests;
