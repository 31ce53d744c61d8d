//! Coherent caches for spreadsheets: a header, the sum, and a line for each row that was asked for.

use super::CoherenceReport;
use crate::cli::SharedBy;
use coherence::LineCounts;
use present::csv::field;

impl CoherenceReport {
    /// The first `rows` rows as CSV.
    pub fn csv(&self, by: SharedBy, rows: usize) -> String {
        let total = &self.total;
        let total = LineCounts {
            true_sharing: total.true_sharing,
            false_sharing: total.false_sharing,
            upgrades: total.upgrades,
            invalidations: total.invalidations,
            dirty_transfers: total.dirty_transfers,
        };
        let lines: Vec<String> = match by {
            SharedBy::Line => {
                let lines = self.lines.iter().take(rows);
                let objects = |line: &super::LineRow| {
                    line.objects.iter().map(|object| object.name.clone()).collect::<Vec<_>>().join(", ")
                };
                lines
                    .map(|line| of_line(&line.counts, &[&format!("{:#x}", line.address), &objects(line)]))
                    .collect()
            }
            SharedBy::Object => {
                let objects = self.objects.iter().take(rows);
                objects
                    .map(|object| of_line(&object.counts, &[&object.lines.to_string(), &object.name]))
                    .collect()
            }
            SharedBy::Source => {
                let pairs = self.pairs.iter().take(rows);
                let line = |pair: &super::PairRow| {
                    let (missed, took) = (field(&pair.missed.named()), field(&pair.took.named()));
                    format!("{},{},{missed},{took}\r\n", pair.false_sharing, pair.true_sharing)
                };
                return format!(
                    "false_sharing,true_sharing,missed,took\r\n{},{},(total),\r\n{}",
                    total.false_sharing,
                    total.true_sharing,
                    pairs.map(line).collect::<String>()
                );
            }
        };
        let columns = match by {
            SharedBy::Line => "line,objects",
            _ => "lines,object",
        };
        let numbers = "false_sharing,true_sharing,upgrades,invalidations,dirty_transfers";
        format!("{numbers},{columns}\r\n{}{}", of_line(&total, &["", "(total)"]), lines.concat())
    }
}

fn of_line(counts: &LineCounts, names: &[&str]) -> String {
    let numbers = [
        counts.false_sharing,
        counts.true_sharing,
        counts.upgrades,
        counts.invalidations,
        counts.dirty_transfers,
    ];
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let names: Vec<String> = names.iter().map(|name| field(name)).collect();
    format!("{},{}\r\n", numbers.join(","), names.join(","))
}
