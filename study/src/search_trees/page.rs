//! Writes the results as files: one page, a table for each part, the figures as plots, and
//! everything as JSON.

use super::counted::{Counted, Trial};
use super::findings::Findings;
use super::simulated::{BLOCKS_BYTES, MACHINES, SIMULATED};
use super::structure::Structural;
use crate::host::dated;
use crate::outcome::{table, write_files};
use anyhow::{Context, Result};
use contenders::IndexFigures;
use plot::lines::{lines, Axis, Lines, Series};
use present::csv::field;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Writes all files; returns where they are.
pub(super) fn write(findings: &Findings, folder: &Path) -> Result<Vec<PathBuf>> {
    let stem = format!("search-trees-{}", dated(&findings.date));
    let mut files = vec![
        (format!("{stem}.md"), page(findings, &stem)),
        (format!("{stem}.json"), serde_json::to_string_pretty(findings).context("cannot write JSON")? + "\n"),
        (format!("{stem}-lookups.csv"), counted_table(findings)),
        (format!("{stem}-times.csv"), timed_table(findings)),
        (format!("{stem}-index.csv"), modern_table(&findings.modern)),
    ];
    files
        .extend(plots(findings).into_iter().map(|(name, plot)| (format!("{stem}-{name}.svg"), lines(&plot))));
    write_files(folder, "", files)
}

/// The paper's sentences and the index's figures, for the terminal.
pub(super) fn summary(findings: &Findings) -> String {
    claims(findings) + &modern(findings)
}

fn page(findings: &Findings, stem: &str) -> String {
    let mut out = format!(
        "# Static search trees ({}, {} study)\n\nAfter Ladner, Fortna and Nguyen 2002. Figures 4.8 and 4.9: compiled lookups under `lightfoot cache`, a \
         direct-mapped cache of 8,192 bytes, an empty loop subtracted, medians over layouts of memory that each have a trial of their own; \
         beside them the misses of the structure alone. 4.10 and 4.11: cycles by the declared costs of the paper's machines, and the clock of {}.\n",
        findings.date, findings.effort, findings.host
    );
    for (name, plot) in plots(findings) {
        let _ = write!(out, "\n![{}]({stem}-{name}.svg)\n", plot.title);
    }
    out + &claims(findings) + &modern(findings)
}

fn claims(findings: &Findings) -> String {
    String::from(
        "\n## What the paper found\n\nA sentence holds where it holds at every number of items in every layout of memory; one that fails is a finding about this machine and its compiler. Misses are asked for where the largest structure outgrows the cache: below, nothing of a structure misses.\n\n",
    ) + &table(&findings.claims) + &at_a_middle(findings)
}

/// Where figures are compared with those of other programs.
const MIDDLE: usize = 1 << 16;

/// Figures 4.8 and 4.9 at one number of items, with what they are made of.
fn at_a_middle(findings: &Findings) -> String {
    let mut out = format!(
        "\n### Among {MIDDLE} items, blocks of {} bytes\n\n| | misses, program | structure alone | words read | instructions |\n|---|---:|---:|---:|---:|\n",
        BLOCKS_BYTES[0]
    );
    for p in findings.counted.iter().filter(|p| p.items == MIDDLE && in_figure(p)) {
        let alone = alone(findings, p);
        let shown = |of: fn(&Structural) -> f64| {
            alone.map_or(String::from("-"), |structural| format!("{:.2}", of(structural)))
        };
        let (misses, instructions) = (p.spread(|t| t.misses), p.spread(|t| t.instructions));
        let _ = writeln!(
            out,
            "| {} | {misses} | {} | {} | {instructions:.1} |",
            p.algorithm,
            shown(|s| s.misses),
            shown(|s| s.touches)
        );
    }
    out
}

fn in_figure(point: &Counted) -> bool {
    point.machine == SIMULATED && point.block_bytes == BLOCKS_BYTES[0]
}

/// The structure of a counted point alone.
fn alone<'f>(findings: &'f Findings, point: &Counted) -> Option<&'f Structural> {
    findings.structural.iter().filter(|_| point.machine == SIMULATED).find(|s| {
        (s.algorithm == point.algorithm) && (s.items, s.block_bytes) == (point.items, point.block_bytes)
    })
}

/// The races: evenly spread keys by size, the others by how they are spread.
fn modern(findings: &Findings) -> String {
    let mut out = String::from(
        "\n## An index today\n\nNanoseconds per query, batches / queries that wait for the last answer. `planned` is what an index is by itself, `limit` one random \
         line of memory per query.\n",
    );
    for key in ["u32", "u64"] {
        let of_key = || findings.modern.iter().filter(move |row| row.key == key);
        let even: Vec<_> = of_key().filter(|row| row.distribution == "uniform").collect();
        out += &race_table(&format!("Evenly spread {key} keys"), &even, |row| size(row.bytes));
        let skewed: Vec<_> = of_key().filter(|row| row.distribution != "uniform").collect();
        if let Some(row) = skewed.first() {
            let title = format!("{} of {key} keys spread otherwise", size(row.bytes));
            out += &race_table(&title, &skewed, |row| row.distribution.clone());
        }
    }
    out
}

/// One table: a row for each contestant, a column for each of what `column` tells apart.
fn race_table(title: &str, rows: &[&IndexFigures], column: impl Fn(&IndexFigures) -> String) -> String {
    let (mut names, mut columns) = (Vec::new(), Vec::new());
    for row in rows {
        let (name, column) = (row.contestant.as_str(), column(row));
        if !names.contains(&name) {
            names.push(name);
        }
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let head = columns.join(" | ");
    let mut out = format!("\n### {title}\n\n| | {head} |\n|---|{}\n", "---:|".repeat(columns.len()));
    for name in names {
        let cell = |wanted: &String| {
            let found = rows.iter().find(|row| row.contestant == name && column(row) == *wanted);
            found.map_or(String::from("-"), |row| race_cell(row))
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
    }
    let planned: Vec<String> = (rows.iter().filter(|row| row.contestant == "planned"))
        .map(|row| format!("{}: {}", column(row), row.detail))
        .collect();
    out + &format!("\nPlanned: {}.\n", planned.join("; "))
}

fn race_cell(row: &IndexFigures) -> String {
    let ns = |ns: Option<f64>| {
        ns.map_or(String::from("-"), |ns| if ns < 100.0 { format!("{ns:.2}") } else { format!("{ns:.0}") })
    };
    let wrong = if row.wrong > 0 { format!(" **{} wrong**", row.wrong) } else { String::new() };
    format!("{} / {}{wrong}", ns(row.throughput_ns), ns(row.latency_ns))
}

/// Bytes in the largest unit that they are whole in.
fn size(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 1 << 30 => format!("{} GiB", bytes >> 30),
        _ if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", bytes >> 10),
    }
}

fn counted_table(findings: &Findings) -> String {
    let mut out = String::from(
        "machine,algorithm,items,block_bytes,lookups,layouts,misses_per_lookup,least_misses,most_misses,structure_misses,words_read,instructions_per_lookup,least_instructions,most_instructions,cycles_per_lookup\r\n",
    );
    for p in &findings.counted {
        let (misses, instructions) = (p.spread(|t| t.misses), p.spread(|t| t.instructions));
        let cycles = p.trials.iter().all(|t| t.cycles.is_some());
        let cycles = cycles.then(|| p.spread(|t| t.cycles.unwrap_or(f64::NAN)).median);
        let number = |value: Option<f64>| value.map(|value| format!("{value:.5}")).unwrap_or_default();
        let alone = alone(findings, p);
        let head = [p.items, p.block_bytes, p.lookups, p.trials.len()].map(|n| n.to_string()).join(",");
        let tail = [
            Some(misses.median),
            Some(misses.least),
            Some(misses.most),
            alone.map(|s| s.misses),
            alone.map(|s| s.touches),
            Some(instructions.median),
            Some(instructions.least),
            Some(instructions.most),
            cycles,
        ];
        let _ = write!(out, "{},{},{head},{}\r\n", p.machine, p.algorithm, tail.map(number).join(","));
    }
    out
}

fn timed_table(findings: &Findings) -> String {
    let mut out = String::from("algorithm,items,block_bytes,lookups,ns_per_lookup,least_ns,most_ns\r\n");
    for p in &findings.timed {
        let (ns, head) = (p.ns, [p.items, p.block_bytes, p.lookups].map(|n| n.to_string()).join(","));
        let _ = write!(out, "{},{head},{:.3},{:.3},{:.3}\r\n", p.algorithm, ns.median, ns.least, ns.most);
    }
    out
}

fn modern_table(modern: &[IndexFigures]) -> String {
    let mut out = String::from("key,distribution,bytes,contestant,detail,batch_ns,dependent_ns,wrong\r\n");
    let ns = |ns: Option<f64>| ns.map(|ns| format!("{ns:.3}")).unwrap_or_default();
    for p in modern {
        let (batch, dependent) = (ns(p.throughput_ns), ns(p.latency_ns));
        let _ = write!(
            out,
            "{},{},{},{},{},{batch},{dependent},{}\r\n",
            p.key,
            p.distribution,
            p.bytes,
            field(&p.contestant),
            field(&p.detail),
            p.wrong
        );
    }
    out
}

/// Groups points by name, in the order of first appearance.
fn series<'a>(points: impl Iterator<Item = (&'a str, f64, f64)>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (name, x, y) in points {
        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push((x, y)),
            None => all.push(Series { name: name.into(), points: vec![(x, y)] }),
        }
    }
    all
}

/// The figures by file name.
fn plots(findings: &Findings) -> Vec<(String, Lines)> {
    let counted = |machine: &'static str, block: usize, of: fn(&Trial) -> f64| {
        // What a trial did not count has no value, and no point.
        let wanted = move |p: &&Counted| {
            p.machine == machine && p.block_bytes == block && p.trials.iter().all(|t| !of(t).is_nan())
        };
        let points = findings.counted.iter().filter(wanted);
        series(points.map(|p| (p.algorithm.as_str(), p.items as f64, p.spread(of).median)))
    };
    let plot = |title: String, y, axis, series| Lines { title, x: "items", y, axis, series };
    let mut plots = Vec::new();
    for block in BLOCKS_BYTES {
        let title = format!("Figure 4.8: misses per lookup, blocks of {block} bytes");
        // A run with one trial less is subtracted, so a count of misses may come out below 0.
        let series = counted(SIMULATED, block, |t| t.misses.max(0.0));
        plots.push((format!("figure-4.8-{block}"), plot(title, "misses per lookup", Axis::Linear, series)));
    }
    // The structure alone: misses of the tree without the program around it.
    let alone = findings.structural.iter().filter(|s| s.block_bytes == BLOCKS_BYTES[0]);
    let alone = series(alone.map(|s| (s.algorithm.as_str(), s.items as f64, s.misses)));
    let title = String::from("Figure 4.8, the structure alone");
    plots.push(("figure-4.8-structure".into(), plot(title, "misses per lookup", Axis::Linear, alone)));
    let series_49 = counted(SIMULATED, BLOCKS_BYTES[0], |t| t.instructions);
    let title = String::from("Figure 4.9: instructions per lookup");
    plots.push(("figure-4.9".into(), plot(title, "instructions per lookup", Axis::Linear, series_49)));
    for (machine, figure) in MACHINES.into_iter().zip(["4.10", "4.11"]) {
        let series = counted(machine, BLOCKS_BYTES[0], |t| t.cycles.unwrap_or(f64::NAN));
        let title = format!("Figure {figure}: cycles per lookup by the declared costs of {machine}");
        plots.push((format!("figure-{figure}"), plot(title, "cycles per lookup", Axis::Linear, series)));
    }
    let times = series(findings.timed.iter().map(|p| (p.algorithm.as_str(), p.items as f64, p.ns.median)));
    let title = String::from("Figures 4.10, 4.11: time per lookup by this machine's clock");
    plots.push(("figure-4.10-clock".into(), plot(title, "ns per lookup", Axis::Logarithmic, times)));
    // Keys of both types are raced with evenly spread numbers; skewed keys stand in the tables
    // only.
    for key in ["u32", "u64"] {
        let even = findings.modern.iter().filter(|p| p.key == key && p.distribution == "uniform");
        let points = even.filter_map(|p| Some((p.contestant.as_str(), p.bytes as f64, p.throughput_ns?)));
        let title = format!("Evenly spread {key} keys, batches");
        let series = series(points);
        let lines = Lines { title, x: "bytes of keys", y: "ns per query", axis: Axis::Logarithmic, series };
        plots.push((format!("index-{key}"), lines));
    }
    plots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search_trees::claim;

    #[test]
    fn all_files_are_written_and_say_what_was_measured() {
        let (counted, timed) = (claim::tests::counted(), claim::tests::timed());
        let structural = claim::tests::structural();
        let modern = IndexFigures {
            key: "u32".into(),
            distribution: "uniform".into(),
            bytes: 16384,
            contestant: "planned".into(),
            detail: "split, 1.83".into(),
            throughput_ns: Some(1.5),
            latency_ns: None,
            wrong: 0,
        };
        let findings = Findings {
            schema: 2,
            date: "2026-01-01".into(),
            effort: "quick",
            version: "0",
            host: "a host".into(),
            claims: claim::check(&counted, &structural, &timed),
            counted,
            structural,
            timed,
            modern: vec![modern],
        };
        let folder = tempfile::tempdir().unwrap();
        let paths = write(&findings, folder.path()).unwrap();
        // Five files of text and ten plots.
        assert_eq!(paths.len(), 5 + 10);
        let page = std::fs::read_to_string(&paths[0]).unwrap();
        for part in [
            "Figure 4.8",
            "| oblivious-implicit | 4.80 (4.79 to 4.81) | 4.20 | 15.00 | 1102.0 (1102.0 to 1102.0) |",
            "holds",
            "### Evenly spread u32 keys",
            "| | 16 KiB |",
            "| planned | 1.50 / - |",
            "Planned: 16 KiB: split, 1.83.",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(summary(&findings).contains("What the paper found"));
    }
}
