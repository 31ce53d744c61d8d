//! The study's results as files: a page, data, a table, and a plot for each figure.

use super::findings::{Findings, PENALTIES_CYCLES, TERM};
use super::findings::{FOUR_THREADS, LOOPS, PREDICTORS, SERIAL, TWO_THREADS};
use super::plots::plots;
use super::variant::{MODERATE, NEXT_LINE, ONE, STRIDE, TWO, VARIANTS};
use crate::host::dated;
use crate::outcome::table as table_of_claims;
use crate::outcome::write_files;
use crate::tile::simulation::Missed;
use crate::tile::POWERS;
use anyhow::Result;
use present::number::grouped;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A column of misses.
type Column = fn(&Missed) -> Option<u64>;

const MISSES: [(usize, &str, Column); 3] = [
    (1, "L1 misses", |missed| Some(missed.l1)),
    (2, "L2 misses", |missed| missed.l2),
    (3, "TLB misses", |missed| missed.tlb),
];

/// Writes all of them; gives their paths.
pub(super) fn write(findings: &Findings, folder: &Path) -> Result<Vec<PathBuf>> {
    let stem = format!("tiling-{}", dated(&findings.date));
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
    write_files(folder, "", files)
}

/// The page without the plots.
pub(super) fn summary(findings: &Findings) -> String {
    let largest = findings.sizes(ONE).last().copied().unwrap_or(0);
    let mut out = format!(
        "# lightfoot study tiling, {}\n\nlightfoot {}, {} study, {}. Figures 1 to 4: {}; elements of 4 bytes; N to {largest}. \
         The loops are replayed for the first two strips of T rows of each thread; the second stands for all that follow. \
         Replays are deterministic and have no spread. The formulas let each array have a level to itself; the replays see three arrays share it.\n",
        findings.date, findings.version, findings.effort, findings.host.name, findings.machine
    );
    out += "\n## What the paper found\n\n";
    out += &table_of_claims(&findings.claims);
    for missing in &findings.missing {
        let _ = writeln!(out, "\nMissing: {missing}.");
    }
    for (number, what, of) in MISSES {
        out += &misses(findings, number, what, of);
    }
    out += &branches(findings);
    out += &costs(findings);
    out += &times(findings);
    out
}

/// Figures 1 to 3.
fn misses(findings: &Findings, number: usize, what: &str, of: Column) -> String {
    let shown = [ONE, TWO, NEXT_LINE, STRIDE, MODERATE];
    let mut out = format!("\n## Figure {number}: {what}\n\n| N | T | formula |");
    shown.iter().for_each(|name| out += &format!(" {name} |"));
    out += " real loops |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
    for n in findings.sizes(ONE) {
        for tile in findings.tiles(ONE, n) {
            let formula = findings.formulas.iter().find(|row| row.n == n && row.tile == tile);
            let formula = formula.map_or("-".into(), |row| grouped(row.misses[number - 1].round() as u64));
            let cell = |missed: Option<Missed>| missed.and_then(|m| of(&m)).map_or("-".into(), grouped);
            let cells: Vec<String> =
                shown.iter().map(|variant| cell(findings.missed(variant, n, tile))).collect();
            let real =
                findings.counted.iter().find(|row| row.loops == LOOPS[0] && row.n == n && row.tile == tile);
            let real = cell(real.map(|row| row.missed));
            let _ = writeln!(out, "| {n} | {tile} | {formula} | {} | {real} |", cells.join(" | "));
        }
    }
    out
}

/// The branch term.
fn branches(findings: &Findings) -> String {
    let mut out = String::from(
        "\n## Mispredictions for each end of an innermost loop\n\nCounted by `lightfoot cache --branches` on the compiled loops; \
         there are N³/T ends. MBaLt takes several elements a step, MBaLt-elements one, as the paper's listing.\n\n| loops | predictor | N |",
    );
    POWERS.iter().for_each(|tile| out += &format!(" T = {tile} |"));
    out += "\n|---|---|---:|";
    out += &"---:|".repeat(POWERS.len());
    out += "\n";
    for (loops, predictor) in LOOPS.iter().flat_map(|loops| PREDICTORS.map(|predictor| (loops, predictor))) {
        let rows = || {
            let same =
                move |row: &&super::findings::Counted| row.loops == **loops && row.predictor == predictor;
            findings.counted.iter().filter(same)
        };
        for n in present::order::set_of(rows().map(|row| row.n)) {
            let cell = |tile: &usize| {
                let row = rows().find(|row| row.n == n && row.tile == *tile);
                row.map_or("-".into(), |row| format!("{:.3}", row.an_end()))
            };
            let cells: Vec<String> = POWERS.iter().map(cell).collect();
            let _ = writeln!(out, "| {loops} | {predictor} | {n} | {} |", cells.join(" | "));
        }
    }
    out
}

/// Figure 4: the T of least cost on every machine with every branch term.
fn costs(findings: &Findings) -> String {
    let [l1, l2, tlb, branch] = PENALTIES_CYCLES;
    let mut out = format!(
        "\n## Figure 4: total cost\n\nThe T of least cost: {l1} cycles for a miss of L1, {l2} of L2, {tlb} of the TLB, {branch} for a misprediction. \
         The sentences are judged by {} with {}. The last column says for which number of mispredictions an end, were it the same for all T, T = 64 costs least.\n\n\
         | machine | N | no branches |",
        TERM.0, TERM.1
    );
    let terms: Vec<_> =
        LOOPS.iter().flat_map(|loops| PREDICTORS.map(|predictor| (*loops, predictor))).collect();
    terms.iter().for_each(|(loops, predictor)| out += &format!(" {loops}, {predictor} |"));
    out += " 64 is best |\n|---|---:|---:|---:|---:|---:|---:|---|\n";
    for variant in VARIANTS.iter().take_while(|variant| !super::variant::WAYS.contains(&variant.name)) {
        for n in findings.sizes(variant.name) {
            let best =
                |term| findings.cheapest(variant.name, term, n).map_or("-".into(), |tile| tile.to_string());
            let cells: Vec<String> =
                std::iter::once(None).chain(terms.iter().copied().map(Some)).map(best).collect();
            let range = match findings.cheapest_between(variant.name, n, 64) {
                Some((low, high)) if high.is_finite() => format!("{low:.2} to {high:.2}"),
                Some((low, _)) => format!("from {low:.2}"),
                None => "never".into(),
            };
            let _ = writeln!(out, "| {} | {n} | {} | {range} |", variant.what, cells.join(" | "));
        }
    }
    out
}

/// Figures 5 to 8.
fn times(findings: &Findings) -> String {
    let how = match findings.host.simultaneous {
        true => "two threads of a core run at once",
        false => "two threads of a CPU take turns on it",
    };
    let mut out = format!(
        "\n## Figures 5 to 8: GFLOP/s of MBaLt, single precision, measured on this host\n\nMedians over passes in which every T and crew takes its turn; {how}.\n\n| figure | crew | N |"
    );
    POWERS.iter().for_each(|tile| out += &format!(" T = {tile} |"));
    out += " best T |\n|---|---|---:|";
    out += &"---:|".repeat(POWERS.len() + 1);
    out += "\n";
    for (figure, crew) in [(6, SERIAL), (7, TWO_THREADS), (8, FOUR_THREADS)] {
        for times in &findings.times {
            let rates = findings.rates(crew, times.n);
            let Some(best) = findings.fastest(crew, times.n) else { continue };
            let at = |tile: &usize| rates.iter().find(|rate| rate.tile == *tile);
            let cells: Vec<String> = POWERS
                .iter()
                .map(|tile| at(tile).map_or("-".into(), |rate| format!("{:.2}", rate.gflops[1])))
                .collect();
            let _ =
                writeln!(out, "| {figure} | {crew} | {} | {} | {} |", times.n, cells.join(" | "), best.tile);
        }
    }
    out
}

/// Every replay, count and time as a row.
fn table(findings: &Findings) -> String {
    let mut out =
        String::from("kind,what,n,tile,l1_misses,l2_misses,tlb_misses,instructions,mispredictions,gflops\n");
    let show = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    for row in &findings.formulas {
        let [l1, l2, tlb] = row.misses;
        let _ = writeln!(out, "formula,,{},{},{l1:.0},{l2:.0},{tlb:.0},,,", row.n, row.tile);
    }
    for row in &findings.simulated {
        let Missed { l1, l2, tlb } = row.missed;
        // A name with a comma is quoted.
        let _ = writeln!(
            out,
            "simulated,\"{}\",{},{},{l1},{},{},,,",
            row.variant,
            row.n,
            row.tile,
            show(l2),
            show(tlb)
        );
    }
    for row in &findings.counted {
        let Missed { l1, l2, tlb } = row.missed;
        let _ = writeln!(
            out,
            "counted,\"{}, {}\",{},{},{l1},{},{},{},{},",
            row.loops,
            row.predictor,
            row.n,
            row.tile,
            show(l2),
            show(tlb),
            row.instructions,
            row.mispredictions
        );
    }
    for times in &findings.times {
        for rate in &times.rates {
            let _ =
                writeln!(out, "timed,\"{}\",{},{},,,,,,{:.3}", rate.crew, times.n, rate.tile, rate.gflops[1]);
        }
    }
    out
}
