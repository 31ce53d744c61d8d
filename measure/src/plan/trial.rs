//! Trials, their verdicts, and the plan that they justify.

use crate::perturb::Verdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// Measures a set of metrics together.
pub trait Trial {
    /// The error for a trial that cannot be made.
    type Error;

    /// The verdict on measuring `metrics` (indices, ascending, at least one) with a counter layout
    /// (an index).
    ///
    /// # Errors
    /// What ends the planning.
    fn measure(&mut self, metrics: &[usize], layout: usize) -> Result<Verdict, Self::Error>;
}

/// One run of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Run {
    /// Metrics to measure together, ascending.
    pub metrics: Vec<usize>,
    /// The counter layout of the run.
    pub layout: usize,
    /// The verdict on exactly this set with this layout; `None` if it is untested.
    pub verdict: Option<Verdict>,
}

/// Runs that measure every metric once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The runs. Those that disturb even with a single metric come last.
    pub runs: Vec<Run>,
    /// Pairs that were found to disturb, with the layout that was used.
    pub conflicts: Vec<(usize, usize)>,
    /// The number of sets that were tried.
    pub trials: usize,
    /// Whether the trials ran out before all sets were tested.
    pub exhausted: bool,
}

impl Plan {
    /// Whether every run was tried and found undisturbed.
    pub fn is_verified(&self) -> bool {
        self.runs.iter().all(|run| run.verdict == Some(Verdict::Undisturbed))
    }
}

/// The trials that were made, and their verdicts.
pub(super) struct TrialLog<'a, T> {
    pub(super) trial: &'a mut T,
    pub(super) budget: usize,
    pub(super) known: BTreeMap<(usize, Vec<usize>), Verdict>,
    pub(super) exhausted: bool,
}

impl<T: Trial> TrialLog<'_, T> {
    /// Tries a set, unless its verdict is known; `None` if the trials are used up.
    pub(super) fn test(&mut self, metrics: &[usize], layout: usize) -> Result<Option<Verdict>, T::Error> {
        let known = self.verdict(metrics, layout);
        if known.is_some() {
            return Ok(known);
        }
        // A known verdict costs nothing; a new one counts against the budget.
        if self.known.len() >= self.budget {
            self.exhausted = true;
            return Ok(None);
        }
        let verdict = self.trial.measure(metrics, layout)?;
        self.known.insert((layout, metrics.to_vec()), verdict);
        Ok(Some(verdict))
    }

    pub(super) fn verdict(&self, metrics: &[usize], layout: usize) -> Option<Verdict> {
        self.known.get(&(layout, metrics.to_vec())).copied()
    }

    /// Whether a set that was found undisturbed contains all of these metrics.
    pub(super) fn is_part_of_a_quiet_set(&self, metrics: &[usize], layout: usize) -> bool {
        let whole = |set: &Vec<usize>| metrics.iter().all(|metric| set.binary_search(metric).is_ok());
        self.known
            .iter()
            .any(|((known, set), verdict)| *known == layout && *verdict == Verdict::Undisturbed && whole(set))
    }

    /// Looks for another layout with which a metric that disturbs alone does not disturb.
    pub(super) fn rescue(
        &mut self,
        sets: &mut [(Vec<usize>, usize)],
        layouts: usize,
    ) -> Result<(), T::Error> {
        for (set, layout) in sets.iter_mut().filter(|(set, _)| set.len() == 1) {
            let mut other = 0;
            // Tries every other layout until one is quiet.
            while self.verdict(set, *layout) == Some(Verdict::Disturbed) && other < layouts {
                if self.test(set, other)? == Some(Verdict::Undisturbed) {
                    *layout = other;
                }
                other += 1;
            }
        }
        Ok(())
    }

    /// Joins runs while trials last and the union is quiet. It begins with the smallest, which need
    /// not remain runs of their own.
    pub(super) fn merge(
        &mut self,
        sets: &mut Vec<(Vec<usize>, usize)>,
        layout: usize,
    ) -> Result<(), T::Error> {
        let mut tried: Vec<Vec<usize>> = Vec::new();
        'again: loop {
            sets.sort_by_key(|(set, _)| set.len());
            for first in 0..sets.len() {
                for second in first + 1..sets.len() {
                    // The two smallest come first: they are the likeliest to be quiet together.
                    let mut union = [&sets[first].0[..], &sets[second].0[..]].concat();
                    union.sort_unstable();
                    if tried.contains(&union)
                        || (self.known.len() >= self.budget && self.verdict(&union, layout).is_none())
                    {
                        continue;
                    }
                    tried.push(union.clone());
                    if self.test(&union, layout)? == Some(Verdict::Undisturbed) {
                        sets.remove(second);
                        sets[first] = (union, layout);
                        // The sets have changed, so the search starts again with the smallest ones.
                        continue 'again;
                    }
                }
            }
            return Ok(());
        }
    }

    pub(super) fn into_plan(self, sets: Vec<(Vec<usize>, usize)>, conflicts: Vec<(usize, usize)>) -> Plan {
        let run = |(metrics, layout): (Vec<usize>, usize)| {
            let verdict = self.verdict(&metrics, layout);
            Run { metrics, layout, verdict }
        };
        let mut runs: Vec<Run> = sets.into_iter().map(run).collect();
        runs.sort_unstable_by_key(|run| (run.verdict == Some(Verdict::Disturbed), run.metrics.clone()));
        Plan { runs, conflicts, trials: self.known.len(), exhausted: self.exhausted }
    }
}
