//! The results as files: one page, a table per part, the figures as plots, everything as JSON.

use super::counted::Counted;
use super::findings::{Findings, BLOCKS_BYTES};
use super::modern::Modern;
use crate::outcome::table;
use anyhow::{Context, Result};
use plot::lines::{lines, Axis, Lines, Series};
use present::csv::field;
use present::output::replace;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Writes all files; returns where they are.
pub(super) fn write(findings: &Findings, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let stem = format!("search-trees-{}", findings.date);
    let mut files = vec![
        (format!("{stem}.md"), page(findings, &stem)),
        (format!("{stem}.json"), serde_json::to_string_pretty(findings).context("cannot write JSON")? + "\n"),
        (format!("{stem}-lookups.csv"), counted_table(&findings.counted)),
        (format!("{stem}-times.csv"), timed_table(findings)),
        (format!("{stem}-index.csv"), modern_table(&findings.modern)),
    ];
    files
        .extend(plots(findings).into_iter().map(|(name, plot)| (format!("{stem}-{name}.svg"), lines(&plot))));
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        replace(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}

/// The paper's sentences and the index's figures, for the terminal.
pub(super) fn summary(findings: &Findings) -> String {
    claims(findings) + &modern(findings)
}

fn page(findings: &Findings, stem: &str) -> String {
    let mut out = format!(
        "# Static search trees ({}, {} study)\n\nAfter Ladner, Fortna and Nguyen 2002. Figures 4.8 and 4.9: compiled lookups under `lightfoot cache`, a \
         direct-mapped cache of 8,192 bytes, an empty loop subtracted; 4.10: the clock of this machine.\n",
        findings.date, findings.effort
    );
    for (name, plot) in plots(findings) {
        let _ = write!(out, "\n![{}]({stem}-{name}.svg)\n", plot.title);
    }
    out + &claims(findings) + &modern(findings)
}

fn claims(findings: &Findings) -> String {
    String::from(
        "\n## What the paper found\n\nFigures are those of the largest number of items; a sentence that does not hold is a finding about this machine and its compiler.\n\n",
    ) + &table(&findings.claims)
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
            out += &race_table(&title, &skewed, |row| String::from(row.distribution));
        }
    }
    out
}

/// One table: a row for each contestant, a column for each of what `column` tells apart.
fn race_table(title: &str, rows: &[&Modern], column: impl Fn(&Modern) -> String) -> String {
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

fn race_cell(row: &Modern) -> String {
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

fn counted_table(counted: &[Counted]) -> String {
    let mut out = String::from(
        "algorithm,items,block_bytes,lookups,trials,misses_per_lookup,instructions_per_lookup\r\n",
    );
    for p in counted {
        let _ = write!(
            out,
            "{},{},{},{},{},{:.5},{:.3}\r\n",
            p.algorithm, p.items, p.block_bytes, p.lookups, p.trials, p.misses, p.instructions
        );
    }
    out
}

fn timed_table(findings: &Findings) -> String {
    let mut out = String::from("algorithm,items,block_bytes,lookups,ns_per_lookup\r\n");
    for p in &findings.timed {
        let _ = write!(out, "{},{},{},{},{:.3}\r\n", p.algorithm, p.items, p.block_bytes, p.lookups, p.ns);
    }
    out
}

fn modern_table(modern: &[Modern]) -> String {
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
    let counted = |block: usize, of: fn(&Counted) -> f64| {
        let points = findings.counted.iter().filter(move |p| p.block_bytes == block);
        series(points.map(|p| (p.algorithm, p.items as f64, of(p))))
    };
    let plot = |title: String, y, axis, series| Lines { title, x: "items", y, axis, series };
    let mut plots = Vec::new();
    for block in BLOCKS_BYTES {
        let title = format!("Figure 4.8: misses per lookup, blocks of {block} bytes");
        let series = counted(block, |p| p.misses.max(0.0));
        plots.push((format!("figure-4.8-{block}"), plot(title, "misses per lookup", Axis::Linear, series)));
    }
    let series_49 = counted(BLOCKS_BYTES[0], |p| p.instructions);
    let title = String::from("Figure 4.9: instructions per lookup");
    plots.push(("figure-4.9".into(), plot(title, "instructions per lookup", Axis::Linear, series_49)));
    let times = series(findings.timed.iter().map(|p| (p.algorithm, p.items as f64, p.ns)));
    let title = String::from("Figures 4.10, 4.11: time per lookup");
    plots.push(("figure-4.10".into(), plot(title, "ns per lookup", Axis::Logarithmic, times)));
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
        let modern = Modern {
            key: "u32",
            distribution: "uniform",
            bytes: 16384,
            contestant: "planned".into(),
            detail: "split, 1.83".into(),
            throughput_ns: Some(1.5),
            latency_ns: None,
            wrong: 0,
        };
        let findings = Findings {
            schema: 1,
            date: "2026-01-01".into(),
            effort: "quick",
            version: "0",
            claims: claim::check(&counted, &timed),
            counted,
            timed,
            modern: vec![modern],
        };
        let folder = tempfile::tempdir().unwrap();
        let paths = write(&findings, folder.path()).unwrap();
        assert_eq!(paths.len(), 5 + 7);
        let page = std::fs::read_to_string(&paths[0]).unwrap();
        for part in [
            "Figure 4.8",
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
