//! Figures 4.10 and 4.11: time per lookup of the paper's algorithms on this machine.
//!
//! As in the paper: n unmeasured random successful lookups, then ten trials of n lookups, and the
//! mean of the fifth and sixth time. The algorithms take turns.

use super::lookup::{items, queries, TRIALS};
use crate::layout::Spread;
use search::paper::{Lookup, ALGORITHMS};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;

/// A trial of fewer lookups is shorter than what a clock tells apart.
const LOOKUPS_MIN: usize = 1 << 14;

/// One point of the figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Timed {
    pub(super) algorithm: String,
    pub(super) items: usize,
    pub(super) block_bytes: usize,
    pub(super) lookups: usize,
    /// Of ten trials.
    pub(super) ns: Spread,
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
    let point = |(algorithm, times): (&search::paper::Algorithm, &Vec<f64>)| {
        let ns = Spread::of(times)?;
        Some(Timed { algorithm: algorithm.name.to_owned(), items: n, block_bytes, lookups, ns })
    };
    ALGORITHMS.iter().zip(&times).filter_map(point).collect()
}
