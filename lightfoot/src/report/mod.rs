//! What a measurement says, as plain data, and its shapes: text for people, JSON for programs, CSV for spreadsheets.
//!
//! [`Report`] is the JSON, field for field, in this order; the other shapes are views of it. A number that was not measured is `null` with
//! a sentence in `null_reasons`, never 0. Schema 1 stays readable: fields may be added, none renamed or removed, without a new number.

pub mod cachegrind;
pub mod callgrind;
pub mod csv;
pub mod curve;
pub mod detail;
pub mod firefox;
pub mod group;
pub mod html;
pub mod number;
pub mod output;
pub mod plot;
pub mod terminal;
pub mod text;

use crate::cli::{By, Rep, Shape};
use crate::estimate::Estimate;
use crate::symbol::{demangle, Symbolizer};
use crate::tally::{Counts, Tally};
use detail::Detail;
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
    /// The region that was counted, if not the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
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
    /// Of `cache`: data misses of caches of other sizes, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<curve::Curve>,
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
    /// By what was asked for, where that is none of the tables above: what a row of `rows` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Vec<By>>,
    /// These rows, most first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Vec<Row>>,
    /// What the tables are sorted by, if not by what the command counts.
    #[serde(skip)]
    pub sort: Option<&'static Metric>,
    /// Which counts of a row it is sorted by.
    #[serde(skip)]
    pub order: Order,
    /// What annotated outputs need.
    #[serde(skip)]
    pub detail: Option<Detail>,
    /// Where child processes were followed: each process as it was born, the program first. The totals are their sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<ProcessRow>>,
}

/// Which counts of a row it is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Its own.
    #[default]
    Own,
    /// Those of a line together with what was inlined there.
    WithInlined,
}

impl Order {
    fn of<'a>(self, own: &'a Counts, with_inlined: Option<&'a Counts>) -> &'a Counts {
        match self {
            Order::Own => own,
            Order::WithInlined => with_inlined.unwrap_or(own),
        }
    }
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

impl ProcessRow {
    /// Its place, its end and what it executed: of that the file without folders, which would leave no room for arguments.
    pub fn title(&self) -> String {
        let of = self.parent_place.map(|parent| format!(" of #{parent}")).unwrap_or_default();
        let end = match (self.signal, self.exit_status) {
            (Some(signal), _) => format!("signal {signal}"),
            (None, Some(status)) => format!("exit {status}"),
            (None, None) => "not counted to its end".into(),
        };
        let mut words = self.command.clone();
        if let Some(first) = words.first_mut() {
            *first = first.rsplit('/').next().unwrap_or_default().to_owned();
        }
        format!("#{}{of}, {end}: {}", self.place, words.join(" "))
    }
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

/// A frame of inlined code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// Demangled.
    pub function: String,
    /// Source file.
    pub file: String,
    /// Line, from 1; 0 where it is not known.
    pub line: u32,
}

/// One line of a table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Function (demangled), library or mnemonic.
    pub name: String,
    /// File that a function lies in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Address of a function in its file, before relocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Source file, where rows are lines and it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Mnemonic, where rows tell it apart beside something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opcode: Option<String>,
    /// Of a line whose code was inlined: the frames that a debugger shows, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<Frame>,
    /// Of a line that code was inlined at: what happened there together with that code. Such rows overlap, so these numbers add up to more than the totals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_inlined: Option<Box<Counts>>,
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

/// First-level data misses of reads and writes together: a table has no room for both.
pub const L1D: Metric = metric("l1d_misses", "L1D misses", |c| c.misses.map(|misses| misses.l1d()));

/// The number that `column` names, by its field or as the table's heading has it.
///
/// # Errors
/// One sentence with the columns that there are.
pub fn sortable(kind: Kind, column: &str) -> anyhow::Result<&'static Metric> {
    let of_cache = CACHE_METRICS.iter().chain([&L1D]).filter(|_| kind == Kind::Cache);
    let metrics: Vec<&'static Metric> = COUNT_METRICS.iter().chain(of_cache).collect();
    let wanted = |metric: &&&'static Metric| {
        [metric.field, text::short(metric), metric.label].iter().any(|name| name.eq_ignore_ascii_case(column))
    };
    metrics.iter().find(wanted).copied().ok_or_else(|| {
        let fields: Vec<&str> = metrics.iter().map(|metric| metric.field).collect();
        anyhow::anyhow!("there is no column {column} to sort by: the columns are {}", fields.join(", "))
    })
}

impl Report {
    /// Rows for `by`.
    pub fn rows(&self, by: &[By]) -> &[Row] {
        match by {
            [By::Function] => &self.functions,
            [By::Library] => &self.libraries,
            [By::Opcode] => &self.opcodes,
            _ => self.rows.as_deref().unwrap_or_default(),
        }
    }

    /// What annotated outputs need; nothing where none was asked for.
    fn detail(&self) -> &Detail {
        static NONE: std::sync::LazyLock<Detail> = std::sync::LazyLock::new(Detail::default);
        self.detail.as_ref().unwrap_or(&NONE)
    }

    /// What the tables are sorted by, and what their percentages are of: the column that was asked for, else instructions or first-level misses.
    pub fn weight(&self, counts: &Counts) -> (u64, u64) {
        match (self.sort, self.kind, counts.misses) {
            (Some(metric), ..) => ((metric.value)(counts).unwrap_or(0), counts.instructions),
            (None, Kind::Cache, Some(misses)) => {
                (misses.l1d() + misses.l1i_misses.unwrap_or(0), counts.instructions)
            }
            _ => (counts.instructions, 0),
        }
    }

    /// What a row is sorted by.
    fn weight_of(&self, row: &Row) -> (u64, u64) {
        self.weight(self.order.of(&row.counts, row.with_inlined.as_deref()))
    }

    /// All metrics of this kind of report.
    pub fn metrics(&self) -> impl Iterator<Item = &'static Metric> {
        let misses = if self.kind == Kind::Cache { CACHE_METRICS } else { &[] };
        COUNT_METRICS.iter().chain(misses)
    }

    /// Fills the tables from a tally, most first; `by` is what rows were asked for.
    pub fn fill(&mut self, tally: &Tally, symbols: &Symbolizer, by: &[By]) {
        self.totals = tally.totals;
        self.functions =
            tally.functions.iter().map(|(index, counts)| function_row(symbols, *index, counts)).collect();
        self.libraries =
            tally.libraries.iter().map(|(index, counts)| library_row(symbols, *index, counts)).collect();
        let opcode =
            |(name, counts): &(String, Counts)| Row { name: name.clone(), counts: *counts, ..Row::default() };
        self.opcodes = tally.opcodes.iter().map(opcode).collect();
        if by == [By::Thread] {
            self.by = Some(by.to_vec());
        } else if !matches!(by, [By::Function | By::Library | By::Opcode]) {
            self.by = Some(by.to_vec());
            let weight = |own: &Counts, all: Option<&Counts>| self.weight(self.order.of(own, all));
            self.rows = Some(group::rows(by, tally, symbols, weight));
        }
        self.sort_rows();
    }

    /// The same with the first `rows` of each table.
    fn with_at_most(&self, rows: usize) -> Report {
        let mut report = Report { detail: None, ..self.clone() };
        let Report { functions, libraries, opcodes, rows: asked_for, .. } = &mut report;
        for table in [functions, libraries, opcodes].into_iter().chain(asked_for) {
            table.truncate(rows);
        }
        report
    }

    /// Sets the rows that are no part of a tally.
    pub fn set_rows(&mut self, rows: Vec<Row>) {
        self.rows = Some(rows);
        self.sort_rows();
    }

    fn sort_rows(&mut self) {
        let mut tables = [&mut self.functions, &mut self.libraries, &mut self.opcodes].map(std::mem::take);
        let mut rows = self.rows.take();
        for rows in tables.iter_mut().chain(&mut rows) {
            rows.sort_by(|a, b| {
                let order = self.weight_of(b).cmp(&self.weight_of(a));
                order.then_with(|| a.identity().cmp(&b.identity()))
            });
        }
        [self.functions, self.libraries, self.opcodes] = tables;
        self.rows = rows;
    }
}

impl Row {
    /// What tells it from all other rows of its table.
    fn identity(&self) -> impl Ord + '_ {
        (&self.library, &self.name, self.address, &self.file, self.line, &self.opcode)
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
        ..Row::default()
    }
}

fn library_row(symbols: &Symbolizer, index: usize, counts: &Counts) -> Row {
    Row { name: plain(&symbols.libraries()[index].path), counts: *counts, ..Row::default() }
}

fn plain(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// How a report is shown.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Its shape.
    pub format: Shape,
    /// What the rows are.
    pub by: &'a [By],
    /// How many rows; `None` is the shape's own choice.
    pub top: Option<usize>,
    /// For text.
    pub page: terminal::Page,
}

impl View<'_> {
    /// The report's bytes.
    ///
    /// # Errors
    /// When it cannot be put in JSON, which would be a defect.
    pub fn show(&self, report: &Report) -> anyhow::Result<String> {
        Ok(match self.format {
            Shape::Text => text::show(report, self.by, rows_shown(self.top, 20), &self.page),
            Shape::Csv => csv::show(report, self.by, rows_shown(self.top, usize::MAX)),
            Shape::Cachegrind => cachegrind::show(report, report.detail()),
            Shape::Firefox => firefox::show(report, report.detail()),
            Shape::Html => html::show(report, report.detail())?,
            Shape::Callgrind => callgrind::show(report, report.detail()),
            Shape::Json => {
                let rows = rows_shown(self.top, usize::MAX);
                // A copy of a hundred thousand rows takes longer than the text of them.
                let cut = (rows < usize::MAX).then(|| report.with_at_most(rows));
                serde_json::to_string_pretty(cut.as_ref().unwrap_or(report))? + "\n"
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
