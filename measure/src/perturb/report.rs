//! What was found: a word for each comparison, with its numbers and its reason.

use serde::Serialize;

/// The answer to one comparison, or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The difference is smaller than the effect, with certainty.
    Undisturbed,
    /// The difference is significant and at least the effect.
    Disturbed,
    /// Neither can be said with these runs.
    CannotTell,
}

impl Verdict {
    /// The verdict as people say it.
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

/// The correlations of one side, summed up.
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
    /// The answer.
    pub verdict: Verdict,
    /// The reason, in one sentence.
    pub sentence: String,
    /// Where it cannot be told: about how many samples, of baselines and of runs, would tell.
    pub would_tell: Option<[usize; 2]>,
    /// The correlation in each sample, baselines first; of outer, the mean with the (other)
    /// baselines, of pairs with those of other layouts.
    pub correlations: Vec<Option<f64>>,
}

impl Comparison {
    /// `run - baseline`.
    pub fn difference(&self) -> Option<f64> {
        Some(self.run?.mean - self.baseline?.mean)
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Hardware metrics that all traces have.
    pub metrics: Vec<String>,
    /// Samples of baselines and of runs.
    pub samples: [usize; 2],
    /// No p can be smaller.
    pub smallest_p: f64,
    /// Instructions of runs over those of baselines, less 1; where a metric `instructions` exists.
    pub added_instructions: Option<f64>,
    /// All pairs, then all metrics.
    pub comparisons: Vec<Comparison>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

impl Report {
    /// The word for the whole: disturbed when one comparison is, undisturbed when all are.
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
