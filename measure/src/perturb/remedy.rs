//! Computes how many samples would be enough for a verdict when there are too few.
//!
//! **What.** Three situations prevent a verdict, and each has a remedy with a number. Too few
//! relabellings: the fewest samples at which p can fall to α. A difference that is large but not
//! significant: a statistic in units of its spread grows with the square root of the samples, so as
//! many as take it to the critical value. A small difference with a large error: as many as make
//! the far end of its confidence interval smaller than the effect. **Why this way.** The advice
//! "more runs" does not say whether an hour of runs will do. **Leaves out** chance: with the
//! computed number of samples, and differences like the observed ones, about every second
//! experiment gets a verdict. Baselines and runs are assumed to grow together.

use super::design::Design;
use super::permute::{choices, smallest_p};
use super::quantile::quantile;

/// The largest number of samples that is recommended.
const MOST: usize = 1000;

/// Computes remedies for one experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remedy<'a> {
    design: &'a Design,
    alpha: f64,
}

/// Numbers of baseline samples and of run samples.
pub(super) type SampleCounts = [usize; 2];

impl<'a> Remedy<'a> {
    pub(super) fn new(design: &'a Design, alpha: f64) -> Remedy<'a> {
        Remedy { design, alpha }
    }

    /// The fewest runs, with the existing baselines, for which p can fall to α; if there is no such
    /// number, the fewest of both.
    pub(super) fn fewest(self) -> (SampleCounts, String) {
        let baselines = self.design.baselines;
        let enough =
            |runs: usize| smallest_p(&Design { runs, pairs: None, ..self.design.clone() }) <= self.alpha;
        // More runs beside these baselines are cheaper than more of both.
        match (self.design.runs..40).find(|&runs| enough(runs)) {
            Some(runs) if baselines == 1 => {
                ([1, runs], format!("{runs} runs beside this one baseline would do"))
            }
            Some(runs) => {
                ([baselines, runs], format!("{runs} runs beside these {baselines} baselines would do"))
            }
            None => {
                let both = (2..MOST).find(|&n| 2.0 / choices(2 * n, n) <= self.alpha).unwrap_or(MOST);
                ([both; 2], format!("{both} runs beside {both} baselines would do"))
            }
        }
    }

    /// The numbers of samples with which `statistic` would become significant.
    pub(super) fn significant(self, statistic: f64, critical: Option<f64>) -> Option<SampleCounts> {
        let critical = critical?;
        // A statistic grows with the square root of the number of samples.
        let grown = (critical / statistic).powi(2);
        self.larger(|factor, _| factor >= grown)
    }

    /// The numbers of samples with which the far end of the difference's confidence interval would
    /// be smaller than the effect.
    pub(super) fn certain(
        self,
        difference: f64,
        effect: f64,
        error: Option<(f64, usize)>,
    ) -> Option<SampleCounts> {
        let (error, _) = error?;
        let room = effect - difference.abs();
        self.larger(|factor, freedom| quantile(freedom) * error / factor.sqrt() < room)
    }

    /// The fewest samples, more than there are, for which `holds` returns true. Its arguments are
    /// the factor by which the samples have grown, and the degrees of freedom.
    fn larger(self, holds: impl Fn(f64, usize) -> bool) -> Option<SampleCounts> {
        let Design { baselines, runs, .. } = *self.design;
        // Both sides grow together, and so do the degrees of freedom.
        for more in runs + 1..=MOST {
            let factor = more as f64 / runs as f64;
            let beside = (baselines as f64 * factor).ceil() as usize;
            if holds(factor, beside.min(more) - 1) {
                return Some([beside, more]);
            }
        }
        None
    }

    /// The remedy as a sentence.
    pub(super) fn sentence(self, samples: Option<SampleCounts>) -> String {
        match (samples, &self.design.pairs) {
            (Some([_, runs]), Some(_)) => format!("about {runs} pairs of layouts would tell"),
            (Some([baselines, runs]), None) => {
                format!("about {runs} runs beside {baselines} baselines would tell")
            }
            (None, _) => format!("more than {MOST} runs would tell"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design(baselines: usize, runs: usize) -> Design {
        Design { baselines, runs, pairs: None }
    }

    #[test]
    fn the_fewest_are_those_at_which_p_can_fall_so_far() {
        let of = |baselines, runs| Remedy::new(&design(baselines, runs), 0.05).fewest().0;
        assert_eq!(of(2, 1), [2, 5]);
        assert_eq!(of(1, 1), [1, 19]);
        for [baselines, runs] in [of(2, 1), of(1, 1), of(4, 3)] {
            assert!(smallest_p(&design(baselines, runs)) <= 0.05);
            assert!(smallest_p(&design(baselines, runs - 1)) > 0.05);
        }
        let strict = Remedy::new(&design(1, 1), 0.0005).fewest().0;
        assert!(strict[0] == strict[1] && strict[0] > 5, "{strict:?}");
    }

    #[test]
    fn twice_the_spread_takes_four_times_the_samples() {
        let design = design(5, 5);
        let remedy = Remedy::new(&design, 0.05);
        assert_eq!(remedy.significant(1.5, Some(3.0)), Some([20, 20]));
        assert_eq!(remedy.significant(0.0, Some(3.0)), None);
        let found = remedy.certain(0.02, 0.1, Some((0.1, 4))).unwrap();
        let error = 0.1 * (5.0 / found[1] as f64).sqrt();
        assert!(quantile(found[1] - 1) * error < 0.08, "{found:?}");
        assert_eq!(remedy.certain(0.0999999, 0.1, Some((0.1, 4))), None);
        assert_eq!(remedy.sentence(Some([20, 20])), "about 20 runs beside 20 baselines would tell");
        assert_eq!(remedy.sentence(None), "more than 1000 runs would tell");
    }
}
