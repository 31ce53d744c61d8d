//! Which functions become software metrics: decided from the undisturbed program, before any
//! result.
//!
//! A run without instrumentation counts the calls of all functions. Those that are called at least
//! once in ten records are candidates, from the rarest to the most frequent; they are taken as long
//! as counting all of them adds at most [`SHARE_MAX`] to the program's instructions, the paper's
//! range. Where there are more than [`METRICS_MAX`], they are thinned out evenly. The metrics of a
//! run with k counters are the first k, as in the paper, where each run adds one.

use measure::trace::Trace;
use present::order::SortRows;
use serde::{Deserialize, Serialize};

/// The most metrics of a run.
pub(super) const METRICS_MAX: usize = 16;

/// The most that all counters may add to the instructions: the paper's Figures 4 and 6 end there.
const SHARE_MAX: f64 = 0.03;

/// Instructions that a call of a counted function adds: a jump to the counter, its increment, and a
/// jump back.
const ADDED_INSTRUCTIONS: u64 = 3;

/// A function, and how often it is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Called {
    /// As a metric names it.
    pub(super) metric: String,
    pub(super) calls: u64,
}

/// The functions of a trace that counted all of them without a charge.
pub(super) fn called(trace: &Trace) -> Vec<Called> {
    let metrics =
        trace.header.metrics.iter().enumerate().filter(|(_, metric)| metric.name.starts_with("fn:"));
    let called = metrics.filter_map(|(index, metric)| {
        let calls = trace.sum(index).filter(|calls| *calls > 0)?;
        Some(Called { metric: metric.name.clone(), calls })
    });
    called.collect()
}

/// Chooses the metrics of a program, from the rarest to the most frequent.
pub(super) fn choose(mut functions: Vec<Called>, instructions: u64, records: u64) -> Vec<Called> {
    functions.retain(|function| function.calls >= records / 10);
    functions.sort_rows(|a, b| (a.calls, &a.metric).cmp(&(b.calls, &b.metric)));
    let budget = (instructions as f64 * SHARE_MAX) as u64;
    let mut added = 0;
    functions.retain(|function| {
        added += function.calls * ADDED_INSTRUCTIONS;
        added <= budget
    });
    let count = functions.len();
    if count <= METRICS_MAX {
        return functions;
    }
    // The most frequent one stays: it carries most of the overhead.
    let kept = (1..=METRICS_MAX).map(|place| place * count / METRICS_MAX - 1);
    kept.map(|index| functions[index].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(calls: &[u64]) -> Vec<Called> {
        calls.iter().enumerate().map(|(at, &calls)| Called { metric: format!("fn:{at:02}"), calls }).collect()
    }

    #[test]
    fn rare_functions_come_first_and_the_sum_stays_in_the_papers_range() {
        let chosen = choose(functions(&[5_000, 10, 2_000, 100, 400_000]), 1_000_000, 500);
        let calls: Vec<u64> = chosen.iter().map(|function| function.calls).collect();
        assert_eq!(calls, [100, 2_000, 5_000], "10 calls are too few, 400,000 add more than 3 %");
    }

    #[test]
    fn many_functions_are_thinned_out_and_the_most_frequent_stays() {
        let many: Vec<u64> = (1..=50).map(|at| 100 * at).collect();
        let chosen = choose(functions(&many), 1_000_000_000, 500);
        assert_eq!(chosen.len(), METRICS_MAX);
        assert_eq!(chosen.last().unwrap().calls, 5_000);
        assert!(chosen.windows(2).all(|pair| pair[0].calls < pair[1].calls));
    }
}
