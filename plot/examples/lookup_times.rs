//! Times binary search in a sorted array and in a B-tree, and draws both over the number of keys:
//! `cargo run --release -p lightfoot-plot --example lookup_times > lookups.svg`.
//!
//! The steps in the curves are the machine's caches: an array that fits one is searched faster.

use lightfoot_plot::lines::{lines, Axis, Lines, Series};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

const LOOKUPS: u64 = 100_000;

/// Sizes from 256 keys to 4 million, each four times the one before.
const EXPONENTS: std::ops::RangeInclusive<u32> = 4..=11;

/// Nanoseconds of a lookup, for keys that are spread over `0..keys`.
fn nanoseconds(keys: u64, lookup: impl Fn(u64) -> bool) -> f64 {
    let start = Instant::now();
    for number in 0..LOOKUPS {
        // The golden ratio in 64 bits: successive keys lie far apart.
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % keys;
        assert!(black_box(lookup(key)), "every key below {keys} is there");
    }
    start.elapsed().as_nanos() as f64 / LOOKUPS as f64
}

fn main() {
    let (mut array_points, mut tree_points) = (Vec::new(), Vec::new());
    for keys in EXPONENTS.map(|exponent| 4_u64.pow(exponent)) {
        let array: Vec<u64> = (0..keys).collect();
        let tree: BTreeSet<u64> = array.iter().copied().collect();
        let in_array = nanoseconds(keys, |key| array.binary_search(&key).is_ok());
        let in_tree = nanoseconds(keys, |key| tree.contains(&key));
        array_points.push((keys as f64, in_array));
        tree_points.push((keys as f64, in_tree));
    }
    let series = vec![
        Series { name: "binary search".into(), points: array_points },
        Series { name: "B-tree".into(), points: tree_points },
    ];
    let title = "Time of a lookup".into();
    print!("{}", lines(&Lines { title, x: "keys", y: "ns", axis: Axis::Linear, series }));
}
