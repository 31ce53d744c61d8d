//! Decides the paper's sentences about outer perturbation, which belong to its Figure 7.

use super::super::findings::{Answer, Comparison, Findings, Kind, Point};
use super::open;
use crate::outcome::{Claim, Verdict};

/// Outer comparisons of sim-outorder: the metric, the lowest change of its correlation over all
/// points, and whether any point is disturbed.
fn outer_changes(findings: &Findings) -> Vec<(String, f64, bool)> {
    let Some(curve) = findings.curve("sim-outorder") else { return Vec::new() };
    let Some(first) = curve.points.first() else { return Vec::new() };
    let change = |comparison: &Comparison| {
        let metrics = [comparison.metrics[0].as_str(), comparison.metrics[1].as_str()];
        let all: Vec<&Comparison> =
            curve.points.iter().filter_map(|point| point.find(Kind::Outer, metrics)).collect();
        let largest = all.iter().filter_map(|one| one.difference()).min_by(f64::total_cmp).unwrap_or(0.0);
        let disturbed = all.iter().any(|one| one.answer == Answer::Disturbed);
        (comparison.metrics[0].clone(), largest, disturbed)
    };
    first.kind(Kind::Outer).map(change).collect()
}

fn changes_shown(changes: &[(String, f64, bool)]) -> String {
    changes.iter().map(|(name, change, _)| format!("{name} {change:+.3}")).collect::<Vec<_>>().join(", ")
}

pub(super) fn all_pairs(findings: &Findings) -> Claim {
    let place = "Section 3.5, Figure 7";
    let sentence = "The figure illustrates that the outer correlation for all pairs of hardware metrics are significantly affected by the increase in instrumentation overhead.";
    let measured =
        "outer correlations of the program that stands for sim-outorder: each metric disturbed at some point"
            .to_owned();
    let changes = outer_changes(findings);
    if changes.is_empty() {
        return open(place, sentence, measured);
    }
    Claim {
        place,
        sentence,
        measured,
        verdict: Verdict::of(Some(changes.iter().all(|(_, _, disturbed)| *disturbed))),
        extent: format!("{} metrics", changes.len()),
        spread: String::new(),
        detail: format!("Largest falls: {}", changes_shown(&changes)),
    }
}

pub(super) fn most_affected(findings: &Findings) -> Claim {
    let place = "Section 3.5, Figure 7";
    let sentence = "The outer correlation of branch mispredictions with itself (PAPI_BR_MSP) is most affected, while the outer correlation of translation lookaside buffer (TLB) misses with itself (PAPI_TLB_DM) is least affected.";
    let measured =
        "the largest fall of each outer correlation of the program that stands for sim-outorder".to_owned();
    let changes = outer_changes(findings);
    let misses: Vec<_> = changes.iter().filter(|(name, ..)| name != "instructions").collect();
    let most = misses.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let least = misses.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((most, least)) = most.zip(least) else { return open(place, sentence, measured) };
    Claim {
        place,
        sentence,
        measured,
        verdict: Verdict::of(Some(most.0 == "branch-misses" && least.0 == "dtlb-misses")),
        extent: String::new(),
        spread: String::new(),
        detail: format!("Most: {}; least: {} ({})", most.0, least.0, changes_shown(&changes)),
    }
}

/// Whether more counters ever disturbed less.
pub(super) fn recovers(findings: &Findings) -> Claim {
    let mut found = Vec::new();
    for curve in &findings.curves {
        for (index, point) in curve.points.iter().enumerate() {
            for comparison in point.comparisons.iter().filter(|one| one.answer == Answer::Disturbed) {
                let metrics = [comparison.metrics[0].as_str(), comparison.metrics[1].as_str()];
                // The search begins at the disturbed point itself, which cannot match: it has one
                // answer for each comparison.
                let later = curve.points[index..].iter().find(|later| {
                    later.find(comparison.kind, metrics).is_some_and(|one| one.answer == Answer::Undisturbed)
                });
                found.extend(later.map(|later| {
                    format!(
                        "{}: {} is disturbed with {} metrics and not with {}",
                        curve.subject.name,
                        comparison.shown(),
                        point.metrics,
                        later.metrics
                    )
                }));
            }
        }
    }
    // If nothing is disturbed anywhere, nothing could recover, and the sentence stays unmeasured.
    let any = findings.curves.iter().any(|curve| curve.points.iter().any(Point::disturbed));
    Claim {
        place: "Section 3.5, Figure 7",
        sentence: "Interestingly, as we add software metrics after the drop, the outer correlation for the metrics recovers.",
        measured: "comparisons that are disturbed with some metrics and undisturbed with more".into(),
        verdict: Verdict::of(any.then_some(!found.is_empty())),
        extent: format!("{} comparisons", found.len()),
        spread: String::new(),
        detail: found.into_iter().next().unwrap_or_else(|| "Nothing that was disturbed recovered".into()),
    }
}

/// A fall of an outer correlation of sim-outorder that the paper puts in numbers.
struct Fall {
    sentence: &'static str,
    metric: &'static str,
    /// The correlation that it is above without instrumentation, and below at some point.
    from: f64,
    to: f64,
    percent: f64,
}

const FALLS: &[Fall] = &[
    Fall {
        sentence: "Branch mispredicts drops from a correlation of above 0.9 to 0.3 with only 0.2% increase in executed instructions.",
        metric: "branch-misses",
        from: 0.9,
        to: 0.35,
        percent: 0.25,
    },
    Fall {
        sentence: "Less dramatically, TLB misses drop from a correlation of 0.85 to below 0.6.",
        metric: "dtlb-misses",
        from: 0.8,
        to: 0.6,
        percent: 3.0,
    },
];

fn fallen(fall: &Fall, findings: &Findings) -> Claim {
    let place = "Section 3.5, Figure 7";
    let measured = format!(
        "the outer correlation of {} in the program that stands for sim-outorder: above {} without instrumentation and below {} at a point of at most {} %",
        fall.metric, fall.from, fall.to, fall.percent
    );
    let points = findings.curve("sim-outorder").map_or(&[][..], |curve| &curve.points);
    let known = points.iter().filter(|point| point.added_percent <= fall.percent).filter_map(|point| {
        let comparison = point.find(Kind::Outer, [fall.metric; 2])?;
        Some((point, comparison.baseline?, comparison.run?))
    });
    let Some((point, baseline, run)) = known.min_by(|a, b| a.2.total_cmp(&b.2)) else {
        return open(place, fall.sentence, measured);
    };
    Claim {
        place,
        sentence: fall.sentence,
        measured,
        verdict: Verdict::of(Some(baseline > fall.from && run < fall.to)),
        extent: format!("{} points", points.len()),
        spread: String::new(),
        detail: format!(
            "From {baseline:.3} to {run:.3} at the least, with {} metrics ({:+.3} %)",
            point.metrics, point.added_percent
        ),
    }
}

/// The falls that the paper puts in numbers.
pub(super) fn falls(findings: &Findings) -> Vec<Claim> {
    FALLS.iter().map(|fall| fallen(fall, findings)).collect()
}
