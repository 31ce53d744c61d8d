//! Decides for each sentence of the paper whether it holds, on the program that stands for the
//! benchmark it names.
//!
//! A relation is disturbed if `measure::perturb` says so: the change is significant over all
//! layouts and at least .1. The paper's words "small" and "minimal" have thresholds of this study,
//! which the text of each claim names. If the program of a benchmark is not installed, its
//! sentences are not measured.

mod outer;

use super::findings::{Answer, Comparison, Curve, Findings, Kind, Point, Relation, L1_L2, L1_TLB};
use super::trace::MACHINE;
use crate::layout::Spread;
use crate::outcome::{Claim, Verdict};
use measure::rank::spearman;
use present::order::SortRows;

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

/// The paper's sentences, in its order.
pub(super) fn claims(findings: &Findings) -> Vec<Claim> {
    let mut out = vec![abstract_claim(findings), collector(findings), figure_3(findings)];
    out.extend(EXPECTATIONS[..2].iter().map(|expected| held(expected, findings)));
    out.extend([drop(findings), tlb_too(findings), omitted(findings), good(findings), bump(findings)]);
    out.extend(EXPECTATIONS[2..4].iter().map(|expected| held(expected, findings)));
    out.extend([outer::all_pairs(findings), outer::most_affected(findings)]);
    out.extend(outer::falls(findings));
    out.push(outer::recovers(findings));
    out.extend(EXPECTATIONS[4..].iter().map(|expected| held(expected, findings)));
    out.extend([number_of_instructions(findings), second_problem(findings)]);
    out
}

/// A claim without an answer.
fn open(place: &'static str, sentence: &'static str, measured: String) -> Claim {
    Claim {
        place,
        sentence,
        measured,
        verdict: Verdict::NotMeasured,
        extent: String::new(),
        spread: String::new(),
        detail: "The program is not installed, or no point adds so little".into(),
    }
}

/// The comparisons of a kind that are disturbed, at points with at most `percent` more
/// instructions, with their point.
fn disturbed(curve: &Curve, kind: Kind, percent: f64) -> Vec<(&Point, &Comparison)> {
    let points = curve.points.iter().filter(|point| point.added_percent <= percent);
    let all = points.flat_map(|point| point.kind(kind).map(move |comparison| (point, comparison)));
    all.filter(|(_, comparison)| comparison.answer == Answer::Disturbed).collect()
}

/// The disturbed comparison that changed most.
fn largest<'a>(found: &[(&'a Point, &'a Comparison)]) -> Option<(&'a Point, &'a Comparison)> {
    let size = |comparison: &Comparison| comparison.difference().unwrap_or(0.0).abs();
    found.iter().copied().max_by(|a, b| size(a.1).total_cmp(&size(b.1)))
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Inner => "inner",
        Kind::Outer => "outer",
    }
}

fn range(points: &[&Point]) -> String {
    let added = Spread::of(&points.iter().map(|point| point.added_percent).collect::<Vec<_>>());
    added.map_or(String::new(), |added| {
        format!("{} points with {:+.3} to {:+.3} % instructions", points.len(), added.least, added.most)
    })
}

/// A sentence held against the curve of the program that stands for its benchmark.
fn held(expected: &Expectation, findings: &Findings) -> Claim {
    let kind = kind_name(expected.kind);
    // The program of this benchmark may not be installed.
    let Some(curve) = findings.curve(expected.benchmark) else {
        return open(expected.place, expected.sentence, format!("{kind} correlations"));
    };
    let measured = format!(
        "{kind} correlations of {}, which stands for {}, on the simulated machine {MACHINE}, counters a page apart (`lightfoot trace --engine simulated --machine {MACHINE} --layout page --software …`)",
        curve.subject.name, expected.benchmark
    );
    let points: Vec<&Point> =
        curve.points.iter().filter(|point| point.added_percent <= expected.percent).collect();
    // The first point may already add more instructions than the sentence speaks of.
    if points.is_empty() {
        return open(expected.place, expected.sentence, measured);
    }
    let found = disturbed(curve, expected.kind, expected.percent);
    let most = largest(&found);
    let unknown: usize = points.iter().map(|point| point.count(expected.kind, Answer::CannotTell)).sum();
    let detail = match most {
        None => format!("Nothing is disturbed; {unknown} comparisons cannot be told"),
        Some((point, comparison)) => format!(
            "{} comparisons are disturbed, {unknown} cannot be told; most with {} metrics ({:+.3} %): {}",
            found.len(),
            point.metrics,
            point.added_percent,
            comparison.sentence
        ),
    };
    let spread = most.and_then(|(_, comparison)| comparison.differences);
    Claim {
        place: expected.place,
        sentence: expected.sentence,
        measured,
        // The sentence holds if something is disturbed exactly where it expects a disturbance.
        verdict: Verdict::of(Some(found.is_empty() != expected.disturbed)),
        extent: range(&points),
        spread: spread.map_or(String::new(), |spread| format!("change of ρ by layout {spread:+.2}")),
        detail,
    }
}

fn abstract_claim(findings: &Findings) -> Claim {
    let found: Vec<String> = findings
        .curves
        .iter()
        .filter_map(|curve| {
            let all: Vec<_> =
                [Kind::Inner, Kind::Outer].iter().flat_map(|&kind| disturbed(curve, kind, 3.0)).collect();
            let (point, comparison) = largest(&all)?;
            Some(format!(
                "{} with {:+.3} % instructions: {} {:+.2}",
                curve.subject.name,
                point.added_percent,
                comparison.shown(),
                comparison.difference()?
            ))
        })
        .collect();
    Claim {
        place: "Abstract",
        sentence: "even with minimal instrumentation overhead, which increased instructions executed by less than 3%, high perturbation resulted",
        measured: "the largest change that is disturbed, inner or outer, of any program".into(),
        verdict: Verdict::of(Some(!found.is_empty())),
        extent: format!("{} of {} programs", found.len(), findings.curves.len()),
        spread: String::new(),
        detail: if found.is_empty() { "Nothing is disturbed".into() } else { found.join("; ") },
    }
}

/// The paper's shortest interval, of bzip in Table 1.
const PAPER_INTERVAL_SECONDS: f64 = 0.01;

/// The most that a handler may add to an interval and be called minimal.
const MINIMAL_SHARE: f64 = 0.01;

/// Whether a timer in the program costs little, natively.
///
/// Records here are a millisecond long, so that a short program has many; the sentence speaks of
/// ten and more. So the cost of one record is what is held against it.
fn collector(findings: &Findings) -> Claim {
    let place = "Section 2.1";
    let sentence = "we expect that the perturbation with hardware performance monitors is minimal because the only cost is in taking the interrupt at each interrupt interval";
    let measured = format!(
        "time that each record adds when a signal handler reads the counters, beside runs that the host reads, interleaved, natively: less than {:.0} % of the paper's shortest interval, {} ms",
        100.0 * MINIMAL_SHARE,
        1000.0 * PAPER_INTERVAL_SECONDS
    );
    // Both mechanisms of a program must have been measured, else the program has no part in the
    // answer.
    let way = |curve: &Curve, name: &str| {
        let native = curve.native.as_ref()?;
        let way = native.measured.iter().find(|one| one.mechanism == name)?;
        Some((way.seconds?, way.records))
    };
    let cost = |curve: &Curve| {
        let ((handler, records), (kernel, _)) = (way(curve, "signal handler")?, way(curve, "kernel alone")?);
        Some((curve.subject.name, handler, kernel, record_seconds(&handler, &kernel, records)?))
    };
    let costs: Vec<(&str, Spread, Spread, f64)> = findings.curves.iter().filter_map(cost).collect();
    if costs.is_empty() {
        return open(place, sentence, measured);
    }
    let minimal = |seconds: f64| seconds < MINIMAL_SHARE * PAPER_INTERVAL_SECONDS;
    let shown = costs.iter().map(|(name, handler, kernel, seconds)| {
        format!("{name} {:.0} µs: {handler:.3} s beside {kernel:.3} s", 1e6 * seconds)
    });
    Claim {
        place,
        sentence,
        measured,
        // One program with an expensive handler contradicts the sentence.
        verdict: Verdict::of(Some(costs.iter().all(|(.., seconds)| minimal(*seconds)))),
        extent: format!("{} programs", costs.len()),
        spread: String::new(),
        detail: shown.collect::<Vec<_>>().join("; "),
    }
}

/// What one record adds, by medians; `None` without records.
fn record_seconds(handler: &Spread, kernel: &Spread, records: usize) -> Option<f64> {
    (records > 0).then(|| (handler.median - kernel.median) / records as f64)
}

fn figure_3(findings: &Findings) -> Claim {
    const SMALL: f64 = 0.1;
    let place = "Section 3.3, Figure 3";
    let sentence = "We see that for both pairs of metrics, the curve is largely flat; in other words, while there is some inter-trace variation, the variation is small.";
    let measured = format!(
        "inner correlations of baselines of the program that stands for sjeng: {} layouts, and as many runs of one layout with simulated noise (small: less than {SMALL} from least to most)",
        findings.curve("sjeng").map_or(0, |curve| curve.baseline.layouts.len())
    );
    let Some(curve) = findings.curve("sjeng") else { return open(place, sentence, measured) };
    let spreads: Vec<(&str, Spread)> = [
        ("L1–L2 by layout", &curve.baseline.layouts, 0),
        ("L1–TLB by layout", &curve.baseline.layouts, 1),
        ("L1–L2 by noise", &curve.baseline.noise, 0),
        ("L1–TLB by noise", &curve.baseline.noise, 1),
    ]
    .iter()
    .filter_map(|(name, pairs, pair)| {
        // A run without a correlation, because a metric was constant, leaves its whole row out: the
        // spread of the others would look too small.
        let known: Option<Vec<f64>> = pairs.iter().map(|values| values[*pair]).collect();
        Some((*name, Spread::of(&known?)?))
    })
    .collect();
    // The figure shows two pairs of metrics; noise is the second source of variation beside layout.
    let small = spreads.iter().all(|(_, spread)| spread.most - spread.least < SMALL);
    let detail = spreads.iter().map(|(name, spread)| format!("{name} {spread:.3}"));
    Claim {
        place,
        sentence,
        measured,
        verdict: Verdict::of((!spreads.is_empty()).then_some(small)),
        extent: format!("{} traces each", curve.baseline.layouts.len()),
        spread: detail.collect::<Vec<_>>().join("; "),
        detail: format!("The program is {}", curve.subject.name),
    }
}

fn drop(findings: &Findings) -> Claim {
    let place = "Section 3.4, Figure 4";
    let sentence = "The inner correlation for L1 data cache misses and L2 cache misses (PAPI_L1_DCM-PAPI_L2_TCM) starts at 0.8 and dramatically drops to less than 0.5 at around a 2.25% increase in instructions.";
    let measured = "L1 with L2 of the program that stands for sjeng: from .75 to .85 at the start, below .5 at some point of up to 3 %".to_owned();
    let Some(curve) = findings.curve("sjeng") else { return open(place, sentence, measured) };
    let runs: Vec<(&Point, f64)> =
        curve.points.iter().filter_map(|point| Some((point, point.find(Kind::Inner, L1_L2)?.run?))).collect();
    let start = curve.points.first().and_then(|point| point.find(Kind::Inner, L1_L2)?.baseline);
    let lowest =
        runs.iter().filter(|(point, _)| point.added_percent <= 3.0).min_by(|a, b| a.1.total_cmp(&b.1));
    let Some((start, (point, lowest))) = start.zip(lowest) else { return open(place, sentence, measured) };
    let points: Vec<&Point> = runs.iter().map(|(point, _)| *point).collect();
    Claim {
        place,
        sentence,
        measured,
        verdict: Verdict::of(Some((0.75..0.85).contains(&start) && *lowest < 0.5)),
        extent: range(&points),
        spread: String::new(),
        detail: format!(
            "Starts at {start:.3}; lowest {lowest:.3} with {} metrics ({:+.3} %)",
            point.metrics, point.added_percent
        ),
    }
}

/// Whether the second pair of Figure 4 falls as well, and less.
fn tlb_too(findings: &Findings) -> Claim {
    let place = "Section 3.4, Figure 4";
    let sentence = "The inner correlation of L1 data cache misses and TLB misses (PAPI_L1_DCM-PAPI_TLB_DM) has a similar, but slightly less dramatic change.";
    let measured =
        "the largest fall of L1 with the TLB beside that of L1 with L2, in the program that stands for sjeng (a fall is .1 or more)"
            .to_owned();
    let Some(curve) = findings.curve("sjeng") else { return open(place, sentence, measured) };
    let fall = |metrics| {
        let changes = curve.points.iter().filter_map(|point| point.find(Kind::Inner, metrics)?.difference());
        changes.min_by(f64::total_cmp)
    };
    let Some((l2, tlb)) = fall(L1_L2).zip(fall(L1_TLB)) else { return open(place, sentence, measured) };
    Claim {
        place,
        sentence,
        measured,
        verdict: Verdict::of(Some(tlb <= -0.1 && l2 < tlb)),
        extent: format!("{} points", curve.points.len()),
        spread: String::new(),
        detail: format!("L1–L2 falls by {:.3}, L1–TLB by {:.3}", -l2, -tlb),
    }
}

/// Whether the pairs that Figure 4 leaves out are undisturbed.
fn omitted(findings: &Findings) -> Claim {
    let place = "Section 3.4, Figure 4";
    let sentence = "Instrumentation overhead did not significantly perturb the hardware metric pairs that are omitted from the figure.";
    let measured = "inner correlations of all other pairs, in the program that stands for sjeng".to_owned();
    let Some(curve) = findings.curve("sjeng") else { return open(place, sentence, measured) };
    let other = |comparison: &Comparison| comparison.metrics != L1_L2 && comparison.metrics != L1_TLB;
    let mut found = disturbed(curve, Kind::Inner, 3.0);
    found.retain(|(_, comparison)| other(comparison));
    let detail = match largest(&found) {
        None => "None is disturbed".into(),
        Some((point, comparison)) => format!(
            "{} are disturbed; most with {} metrics: {}",
            found.len(),
            point.metrics,
            comparison.sentence
        ),
    };
    Claim {
        place,
        sentence,
        measured,
        verdict: Verdict::of(Some(found.is_empty())),
        extent: format!("{} points", curve.points.len()),
        spread: String::new(),
        detail,
    }
}

fn good(findings: &Findings) -> Claim {
    let place = "Section 3.4, Figure 5";
    let sentence = "For the Good run, the L1 and L2 signals are correlated. […] For the Perturbed run, however, the L1 misses do not follow this bump as clearly.";
    let measured =
        "L1 with L2 in the last run before the largest step and in the first after it (a step is .1 or more, down)"
            .to_owned();
    let signals = findings.curve("sjeng").and_then(|curve| curve.signals.as_ref());
    let Some(signals) = signals else { return open(place, sentence, measured) };
    let [good, perturbed] = signals.correlations;
    Claim {
        place,
        sentence,
        measured,
        verdict: Verdict::of(Some(good >= 0.5 && good - perturbed >= 0.1)),
        extent: format!("{} and {} metrics", signals.metrics[0], signals.metrics[1]),
        spread: String::new(),
        detail: format!("ρ goes from {good:.3} to {perturbed:.3} when {} is added", signals.added),
    }
}

/// Whether the metric behind the step counts most where L2 misses are most.
fn bump(findings: &Findings) -> Claim {
    let place = "Section 3.4, Figure 5";
    let sentence = "The number of events counted by `spm_func_search` is particularly high during the bump.";
    let measured = "events of the added metric in the tenth of the records with most L2 misses, beside its mean (particularly high: 1.5 times)".to_owned();
    let signals = findings.curve("sjeng").and_then(|curve| curve.signals.as_ref());
    let Some(signals) = signals.filter(|signals| signals.software.len() >= 10) else {
        return open(place, sentence, measured);
    };
    let mut order: Vec<usize> = (0..signals.software.len().min(signals.l2[1].len())).collect();
    order.sort_rows(|&a, &b| signals.l2[1][b].total_cmp(&signals.l2[1][a]));
    let mean = |records: &[usize]| {
        records.iter().map(|&record| signals.software[record]).sum::<f64>() / records.len().max(1) as f64
    };
    let ratio = mean(&order[..order.len() / 10]) / mean(&order).max(f64::MIN_POSITIVE);
    Claim {
        place,
        sentence,
        measured,
        verdict: Verdict::of(Some(ratio >= 1.5)),
        extent: format!("{} records", order.len()),
        spread: String::new(),
        detail: format!("{} counts {ratio:.2} times its mean there", signals.added),
    }
}

/// Whether the disturbance grows with the added instructions.
fn number_of_instructions(findings: &Findings) -> Claim {
    const FOLLOWS: f64 = 0.5;
    let relation = |curve: &Curve| -> Option<(String, f64)> {
        let added: Vec<f64> = curve.points.iter().map(|point| point.added_percent).collect();
        let change = |point: &Point| {
            point.comparisons.iter().filter_map(Comparison::difference).map(f64::abs).fold(0.0, f64::max)
        };
        let changes: Vec<f64> = curve.points.iter().map(change).collect();
        Some((curve.subject.name.to_owned(), spearman(&added, &changes)?))
    };
    let known: Vec<(String, f64)> = findings.curves.iter().filter_map(relation).collect();
    let detail = known.iter().map(|(name, rho)| format!("{name} {rho:+.2}"));
    Claim {
        place: "Section 3.5",
        sentence: "To summarize, our results suggest that perturbation does not depend on the number of instrumentation instructions that we execute.",
        measured: format!("Spearman's correlation of added instructions with the largest change, by program (depends: above {FOLLOWS})"),
        verdict: Verdict::of((!known.is_empty()).then_some(known.iter().all(|(_, rho)| *rho <= FOLLOWS))),
        extent: format!("{} programs", known.len()),
        spread: String::new(),
        detail: detail.collect::<Vec<_>>().join(", "),
    }
}

/// The relation of a software metric that changed most.
pub(super) fn largest_relation(point: &Point) -> Option<&Relation> {
    point.relations.iter().max_by(|a, b| a.change().abs().total_cmp(&b.change().abs()))
}

/// Whether hardware metrics betray every change of a relation with a software metric.
fn second_problem(findings: &Findings) -> Claim {
    let (mut changed, mut unseen) = (0, Vec::new());
    for curve in &findings.curves {
        for point in curve.points.iter().chain(&curve.packed) {
            let Some(relation) = largest_relation(point).filter(|one| one.change().abs() >= 0.1) else {
                continue;
            };
            changed += 1;
            // Hardware metrics missed this change, although a relation with a software metric
            // changed.
            if !point.disturbed() {
                unseen.push(format!(
                    "{} with {} metrics: {} with {} {:.2} → {:.2}",
                    curve.subject.name,
                    point.metrics,
                    relation.software,
                    relation.hardware,
                    relation.baseline,
                    relation.run
                ));
            }
        }
    }
    let detail = match unseen.first() {
        // Without a change there was nothing to see, which decides nothing.
        _ if changed == 0 => "No such relation changed".into(),
        Some(first) => format!("{} of {changed} changes were not seen, first {first}", unseen.len()),
        None => format!("All of {changed} changes were seen"),
    };
    Claim {
        place: "Section 4",
        sentence: "Our mechanism for detecting perturbation assumes that if there is any significant perturbation it will perturb the relationship between two hardware metrics. […] We do not know if this phenomenon happens in practice",
        measured: "relations of software with hardware metrics that changed by .1 and more, as uncharged metrics tell, beside the verdict on hardware metrics".into(),
        verdict: Verdict::of((changed > 0).then_some(unseen.is_empty())),
        extent: format!("{changed} points"),
        spread: String::new(),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_costs_what_its_handler_adds() {
        let spread = |median| Spread { median, least: 0.0, most: 9.0 };
        let seconds = record_seconds(&spread(1.5), &spread(1.0), 500).unwrap();
        assert!((seconds - 1e-3).abs() < 1e-12);
        assert_eq!(record_seconds(&spread(1.5), &spread(1.0), 0), None);
    }
}
