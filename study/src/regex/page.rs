//! The findings as tables, as CSV and as bars.

use super::contender::{CONTENDERS, SSE2};
use super::findings::{Cost, Findings, Row};
use crate::outcome::table;
use plot::bars::{bars, Bars, Group};
use present::csv::field;
use std::fmt::Write;

/// A quantity of the paper's figures.
struct Quantity {
    /// Part of the plot's file name.
    name: &'static str,
    title: &'static str,
    of: fn(&Cost) -> Option<f64>,
}

const QUANTITIES: &[Quantity] = &[
    Quantity { name: "cycles", title: "Cycles a byte (Figures 3 and 7)", of: |cost| cost.cycles_per_byte },
    Quantity {
        name: "instructions",
        title: "Instructions a byte (Figures 4 and 8)",
        of: |cost| cost.instructions_per_byte,
    },
    Quantity {
        name: "instructions-a-cycle",
        title: "Instructions a cycle (Figures 5 and 9)",
        of: |cost| Some(cost.instructions_per_byte? / cost.cycles_per_byte?),
    },
    Quantity {
        name: "branch-misses",
        title: "Branch misses a byte (Figures 6 and 10)",
        of: |cost| cost.branch_misses_per_byte,
    },
    Quantity { name: "speed", title: "Gigabytes a second", of: |cost| cost.gigabytes_per_second },
];

/// Contenders of the plots, besides bit streams with SSE2: a bar has to be seen.
const PLOTTED: [&str; 5] = ["GNU grep", "GNU grep -P", "agrep (TRE)", "regex's lazy DFA", "regex's NFA"];

pub(super) fn text(findings: &Findings) -> String {
    let hertz = findings
        .stamp_hertz
        .map_or(String::from("of unknown rate"), |hertz| format!("of {:.2} GHz", hertz / 1e9));
    let mut out = format!(
        "# lightfoot study regex, {}\n\nlightfoot {}, {} study, on {}. Programs that count matching lines, one thread, {} bytes of this machine's text \
         (a fourth or a sixteenth of them for slow contenders), medians; cycles of a time stamp counter {hertz}; instructions, and conditional branches \
         that a simulated predictor misses (gshare), by `lightfoot cache --branches` on {} bytes (the same parts of them). A text is made of pieces from all over the corpus, twice; every figure is the difference between it and its \
         first half: start-up is subtracted.\n",
        findings.date, findings.version, findings.effort, findings.host, findings.corpus_bytes, findings.counted_bytes
    );
    for quantity in QUANTITIES {
        let _ = write!(out, "\n## {}\n\n", quantity.title);
        out += &quantity_table(&findings.rows, quantity);
    }
    out += &analysis(&findings.rows);
    out += "\n## Left out\n\n";
    for reason in reasons(findings) {
        let _ = writeln!(out, "- {reason}");
    }
    out += &findings.card.text();
    out + "\n## What the paper says\n\n" + &table(&findings.claims)
}

fn quantity_table(rows: &[Row], quantity: &Quantity) -> String {
    let names: Vec<&str> = CONTENDERS.iter().map(|contender| contender.name).collect();
    let mut out = format!("| family | {} |\n|---|{}\n", names.join(" | "), "---:|".repeat(names.len()));
    for row in rows {
        let cells = names.iter().map(|name| shown(row.cost(name).and_then(quantity.of)));
        let _ = writeln!(out, "| {} | {} |", row.family, cells.collect::<Vec<_>>().join(" | "));
    }
    out
}

/// Section 4's comparison.
fn analysis(rows: &[Row]) -> String {
    let mut out = String::from(
        "\n## Operations and memory for a byte (section 4)\n\nOperations of the program of bit streams, each of which runs once for a block; a DFA reads one entry \
         of its table for each byte, an NFA visits its active states.\n\n\
         | family | logic | carrying | a byte with 128 bits | 256 | 512 | NFA states | DFA table, bytes |\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let Some(analysis) = &row.analysis else { continue };
        let [narrow, middle, wide] = [128, 256, 512].map(|bits| analysis.operations_per_byte(bits));
        let table = analysis.dfa_bytes.map_or(String::from("beyond 64 MB"), |bytes| bytes.to_string());
        let _ = writeln!(
            out,
            "| {} | {} | {} | {narrow:.3} | {middle:.3} | {wide:.3} | {} | {table} |",
            row.family, analysis.logic, analysis.carrying, analysis.nfa_states
        );
    }
    out
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(
        || String::from("-"),
        |value| match value {
            _ if value.abs() >= 100.0 => format!("{value:.0}"),
            _ if value.abs() >= 1.0 => format!("{value:.2}"),
            _ => format!("{value:.4}"),
        },
    )
}

/// Why something is missing, each reason once.
fn reasons(findings: &Findings) -> Vec<String> {
    let mut all = Vec::new();
    for row in &findings.rows {
        for cost in &row.costs {
            if let Some(reason) = &cost.missing {
                let place = if reason.starts_with("not installed") { "" } else { row.family.as_str() };
                all.push(format!("{} {place}: {reason}", cost.contender).replace(" :", ":"));
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|reason| seen.insert(reason.clone()));
    all
}

pub(super) fn csv(findings: &Findings) -> String {
    let mut out = String::from(
        "family,engine,lines,contender,gigabytes_per_second,cycles_per_byte,instructions_per_byte,branch_misses_per_byte\r\n",
    );
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
    for row in &findings.rows {
        for cost in &row.costs {
            let _ = write!(
                out,
                "{},{},{},{},{},{},{},{}\r\n",
                field(&row.family),
                row.engine,
                row.lines,
                field(&cost.contender),
                number(cost.gigabytes_per_second),
                number(cost.cycles_per_byte),
                number(cost.instructions_per_byte),
                number(cost.branch_misses_per_byte)
            );
        }
    }
    out
}

/// For each quantity how many times as much the others need as bit streams with SSE2.
pub(super) fn plots(findings: &Findings) -> Vec<(String, String)> {
    let compared = QUANTITIES.iter().filter(|quantity| ["cycles", "instructions"].contains(&quantity.name));
    let plot = |quantity: &Quantity| {
        let ratio = |row: &Row, name: &str| {
            let value = |name: &str| row.cost(name).and_then(quantity.of);
            Some(value(name)? / value(SSE2)?)
        };
        let group = |row: &Row| Group {
            label: row.family.clone(),
            values: PLOTTED.iter().map(|name| ratio(row, name)).collect(),
        };
        bars(&Bars {
            title: format!("{}: times those of bit streams with SSE2", quantity.title),
            series: PLOTTED.iter().map(|name| (*name).to_owned()).collect(),
            groups: findings.rows.iter().map(group).collect(),
        })
    };
    compared.map(|quantity| (quantity.name.to_owned(), plot(quantity))).collect()
}
