//! `lightfoot diff A B`: shows the differences of two reports by function or line, and decides
//! whether the second one is worse.
//!
//! Functions are matched by name and library, lines by what stands there ([`align`]), and what the
//! first report calls otherwise is mapped ([`mapping`]). A row that only one report has is compared
//! with 0. Totals are those of the reports, without the parts that `--ignore` removes. So reports
//! that `--top` shortened can still be compared. Both reports must have one schema, one command and
//! one program; otherwise an error names both values.

pub(super) mod align;
pub(super) mod mapping;
pub(super) mod read;
mod rows;
mod show;

use crate::cli::{Diff, DiffFormat};
use anyhow::Result;
use present::exit::NEGATIVE;
use present::number::grouped;
use present::order::SortRows;
use present::output::print;
use present::terminal::printable_lines;
use read::{Programs, Read};
use rows::{Changed, Rows};
use show::change;

/// Rows of a table for people, unless they ask for more.
const SHOWN: usize = 20;

pub(super) fn run(options: &Diff) -> Result<u8> {
    let (before, after) = (Read::open(&options.before)?, Read::open(&options.after)?);
    let programs = if options.any_program { Programs::Any } else { Programs::One };
    before.comparable(&after, programs)?;
    let metrics = before.metrics(&after, &options.metric)?;
    let difference = Difference::new(&before, &after, metrics, options)?;
    print(&match options.format {
        DiffFormat::Text => printable_lines(&difference.text(options.top.unwrap_or(SHOWN))),
        DiffFormat::Json => difference.json(options.top.unwrap_or(0))?,
        DiffFormat::Csv => difference.csv(options.top.unwrap_or(0)),
        DiffFormat::Markdown => difference.markdown(options.top.unwrap_or(SHOWN)),
    })?;
    Ok(if difference.worse.is_empty() { 0 } else { NEGATIVE })
}

/// The values of each metric, before and after.
type Pairs = Vec<(u64, u64)>;

/// The comparison of two reports.
struct Difference {
    metrics: Vec<String>,
    /// The index of the metric that sorts the rows.
    sorted_by: usize,
    /// The totals of both runs, without ignored parts.
    totals: Pairs,
    /// The rows that differ, the largest change first.
    rows: Vec<Changed>,
    notes: Vec<String>,
    /// Sentences about totals above the threshold.
    worse: Vec<String>,
}

impl Difference {
    fn new(before: &Read, after: &Read, metrics: Vec<String>, options: &Diff) -> Result<Difference> {
        let found = Rows::new(before, after, &metrics, options)?;
        // Totals are those of the reports less the ignored rows, not sums of rows: --top may have
        // left rows out of a report.
        let total = |(metric, out): (&String, &(u64, u64))| {
            let of = |report: &Read, out: u64| report.totals.get(metric).saturating_sub(out);
            (of(before, out.0), of(after, out.1))
        };
        let totals: Pairs = metrics.iter().zip(&found.left_out).map(total).collect();
        let mut notes = before.notes(after);
        notes.extend(found.notes);
        if !options.ignore.is_empty() {
            notes.extend([before, after].into_iter().filter_map(|report| report.shortened(options.by)));
        }
        let mut rows = found.rows;
        rows.retain(|row| row.pairs.iter().any(|(before, after)| before != after));
        if let Some(percent) = options.noise {
            let all = rows.len();
            rows.retain(|row| !is_noise(&row.pairs, &totals, percent));
            if rows.len() < all {
                let out = grouped((all - rows.len()) as u64);
                notes.push(format!("note: {out} rows have changed by {percent}% of a total or less"));
            }
        }
        let sorted_by = sorted_by(&metrics, options, after);
        let change = |pair: &(u64, u64)| pair.0.abs_diff(pair.1);
        rows.sort_rows(|one, other| {
            let first = change(&other.pairs[sorted_by]).cmp(&change(&one.pairs[sorted_by]));
            let others = || other.pairs.iter().map(change).cmp(one.pairs.iter().map(change));
            first.then_with(others).then_with(|| one.name.cmp(&other.name))
        });
        let worse = worse(&metrics, &totals, options.fail_above);
        Ok(Difference { metrics, sorted_by, totals, rows, notes, worse })
    }
}

/// The index of the metric that sorts the rows: the first that the user named, else the one that
/// sorts the second report, else estimated cycles where reports have them.
fn sorted_by(metrics: &[String], options: &Diff, after: &Read) -> usize {
    if !options.metric.is_empty() {
        return 0;
    }
    let wanted = after.sorted_by.as_deref().unwrap_or("estimated_cycles");
    metrics.iter().position(|metric| metric == wanted).unwrap_or(0)
}

/// Whether no value has changed by more than `percent` of the total before.
fn is_noise(row: &Pairs, totals: &Pairs, percent: f64) -> bool {
    let is_small = |((before, after), (total, _)): (&(u64, u64), &(u64, u64))| {
        before.abs_diff(*after) as f64 * 100.0 <= *total as f64 * percent
    };
    row.iter().zip(totals).all(is_small)
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
                change((*before, *after))
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::show::delta;
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
    fn a_row_is_noise_if_each_change_is_small_beside_its_total() {
        let totals = vec![(1000, 1000), (10, 0)];
        assert!(is_noise(&vec![(5, 15), (0, 0)], &totals, 1.0));
        assert!(!is_noise(&vec![(5, 16), (0, 0)], &totals, 1.0));
        assert!(!is_noise(&vec![(5, 5), (1, 0)], &totals, 1.0));
    }

    #[test]
    fn changes_read_as_changes() {
        for (before, after, said) in
            [(5, 5, "="), (0, 3, "new"), (3, 0, "gone"), (100, 150, "+50.0 %"), (100_000, 99_990, "-0.010 %")]
        {
            assert_eq!(change((before, after)), said);
        }
        assert_eq!((delta((1, 10_001)).as_str(), delta((5, 2)).as_str()), ("+10.0k", "-3"));
    }
}
