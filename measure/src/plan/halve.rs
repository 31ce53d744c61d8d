//! Finds the metrics of a set that disturb, by halving the set, like tests of pooled samples.
//!
//! **The problem.** Trying all pairs of n metrics takes n²/2 trials of minutes each, and conflicts
//! are few, so nearly all trials would find nothing.
//!
//! **The idea.** In a set that disturbs, the shortest prefix that disturbs ends with a metric of a
//! conflict. Together with that metric, the shortest prefix that disturbs ends with the other
//! metric of the conflict. Each prefix is found by halving:
//!
//! ```text
//! a b c d e f g h   disturbs
//! a b c d           quiet        -> the end lies in e f g h
//! a b c d e f       disturbs     -> in e f
//! a b c d e         quiet        -> f is one of the two; now beside f:
//! a b + f           disturbs     -> in a b
//! a + f             quiet        -> b is the other: (b, f) is a conflict, after 2 log₂ n trials
//! ```
//!
//! If there are so many conflicts that trying pairs would be cheaper, the remaining pairs are
//! tried.
//!
//! **Leaves out** completeness if perturbation is not monotone: halving then finds some conflict,
//! not all of them. The final plan is verified by itself. Source: Dorfman 1943 for pooled tests;
//! Hwang 1972 for their search by halves.

use super::graph;
use super::trial::{Trial, TrialLog};
use crate::perturb::Verdict;
use std::collections::BTreeSet;

/// The search for runs with one layout.
pub(super) struct Search<'a, T> {
    pub(super) log: TrialLog<'a, T>,
    pub(super) layout: usize,
    /// Conflicts: pairs that were tried and disturb.
    pub(super) conflicts: Vec<(usize, usize)>,
    /// Pairs that are kept apart without being conflicts: both metrics belong to a larger set that
    /// disturbs.
    pub(super) apart: Vec<(usize, usize)>,
}

/// The result of a search in a set that disturbs.
enum Culprit {
    /// These two disturb.
    Pair(usize, usize),
    /// This one disturbs by itself.
    Alone(usize),
    /// No two of its metrics disturb. Holds the length of the longest known prefix that does not
    /// disturb.
    Larger(usize),
    /// Trials ran out.
    Nothing,
}

impl<T: Trial> Search<'_, T> {
    /// Distributes metrics over sets that do not disturb, as far as the trials suffice.
    pub(super) fn partition(
        &mut self,
        mut rest: Vec<usize>,
        out: &mut Vec<(Vec<usize>, usize)>,
    ) -> Result<(), T::Error> {
        while !rest.is_empty() {
            let set = self.quiet(&rest)?;
            rest.retain(|metric| !set.contains(metric));
            out.push((set, self.layout));
        }
        Ok(())
    }

    /// A subset of `rest` that does not disturb; a single metric, or an untried set, if none is
    /// found.
    fn quiet(&mut self, rest: &[usize]) -> Result<Vec<usize>, T::Error> {
        loop {
            // The largest set without a known conflict.
            let set = self.largest_class(rest);
            if self.log.test(&set, self.layout)? != Some(Verdict::Disturbed) || set.len() == 1 {
                return Ok(set);
            }
            // It disturbs: find the cause.
            match self.find(&set)? {
                Culprit::Pair(a, b) => self.conflicts.push((a.min(b), a.max(b))),
                Culprit::Alone(metric) => return Ok(vec![metric]),
                Culprit::Larger(quiet) if quiet > 1 => return Ok(set[..quiet].to_vec()),
                Culprit::Larger(_) | Culprit::Nothing => {
                    let half = set.len().div_ceil(2);
                    self.apart.push((set[0], set[half]));
                    return Ok(set[..half].to_vec());
                }
            }
            self.try_pairs_where_that_is_cheaper(rest)?;
        }
    }

    /// The largest set of metrics without a known conflict that colouring finds.
    fn largest_class(&self, rest: &[usize]) -> Vec<usize> {
        let place = |metric: usize| rest.iter().position(|&other| other == metric);
        let edges: Vec<(usize, usize)> = self
            .conflicts
            .iter()
            .chain(&self.apart)
            .filter_map(|&(a, b)| Some((place(a)?, place(b)?)))
            .collect();
        // Metrics of one colour have no conflict among them.
        let classes = graph::colour(rest.len(), &edges);
        let largest = classes.into_iter().rev().max_by_key(Vec::len).unwrap_or_default();
        largest.into_iter().map(|place| rest[place]).collect()
    }

    /// Finds what disturbs in `set`, which as a whole does.
    fn find(&mut self, set: &[usize]) -> Result<Culprit, T::Error> {
        // The shortest prefix that disturbs ends with one metric of the conflict …
        let Some(first) = self.shortest(set, None)? else { return Ok(Culprit::Nothing) };
        let last = set[first - 1];
        if first == 1 {
            return Ok(Culprit::Alone(last));
        }
        // … and the shortest prefix that disturbs together with it ends with the other one.
        let Some(second) = self.shortest(&set[..first - 1], Some(last))? else {
            return Ok(Culprit::Nothing);
        };
        let other = set[second - 1];
        if second == 1 && self.disturbs(&[last])? == Some(true) {
            return Ok(Culprit::Alone(last));
        }
        // Perturbation is not monotone, so the pair is tried by itself before it counts as a
        // conflict.
        match self.log.test(&sorted(&[other], Some(last)), self.layout)? {
            Some(Verdict::Disturbed) => Ok(Culprit::Pair(other, last)),
            Some(_) => Ok(Culprit::Larger(first - 1)),
            None => Ok(Culprit::Nothing),
        }
    }

    /// The length of the shortest prefix of `set` that disturbs together with `with`, given that
    /// the whole set does; `None` if the trials ran out.
    fn shortest(&mut self, set: &[usize], with: Option<usize>) -> Result<Option<usize>, T::Error> {
        let (mut quiet, mut loud) = (0, set.len());
        while loud - quiet > 1 {
            // Halving: `quiet` metrics do not disturb, `loud` do.
            let middle = quiet.midpoint(loud);
            match self.disturbs(&sorted(&set[..middle], with))? {
                Some(true) => loud = middle,
                Some(false) => quiet = middle,
                None => return Ok(None),
            }
        }
        Ok(Some(loud))
    }

    /// Whether a set disturbs. A subset of a quiet set counts as quiet without a trial, which is
    /// sufficient for a search.
    fn disturbs(&mut self, set: &[usize]) -> Result<Option<bool>, T::Error> {
        let known = self.log.verdict(set, self.layout).is_some();
        if !known && self.log.is_part_of_a_quiet_set(set, self.layout) {
            return Ok(Some(false));
        }
        Ok(self.log.test(set, self.layout)?.map(|verdict| verdict == Verdict::Disturbed))
    }

    /// Tries all remaining pairs if conflicts are so frequent that searching for them one by one
    /// costs more.
    fn try_pairs_where_that_is_cheaper(&mut self, rest: &[usize]) -> Result<(), T::Error> {
        let known: BTreeSet<(usize, usize)> = self.conflicts.iter().copied().collect();
        let pairs =
            || rest.iter().enumerate().flat_map(|(at, &a)| rest[at + 1..].iter().map(move |&b| (a, b)));
        let open: Vec<(usize, usize)> = pairs()
            .filter(|pair| !known.contains(pair))
            .filter(|&(a, b)| self.log.verdict(&[a, b], self.layout).is_none())
            .collect();
        // Trials that one more conflict would cost by halving.
        let cost = 2 * rest.len().ilog2() as usize;
        // As many conflicts again are expected as were found.
        if known.len() * cost < open.len() {
            return Ok(());
        }
        for (a, b) in open {
            if self.log.test(&[a, b], self.layout)? == Some(Verdict::Disturbed) {
                self.conflicts.push((a, b));
            }
        }
        Ok(())
    }
}

fn sorted(set: &[usize], with: Option<usize>) -> Vec<usize> {
    let mut all: Vec<usize> = set.iter().copied().chain(with).collect();
    all.sort_unstable();
    all
}
