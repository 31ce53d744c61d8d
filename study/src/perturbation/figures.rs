//! Figures 3 to 8 in the paper's form, and the curve of power.
//!
//! As in the paper, correlations are drawn without their sign, and inner ones for two pairs of
//! metrics; the table for spreadsheets has all of them with their signs.

use super::findings::{Comparison, Curve, Findings, Kind, Point, Power, PowerCurve, Signals, L1_L2, L1_TLB};
use plot::curves::{curves, Curve as Line, Curves};
use plot::panels::{panels, Panels, Row};
use present::order::SortRows;

/// Figures of the paper that show correlations over added instructions.
const OVER_OVERHEAD: [(&str, &str, Kind); 4] = [
    ("4", "sjeng", Kind::Inner),
    ("6", "bzip", Kind::Inner),
    ("7", "sim-outorder", Kind::Outer),
    ("8", "bzip", Kind::Outer),
];

/// Those that the paper describes and does not show.
const NOT_IN_THE_PAPER: [(&str, Kind); 4] =
    [("mcf", Kind::Inner), ("mcf", Kind::Outer), ("sim-outorder", Kind::Inner), ("sjeng", Kind::Outer)];

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Inner => "inner",
        Kind::Outer => "outer",
    }
}

/// Name and contents of every plot.
pub(super) fn plots(findings: &Findings, stem: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    if let Some(curve) = findings.curve("sjeng") {
        out.push((format!("{stem}-figure3.svg"), figure_3(curve)));
        out.extend(
            curve.signals.as_ref().map(|signals| (format!("{stem}-figure5.svg"), figure_5(curve, signals))),
        );
    }
    for (figure, benchmark, kind) in OVER_OVERHEAD {
        let curve = findings.curve(benchmark);
        out.extend(curve.map(|curve| {
            (format!("{stem}-figure{figure}.svg"), over_overhead(curve, kind, &format!("Figure {figure}")))
        }));
    }
    for (benchmark, kind) in NOT_IN_THE_PAPER {
        let curve = findings.curve(benchmark);
        out.extend(curve.map(|curve| {
            let file = format!("{stem}-{}-{}.svg", curve.subject.name, name(kind));
            (file, over_overhead(curve, kind, "Not in the paper"))
        }));
    }
    out.extend(findings.power.as_ref().map(|found| (format!("{stem}-power.svg"), power(found))));
    out.sort_rows(Ord::cmp);
    out
}

fn figure_3(curve: &Curve) -> String {
    let baseline = &curve.baseline;
    let line = |name: &str, values: &[[Option<f64>; 2]], pair: usize| Line {
        name: name.into(),
        points: (1..)
            .zip(values)
            .map(|(run, value)| (f64::from(run), value[pair].map_or(f64::NAN, f64::abs)))
            .collect(),
    };
    curves(&Curves {
        title: format!(
            "Figure 3 on {}: inner correlation with zero instrumentation (baseline)",
            curve.subject.name
        ),
        axes: ["trace".into(), "|ρ|".into()],
        range: (0.0, 1.0),
        curves: vec![
            line("L1–L2, by layout", &baseline.layouts, 0),
            line("L1–TLB, by layout", &baseline.layouts, 1),
            line("L1–L2, by noise", &baseline.noise, 0),
            line("L1–TLB, by noise", &baseline.noise, 1),
        ],
    })
}

/// Correlations over the share of added instructions; the first point is the baseline.
fn over_overhead(curve: &Curve, kind: Kind, figure: &str) -> String {
    let Some(first) = curve.points.first() else { return String::new() };
    let shown = |comparison: &&Comparison| match kind {
        Kind::Inner => [L1_L2, L1_TLB].iter().any(|pair| comparison.metrics == *pair),
        Kind::Outer => comparison.metrics[0] != "instructions",
    };
    let lines = first.kind(kind).filter(shown).map(|comparison| {
        let metrics = [comparison.metrics[0].as_str(), comparison.metrics[1].as_str()];
        let baseline = (0.0, comparison.baseline.map_or(f64::NAN, f64::abs));
        let at = |point: &Point| {
            let run = point.find(kind, metrics).and_then(|comparison| comparison.run);
            (point.added_percent, run.map_or(f64::NAN, f64::abs))
        };
        let name = if kind == Kind::Inner { metrics.join(" – ") } else { metrics[0].to_owned() };
        Line { name, points: std::iter::once(baseline).chain(curve.points.iter().map(at)).collect() }
    });
    let of = curve.subject;
    curves(&Curves {
        title: format!("{figure}: {} correlation of {} (for {})", name(kind), of.name, of.stands_for),
        axes: ["added instructions, %".into(), "|ρ|".into()],
        range: (0.0, 1.0),
        curves: lines.collect(),
    })
}

fn figure_5(curve: &Curve, signals: &Signals) -> String {
    let [before, after] = signals.metrics;
    let [good, perturbed] = signals.correlations;
    // The first records are the program's start, which dwarfs what follows.
    let cut = |values: &Vec<f64>| values[values.len() / 50..].to_vec();
    let row =
        |name: &str, both: &[Vec<f64>; 2]| Row { name: name.into(), series: both.iter().map(cut).collect() };
    panels(&Panels {
        title: format!(
            "Figure 5 on {}: the largest step of L1 with L2, by {}; the start is cut off",
            curve.subject.name, signals.added
        ),
        columns: vec![
            format!("Good: {before} metrics, ρ = {good:.2}"),
            format!("Perturbed: {after} metrics, ρ = {perturbed:.2}"),
        ],
        axis: "record".into(),
        rows: vec![
            row("L1 misses", &signals.l1),
            row("L2 misses", &signals.l2),
            Row { name: "S".into(), series: vec![Vec::new(), cut(&signals.software)] },
        ],
    })
}

fn power(found: &Power) -> String {
    let line =
        |curve: &PowerCurve| Line { name: format!("{} runs", curve.runs), points: curve.points.clone() };
    curves(&Curves {
        title: format!(
            "Planted changes of L1 with L2 that are found, {} beside {} baselines",
            found.program, found.baselines
        ),
        axes: ["change of ρ".into(), "share found".into()],
        range: (0.0, 1.0),
        curves: found.curves.iter().map(line).collect(),
    })
}
