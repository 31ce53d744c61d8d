//! The report of a comparison of traces: a verdict for each comparison, with its numbers and its
//! reason.

use serde::Serialize;

/// The verdict on one comparison, or on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The difference is smaller than the effect, with certainty.
    Undisturbed,
    /// The difference is significant and at least the effect.
    Disturbed,
    /// These runs do not suffice for either.
    CannotTell,
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Undisturbed => "undisturbed",
            Verdict::Disturbed => "disturbed",
            Verdict::CannotTell => "cannot tell",
        }
    }
}

/// Inner or outer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Two metrics within a trace.
    Inner,
    /// A metric with itself across two traces.
    Outer,
}

/// Mean and spread of the correlations of one side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Side {
    /// Mean of the correlations.
    pub mean: f64,
    /// Standard deviation of the correlations; 0 for one sample.
    pub deviation: f64,
    /// Number of samples.
    pub samples: usize,
}

/// One comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Inner or outer.
    pub kind: Kind,
    /// The two metrics; one metric twice for outer comparisons.
    pub metrics: [String; 2],
    /// Correlations within, or among, baselines.
    pub baseline: Option<Side>,
    /// Correlations within runs, or between runs and baselines.
    pub run: Option<Side>,
    /// The probability under relabelling, adjusted for the family.
    pub p: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason, in one sentence.
    pub sentence: String,
    /// If the verdict is *cannot tell*: about how many samples of baselines and of runs would
    /// suffice.
    pub would_tell: Option<[usize; 2]>,
    /// The correlation in each sample, baselines first. For outer comparisons it is the mean with
    /// the other baselines; in paired designs with those of other layouts.
    pub correlations: Vec<Option<f64>>,
}

impl Comparison {
    /// `run - baseline`.
    pub fn difference(&self) -> Option<f64> {
        Some(self.run?.mean - self.baseline?.mean)
    }
}

/// All comparisons of a call.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Hardware metrics that all traces have.
    pub metrics: Vec<String>,
    /// Samples of baselines and of runs.
    pub samples: [usize; 2],
    /// The smallest p that this design can give.
    pub smallest_p: f64,
    /// Instructions of runs divided by those of baselines, less 1; `None` without a metric
    /// `instructions`.
    pub added_instructions: Option<f64>,
    /// The comparisons: inner ones of all pairs, then outer ones of all metrics.
    pub comparisons: Vec<Comparison>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl Report {
    /// The verdict on the whole: disturbed if one comparison is, undisturbed if all are.
    pub fn verdict(&self) -> Verdict {
        let any = |verdict| self.comparisons.iter().any(|comparison| comparison.verdict == verdict);
        if any(Verdict::Disturbed) {
            Verdict::Disturbed
        } else if any(Verdict::CannotTell) || self.comparisons.is_empty() {
            Verdict::CannotTell
        } else {
            Verdict::Undisturbed
        }
    }
}
