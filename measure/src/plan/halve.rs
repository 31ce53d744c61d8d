//! Finds what disturbs in a set by halving it, as tests of pooled samples do.
//!
//! **The problem.** Trying all pairs of n metrics takes n²/2 trials of minutes each, and nearly all
//! of them say nothing: conflicts are few.
//!
//! **The idea.** In a set that disturbs, the shortest beginning that disturbs ends with a metric of
//! a conflict; the shortest beginning that disturbs beside that metric ends with the other one.
//! Each is found by halving:
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
//! Where so many conflicts are found that pairs would have been cheaper, the pairs that are left
//! are tried.
//!
//! **Leaves out** a promise where perturbation is not monotone: halving then finds some conflict,
//! not each. What is planned in the end is verified by itself. Source: Dorfman 1943 for pooled
//! tests; Hwang 1972 for their search by halves.

use super::graph;
use super::trial::{Trial, TrialLog};
use crate::perturb::Verdict;
use std::collections::BTreeSet;

/// The search for runs with one layout.
pub(super) struct Search<'a, T> {
    pub(super) log: TrialLog<'a, T>,
    pub(super) layout: usize,
    /// Pairs that were tried and disturb.
    pub(super) conflicts: Vec<(usize, usize)>,
    /// Pairs that are kept apart without being conflicts: both are of something larger that
    /// disturbs.
    pub(super) apart: Vec<(usize, usize)>,
}

/// What a search found in a set that disturbs.
enum Culprit {
    /// These two disturb.
    Pair(usize, usize),
    /// This one disturbs by itself.
    Alone(usize),
    /// No two of its metrics disturb: the number of metrics, from its beginning, that do not
    /// disturb yet.
    Larger(usize),
    /// Trials ran out.
    Nothing,
}

impl<T: Trial> Search<'_, T> {
    /// Spreads metrics over sets that do not disturb, as far as trials go.
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

    /// A set among `rest` that does not disturb; one metric, or an untried set, where none is
    /// found.
    fn quiet(&mut self, rest: &[usize]) -> Result<Vec<usize>, T::Error> {
        loop {
            // The largest set that no known conflict forbids.
            let set = self.largest_class(rest);
            if self.log.test(&set, self.layout)? != Some(Verdict::Disturbed) || set.len() == 1 {
                return Ok(set);
            }
            // It disturbs: why?
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

    /// The most metrics without a known conflict that colouring finds.
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

    /// What disturbs in a set that does.
    fn find(&mut self, set: &[usize]) -> Result<Culprit, T::Error> {
        // The shortest beginning that disturbs ends with one metric of the conflict …
        let Some(first) = self.shortest(set, None)? else { return Ok(Culprit::Nothing) };
        let last = set[first - 1];
        if first == 1 {
            return Ok(Culprit::Alone(last));
        }
        // … and the shortest one that disturbs beside it ends with the other.
        let Some(second) = self.shortest(&set[..first - 1], Some(last))? else {
            return Ok(Culprit::Nothing);
        };
        let other = set[second - 1];
        if second == 1 && self.disturbs(&[last])? == Some(true) {
            return Ok(Culprit::Alone(last));
        }
        // Perturbation is not monotone: the pair is tried by itself before it is called a conflict.
        match self.log.test(&sorted(&[other], Some(last)), self.layout)? {
            Some(Verdict::Disturbed) => Ok(Culprit::Pair(other, last)),
            Some(_) => Ok(Culprit::Larger(first - 1)),
            None => Ok(Culprit::Nothing),
        }
    }

    /// The length of the shortest beginning of `set` that disturbs beside `with`, where all of it
    /// does; `None` where trials ran out.
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

    /// Whether a set disturbs, as far as a search must know: what is part of a quiet set is taken
    /// for quiet without a trial.
    fn disturbs(&mut self, set: &[usize]) -> Result<Option<bool>, T::Error> {
        let known = self.log.verdict(set, self.layout).is_some();
        if !known && self.log.is_part_of_a_quiet_set(set, self.layout) {
            return Ok(Some(false));
        }
        Ok(self.log.test(set, self.layout)?.map(|verdict| verdict == Verdict::Disturbed))
    }

    /// Tries all pairs that are left where conflicts are so many that searching for them one by one
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
