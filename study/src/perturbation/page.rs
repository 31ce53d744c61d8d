//! What the study found: plots, a page, a table for spreadsheets, and the paper's sentences.

use super::experiment::{Curve, Point, Relation, MACHINE, METRICS};
use super::findings::Findings;
use super::program::COUNTERS;
use crate::layout::Spread;
use crate::options::Effort;
use crate::outcome::{table, Claim, Verdict};
use measure::perturb::{self, Comparison, Kind};
use measure::trace::Trace;
use plot::curves::{curves, Curve as Line, Curves};
use std::fmt::Write;

const L1_L2: [&str; 2] = ["l1d-misses", "l2-misses"];

/// The comparison of a point.
fn find<'a>(point: &'a Point, kind: Kind, metrics: [&str; 2]) -> Option<&'a Comparison> {
    point.report.comparisons.iter().find(|c| c.kind == kind && c.metrics == metrics)
}

fn of<'a>(findings: &'a Findings, benchmark: &str) -> Option<&'a Curve> {
    findings.curves.iter().find(|curve| curve.subject.stands_for == benchmark)
}

/// Name and contents of every plot.
pub(super) fn plots(findings: &Findings) -> Vec<(String, String)> {
    let date = &findings.date;
    let mut out = vec![(format!("perturbation-{date}-figure3.svg"), figure_3(findings))];
    let by_overhead = [
        ("4", "sjeng", Kind::Inner),
        ("6", "bzip", Kind::Inner),
        ("7", "sim-outorder", Kind::Outer),
        ("8", "bzip", Kind::Outer),
    ];
    for (figure, benchmark, kind) in by_overhead {
        if let Some(curve) = of(findings, benchmark) {
            out.push((format!("perturbation-{date}-figure{figure}.svg"), over_overhead(curve, kind, figure)));
        }
    }
    if let Some(curve) = of(findings, "sjeng") {
        out.push((format!("perturbation-{date}-figure5.svg"), figure_5(curve)));
    }
    let rest =
        [("mcf", Kind::Inner), ("mcf", Kind::Outer), ("sim-outorder", Kind::Inner), ("sjeng", Kind::Outer)];
    for (benchmark, kind) in rest {
        if let Some(curve) = of(findings, benchmark) {
            let kind_name = if kind == Kind::Inner { "inner" } else { "outer" };
            let name = format!("perturbation-{date}-{}-{kind_name}.svg", curve.subject.name);
            out.push((name, over_overhead(curve, kind, "not in the paper")));
        }
    }
    out.sort();
    out
}

fn figure_3(findings: &Findings) -> String {
    let spread = &findings.spread;
    let line = |name: &str, values: &[[Option<f64>; 2]], pair: usize| Line {
        name: name.into(),
        points: values
            .iter()
            .zip(1..)
            .map(|(v, run)| (f64::from(run), v[pair].unwrap_or(f64::NAN)))
            .collect(),
    };
    curves(&Curves {
        title: format!("Figure 3 on {}: inner correlations without instrumentation", spread.subject.name),
        axes: ["run".into(), "Spearman's ρ".into()],
        range: (-1.0, 1.0),
        curves: vec![
            line("L1–L2, by noise", &spread.noise, 0),
            line("L1–TLB, by noise", &spread.noise, 1),
            line("L1–L2, by environment", &spread.environment, 0),
            line("L1–TLB, by environment", &spread.environment, 1),
        ],
    })
}

/// Correlations over the share of added instructions; the first point is the baseline.
fn over_overhead(curve: &Curve, kind: Kind, figure: &str) -> String {
    let Some(first) = curve.points.first() else { return String::new() };
    let lines = first.report.comparisons.iter().filter(|c| c.kind == kind).map(|c| {
        let baseline = (0.0, c.baseline.map_or(f64::NAN, |side| side.mean));
        let same = |point: &Point| {
            let metrics = [c.metrics[0].as_str(), c.metrics[1].as_str()];
            let run = find(point, kind, metrics).and_then(|c| c.run);
            (point.added(), run.map_or(f64::NAN, |side| side.mean))
        };
        let name = if kind == Kind::Inner { c.metrics.join(" – ") } else { c.metrics[0].clone() };
        Line { name, points: std::iter::once(baseline).chain(curve.points.iter().map(same)).collect() }
    });
    let (what, low) = if kind == Kind::Inner { ("inner", -1.0) } else { ("outer", 0.0) };
    let of = curve.subject;
    curves(&Curves {
        title: format!("Figure {figure}: {what} correlations of {} ({})", of.name, of.stands_for),
        axes: ["added instructions, %".into(), "Spearman's ρ".into()],
        range: (low, 1.0),
        curves: lines.collect(),
    })
}

/// Where L1–L2 changes most from one number of counters to the next: the traces before and after.
fn largest_step(curve: &Curve) -> Option<(&Trace, &Point)> {
    let rho = |point: &Point| find(point, Kind::Inner, L1_L2).and_then(|c| c.run).map(|side| side.mean);
    let before = curve.points.first().and_then(|point| find(point, Kind::Inner, L1_L2)?.baseline)?.mean;
    let mut last = (curve.baseline.first()?, before);
    let mut found: Option<(f64, &Trace, &Point)> = None;
    for point in &curve.points {
        let now = rho(point)?;
        let step = (now - last.1).abs();
        if found.is_none_or(|(largest, ..)| step > largest) {
            found = Some((step, last.0, point));
        }
        last = (&point.first, now);
    }
    found.map(|(_, before, after)| (before, after))
}

fn figure_5(curve: &Curve) -> String {
    let Some((before, after)) = largest_step(curve) else { return String::new() };
    let uncharged = curve.subject.uncharged[0];
    let signal = |trace: &Trace, metric: &str, name: &str| {
        let values = trace.position(metric).map_or_else(Vec::new, |index| trace.series(index));
        // The first intervals are the program's start, which dwarfs what follows.
        let largest = values.iter().skip(values.len() / 50).copied().fold(1.0, f64::max);
        let points = values.iter().zip(0..).map(|(v, i)| (f64::from(i), (v / largest).min(1.0))).collect();
        Line { name: name.into(), points }
    };
    curves(&Curves {
        title: format!(
            "Figure 5 on {}: signals before and after the largest step, the start cut off",
            curve.subject.name
        ),
        axes: ["interval".into(), "share of the largest".into()],
        range: (0.0, 1.0),
        curves: vec![
            signal(before, "l1d-misses", "L1 before"),
            signal(&after.first, "l1d-misses", &format!("L1 with {} counters", after.counters)),
            signal(before, "l2-misses", "L2 before"),
            signal(&after.first, "l2-misses", &format!("L2 with {} counters", after.counters)),
            signal(&after.first, uncharged, &format!("S: {uncharged}")),
        ],
    })
}

/// The comparisons of a kind that are disturbed, at points with at most `percent` more
/// instructions, with their point.
fn disturbed(curve: &Curve, kind: Kind, percent: f64) -> Vec<(&Point, &Comparison)> {
    let points = curve.points.iter().filter(|point| point.added() <= percent);
    let all = points.flat_map(|point| point.report.comparisons.iter().map(move |c| (point, c)));
    all.filter(|(_, c)| c.kind == kind && c.verdict == perturb::Verdict::Disturbed).collect()
}

fn described(found: &[(&Point, &Comparison)]) -> String {
    let size = |c: &Comparison| c.difference().unwrap_or(0.0).abs();
    let Some((point, c)) = found.iter().max_by(|a, b| size(a.1).total_cmp(&size(b.1))) else {
        return "nothing disturbed".into();
    };
    format!(
        "{} disturbed; most with {} counters ({:+.2} %): {}",
        found.len(),
        point.counters,
        point.added(),
        c.sentence
    )
}

/// A sentence that says whether some relation is disturbed by how many added instructions.
struct Expectation {
    place: &'static str,
    sentence: &'static str,
    benchmark: &'static str,
    kind: Kind,
    /// Added instructions up to which the sentence speaks, in percent.
    percent: f64,
    disturbed: bool,
}

const EXPECTATIONS: &[Expectation] = &[
    Expectation {
        place: "Section 3.4, Figure 4",
        sentence: "The figure illustrates, for the sjeng benchmark, that perturbation due to instrumentation significantly affects the relationship between metrics.",
        benchmark: "sjeng",
        kind: Kind::Inner,
        percent: 3.0,
        disturbed: true,
    },
    Expectation {
        place: "Section 3.4",
        sentence: "Of the other benchmarks, sim-outorder exhibits similar behavior.",
        benchmark: "sim-outorder",
        kind: Kind::Inner,
        percent: 3.0,
        disturbed: true,
    },
    Expectation {
        place: "Section 3.4, Figure 6",
        sentence: "As the number of executed instructions increases by up to 2.5% […], the inner correlation barely changes.",
        benchmark: "bzip",
        kind: Kind::Inner,
        percent: 2.5,
        disturbed: false,
    },
    Expectation {
        place: "Section 3.4",
        sentence: "The mcf benchmark is similarly unaffected by additional instrumentation.",
        benchmark: "mcf",
        kind: Kind::Inner,
        percent: 2.5,
        disturbed: false,
    },
    Expectation {
        place: "Section 3.5, Figure 8",
        sentence: "While the outer correlation in sim-outorder was significantly affected by an overhead of less than 1% […]",
        benchmark: "sim-outorder",
        kind: Kind::Outer,
        percent: 1.0,
        disturbed: true,
    },
    Expectation {
        place: "Section 3.5, Figure 7",
        sentence: "Figure 7 gives the data for sim-outorder; sjeng and mcf exhibit similar trends.",
        benchmark: "sjeng",
        kind: Kind::Outer,
        percent: 3.0,
        disturbed: true,
    },
    Expectation {
        place: "Section 3.5, Figure 7",
        sentence: "Figure 7 gives the data for sim-outorder; sjeng and mcf exhibit similar trends.",
        benchmark: "mcf",
        kind: Kind::Outer,
        percent: 3.0,
        disturbed: true,
    },
    Expectation {
        place: "Section 3.5, Figure 8",
        sentence: "the outer correlation in bzip is largely unaffected even with an instrumentation overhead of 2.5%.",
        benchmark: "bzip",
        kind: Kind::Outer,
        percent: 2.5,
        disturbed: false,
    },
];

/// The paper's sentences.
pub(super) fn claims(findings: &Findings) -> Vec<Claim> {
    let mut out = vec![figure_3_claim(findings)];
    let expected = EXPECTATIONS.iter();
    out.extend(expected.filter_map(|expected| Some(held(expected, of(findings, expected.benchmark)?))));
    out.push(not_monotone(findings));
    out.push(second_problem(findings));
    out
}

/// A sentence held against the curve of the program that stands for its benchmark.
fn held(expected: &Expectation, curve: &Curve) -> Claim {
    let kind = if expected.kind == Kind::Inner { "inner" } else { "outer" };
    let added: Vec<f64> =
        curve.points.iter().map(Point::added).filter(|added| *added <= expected.percent).collect();
    let found = disturbed(curve, expected.kind, expected.percent);
    let least = added.iter().copied().fold(f64::INFINITY, f64::min);
    let most = added.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Claim {
        place: expected.place,
        sentence: expected.sentence,
        measured: format!(
            "{kind} correlations of {}, which stands for {}, on the simulated machine {MACHINE}, counters a page apart",
            curve.subject.name, expected.benchmark
        ),
        verdict: Verdict::of((!added.is_empty()).then_some(found.is_empty() != expected.disturbed)),
        extent: match added.len() {
            0 => String::new(),
            points => format!("{points} runs with {least:+.2} to {most:+.2} % instructions"),
        },
        spread: String::new(),
        detail: if added.is_empty() { "No point adds so little".into() } else { described(&found) },
    }
}

/// How far the relation of a software metric that changes most does.
fn largest_relation(point: &Point) -> Option<&Relation> {
    let size = |relation: &Relation| (relation.run - relation.baseline).abs();
    point.relations.iter().max_by(|a, b| size(a).total_cmp(&size(b)))
}

/// Whether hardware metrics betray every change of a relation with a software metric.
fn second_problem(findings: &Findings) -> Claim {
    let (mut changed, mut unseen) = (0, Vec::new());
    for curve in &findings.curves {
        for point in curve.points.iter().chain([&curve.packed]) {
            let Some(relation) = largest_relation(point) else { continue };
            if (relation.run - relation.baseline).abs() < 0.1 {
                continue;
            }
            changed += 1;
            if point.report.verdict() != perturb::Verdict::Disturbed {
                let (name, counters) = (curve.subject.name, point.counters);
                unseen.push(format!(
                    "{name} with {counters} counters: {} with {} {:.2} → {:.2}",
                    relation.software, relation.hardware, relation.baseline, relation.run
                ));
            }
        }
    }
    let detail = match unseen.first() {
        Some(first) => format!("{} of {changed} changes were not seen, first {first}", unseen.len()),
        None => format!("all of {changed} changes were seen"),
    };
    Claim {
        place: "Section 4",
        sentence: "Our mechanism for detecting perturbation assumes that if there is any significant perturbation it will perturb the relationship between two hardware metrics. […] We do not know if this phenomenon happens in practice",
        measured: "relations of software with hardware metrics that changed by .1 and more, as uncharged metrics tell, beside the verdict on hardware metrics".into(),
        verdict: Verdict::of((changed > 0).then_some(unseen.is_empty())),
        extent: String::new(),
        spread: String::new(),
        detail: if changed == 0 { "No such relation changed".into() } else { detail },
    }
}

fn figure_3_claim(findings: &Findings) -> Claim {
    let known: Vec<f64> = findings.spread.noise.iter().filter_map(|pair| pair[0]).collect();
    let (low, high) =
        known.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &x| (l.min(x), h.max(x)));
    Claim {
        place: "Section 3.3, Figure 3",
        sentence: "We see that for both pairs of metrics, the curve is largely flat; in other words, while there is some inter-trace variation, the variation is small.",
        measured: "inner correlation of baselines that differ by noise only (small: less than .1 from least to most)"
            .into(),
        verdict: Verdict::of((!known.is_empty()).then_some(high - low < 0.1)),
        extent: String::new(),
        spread: Spread::of(&known).map_or(String::new(), |spread| format!("{spread:.3}")),
        detail: format!(
            "L1–L2 between {low:.3} and {high:.3} over {} runs that differ by noise",
            known.len()
        ),
    }
}

/// Whether more counters ever disturbed less.
fn not_monotone(findings: &Findings) -> Claim {
    let mut found = None;
    for curve in &findings.curves {
        for (index, point) in curve.points.iter().enumerate() {
            for c in point.report.comparisons.iter().filter(|c| c.verdict == perturb::Verdict::Disturbed) {
                let metrics = [c.metrics[0].as_str(), c.metrics[1].as_str()];
                let later = curve.points[index..].iter().find(|later| {
                    find(later, c.kind, metrics).is_some_and(|c| c.verdict == perturb::Verdict::Undisturbed)
                });
                found = found.or(later.map(|later| {
                    let what = match c.kind {
                        Kind::Inner => metrics.join(" with "),
                        Kind::Outer => format!("{} with itself", metrics[0]),
                    };
                    let (few, many) = (point.counters, later.counters);
                    format!(
                        "{}: {what} is disturbed with {few} counters and not with {many}",
                        curve.subject.name
                    )
                }));
            }
        }
    }
    Claim {
        place: "Section 3.5, Figure 7",
        sentence: "Interestingly, as we add software metrics after the drop, the outer correlation for the metrics recovers.",
        measured: "comparisons that are disturbed with some counters and undisturbed with more".into(),
        verdict: Verdict::of(Some(found.is_some())),
        extent: String::new(),
        spread: String::new(),
        detail: found.unwrap_or_else(|| "Nothing that was disturbed recovered".into()),
    }
}

/// The page.
pub(super) fn page(findings: &Findings, claims: &[Claim], plots: &[String]) -> String {
    let effort = if findings.effort == Effort::Quick { "quick" } else { "full" };
    let mut out = format!(
        "# lightfoot study perturbation, {}\n\nMytkowicz, Diwan, Hauswirth, Sweeney 2007, again, on a simulated {MACHINE}; {effort} study, lightfoot {}. \
         Metrics: {METRICS}. Up to {COUNTERS} counters, compiled in one more at a time, a page apart; {} layouts (environments of different sizes) of every \
         number of counters. Everything repeats: there is no noise but where it is said. Environments move the stack alone, so what another build does by placing code and data elsewhere \
         counts as the instrumentation's doing, as it does for anybody who compiles counters in.\n\n## Table 1\n\n\
         | program | stands for | what it does | argument | interval, cycles | records |\n|---|---|---|---:|---:|---:|\n",
        findings.date,
        env!("CARGO_PKG_VERSION"),
        findings.curves.first().map_or(0, |curve| curve.baseline.len()),
    );
    for curve in &findings.curves {
        let (of, size) = (curve.subject, curve.size);
        let records = curve.baseline.first().map_or(0, |trace| trace.records.len());
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {records} |",
            of.name, of.stands_for, of.about, size.argument, size.interval_cycles
        );
    }
    out += "\n## The paper's sentences\n\n";
    out += &table(claims);
    out += "\n## Verdicts\n\nComparisons (ten inner, five outer) that are disturbed / cannot be told. Calls for the last \
         column are uncharged metrics, which add nothing to the program.\n\n| program | counters | added instructions | inner | outer | largest inner change | largest change with a software metric |\n|---|---:|---:|---:|---:|---|---|\n";
    for curve in &findings.curves {
        for (point, note) in curve.points.iter().map(|p| (p, "")).chain([(&curve.packed, ", packed")]) {
            let _ = writeln!(out, "{}", verdict_row(curve, point, note));
        }
    }
    out += &controls(findings);
    out += &statistics(findings);
    out += "\n## Plots\n\n";
    plots.iter().for_each(|name| out += &format!("![{name}]({name})\n\n"));
    out
}

fn verdict_row(curve: &Curve, point: &Point, note: &str) -> String {
    let count = |kind, verdict| {
        point.report.comparisons.iter().filter(|c| c.kind == kind && c.verdict == verdict).count()
    };
    let both = |kind| {
        format!(
            "{} / {}",
            count(kind, perturb::Verdict::Disturbed),
            count(kind, perturb::Verdict::CannotTell)
        )
    };
    let inner = point.report.comparisons.iter().filter(|c| c.kind == Kind::Inner && c.difference().is_some());
    let largest = inner.max_by(|a, b| {
        let size = |c: &Comparison| c.difference().unwrap_or(0.0).abs();
        size(a).total_cmp(&size(b))
    });
    let software = largest_relation(point).map_or(String::new(), |relation| {
        format!("{} – {} {:+.2}", relation.software, relation.hardware, relation.run - relation.baseline)
    });
    format!(
        "| {} | {}{note} | {:+.3} % | {} | {} | {} | {software} |",
        curve.subject.name,
        point.counters,
        point.added(),
        both(Kind::Inner),
        both(Kind::Outer),
        largest.map_or(String::new(), |c| format!(
            "{} {:+.2}",
            c.metrics.join(" – "),
            c.difference().unwrap_or(0.0)
        ))
    )
}

/// The environment's size, which is no instrumentation.
fn controls(findings: &Findings) -> String {
    let spread = &findings.spread;
    let summary = |values: &[[Option<f64>; 2]]| {
        let known: Vec<f64> = values.iter().filter_map(|pair| pair[0]).collect();
        let n = known.len().max(1) as f64;
        let mean = known.iter().sum::<f64>() / n;
        let deviation = (known.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt();
        let range = known.iter().fold((1.0_f64, -1.0_f64), |(l, h), &x| (l.min(x), h.max(x)));
        (mean, deviation, range)
    };
    let (noise, environment) = (summary(&spread.noise), summary(&spread.environment));
    let mut out = format!(
        "\n## Layout alone\n\n{} without any instrumentation, ρ of L1 and L2 misses. {} runs in one layout that differ by noise: {:.3}, deviation {:.4}. {} environments of \
         different sizes without noise: {:.3}, deviation {:.4}, from {:.3} to {:.3}. The two environments that differ most, each with noise, as if one were the \
         instrumented program:\n\n",
        spread.subject.name,
        spread.noise.len(),
        noise.0,
        noise.1,
        spread.environment.len(),
        environment.0,
        environment.1,
        environment.2 .0,
        environment.2 .1,
    );
    spread.layout.comparisons.iter().for_each(|c| out += &format!("- {}\n", c.sentence));
    out
}

/// The statistics on synthetic runs.
fn statistics(findings: &Findings) -> String {
    let found = &findings.synthetic;
    let percent = |count: usize| 100.0 * count as f64 / found.experiments.max(1) as f64;
    format!(
        "\n## The statistics\n\nFive synthetic baselines and five runs of 3000 records each, {} times, seed {}. Called disturbed: {:.1} % without an effect (5 % are allowed), {:.1} % where ρ falls from .8 \
         to .2 in a third of the records (95 % are asked for), {:.1} % where it falls to .78 (5 % are allowed).\n",
        found.experiments,
        found.seed,
        percent(found.without_effect),
        percent(found.planted),
        percent(found.small)
    )
}

/// For programs.
pub(super) fn json(findings: &Findings) -> serde_json::Value {
    let row = |curve: &Curve, point: &Point, spacing: &str| {
        let relations = point.relations.iter().map(|r| {
            serde_json::json!({ "software": r.software, "hardware": r.hardware, "baseline": r.baseline, "run": r.run })
        });
        serde_json::json!({
            "program": curve.subject.name,
            "stands_for": curve.subject.stands_for,
            "argument": curve.size.argument,
            "interval_cycles": curve.size.interval_cycles,
            "counters": point.counters,
            "spacing": spacing,
            "report": point.report,
            "relations": relations.collect::<Vec<_>>(),
        })
    };
    let points = findings.curves.iter().flat_map(|curve| {
        let page = curve.points.iter().map(move |point| row(curve, point, "page"));
        page.chain([row(curve, &curve.packed, "packed")])
    });
    serde_json::json!({
        "schema": 1,
        "date": findings.date,
        "effort": if findings.effort == Effort::Quick { "quick" } else { "full" },
        "version": env!("CARGO_PKG_VERSION"),
        "machine": MACHINE,
        "points": points.collect::<Vec<_>>(),
        "synthetic": findings.synthetic,
        "noise": findings.spread.noise,
        "environment": findings.spread.environment,
    })
}

/// For spreadsheets.
pub(super) fn csv(findings: &Findings) -> String {
    let mut out =
        String::from("program,counters,spacing,added_percent,kind,metric,with,baseline,run,p,verdict\n");
    for curve in &findings.curves {
        for (point, spacing) in curve.points.iter().map(|p| (p, "page")).chain([(&curve.packed, "packed")]) {
            for c in &point.report.comparisons {
                let kind = if c.kind == Kind::Inner { "inner" } else { "outer" };
                let number = |x: Option<f64>| x.map_or(String::new(), |x| format!("{x:.6}"));
                let _ = writeln!(
                    out,
                    "{},{},{spacing},{:.5},{kind},{},{},{},{},{},{}",
                    curve.subject.name,
                    point.counters,
                    point.added(),
                    c.metrics[0],
                    c.metrics[1],
                    number(c.baseline.map(|side| side.mean)),
                    number(c.run.map(|side| side.mean)),
                    number(c.p),
                    c.verdict.words()
                );
            }
        }
    }
    out
}
