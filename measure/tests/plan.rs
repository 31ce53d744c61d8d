//! Planning against oracles whose optimum is found by trying everything.

use lightfoot_measure::perturb::Verdict;
use lightfoot_measure::plan::{plan, Plan, Trial};
use lightfoot_measure::random::Random;
use std::convert::Infallible;

/// A program whose answer to every set of metrics is known: bit masks that disturb.
struct Oracle {
    disturbs: Box<dyn Fn(usize, usize) -> bool>,
    asked: Vec<(usize, usize)>,
}

impl Oracle {
    fn new(disturbs: impl Fn(usize, usize) -> bool + 'static) -> Oracle {
        Oracle { disturbs: Box::new(disturbs), asked: Vec::new() }
    }
}

fn mask(metrics: &[usize]) -> usize {
    metrics.iter().map(|metric| 1 << metric).sum()
}

impl Trial for Oracle {
    type Error = Infallible;

    fn measure(&mut self, metrics: &[usize], layout: usize) -> Result<Verdict, Infallible> {
        assert!(metrics.is_sorted() && !metrics.is_empty());
        let set = mask(metrics);
        assert!(!self.asked.contains(&(set, layout)), "a set is tried once");
        self.asked.push((set, layout));
        Ok(if (self.disturbs)(set, layout) { Verdict::Disturbed } else { Verdict::Undisturbed })
    }
}

/// Fewest runs that measure every metric undisturbed, by trying every partition.
fn optimum(metrics: usize, quiet: &dyn Fn(usize) -> bool) -> Option<usize> {
    let all = (1_usize << metrics) - 1;
    let mut fewest = vec![None; all + 1];
    fewest[0] = Some(0);
    for set in 1..=all {
        let lowest = set & set.wrapping_neg();
        let mut part = set;
        while part > 0 {
            if part & lowest != 0 && quiet(part) {
                let more = fewest[set & !part].map(|runs: usize| runs + 1);
                fewest[set] = match (fewest[set], more) {
                    (Some(a), Some(b)) => Some(std::cmp::min(a, b)),
                    (a, b) => a.or(b),
                };
            }
            part = (part - 1) & set;
        }
    }
    fewest[all]
}

fn solve(oracle: &mut Oracle, metrics: usize, layouts: usize, budget: usize) -> Plan {
    let Ok(found) = plan(oracle, metrics, layouts, budget);
    let mut covered: Vec<usize> = found.runs.iter().flat_map(|run| run.metrics.clone()).collect();
    covered.sort_unstable();
    assert_eq!(covered, (0..metrics).collect::<Vec<_>>(), "every metric once");
    assert_eq!(found.trials, oracle.asked.len());
    assert!(found.trials <= budget);
    for run in &found.runs {
        let asked = oracle.asked.contains(&(mask(&run.metrics), run.layout));
        assert_eq!(run.verdict.is_some(), asked, "verified is what was tried, and nothing else");
    }
    found
}

/// Conflicting pairs disturb, except in sets of `recovers` and more.
fn conflicts(pairs: Vec<usize>, recovers: u32) -> impl Fn(usize, usize) -> bool + 'static {
    move |set, _| set.count_ones() < recovers && pairs.iter().any(|pair| set & pair == *pair)
}

#[test]
fn eight_metrics_with_conflicts_and_recovery() {
    let mut random = Random::new(8);
    for round in 0..200 {
        let pair = |random: &mut Random| loop {
            let set = 1 << random.below(8) | 1 << random.below(8_usize);
            if usize::count_ones(set) == 2 {
                return set;
            }
        };
        let pairs: Vec<usize> = (0..random.below(12)).map(|_| pair(&mut random)).collect();
        // Recovery at five, six or seven metrics, or never; the full set always disturbs, or the
        // first trial would end it.
        let recovers = 5 + random.below(4) as u32;
        let inner = conflicts(pairs.clone(), recovers);
        let disturbs = move |set, layout| set == 255 || inner(set, layout);
        let quiet = {
            let inner = conflicts(pairs.clone(), recovers);
            move |set: usize| set != 255 && !inner(set, 0)
        };
        let best = optimum(8, &quiet).unwrap();
        let mut oracle = Oracle::new(disturbs);
        let found = solve(&mut oracle, 8, 1, 48);
        assert!(found.is_verified(), "round {round}: {found:?}");
        assert!(
            found.runs.len() <= best + 1,
            "round {round}, {pairs:?}, recovery at {recovers}: {} runs, {best} would do",
            found.runs.len()
        );
    }
}

#[test]
fn a_better_layout_comes_first() {
    let mut oracle = Oracle::new(|_, layout| layout != 2);
    let found = solve(&mut oracle, 8, 4, 48);
    assert_eq!((found.trials, found.runs.len(), found.runs[0].layout), (3, 1, 2));
}

#[test]
fn a_metric_that_disturbs_alone_is_tried_with_other_layouts_and_said() {
    let mut oracle = Oracle::new(|set, layout| set & 1 != 0 && !(set == 1 && layout == 1) || set & 2 != 0);
    let found = solve(&mut oracle, 4, 2, 48);
    assert!(found
        .runs
        .iter()
        .any(|run| run.metrics == [0] && run.layout == 1 && run.verdict == Some(Verdict::Undisturbed)));
    let last = found.runs.last().unwrap();
    assert_eq!((&last.metrics[..], last.verdict), (&[1][..], Some(Verdict::Disturbed)));
    assert!(!found.is_verified());
}

#[test]
fn what_the_budget_leaves_is_untested() {
    let mut oracle = Oracle::new(|set, _| set.count_ones() > 1);
    let found = solve(&mut oracle, 8, 1, 10);
    assert!(found.exhausted && !found.is_verified());
    assert!(found.runs.iter().any(|run| run.verdict.is_none()));
}

#[test]
fn larger_conflicts_are_split() {
    // Pairs are quiet; any three of the first six disturb.
    let mut oracle = Oracle::new(|set, _| usize::count_ones(set & 63) > 2);
    let found = solve(&mut oracle, 8, 1, 60);
    assert!(found.is_verified());
    assert!(found.runs.len() <= 4, "{found:?}");
}

/// A program in which these pairs disturb, and metrics of which each disturbs by itself.
struct Pairs {
    pairs: Vec<(usize, usize)>,
    trials: usize,
}

impl Trial for Pairs {
    type Error = Infallible;

    fn measure(&mut self, metrics: &[usize], _: usize) -> Result<Verdict, Infallible> {
        self.trials += 1;
        let disturbs = |&(a, b): &(usize, usize)| metrics.contains(&a) && metrics.contains(&b);
        Ok(if self.pairs.iter().any(disturbs) { Verdict::Disturbed } else { Verdict::Undisturbed })
    }
}

/// The plan and its trials, within a budget that is no bound.
fn halved(metrics: usize, pairs: &[(usize, usize)]) -> (Plan, usize) {
    let mut oracle = Pairs { pairs: pairs.to_vec(), trials: 0 };
    let Ok(found) = plan(&mut oracle, metrics, 1, 10_000);
    assert!(found.is_verified() && !found.exhausted, "{pairs:?}: {found:?}");
    let mut covered: Vec<usize> = found.runs.iter().flat_map(|run| run.metrics.clone()).collect();
    covered.sort_unstable();
    assert_eq!(covered, (0..metrics).collect::<Vec<_>>());
    (found, oracle.trials)
}

fn distinct_pair(metrics: usize, random: &mut Random) -> (usize, usize) {
    let (a, b) = (random.below(metrics), random.below(metrics - 1));
    let b = if b < a { b } else { b + 1 };
    (a.min(b), a.max(b))
}

/// One bad pair is found by halving: about 2 log₂ n trials, and two for what is left.
#[test]
fn one_conflict_takes_twice_the_logarithm_of_trials() {
    for metrics in [2_usize, 3, 5, 8, 16, 31, 48, 64] {
        let mut most = 0;
        for a in 0..metrics {
            for b in a + 1..metrics {
                let (found, trials) = halved(metrics, &[(a, b)]);
                assert_eq!((found.runs.len(), &found.conflicts[..]), (2, &[(a, b)][..]));
                most = most.max(trials);
            }
        }
        let halvings = 2 * (metrics as f64).log2().ceil() as usize;
        println!("{metrics} metrics, one bad pair: at most {most} trials");
        assert!(most <= halvings + 5, "{metrics}: {most}");
    }
}

#[test]
fn forty_eight_metrics_with_up_to_four_conflicts_take_sixty_trials() {
    let mut random = Random::new(48);
    for conflicts in 1..=4 {
        let mut most = 0;
        for _ in 0..300 {
            let mut pairs: Vec<_> = (0..conflicts).map(|_| distinct_pair(48, &mut random)).collect();
            let (found, trials) = halved(48, &pairs);
            pairs.sort_unstable();
            pairs.dedup();
            assert!(found.conflicts.iter().all(|pair| pairs.contains(pair)));
            assert!(found.runs.len() <= 3, "{pairs:?}: {found:?}");
            most = most.max(trials);
        }
        println!("48 metrics, {conflicts} bad pairs: at most {most} trials");
        assert!(most <= 60, "{conflicts}: {most}");
    }
}

/// A program that bears twelve counters, whichever they are.
#[test]
fn a_limit_on_how_many_is_found_without_trying_pairs() {
    let mut oracle = Oracle::new(|set, _| set.count_ones() > 12);
    let found = solve(&mut oracle, 48, 1, 60);
    println!("48 metrics, twelve at a time: {} trials", found.trials);
    assert!(found.is_verified() && found.conflicts.is_empty(), "{found:?}");
    assert!(found.runs.len() <= 5, "{found:?}");
}

/// One metric that goes with none of the others.
#[test]
fn a_hub_of_conflicts_leaves_alone() {
    let pairs: Vec<(usize, usize)> =
        (0..48).filter(|&other| other != 20).map(|other| (20.min(other), 20.max(other))).collect();
    let (found, trials) = halved(48, &pairs);
    println!("48 metrics, one against all: {trials} trials");
    assert_eq!(found.runs.len(), 2);
    assert!(trials <= 60, "{trials}");
}
