//! Which metrics may be measured together: the paper's first open problem.
//!
//! Measuring all metrics at once may disturb the program; measuring each alone takes as many runs as there are metrics. In between:
//!
//! 1. all metrics at once, with each counter layout: a better layout is cheaper than another run;
//! 2. every single metric and every pair; pairs that disturb are edges of a conflict graph;
//! 3. the graph is coloured greedily (most constrained first, Brélaz 1979): a colour is a run;
//! 4. each colour is tested as a set; one that fails is split in halves until its parts pass;
//! 5. with trials left, two runs that were found are tried as one, because perturbation is not monotone: a set may be quiet although a part of it is not.
//!
//! For that same reason nothing is concluded from a set about its parts: a run of the plan is *verified* only when exactly that set was tried, and *untested*
//! otherwise. What a trial is (runs, repeats, a verdict of [`perturb`](crate::perturb)) is the caller's, who implements [`Trial`].
//!
//! Relations that involve software metrics are the second open problem: hardware metrics cannot show whether those are disturbed. Ghost counters can
//! ([`Source::Ghost`](crate::trace::Source::Ghost)): counted by a simulating engine and not charged, they say what a software metric would have been.

mod graph;

use crate::perturb::Verdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// Measures a set of metrics together.
pub trait Trial {
    /// Why a trial could not be made.
    type Error;

    /// The verdict on measuring `metrics` (indices, ascending, at least one) with a counter layout (an index).
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
    /// Counter layout to do it with.
    pub layout: usize,
    /// The verdict on exactly this set with this layout; `None` is untested.
    pub verdict: Option<Verdict>,
}

/// Runs that measure every metric once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The runs; those that disturb even when a metric is alone come last.
    pub runs: Vec<Run>,
    /// Pairs that disturb, with the layout that was used.
    pub conflicts: Vec<(usize, usize)>,
    /// Sets that were tried.
    pub trials: usize,
    /// Whether trials ran out before all was tested.
    pub exhausted: bool,
}

impl Plan {
    /// Whether every run was tried and found undisturbed.
    pub fn is_verified(&self) -> bool {
        self.runs.iter().all(|run| run.verdict == Some(Verdict::Undisturbed))
    }
}

/// Plans for `metrics` metrics and `layouts` counter layouts (at least one of each), with at most `budget` trials.
///
/// # Errors
/// The first error of a trial.
pub fn plan<T: Trial>(
    trial: &mut T,
    metrics: usize,
    layouts: usize,
    budget: usize,
) -> Result<Plan, T::Error> {
    let mut bench = Bench { trial, budget, known: BTreeMap::new(), exhausted: false };
    let all: Vec<usize> = (0..metrics).collect();
    let mut best_layout = 0;
    for layout in 0..layouts {
        match bench.test(&all, layout)? {
            Some(Verdict::Undisturbed) => return Ok(bench.into_plan(vec![(all, layout)], Vec::new())),
            // Not disturbed for sure is the better place to go on from.
            Some(Verdict::CannotTell) if bench.verdict(&all, best_layout) == Some(Verdict::Disturbed) => {
                best_layout = layout;
            }
            _ => {}
        }
    }
    let layout = best_layout;
    let mut conflicts = Vec::new();
    for &metric in &all {
        bench.test(&[metric], layout)?;
    }
    for &a in &all {
        for &b in &all[a + 1..] {
            let alone = |metric| bench.verdict(&[metric], layout);
            if alone(a) == Some(Verdict::Disturbed) || alone(b) == Some(Verdict::Disturbed) {
                // A metric that disturbs alone gets a run of its own, whatever it does in company.
                conflicts.push((a, b));
            } else if bench.test(&[a, b], layout)? == Some(Verdict::Disturbed) {
                conflicts.push((a, b));
            }
        }
    }
    let mut sets: Vec<(Vec<usize>, usize)> = Vec::new();
    for class in graph::colour(metrics, &conflicts) {
        bench.split(class, layout, &mut sets)?;
    }
    bench.rescue(&mut sets, layouts)?;
    bench.merge(&mut sets, layout)?;
    Ok(bench.into_plan(sets, conflicts))
}

/// Trials and what they said.
struct Bench<'a, T> {
    trial: &'a mut T,
    budget: usize,
    known: BTreeMap<(usize, Vec<usize>), Verdict>,
    exhausted: bool,
}

impl<T: Trial> Bench<'_, T> {
    /// Tries a set, once; `None` when the trials are used up.
    fn test(&mut self, metrics: &[usize], layout: usize) -> Result<Option<Verdict>, T::Error> {
        let known = self.verdict(metrics, layout);
        if known.is_some() {
            return Ok(known);
        }
        if self.known.len() >= self.budget {
            self.exhausted = true;
            return Ok(None);
        }
        let verdict = self.trial.measure(metrics, layout)?;
        self.known.insert((layout, metrics.to_vec()), verdict);
        Ok(Some(verdict))
    }

    fn verdict(&self, metrics: &[usize], layout: usize) -> Option<Verdict> {
        self.known.get(&(layout, metrics.to_vec())).copied()
    }

    /// Appends a set, or what it must be split into.
    fn split(
        &mut self,
        set: Vec<usize>,
        layout: usize,
        out: &mut Vec<(Vec<usize>, usize)>,
    ) -> Result<(), T::Error> {
        if set.len() > 1 && self.test(&set, layout)? == Some(Verdict::Disturbed) {
            let (first, second) = set.split_at(set.len() / 2);
            self.split(first.to_vec(), layout, out)?;
            return self.split(second.to_vec(), layout, out);
        }
        out.push((set, layout));
        Ok(())
    }

    /// A metric that disturbs alone may not do so with another layout.
    fn rescue(&mut self, sets: &mut [(Vec<usize>, usize)], layouts: usize) -> Result<(), T::Error> {
        for (set, layout) in sets.iter_mut().filter(|(set, _)| set.len() == 1) {
            let mut other = 0;
            while self.verdict(set, *layout) == Some(Verdict::Disturbed) && other < layouts {
                if self.test(set, other)? == Some(Verdict::Undisturbed) {
                    *layout = other;
                }
                other += 1;
            }
        }
        Ok(())
    }

    /// Joins runs while trials last and the union is quiet; smallest first, which need not stay runs of their own.
    fn merge(&mut self, sets: &mut Vec<(Vec<usize>, usize)>, layout: usize) -> Result<(), T::Error> {
        sets.sort_by_key(|(set, _)| set.len());
        let mut tried: Vec<Vec<usize>> = Vec::new();
        'again: loop {
            for first in 0..sets.len() {
                for second in first + 1..sets.len() {
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
                        sets.sort_by_key(|(set, _)| set.len());
                        continue 'again;
                    }
                }
            }
            return Ok(());
        }
    }

    fn into_plan(self, sets: Vec<(Vec<usize>, usize)>, conflicts: Vec<(usize, usize)>) -> Plan {
        let run = |(metrics, layout): (Vec<usize>, usize)| {
            let verdict = self.verdict(&metrics, layout);
            Run { metrics, layout, verdict }
        };
        let mut runs: Vec<Run> = sets.into_iter().map(run).collect();
        runs.sort_by_key(|run| (run.verdict == Some(Verdict::Disturbed), run.metrics.clone()));
        Plan { runs, conflicts, trials: self.known.len(), exhausted: self.exhausted }
    }
}
