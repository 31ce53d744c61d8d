//! The report of a measurement as plain data: the fields of its JSON.

use super::attached::Attached;
use super::curve::Curve;
use super::cycles::Cycles;
use super::detail::Detail;
use super::group;
use super::layouts::Spread;
use super::metric::{Kind, Metric, CACHE_METRICS, COUNT_METRICS};
use super::objects::Objects;
use super::process::ProcessRow;
use super::row::{function_row, library_row, Row};
use super::source_text::SourceText;
use crate::cli::{By, Rep};
use crate::run::hierarchy::{Prefetched, Traffic};
use crate::run::tally::{Counts, Tally};
use instrument::EngineStats;
use present::order::SortRows;
use serde::{Serialize, Serializer};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use symbol::{demangle, Symbolizer};

/// The version of the report's fields.
pub const SCHEMA: u32 = 1;

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of lightfoot.
    pub version: &'static str,
    /// The command that made it.
    pub kind: Kind,
    /// The program and its arguments; bytes that are not UTF-8 are shown as U+FFFD.
    pub command: Vec<String>,
    /// The exit status as a shell reports it.
    pub exit_status: u8,
    /// The signal that ended the program, if one did.
    pub signal: Option<i32>,
    /// Whether the measurement was interrupted; its numbers are correct up to then.
    pub partial: bool,
    /// How repeated string instructions were counted.
    pub rep: Rep,
    /// The region that was counted, if not the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// For `--pid`: what is known about the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached: Option<Attached>,
    /// The simulated machine, or the one that the program ran on.
    pub machine: serde_json::Value,
    /// Time from start to end of the measured run.
    pub wall_s: f64,
    /// Speed of the measured run.
    pub instructions_per_s: Option<u64>,
    /// Time of a native run, if one was requested.
    pub native_wall_s: Option<f64>,
    /// `wall_s / native_wall_s`.
    pub slowdown: Option<f64>,
    /// Statistics about the engine.
    pub engine: Engine,
    /// The counts of the whole program.
    pub totals: Counts,
    /// For `cache`: estimated cycles.
    pub cycles: Option<Cycles>,
    /// For `cache`: dirty lines that each level gave up.
    pub write_backs: Option<BTreeMap<String, u64>>,
    /// For `cache` of a machine with prefetchers: lines that they fetched into each level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetched: Option<BTreeMap<String, Prefetched>>,
    /// For `cache --write-backs` of a machine that is not plain: lines that moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<BTreeMap<String, Traffic>>,
    /// For `cache`: conditional branches that were predicted.
    pub conditional_branches: Option<u64>,
    /// For `cache`: data misses of caches of other sizes, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// Reasons for null numbers, by the field's name.
    pub null_reasons: BTreeMap<String, String>,
    /// Warnings about the numbers.
    pub warnings: Vec<String>,
    /// Rows by function, the largest first.
    pub functions: Vec<Row>,
    /// Rows by executable and shared library, the largest first.
    pub libraries: Vec<Row>,
    /// Rows by mnemonic, the largest first.
    pub opcodes: Vec<Row>,
    /// The key of `rows`, if it is not that of one of the tables above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Vec<By>>,
    /// The rows by that key, the largest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Vec<Row>>,
    /// For `cache --by object`: misses by what lay at their addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<Objects>,
    /// The column that sorts the tables, if the user chose one.
    #[serde(rename = "sorted_by", serialize_with = "field_name", skip_serializing_if = "Option::is_none")]
    pub sort: Option<&'static Metric>,
    /// The counts by which rows are sorted.
    #[serde(skip)]
    pub order: Order,
    /// The number of functions at the end of their table that no output shows: they have neither
    /// names nor order.
    #[serde(skip)]
    pub unnamed: usize,
    /// Data for annotated outputs.
    #[serde(skip)]
    pub detail: Option<Detail>,
    /// If child processes were followed: all processes in the order of their birth, the program
    /// first. The totals are their sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<ProcessRow>>,
    /// For `--layouts`: every event's median and spread, by its field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layouts: Option<BTreeMap<&'static str, Spread>>,
}

/// Writes the field of a metric.
fn field_name<S: Serializer>(metric: &Option<&'static Metric>, to: S) -> Result<S::Ok, S::Error> {
    metric.map(|metric| metric.field).serialize(to)
}

/// The counts by which rows are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By its own counts.
    #[default]
    Own,
    /// By the counts of a line together with those of code inlined there.
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

/// Statistics about the engine, which show where a slow run spent its time.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Engine {
    /// Pieces of code translated.
    pub fragments: u64,
    /// Bytes of generated code.
    pub code_bytes: u64,
    /// How often the program was stopped: for new code, for system calls, for signals, for a full
    /// ring.
    pub stops: u64,
    /// Time spent translating.
    pub translating_s: f64,
    /// Time that the program waited for the simulator.
    pub waiting_s: f64,
}

impl Engine {
    /// What the engine says of itself after a run.
    pub fn of(stats: &EngineStats) -> Engine {
        Engine {
            fragments: stats.fragments,
            code_bytes: stats.code_bytes,
            stops: stats.exits + stats.lookups + stats.segments + stats.system_calls + stats.signals,
            translating_s: stats.translating.as_secs_f64(),
            waiting_s: stats.waiting.as_secs_f64(),
        }
    }
}

impl Report {
    /// The rows of the table by `by`.
    pub fn rows(&self, by: &[By]) -> &[Row] {
        match by {
            [By::Function] => &self.functions,
            [By::Library] => &self.libraries,
            [By::Opcode] => &self.opcodes,
            _ => self.rows.as_deref().unwrap_or_default(),
        }
    }

    /// Data for annotated outputs; empty if there are none.
    pub(super) fn detail(&self) -> &Detail {
        static NONE: std::sync::LazyLock<Detail> = std::sync::LazyLock::new(Detail::default);
        self.detail.as_ref().unwrap_or(&NONE)
    }

    /// The value by which tables are sorted and percentages are computed: the column that the user
    /// chose, else instructions or first-level misses.
    pub fn weight(&self, counts: &Counts) -> (u64, u64) {
        match (self.sort, self.kind, counts.misses) {
            (Some(metric), ..) => ((metric.value)(counts).unwrap_or(0), counts.instructions),
            (None, Kind::Cache, Some(misses)) => {
                (misses.l1d() + misses.l1i_misses.unwrap_or(0), counts.instructions)
            }
            _ => (counts.instructions, 0),
        }
    }

    /// The value by which a row is sorted.
    fn weight_of(&self, row: &Row) -> (u64, u64) {
        self.weight(self.order.of(&row.counts, row.with_inlined.as_deref()))
    }

    /// All metrics of this kind of report.
    pub fn metrics(&self) -> impl Iterator<Item = &'static Metric> {
        let misses = if self.kind == Kind::Cache { CACHE_METRICS } else { &[] };
        COUNT_METRICS.iter().chain(misses)
    }

    /// Fills the tables from a tally, sorted; `by` is the key of the requested rows. `shown` is the
    /// number of rows of each table that the output shows.
    pub fn fill(&mut self, tally: &Tally, symbols: &Symbolizer, by: &[By], shown: usize) {
        self.totals = tally.totals;
        let mut functions: Vec<Row> =
            tally.functions.iter().map(|(index, counts)| function_row(symbols, *index, counts)).collect();
        let named = self.name_functions(&mut functions, (tally, symbols), shown);
        self.unnamed = functions.len() - named;
        self.functions = functions;
        self.libraries =
            tally.libraries.iter().map(|(index, counts)| library_row(symbols, *index, counts)).collect();
        let opcode =
            |(name, counts): &(String, Counts)| Row { name: name.clone(), counts: *counts, ..Row::default() };
        self.opcodes = tally.opcodes.iter().map(opcode).collect();
        if matches!(by, [By::Thread | By::Call]) || by.iter().any(|by| by.is_data()) {
            self.by = Some(by.to_vec());
        } else if !matches!(by, [By::Function | By::Library | By::Opcode]) {
            self.by = Some(by.to_vec());
            let weight = |own: &Counts, all: Option<&Counts>| self.weight(self.order.of(own, all));
            self.rows = Some(group::rows(by, tally, symbols, weight));
        }
        self.sort_rows();
    }

    /// Names the first `shown` rows of functions in sorted order, as they stand in the tally. A
    /// large program has tens of thousands of functions, whose names take longer to read than their
    /// counts. Returns how many rows have names: these come first, the others have no order.
    fn name_functions(
        &self,
        rows: &mut [Row],
        (tally, symbols): (&Tally, &Symbolizer),
        shown: usize,
    ) -> usize {
        let mut weights: Vec<Reverse<(u64, u64)>> =
            rows.iter().map(|row| Reverse(self.weight_of(row))).collect();
        let least = match shown.checked_sub(1).filter(|last| *last < weights.len()) {
            Some(last) => *weights.select_nth_unstable(last).1,
            None if shown == 0 => return 0,
            None => Reverse((0, 0)),
        };
        // Equal rows are sorted by their names, so all that equal the last one need theirs.
        let mut named = 0;
        for (index, (function, _)) in tally.functions.iter().enumerate() {
            if Reverse(self.weight_of(&rows[index])) <= least {
                rows[index].name = demangle(&symbols.functions()[*function].name);
                rows.swap(named, index);
                named += 1;
            }
        }
        named
    }

    /// The report with the first `rows` of each table.
    pub(super) fn with_at_most(&self, rows: usize) -> Report {
        let mut report = Report { detail: None, ..self.clone() };
        let Report { functions, libraries, opcodes, rows: asked_for, .. } = &mut report;
        for table in [functions, libraries, opcodes].into_iter().chain(asked_for) {
            table.truncate(rows);
        }
        report.objects = report.objects.map(|objects| objects.with_at_most(rows));
        report
    }

    /// Adds to rows of lines what stands there.
    pub fn add_source_text(&mut self) {
        SourceText::default().add_to(self.rows.as_deref_mut().unwrap_or_default());
    }

    /// Sets rows that do not come from a tally.
    pub fn set_rows(&mut self, rows: Vec<Row>) {
        self.rows = Some(rows);
        self.sort_rows();
    }

    fn sort_rows(&mut self) {
        let mut tables = [&mut self.functions, &mut self.libraries, &mut self.opcodes].map(std::mem::take);
        let mut rows = self.rows.take();
        let [functions, libraries, opcodes] = &mut tables;
        let named = functions.len().saturating_sub(self.unnamed);
        let shown = [&mut functions[..named], &mut libraries[..], &mut opcodes[..]].into_iter();
        for rows in shown.chain(rows.as_deref_mut()) {
            rows.sort_rows(|a, b| {
                let order = self.weight_of(b).cmp(&self.weight_of(a));
                order.then_with(|| a.identity().cmp(&b.identity()))
            });
        }
        [self.functions, self.libraries, self.opcodes] = tables;
        self.rows = rows;
    }
}
