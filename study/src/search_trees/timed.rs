//! Figures 4.10 and 4.11: time per lookup of the paper's algorithms on this machine.
//!
//! As in the paper: n unmeasured random successful lookups, then ten trials of n lookups, and the
//! mean of the fifth and sixth time. The algorithms take turns.

use super::lookup::{items, queries};
use crate::race::median;
use search::paper::{Lookup, ALGORITHMS};
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

const TRIALS: usize = 10;

/// A trial of fewer lookups is shorter than what a clock tells apart.
const LOOKUPS_MIN: usize = 1 << 14;

/// One point of the figure.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Timed {
    pub(super) algorithm: &'static str,
    pub(super) items: usize,
    pub(super) block_bytes: usize,
    pub(super) lookups: usize,
    /// Median of ten trials.
    pub(super) ns: f64,
}

/// All algorithms at one number of items.
pub(super) fn measure(n: usize, block_bytes: usize) -> Vec<Timed> {
    let (items, lookups) = (items(n), n.max(LOOKUPS_MIN));
    let queries = queries(n, lookups);
    let structures: Vec<Box<dyn Lookup>> =
        ALGORITHMS.iter().map(|algorithm| (algorithm.build)(&items, block_bytes)).collect();
    let mut times = vec![Vec::new(); structures.len()];
    for _ in 0..TRIALS {
        for (structure, times) in structures.iter().zip(&mut times) {
            black_box(structure.find_all(black_box(&queries)));
            let start = Instant::now();
            black_box(structure.find_all(black_box(&queries)));
            times.push(start.elapsed().as_nanos() as f64 / lookups as f64);
        }
    }
    let point = |(algorithm, times): (&search::paper::Algorithm, Vec<f64>)| Timed {
        algorithm: algorithm.name,
        items: n,
        block_bytes,
        lookups,
        ns: median(&times).unwrap_or_default(),
    };
    ALGORITHMS.iter().zip(times).map(point).collect()
}
