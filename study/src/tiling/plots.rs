//! The plots, named as the paper's figures.

use super::findings::{Findings, TERM};
use super::findings::{FOUR_THREADS, SERIAL, TWO_THREADS};
use super::variant::{ONE, STRIDE};
use plot::tiles::{lines, Line};

/// One plot for each of Figures 1 to 8; Figure 4 has a second, with the prefetcher.
pub(super) fn plots(findings: &Findings) -> Vec<(String, String)> {
    let mut plots = Vec::new();
    for (number, what) in [(1, "L1 misses"), (2, "L2 misses"), (3, "TLB misses")] {
        let misses = |n, tile| {
            let missed = findings.missed(ONE, n, tile)?;
            [Some(missed.l1), missed.l2, missed.tlb][number - 1].map(|misses| misses as f64)
        };
        let title = format!("Figure {number}: {what}, simulated");
        plots.push((format!("figure{number}"), lines(&title, "misses", &over_tiles(findings, ONE, misses))));
    }
    for (name, variant, what) in
        [("figure4", ONE, "misses and branches"), ("figure4-stride", STRIDE, "with a prefetcher by stride")]
    {
        let cost =
            |n, tile| findings.cycles(variant, Some(TERM), n, tile).map(|cycles| cycles.iter().sum::<f64>());
        let title = format!("Figure 4: total cost, simulated, {what}");
        plots.push((name.into(), lines(&title, "cycles", &over_tiles(findings, variant, cost))));
    }
    plots.push(("figure5".into(), figure5(findings)));
    for (number, crew) in [(6, SERIAL), (7, TWO_THREADS), (8, FOUR_THREADS)] {
        let title = format!("Figure {number}: MBaLt, {crew}, measured");
        plots.push((format!("figure{number}"), lines(&title, "% of best", &normalized(findings, crew))));
    }
    plots
}

fn over_tiles(findings: &Findings, variant: &str, of: impl Fn(usize, usize) -> Option<f64>) -> Vec<Line> {
    let line = |n: usize| Line {
        name: format!("N = {n}"),
        points: findings
            .tiles(variant, n)
            .into_iter()
            .filter_map(|tile| Some((tile, of(n, tile)?)))
            .collect(),
    };
    findings.sizes(variant).into_iter().map(line).collect()
}

/// Each crew's best speed over N.
fn figure5(findings: &Findings) -> String {
    let best = |crew: &str| {
        let point = |n: usize| Some((n, findings.fastest(crew, n)?.gflops[1]));
        findings.times.iter().filter_map(|times| point(times.n)).collect()
    };
    let line = |crew: &str| Line { name: crew.into(), points: best(crew) };
    let title = "Figure 5: MBaLt, each with its best T, measured";
    plot::tiles::lines_over("N", title, "GFLOP/s", &[SERIAL, TWO_THREADS, FOUR_THREADS].map(line))
}

/// Speeds of a crew over T, for each N the best as 100.
fn normalized(findings: &Findings, crew: &str) -> Vec<Line> {
    let line = |n: usize| {
        let best = findings.fastest(crew, n)?.gflops[1];
        let points =
            findings.rates(crew, n).into_iter().map(|rate| (rate.tile, 100.0 * rate.gflops[1] / best));
        Some(Line { name: format!("N = {n}"), points: points.collect() })
    };
    findings.times.iter().filter_map(|times| line(times.n)).collect()
}
