//! `lightfoot diff A B`: shows the differences of two reports by function or line, and decides
//! whether the second one is worse.
//!
//! Rows are matched by name and library, or by file and line; a row that only one report has is
//! compared with 0. Totals are those of the reports, without the parts that `--ignore` removes. So
//! reports that `--top` shortened can still be compared. Both reports must have one schema, one
//! command and one program; otherwise an error names both values.

mod read;

use crate::cli::{Diff, Format};
use anyhow::Result;
use present::csv::field;
use present::exit::NEGATIVE;
use present::number::{brief, grouped};
use present::output::print;
use present::terminal::{middle_cut, printable, printable_lines, WIDTH};
use read::{Read, Row};
use serde_json::json;
use std::collections::BTreeMap;

pub(super) fn run(options: &Diff) -> Result<u8> {
    let (before, after) = (Read::open(&options.before)?, Read::open(&options.after)?);
    before.comparable(&after, options)?;
    let metrics = before.metrics(&after, &options.metric)?;
    let difference = Difference::new(&before, &after, metrics, options)?;
    print(&match options.format {
        Format::Text => printable_lines(&difference.text(options.top.unwrap_or(20))),
        Format::Json => difference.json(options.top.unwrap_or(0))?,
        Format::Csv => difference.csv(options.top.unwrap_or(0)),
    })?;
    Ok(if difference.worse.is_empty() { 0 } else { NEGATIVE })
}

/// The values of each metric, before and after.
type Pairs = Vec<(u64, u64)>;

/// The comparison of two reports.
struct Difference {
    metrics: Vec<String>,
    /// The totals of both runs, without ignored parts.
    totals: Pairs,
    /// The rows, sorted by change, the largest first.
    rows: Vec<(String, Pairs)>,
    notes: Vec<String>,
    /// Sentences about totals above the threshold.
    worse: Vec<String>,
}

impl Difference {
    fn new(before: &Read, after: &Read, metrics: Vec<String>, options: &Diff) -> Result<Difference> {
        let ignored = |row: &Row| options.ignore.iter().any(|text| row.is_about(text));
        let (mut rows, mut left_out) = (BTreeMap::<String, Pairs>::new(), vec![(0, 0); metrics.len()]);
        for (side, report) in [(Side::Before, before), (Side::After, after)] {
            for row in report.rows(options.by)? {
                let pairs = match ignored(row) {
                    true => &mut left_out,
                    false => rows.entry(row.key(options.by)).or_insert_with(|| vec![(0, 0); metrics.len()]),
                };
                for (pair, metric) in pairs.iter_mut().zip(&metrics) {
                    *side.of(pair) += row.counts.get(metric);
                }
            }
        }
        // Totals are those of the reports less the ignored rows, not sums of rows: --top may have
        // left rows out of a report.
        let total = |(metric, out): (&String, &(u64, u64))| {
            let of = |report: &Read, out: u64| report.totals.get(metric).saturating_sub(out);
            (of(before, out.0), of(after, out.1))
        };
        let totals: Pairs = metrics.iter().zip(&left_out).map(total).collect();
        let mut rows: Vec<(String, Pairs)> = rows
            .into_iter()
            .filter(|(_, pairs)| pairs.iter().any(|(before, after)| before != after))
            .collect();
        rows.sort_by_key(|(_, pairs)| {
            std::cmp::Reverse(pairs.iter().map(|(before, after)| before.abs_diff(*after)).collect::<Vec<_>>())
        });
        let worse = worse(&metrics, &totals, options.fail_above);
        Ok(Difference { metrics, totals, rows, notes: before.notes(after), worse })
    }

    fn text(&self, rows: usize) -> String {
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
            out += &format!("  {metric:<22} {a:>width$}  {b:>width$}  {:>9}\n", change(*before, *after));
        }
        if !self.rows.is_empty() {
            out += "\n";
            let heading: String =
                self.metrics.iter().map(|metric| format!("{:>14}", short(metric))).collect();
            out += &format!("{heading}  row\n");
        }
        let shown = if rows == 0 { self.rows.len() } else { rows.min(self.rows.len()) };
        for (name, pairs) in &self.rows[..shown] {
            let cells: String =
                pairs.iter().map(|(before, after)| format!("{:>14}", delta(*before, *after))).collect();
            // A name is cut in the middle, so that both the function and its library stay readable.
            let room = WIDTH.saturating_sub(cells.len() + 2).max(24);
            out += &format!("{cells}  {}\n", middle_cut(&printable(name), room));
        }
        if self.rows.len() > shown {
            out += &format!("  ({} more with --top 0)\n", grouped((self.rows.len() - shown) as u64));
        }
        for note in self.notes.iter().chain(&self.worse) {
            out += &format!("{note}\n");
        }
        out
    }

    fn json(&self, rows: usize) -> Result<String> {
        let pair = |pairs: &Pairs| {
            let fields = self.metrics.iter().zip(pairs);
            fields
                .map(|(metric, (before, after))| (metric.clone(), json!({"before": before, "after": after})))
                .collect::<BTreeMap<_, _>>()
        };
        let shown = if rows == 0 { usize::MAX } else { rows };
        let rows: Vec<_> = self
            .rows
            .iter()
            .take(shown)
            .map(|(name, pairs)| json!({"name": name, "change": pair(pairs)}))
            .collect();
        let answer = json!({"schema": 1, "totals": pair(&self.totals), "rows": rows, "notes": self.notes, "worse": self.worse});
        Ok(serde_json::to_string_pretty(&answer)? + "\n")
    }

    fn csv(&self, rows: usize) -> String {
        let heading: String =
            self.metrics.iter().map(|metric| format!(",{metric}_before,{metric}_after")).collect();
        let mut out = format!("name{heading}\r\n");
        let shown = if rows == 0 { usize::MAX } else { rows };
        let total = ("(total)".to_owned(), self.totals.clone());
        for (name, pairs) in std::iter::once(&total).chain(self.rows.iter().take(shown)) {
            let cells: String = pairs.iter().map(|(before, after)| format!(",{before},{after}")).collect();
            out += &format!("{}{cells}\r\n", field(name));
        }
        out
    }
}

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

impl Side {
    fn of(self, pair: &mut (u64, u64)) -> &mut u64 {
        match self {
            Side::Before => &mut pair.0,
            Side::After => &mut pair.1,
        }
    }
}

/// Sentences about totals that have grown by more than `percent`.
fn worse(metrics: &[String], totals: &Pairs, percent: Option<f64>) -> Vec<String> {
    let Some(percent) = percent else { return Vec::new() };
    let grown = metrics.iter().zip(totals).filter(|(_, (before, after))| {
        *after > *before && (after - before) as f64 * 100.0 > *before as f64 * percent
    });
    grown
        .map(|(metric, (before, after))| {
            format!(
                "worse: {metric} {} against {}, {}: above {percent}%",
                grouped(*after),
                grouped(*before),
                change(*before, *after)
            )
        })
        .collect()
}

/// The relative change in words: `+1.2 %`, `new`, `gone`, `=`.
fn change(before: u64, after: u64) -> String {
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
fn delta(before: u64, after: u64) -> String {
    match after.cmp(&before) {
        std::cmp::Ordering::Equal => "=".into(),
        std::cmp::Ordering::Greater => format!("+{}", brief(after - before)),
        std::cmp::Ordering::Less => format!("-{}", brief(before - after)),
    }
}

/// A heading of 14 characters.
fn short(metric: &str) -> String {
    metric
        .strip_suffix("_misses")
        .map_or_else(|| metric.chars().take(12).collect(), |level| level.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_held_against_the_threshold() {
        let metrics = ["instructions".to_owned(), "l2_misses".to_owned()];
        let totals = vec![(1000, 1021), (0, 1)];
        assert_eq!(worse(&metrics, &totals, None).len(), 0);
        assert_eq!(worse(&metrics, &totals, Some(2.0)).len(), 2);
        assert_eq!(worse(&metrics, &vec![(1000, 1020), (5, 4)], Some(2.0)).len(), 0);
    }

    #[test]
    fn changes_read_as_changes() {
        for (before, after, said) in
            [(5, 5, "="), (0, 3, "new"), (3, 0, "gone"), (100, 150, "+50.0 %"), (100_000, 99_990, "-0.010 %")]
        {
            assert_eq!(change(before, after), said);
        }
        assert_eq!((delta(1, 10_001).as_str(), delta(5, 2).as_str()), ("+10.0k", "-3"));
    }
}
