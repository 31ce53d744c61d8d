//! How much a study of perturbation measures, and how long that takes.

use super::choice;
use super::subject::{Subject, SUBJECTS};
use crate::options::Effort;

/// How much is measured.
pub(super) struct Extent {
    pub(super) effort: Effort,
    /// Records of a trace.
    pub(super) records: u64,
    /// Layouts of every number of counters: at least six, or no pairwise verdict is possible.
    pub(super) layouts: usize,
    /// Baselines of Figure 3.
    pub(super) baselines: usize,
    /// Experiments on synthetic runs, of each kind.
    pub(super) experiments: usize,
    /// Draws of each point of the power curve, and traces from which they are drawn.
    pub(super) draws: usize,
    pub(super) drawn_from: usize,
    /// Rounds without a simulator.
    pub(super) rounds: usize,
}

/// Numbers of counters of a quick study.
const QUICK_POINTS: usize = 5;

impl Extent {
    pub(super) fn of(effort: Effort) -> Extent {
        match effort {
            Effort::Quick => Extent {
                effort,
                records: 500,
                layouts: 6,
                baselines: 6,
                experiments: 200,
                draws: 20,
                drawn_from: 12,
                rounds: 6,
            },
            Effort::Full => Extent {
                effort,
                records: 3000,
                layouts: 8,
                baselines: 26,
                experiments: 1000,
                draws: 60,
                drawn_from: 26,
                rounds: 8,
            },
        }
    }

    /// A subject's input, and seconds of one simulated run.
    pub(super) fn size(&self, subject: &Subject) -> (usize, f64) {
        match self.effort {
            Effort::Quick => (subject.sizes.quick, subject.sizes.full_seconds / 6.0),
            Effort::Full => (subject.sizes.full, subject.sizes.full_seconds),
        }
    }

    pub(super) fn native_size(&self, subject: &Subject) -> usize {
        match self.effort {
            Effort::Quick => subject.sizes.native_quick,
            Effort::Full => subject.sizes.native_full,
        }
    }

    /// Numbers of counters of a program with `chosen` metrics.
    pub(super) fn counters(&self, chosen: usize) -> Vec<usize> {
        match self.effort {
            Effort::Full => (1..=chosen).collect(),
            Effort::Quick => {
                let count = chosen.min(QUICK_POINTS);
                (1..=count).map(|place| place * chosen / count).collect()
            }
        }
    }

    /// Seconds of a point, when a run takes `run_seconds`: two runs at a time, then alignments of
    /// all pairs of traces.
    pub(super) fn point_seconds(&self, run_seconds: f64) -> f64 {
        let pairs = (self.layouts * (2 * self.layouts - 1)) as f64;
        let alignment_seconds = 4e-9 * (self.records * self.records) as f64;
        self.layouts as f64 * run_seconds / 1.5 + pairs * alignment_seconds
    }

    /// Seconds of the whole study.
    pub(super) fn seconds(&self) -> f64 {
        let of = |subject: &Subject| {
            let run = self.size(subject).1;
            let points = self.counters(choice::METRICS_MAX).len() + 1;
            (4.0 + 2.0 * self.baselines as f64 / 1.5) * run
                + points as f64 * self.point_seconds(run)
                + self.native_seconds()
        };
        SUBJECTS.iter().map(of).sum::<f64>() + self.power_seconds() + self.synthetic_seconds()
    }

    pub(super) fn native_seconds(&self) -> f64 {
        // Five ways, about a millisecond a record.
        (self.rounds * 5) as f64 * self.records as f64 / 1000.0 * 1.2
    }

    pub(super) fn power_seconds(&self) -> f64 {
        (self.draws * 4 * 7) as f64 * self.records as f64 / 3000.0 * 0.1
    }

    pub(super) fn synthetic_seconds(&self) -> f64 {
        self.experiments as f64 * 0.05
    }
}
