//! What the study of perturbation measures, as its journal keeps it.

use super::choice::Called;
use super::subject::Subject;
use super::synthetic;
use crate::layout::Spread;
use crate::options::Effort;
use measure::perturb;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The first pair of metrics of Figures 3 to 5, and the second.
pub(super) const L1_L2: [&str; 2] = ["l1d-misses", "l2-misses"];
pub(super) const L1_TLB: [&str; 2] = ["l1d-misses", "dtlb-misses"];

/// A program before it is instrumented: one row of Table 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Calibration {
    pub(super) instructions: u64,
    pub(super) interval_cycles: u64,
    /// The metrics, from the rarest function to the most frequent.
    pub(super) chosen: Vec<Called>,
}

/// The runs without instrumentation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Baseline {
    /// Records of the first run.
    pub(super) records: usize,
    /// Hardware metrics with the median of their counts in a record.
    pub(super) medians: Vec<(String, f64)>,
    /// L1 with L2, and L1 with the TLB: a pair for every layout.
    pub(super) layouts: Vec<[Option<f64>; 2]>,
    /// Pairs for runs in the first layout that differ by simulated noise.
    pub(super) noise: Vec<[Option<f64>; 2]>,
}

/// A verdict on one comparison, as the journal keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Undisturbed,
    Disturbed,
    CannotTell,
}

impl From<perturb::Verdict> for Answer {
    fn from(verdict: perturb::Verdict) -> Answer {
        match verdict {
            perturb::Verdict::Undisturbed => Answer::Undisturbed,
            perturb::Verdict::Disturbed => Answer::Disturbed,
            perturb::Verdict::CannotTell => Answer::CannotTell,
        }
    }
}

/// Inner or outer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Inner,
    Outer,
}

/// One comparison of instrumented runs with baselines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Comparison {
    pub(super) kind: Kind,
    pub(super) metrics: [String; 2],
    pub(super) baseline: Option<f64>,
    pub(super) run: Option<f64>,
    /// Differences layout by layout: run less baseline.
    pub(super) differences: Option<Spread>,
    pub(super) p: Option<f64>,
    pub(super) answer: Answer,
    pub(super) sentence: String,
}

impl Comparison {
    pub(super) fn difference(&self) -> Option<f64> {
        Some(self.run? - self.baseline?)
    }

    /// What is compared, in words.
    pub(super) fn shown(&self) -> String {
        match self.kind {
            Kind::Inner => self.metrics.join(" with "),
            Kind::Outer => format!("{} with itself", self.metrics[0]),
        }
    }

    fn of(comparison: &perturb::Comparison) -> Comparison {
        let kind = match comparison.kind {
            perturb::Kind::Inner => Kind::Inner,
            perturb::Kind::Outer => Kind::Outer,
        };
        let known: Option<Vec<f64>> = comparison.correlations.iter().copied().collect();
        // Paired designs have as many runs as baselines, at the same layouts.
        let differences = known.and_then(|all| {
            let (baselines, runs) = all.split_at(all.len() / 2);
            let differences: Vec<f64> = baselines.iter().zip(runs).map(|(b, r)| r - b).collect();
            Spread::of(&differences)
        });
        Comparison {
            kind,
            metrics: comparison.metrics.clone(),
            baseline: comparison.baseline.map(|side| side.mean),
            run: comparison.run.map(|side| side.mean),
            differences,
            p: comparison.p,
            answer: comparison.verdict.into(),
            sentence: comparison.sentence.clone(),
        }
    }
}

/// A software metric with a hardware metric, the former counted without a charge: means over all
/// layouts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Relation {
    pub(super) software: String,
    pub(super) hardware: String,
    pub(super) baseline: f64,
    pub(super) run: f64,
}

impl Relation {
    pub(super) fn change(&self) -> f64 {
        self.run - self.baseline
    }
}

/// A number of metrics, and what counting them did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) metrics: usize,
    pub(super) spacing: String,
    pub(super) added_percent: f64,
    pub(super) comparisons: Vec<Comparison>,
    pub(super) relations: Vec<Relation>,
    pub(super) notes: Vec<String>,
}

impl Point {
    /// A point from the report on its runs.
    pub(super) fn of(
        metrics: usize,
        spacing: &str,
        report: &perturb::Report,
        relations: Vec<Relation>,
    ) -> Point {
        Point {
            metrics,
            spacing: spacing.into(),
            added_percent: 100.0 * report.added_instructions.unwrap_or(0.0),
            comparisons: report.comparisons.iter().map(Comparison::of).collect(),
            relations,
            notes: report.notes.clone(),
        }
    }

    /// The comparisons of a kind.
    pub(super) fn kind(&self, kind: Kind) -> impl Iterator<Item = &Comparison> {
        self.comparisons.iter().filter(move |comparison| comparison.kind == kind)
    }

    pub(super) fn find(&self, kind: Kind, metrics: [&str; 2]) -> Option<&Comparison> {
        self.kind(kind).find(|comparison| comparison.metrics == metrics)
    }

    /// How many comparisons of a kind have an answer.
    pub(super) fn count(&self, kind: Kind, answer: Answer) -> usize {
        self.kind(kind).filter(|comparison| comparison.answer == answer).count()
    }

    /// Whether any comparison is disturbed.
    pub(super) fn disturbed(&self) -> bool {
        self.comparisons.iter().any(|comparison| comparison.answer == Answer::Disturbed)
    }
}

/// The signals of Figure 5: the last run before the largest step of L1 with L2, and the first one
/// after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Signals {
    /// Metrics of the two runs.
    pub(super) metrics: [usize; 2],
    /// L1 with L2 in the two.
    pub(super) correlations: [f64; 2],
    /// The metric that the second has and the first has not.
    pub(super) added: String,
    /// Misses of L1 in each record of the two.
    pub(super) l1: [Vec<f64>; 2],
    /// Misses of L2 in each record of the two.
    pub(super) l2: [Vec<f64>; 2],
    /// Events of the added metric in each record of the second.
    pub(super) software: Vec<f64>,
}

/// One way of measuring, over all rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) mechanism: String,
    /// Why it could not be used here.
    pub(super) refused: Option<String>,
    /// Seconds of the program.
    pub(super) seconds: Option<Spread>,
    /// Records of the first run, and ticks that all runs missed.
    pub(super) records: usize,
    pub(super) missed_ticks: u64,
    /// Calls that the first run counted, by metric.
    pub(super) calls: BTreeMap<String, u64>,
    /// Correlations between the most frequent metrics, by pair, over all runs.
    pub(super) relations: Vec<(String, Spread)>,
    /// Kernel's and hardware metrics beside the baseline, or why they cannot be compared.
    pub(super) compared: Result<Point, String>,
}

/// A program without a simulator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Native {
    pub(super) interval_microseconds: u64,
    pub(super) rounds: usize,
    /// Metrics that were counted.
    pub(super) metrics: Vec<String>,
    pub(super) measured: Vec<Measured>,
}

/// How often planted changes were found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Power {
    pub(super) program: String,
    pub(super) baselines: usize,
    /// Draws of each kind.
    pub(super) experiments: usize,
    /// A curve for every number of runs.
    pub(super) curves: Vec<PowerCurve>,
}

/// One number of runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PowerCurve {
    pub(super) runs: usize,
    /// Mean change of the correlation, and share of the draws that were called disturbed.
    pub(super) points: Vec<(f64, f64)>,
}

/// A program over growing numbers of metrics.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) subject: &'static Subject,
    pub(super) size: usize,
    pub(super) calibration: Calibration,
    pub(super) baseline: Baseline,
    pub(super) points: Vec<Point>,
    /// All metrics, their counters packed.
    pub(super) packed: Option<Point>,
    pub(super) signals: Option<Signals>,
    pub(super) native: Option<Native>,
}

/// The study's.
pub(super) struct Findings {
    pub(super) date: String,
    pub(super) effort: Effort,
    /// The layouts of every point.
    pub(super) layouts: usize,
    pub(super) curves: Vec<Curve>,
    /// Programs that were not measured, and why.
    pub(super) missing: Vec<String>,
    pub(super) power: Option<Power>,
    pub(super) synthetic: synthetic::Flagged,
}

impl Findings {
    /// The curve of the program that stands for a benchmark of the paper.
    pub(super) fn curve(&self, benchmark: &str) -> Option<&Curve> {
        self.curves.iter().find(|curve| curve.subject.stands_for == benchmark)
    }
}
