//! Plans which metrics can be measured together: the paper's first open problem.
//!
//! Measuring all metrics at once may disturb the program; measuring each alone takes as many runs
//! as there are metrics. The plan lies in between and is found in five steps:
//!
//! 1. Try all metrics at once, with each counter layout. A better layout is cheaper than another
//!    run.
//! 2. If a set disturbs, search it by halving for a pair that disturbs (`halve`), which takes about
//!    2 log₂ n trials. Pairs that disturb are edges of a conflict graph.
//! 3. Colour the graph greedily (most constrained first, Brélaz 1979), and try its largest colour.
//!    While that set disturbs, search it again; a set that passes is a run.
//! 4. Repeat this with the metrics that are left, until none is left.
//! 5. If trials remain, try to join two runs into one. This can succeed because perturbation is not
//!    monotone: a set may be quiet although a part of it is not.
//!
//! For the same reason a set says nothing about its subsets: a run of the plan is *verified* only
//! if exactly its set was tried, and *untested* otherwise. The caller implements [`Trial`] and so
//! defines what a trial is (runs, repeats, a verdict of [`perturb`](crate::perturb)).
//!
//! Relations that involve software metrics are the second open problem: hardware metrics cannot
//! show whether those are disturbed. Uncharged metrics can
//! ([`Source::UnchargedMetric`](crate::trace::Source::UnchargedMetric)): a simulating engine counts
//! them without cost for the program, so they say what a software metric would have been.

mod graph;
mod halve;
mod trial;

pub use trial::{Plan, Run, Trial};

use crate::perturb::Verdict;
use halve::Search;
use std::collections::BTreeMap;
use trial::TrialLog;

/// Plans for `metrics` metrics and `layouts` counter layouts (at least one of each), with at most
/// `budget` trials.
///
/// # Errors
/// The first error of a trial.
pub fn plan<T: Trial>(
    trial: &mut T,
    metrics: usize,
    layouts: usize,
    budget: usize,
) -> Result<Plan, T::Error> {
    let mut log = TrialLog { trial, budget, known: BTreeMap::new(), exhausted: false };
    let all: Vec<usize> = (0..metrics).collect();
    let mut best_layout = 0;
    for layout in 0..layouts {
        match log.test(&all, layout)? {
            Some(Verdict::Undisturbed) => return Ok(log.into_plan(vec![(all, layout)], Vec::new())),
            // A layout that is certainly not disturbed is the better one to continue with.
            Some(Verdict::CannotTell) if log.verdict(&all, best_layout) == Some(Verdict::Disturbed) => {
                best_layout = layout;
            }
            _ => {}
        }
    }
    // No layout is quiet with all metrics: search in the best one.
    let mut search = Search { log, layout: best_layout, conflicts: Vec::new(), apart: Vec::new() };
    let mut sets: Vec<(Vec<usize>, usize)> = Vec::new();
    search.partition(all, &mut sets)?;
    let Search { mut log, layout, mut conflicts, .. } = search;
    log.rescue(&mut sets, layouts)?;
    log.merge(&mut sets, layout)?;
    conflicts.sort_unstable();
    Ok(log.into_plan(sets, conflicts))
}
