//! The findings as a table, as CSV and as bars.

use super::findings::{Findings, Row};
use crate::outcome::table;
use plot::bars::{bars, Bars, Group};
use std::fmt::Write;

pub(super) fn text(findings: &Findings) -> String {
    let mut out = format!(
        "# lightfoot study regex, {}\n\nlightfoot {}, {} study; {} bytes of this machine's text. GB/s of whole commands that count matching lines, \
         one thread, medians. Instructions and conditional branches per byte are counted by lightfoot on {} bytes, start-up subtracted.\n\n",
        findings.date, findings.version, findings.effort, findings.corpus_bytes, findings.counted_bytes
    );
    let Some(first) = findings.rows.first() else { return out };
    let names: Vec<&str> = first.timings.iter().map(|timing| timing.contender).collect();
    let _ = writeln!(
        out,
        "| family | engine | lines | {} | instructions/byte | branches/byte |",
        names.join(" | ")
    );
    let _ = writeln!(out, "|---|---|---:|{}---:|---:|", "---:|".repeat(names.len()));
    for row in &findings.rows {
        let speeds = row.timings.iter().map(|timing| shown(timing.gigabytes_per_second));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            row.family,
            row.engine,
            row.lines,
            speeds.collect::<Vec<_>>().join(" | "),
            shown(row.per_byte.instructions),
            shown(row.per_byte.branches)
        );
    }
    out += "\n";
    for reason in reasons(findings) {
        let _ = writeln!(out, "- {reason}");
    }
    out += &findings.card.text();
    out + "\n## What the paper found\n\n" + &table(&findings.claims)
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| String::from("-"), |value| format!("{value:.2}"))
}

/// Why something is missing, each reason once.
fn reasons(findings: &Findings) -> Vec<String> {
    let mut all = Vec::new();
    for row in &findings.rows {
        for timing in &row.timings {
            if let Some(reason) = &timing.missing {
                let place = if reason == "not installed" { "" } else { row.family };
                all.push(format!("{} {place}: {reason}", timing.contender).replace(" :", ":"));
            }
        }
        all.extend(row.per_byte.missing.as_ref().map(|reason| format!("per byte, {}: {reason}", row.family)));
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|reason| seen.insert(reason.clone()));
    all
}

pub(super) fn csv(findings: &Findings) -> String {
    let mut out = String::from(
        "family,engine,lines,contender,gigabytes_per_second,instructions_per_byte,branches_per_byte\n",
    );
    let field = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
    for row in &findings.rows {
        for timing in &row.timings {
            let ours = timing.contender == "lightfoot";
            let per_byte = |value: Option<f64>| field(value.filter(|_| ours));
            let _ = writeln!(
                out,
                "{},{},{},{},{},{},{}",
                row.family,
                row.engine,
                row.lines,
                timing.contender,
                field(timing.gigabytes_per_second),
                per_byte(row.per_byte.instructions),
                per_byte(row.per_byte.branches)
            );
        }
    }
    out
}

/// How many times faster we are than each peer.
pub(super) fn plot(findings: &Findings) -> String {
    let names =
        findings.rows.first().map_or(Vec::new(), |row| row.timings.iter().map(|t| t.contender).collect());
    let ratio = |row: &Row, at: usize| {
        let speed = |at: usize| row.timings.get(at)?.gigabytes_per_second;
        Some(speed(0)? / speed(at)?)
    };
    let group = |row: &Row| Group {
        label: row.family.to_owned(),
        values: (1..row.timings.len()).map(|at| ratio(row, at)).collect(),
    };
    bars(&Bars {
        title: format!("Times as fast as other greps, {}", findings.date),
        series: names.iter().skip(1).map(|name| (*name).to_owned()).collect(),
        groups: findings.rows.iter().map(group).collect(),
    })
}
