//! The formats of a comparison.

use super::rows::Changed;
use super::{Difference, Pairs};
use anyhow::Result;
use present::csv::field;
use present::number::{brief, grouped};
use present::order::map_of;
use present::terminal::{front_cut, middle_cut, printable, WIDTH};
use serde_json::json;

impl Difference {
    pub(super) fn text(&self, rows: usize) -> String {
        let mut out = String::new();
        // The widest number sets the width of both columns; six is the width of the heading
        // `before`.
        let width = self
            .totals
            .iter()
            .flat_map(|(before, after)| [grouped(*before).len(), grouped(*after).len()])
            .max()
            .unwrap_or(0)
            .max(6);
        out += &format!("  {:<22} {:>width$}  {:>width$}  {:>9}\n", "", "before", "after", "change");
        for (metric, (before, after)) in self.metrics.iter().zip(&self.totals) {
            let (a, b) = (grouped(*before), grouped(*after));
            out += &format!("  {metric:<22} {a:>width$}  {b:>width$}  {:>9}\n", change((*before, *after)));
        }
        if !self.rows.is_empty() {
            out += "\n";
            out += &self.columns(|metric| short(&self.metrics[metric]), "change");
            out += "  row\n";
        }
        let shown = self.shown(rows);
        for Changed { name, was, pairs } in shown {
            let cells = self.columns(|metric| delta(pairs[metric]), &change(pairs[self.sorted_by]));
            // The end of a path says most. Other names are cut in the middle, so that both the
            // function and its library stay readable.
            let room = WIDTH.saturating_sub(cells.len() + 2).max(24);
            let name = printable(&named(name, was.as_deref()));
            let cut = if name.starts_with('/') { front_cut } else { middle_cut };
            out += &format!("{cells}  {}\n", cut(&name, room));
        }
        if self.rows.len() > shown.len() {
            out += &format!("  ({} more with --top 0)\n", grouped((self.rows.len() - shown.len()) as u64));
        }
        for note in self.notes.iter().chain(&self.worse) {
            out += &format!("{note}\n");
        }
        out
    }

    pub(super) fn json(&self, rows: usize) -> Result<String> {
        let pair =
            |pairs: &Pairs| {
                let fields = self.metrics.iter().zip(pairs);
                map_of(fields.map(|(metric, (before, after))| {
                    (metric.clone(), json!({"before": before, "after": after}))
                }))
            };
        let row = |row: &Changed| match &row.was {
            Some(was) => json!({"name": row.name, "was": was, "change": pair(&row.pairs)}),
            None => json!({"name": row.name, "change": pair(&row.pairs)}),
        };
        let rows: Vec<_> = self.shown(rows).iter().map(row).collect();
        let answer = json!({"schema": 1, "totals": pair(&self.totals), "rows": rows, "notes": self.notes, "worse": self.worse});
        Ok(serde_json::to_string_pretty(&answer)? + "\n")
    }

    pub(super) fn csv(&self, rows: usize) -> String {
        let heading: String =
            self.metrics.iter().map(|metric| format!(",{metric}_before,{metric}_after")).collect();
        let mut out = format!("name{heading}\r\n");
        let total = ("(total)", &self.totals);
        let rows = self.shown(rows).iter().map(|row| (row.name.as_str(), &row.pairs));
        for (name, pairs) in std::iter::once(total).chain(rows) {
            let cells: String = pairs.iter().map(|(before, after)| format!(",{before},{after}")).collect();
            out += &format!("{}{cells}\r\n", field(name));
        }
        out
    }

    /// Two tables: the totals, and the rows.
    pub(super) fn markdown(&self, rows: usize) -> String {
        let mut out = String::from("| | before | after | change |\n|---|---:|---:|---:|\n");
        for (metric, (before, after)) in self.metrics.iter().zip(&self.totals) {
            let (a, b) = (grouped(*before), grouped(*after));
            out += &format!("| {metric} | {a} | {b} | {} |\n", change((*before, *after)));
        }
        let shown = self.shown(rows);
        if !shown.is_empty() {
            let headings: String =
                self.metrics.iter().map(|metric| format!(" {} |", short(metric))).collect();
            let lines = "---:|".repeat(self.metrics.len());
            out += &format!("\n| row |{headings} change |\n|---|{lines}---:|\n");
        }
        for Changed { name, was, pairs } in shown {
            let cells: String = pairs.iter().map(|pair| format!(" {} |", delta(*pair))).collect();
            let name = printable(&named(name, was.as_deref())).replace('|', "\\|").replace('`', "'");
            out += &format!("| `{name}` |{cells} {} |\n", change(pairs[self.sorted_by]));
        }
        if self.rows.len() > shown.len() {
            out +=
                &format!("\n{} more rows with `--top 0`.\n", grouped((self.rows.len() - shown.len()) as u64));
        }
        for note in self.notes.iter().chain(&self.worse) {
            out += &format!("\n{}\n", printable(note));
        }
        out
    }

    /// The first `rows` rows; all of them if that is 0.
    fn shown(&self, rows: usize) -> &[Changed] {
        let shown = if rows == 0 { self.rows.len() } else { rows.min(self.rows.len()) };
        &self.rows[..shown]
    }

    /// The cells of a line of text: one for each metric, the sorting one first with its relative
    /// change behind it.
    fn columns(&self, cell: impl Fn(usize) -> String, change: &str) -> String {
        let others = (0..self.metrics.len()).filter(|metric| *metric != self.sorted_by);
        let first = format!("{:>10} {change:>9}", cell(self.sorted_by));
        others.fold(first, |line, metric| format!("{line} {:>9}", cell(metric)))
    }
}

/// A name, with the one that the first report has if that is another one.
fn named(name: &str, was: Option<&str>) -> String {
    let Some(was) = was else { return name.to_owned() };
    // A line of the same file needs its number only.
    let same_file = |(one, _): (&str, &str), (other, _): (&str, &str)| one == other;
    let is_same = name.rsplit_once(':').zip(was.rsplit_once(':')).is_some_and(|(a, b)| same_file(a, b));
    let was = if is_same { was.rsplit(':').next().unwrap_or(was) } else { was };
    format!("{name} (was {was})")
}

/// The relative change in words: `+1.2 %`, `new`, `gone`, `=`.
pub(super) fn change((before, after): (u64, u64)) -> String {
    match (before, after) {
        _ if before == after => "=".into(),
        (0, _) => "new".into(),
        (_, 0) => "gone".into(),
        _ => {
            let share = (after as f64 - before as f64) / before as f64 * 100.0;
            let decimals = if share.abs() < 0.1 { 3 } else { 1 };
            format!("{share:+.decimals$} %")
        }
    }
}

/// The absolute change in words: `+1,234`, `-12.3k`.
pub(super) fn delta((before, after): (u64, u64)) -> String {
    match after.cmp(&before) {
        std::cmp::Ordering::Equal => "=".into(),
        std::cmp::Ordering::Greater => format!("+{}", brief(after - before)),
        std::cmp::Ordering::Less => format!("-{}", brief(before - after)),
    }
}

/// A heading of at most nine characters.
fn short(metric: &str) -> String {
    let level = metric.strip_suffix("_misses").map(str::to_uppercase);
    let short = level.unwrap_or_else(|| match metric {
        "instructions" => "instr".into(),
        "estimated_cycles" => "cycles".into(),
        other => other.into(),
    });
    short.chars().take(9).collect()
}
