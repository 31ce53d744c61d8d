//! The report for people: what ran and how it ended, the totals, and a table of the rows that matter most.
//!
//! 80 columns unless the terminal is wider. Numbers are whole, with thousands separators; only where they would leave no room for names are
//! the table's numbers shortened (`12.34 M`), never the totals.

use super::number::{compact, grouped, percent, rate, seconds};
use super::terminal::{middle_cut, printable, Page};
use super::{weight, Kind, Metric, Report, Row, CACHE_METRICS, COUNT_METRICS};
use crate::cli::By;
use std::path::Path;

/// A name needs at least this much room before numbers are shortened for it.
const NAME_WIDTH_MIN: usize = 28;

/// The whole text.
pub fn show(report: &Report, by: By, rows: usize, page: &Page) -> String {
    let mut out = heading(report, page);
    out += &totals(report);
    out += &timing(report);
    out += &table(report, by, rows, page);
    for warning in &report.warnings {
        out += &format!("warning: {}\n", printable(warning));
    }
    out
}

fn heading(report: &Report, page: &Page) -> String {
    let name = match report.kind {
        Kind::Count => "lightfoot count",
        Kind::Cache => "lightfoot cache",
    };
    let command = printable(&report.command.join(" "));
    let end = match (report.partial, report.signal) {
        (true, _) => "interrupted: partial".to_owned(),
        (_, Some(signal)) => format!("ended by signal {signal}"),
        (_, None) => format!("exit status {}", report.exit_status),
    };
    let room = page.width.saturating_sub(name.len() + end.len() + 4).max(8);
    format!("{}: {}, {end}\n", page.bold(name), middle_cut(&command, room))
}

fn totals(report: &Report) -> String {
    let values: Vec<String> =
        report.metrics().map(|m| (m.value)(&report.totals).map_or("-".into(), grouped)).collect();
    let width = values.iter().map(String::len).max().unwrap_or(0);
    let mut out = String::new();
    for (metric, value) in report.metrics().zip(&values) {
        let line = format!("  {:<16} {value:>width$}{}", metric.label, remark(report, metric));
        out += line.trim_end();
        out += "\n";
    }
    out
}

/// What stands beside a total: a miss rate, or why there is no number.
fn remark(report: &Report, metric: &Metric) -> String {
    if let Some(reason) = report.null_reasons.get(metric.field) {
        return format!("  ({reason})");
    }
    let totals = &report.totals;
    let (whole, of) = match metric.field {
        "l1i_misses" => (totals.instructions, "instructions"),
        "l1d_load_misses" => (totals.loads, "loads"),
        "l1d_store_misses" => (totals.stores, "stores"),
        "l2_misses" | "l3_misses" | "dtlb_misses" => (totals.loads + totals.stores, "loads and stores"),
        _ => return String::new(),
    };
    let part = (metric.value)(totals).unwrap_or(0);
    format!("  {:>8} of {of}", rate(part, whole))
}

fn timing(report: &Report) -> String {
    let speed =
        report.instructions_per_s.map(|n| format!(", {} instructions/s", compact(n))).unwrap_or_default();
    let slowdown = match (report.slowdown, report.native_wall_s) {
        (Some(slowdown), Some(native)) => format!("{slowdown:.1}× the native {}", seconds(native)),
        _ => report.null_reasons.get("slowdown").cloned().unwrap_or_default(),
    };
    format!("  {:<16} {}{speed}\n  {:<16} {slowdown}\n", "wall time", seconds(report.wall_s), "slowdown")
}

fn table(report: &Report, by: By, rows: usize, page: &Page) -> String {
    let all = report.rows(by);
    let shown = &all[..rows.min(all.len())];
    if shown.is_empty() {
        return String::new();
    }
    let columns = columns(report, by);
    let width = page.width.max(40);
    let full = Numbers::new(&columns, shown, grouped);
    let numbers =
        if full.width() + NAME_WIDTH_MIN <= width { full } else { Numbers::new(&columns, shown, compact) };
    let room = width.saturating_sub(numbers.width() + "100.0 %  ".len()).max(NAME_WIDTH_MIN / 2);
    let (label, whole) = (by_label(by), weight(report.kind, &report.totals).0);
    let mut out = format!("\n{}\n", page.bold(&format!("{:>7}{}  {label}", "share", numbers.heading)));
    for (row, cells) in shown.iter().zip(&numbers.lines) {
        let share = percent(weight(report.kind, &row.counts).0, whole);
        out += &format!("{share:>7}{cells}  {}\n", name(row, by, room));
    }
    if shown.len() < all.len() {
        out += &format!("  ... {} more (--top 0 shows all)\n", grouped((all.len() - shown.len()) as u64));
    }
    out + &format!("  share: of {}\n", share_of(report.kind))
}

fn share_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Count => "instructions",
        Kind::Cache => "first-level misses, instructions and data",
    }
}

/// Numbers of a table: blocks are left out (they follow instructions), and levels that the machine lacks.
fn columns(report: &Report, by: By) -> Vec<&'static Metric> {
    let present = |metric: &&Metric| (metric.value)(&report.totals).is_some();
    match (report.kind, by) {
        (Kind::Count, _) => COUNT_METRICS.iter().filter(|m| m.field != "blocks").collect(),
        (Kind::Cache, _) => COUNT_METRICS[..1].iter().chain(CACHE_METRICS.iter().filter(present)).collect(),
    }
}

fn by_label(by: By) -> &'static str {
    match by {
        By::Function => "function",
        By::Library => "library",
        By::Opcode => "opcode",
    }
}

fn name(row: &Row, by: By, room: usize) -> String {
    match (by, &row.library) {
        (By::Function, Some(library)) => {
            let library =
                Path::new(library).file_name().map_or(library.as_str().into(), |n| n.to_string_lossy());
            let library = middle_cut(&printable(&library), room / 2);
            let left = room.saturating_sub(library.chars().count() + 3).max(8);
            let function = printable(&row.name);
            if function == library {
                function
            } else {
                format!("{} [{library}]", middle_cut(&function, left))
            }
        }
        _ => middle_cut(&printable(&row.name), room),
    }
}

/// The table's numbers, aligned.
struct Numbers {
    heading: String,
    lines: Vec<String>,
}

impl Numbers {
    fn new(columns: &[&Metric], rows: &[Row], format: fn(u64) -> String) -> Numbers {
        let cell = |metric: &Metric, row: &Row| (metric.value)(&row.counts).map_or("-".into(), format);
        let mut numbers = Numbers { heading: String::new(), lines: vec![String::new(); rows.len()] };
        for metric in columns {
            let label = short(metric);
            let cells: Vec<String> = rows.iter().map(|row| cell(metric, row)).collect();
            let width = cells.iter().map(String::len).max().unwrap_or(0).max(label.len()) + 2;
            numbers.heading += &format!("{label:>width$}");
            for (line, cell) in numbers.lines.iter_mut().zip(cells) {
                *line += &format!("{cell:>width$}");
            }
        }
        numbers
    }

    fn width(&self) -> usize {
        self.heading.chars().count()
    }
}

/// A column's heading: every number of a `cache` table but the first is a count of misses.
fn short(metric: &Metric) -> &'static str {
    match metric.field {
        "instructions" => "instr",
        "l1i_misses" => "L1I",
        "l1d_load_misses" => "L1D ld",
        "l1d_store_misses" => "L1D st",
        "l2_misses" => "L2",
        "l3_misses" => "L3",
        "dtlb_misses" => "dTLB",
        _ => metric.label,
    }
}
