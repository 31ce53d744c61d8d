//! The study's results as files: a page, data, a table, and a plot for each figure.

use super::findings::{Findings, Point};
use crate::outcome::table as table_of_claims;
use crate::tile::simulation::Missed;
use anyhow::{Context, Result};
use plot::tiles::{lines, Line};
use present::number::grouped;
use present::output;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A figure of misses: number, what, how to read it from a formula and from counts.
type Figure = (usize, &'static str, fn(&Point) -> f64, fn(&Missed) -> Option<u64>);

const MISSES: &[Figure] = &[
    (1, "L1 misses", |point| point.formula[0], |missed| Some(missed.l1)),
    (2, "L2 misses", |point| point.formula[1], |missed| missed.l2),
    (3, "TLB misses", |point| point.formula[2], |missed| missed.tlb),
];

/// Writes all of them; gives their paths.
pub(super) fn write(findings: &Findings, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let stem = format!("tiling-{}", findings.date);
    let mut files = vec![
        (format!("{stem}.json"), serde_json::to_string_pretty(findings)? + "\n"),
        (format!("{stem}.csv"), table(findings)),
    ];
    let mut page = summary(findings);
    for (name, text) in plots(findings) {
        let _ = writeln!(page, "\n![{name}]({stem}-{name}.svg)");
        files.push((format!("{stem}-{name}.svg"), text));
    }
    files.push((format!("{stem}.md"), page));
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        output::replace(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}

/// The page without the plots.
pub(super) fn summary(findings: &Findings) -> String {
    let mut out = format!(
        "# lightfoot study tiling, {}\n\nlightfoot {}, {} study. Figures 1 to 4: {}; elements of 4 bytes. \
         The formulas let each array have the level to itself: where the reused set (N^2, T*N, 3T^2 or T^2 elements) lies between half and twice \
         the capacity, simulation and real loops see three arrays share it. The real loops find their arrays touched already: a level \
         that holds all three misses nothing there, where formula and simulation count each line once.\n",
        findings.date, findings.version, findings.effort, findings.machine
    );
    for &(number, what, formula, of) in MISSES {
        let _ = write!(
            out,
            "\n## Figure {number}: {what}\n\n| N | T | formula | simulated | error | real loops | two threads, one core (simulated) |\n\
             |---:|---:|---:|---:|---:|---:|---:|\n"
        );
        for point in findings.points.iter().filter(|point| point.simulated.is_some()) {
            let show = |missed: Option<Missed>| missed.and_then(|m| of(&m)).map_or("-".into(), grouped);
            let simulated = point.simulated.and_then(|missed| of(&missed)).filter(|&misses| misses > 0);
            let error = simulated
                .map_or("-".into(), |s| format!("{:+.0} %", 100.0 * (formula(point) / s as f64 - 1.0)));
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {error} | {} | {} |",
                point.n,
                point.tile,
                grouped(formula(point).round() as u64),
                show(point.simulated),
                show(point.counted),
                show(point.simulated_shared)
            );
        }
    }
    out += &best(findings);
    out += &times(findings);
    out += "\n## What the paper found\n\n";
    out += &table_of_claims(&findings.claims);
    for missing in &findings.missing {
        let _ = writeln!(out, "\nMissing: {missing}.");
    }
    out
}

/// Figure 4: the T with the lowest cost.
fn best(findings: &Findings) -> String {
    let mut out = String::from(
        "\n## Figure 4: total cost\n\nThe T with the lowest total cost by the paper's penalties; p is the share of innermost loops whose end is \
         mispredicted (the paper's own value is in a companion that is not at hand).\n\n| N | best T, p = 0 | best T, p = 1 |\n|---:|---:|---:|\n",
    );
    let mut sizes: Vec<usize> = findings.points.iter().map(|point| point.n).collect();
    sizes.dedup();
    for n in sizes {
        let lowest = |cycles: fn(&Point) -> f64| {
            let points = findings.points.iter().filter(|point| point.n == n);
            points.min_by(|a, b| cycles(a).total_cmp(&cycles(b))).map_or(0, |point| point.tile)
        };
        let _ = writeln!(
            out,
            "| {n} | {} | {} |",
            lowest(|point| point.formula_cycles),
            lowest(|point| point.formula_cycles_branches)
        );
    }
    out
}

/// Figures 5 to 8.
fn times(findings: &Findings) -> String {
    let mut out = String::from("\n## Figures 5 to 8: GFLOP/s, single precision, measured on this host\n\n| figure | loops | threads | N |");
    let tiles = crate::tile::POWERS;
    for tile in tiles {
        let _ = write!(out, " T = {tile} |");
    }
    out += " best T |\n|---|---|---:|---:|";
    out += &"---:|".repeat(tiles.len() + 1);
    out += "\n";
    for row in &findings.times {
        let at = |tile: &usize| row.times.iter().find(|timed| timed.tile == *tile);
        let cells: Vec<String> = tiles
            .iter()
            .map(|tile| at(tile).map_or("-".into(), |timed| format!("{:.2}", timed.gflops)))
            .collect();
        let best =
            row.times.iter().max_by(|a, b| a.gflops.total_cmp(&b.gflops)).map_or(0, |timed| timed.tile);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {best} |",
            row.figure,
            row.version,
            row.threads,
            row.n,
            cells.join(" | ")
        );
    }
    out
}

fn plots(findings: &Findings) -> Vec<(String, String)> {
    let mut sizes: Vec<usize> = findings.points.iter().map(|point| point.n).collect();
    sizes.dedup();
    let of = |value: fn(&Point) -> f64| -> Vec<Line> {
        let points = |n: usize| findings.points.iter().filter(move |point| point.n == n);
        let line = |&n: &usize| Line {
            name: format!("N = {n}"),
            points: points(n).map(|p| (p.tile, value(p))).collect(),
        };
        sizes.iter().map(line).collect()
    };
    let mut plots: Vec<(String, String)> = MISSES
        .iter()
        .map(|&(number, what, formula, _)| {
            (
                format!("figure{number}"),
                lines(&format!("Figure {number}: {what}, formula"), "misses", &of(formula)),
            )
        })
        .collect();
    plots.push((
        "figure4".into(),
        lines("Figure 4: total cost, p = 0", "cycles", &of(|point| point.formula_cycles)),
    ));
    let times: Vec<Line> = findings
        .times
        .iter()
        .map(|row| Line {
            name: format!("{} N {} x{}", row.version, row.n, row.threads),
            points: row.times.iter().map(|timed| (timed.tile, timed.gflops)).collect(),
        })
        .collect();
    plots.push(("figures5-8".into(), lines("Figures 5 to 8: measured here", "GFLOP/s", &times)));
    plots
}

fn table(findings: &Findings) -> String {
    let mut out = String::from(
        "n,tile,formula_l1,formula_l2,formula_tlb,formula_cycles,simulated_l1,simulated_l2,simulated_tlb,shared_l1,counted_l1,counted_l2,counted_tlb\n",
    );
    let show = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    for point in &findings.points {
        let [l1, l2, tlb] = point.formula;
        let simulated = |f: fn(Missed) -> Option<u64>| show(point.simulated.and_then(f));
        let counted = |f: fn(Missed) -> Option<u64>| show(point.counted.and_then(f));
        let _ = writeln!(
            out,
            "{},{},{l1:.0},{l2:.0},{tlb:.0},{:.0},{},{},{},{},{},{},{}",
            point.n,
            point.tile,
            point.formula_cycles,
            simulated(|m| Some(m.l1)),
            simulated(|m| m.l2),
            simulated(|m| m.tlb),
            show(point.simulated_shared.map(|m| m.l1)),
            counted(|m| Some(m.l1)),
            counted(|m| m.l2),
            counted(|m| m.tlb)
        );
    }
    out
}
