//! Look-ups in a sorted array: an index, and a binary search over its values, in one process.
//!
//! `cargo run --release --manifest-path engines/Cargo.toml -p lightfoot-datafusion --example ranks`
//! `[-- QUERIES ROUNDS]`: medians of interleaved rounds in nanoseconds a query, for growing arrays
//! of random keys. Arrow itself has no search in sorted arrays; `partition_point` is the standard
//! one.

use arrow::array::{Int64Array, UInt64Array};
use datafusion::common::Result;
use lightfoot_datafusion::SortedIndex;
use std::time::Instant;

/// SplitMix64 of a number.
fn mixed(number: u64) -> i64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (bits ^ bits >> 31) as i64
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, default: usize| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    let (queries, rounds) = (number(0, 1_000_000), number(1, 7));
    let asked: Int64Array = (0..queries).map(|query| mixed((query as u64) << 32)).collect::<Vec<_>>().into();
    println!("{queries} queries, medians of {rounds} rounds, ns a query");
    println!(
        "| keys | partition_point | SortedIndex | ratio | building, ns a key |\n|---:|---:|---:|---:|---:|"
    );
    for keys in [10_000, 100_000, 1_000_000, 10_000_000] {
        let mut sorted: Vec<i64> = (0..keys).map(|key| mixed(key as u64)).collect();
        sorted.sort_unstable();
        let sorted = Int64Array::from(sorted);
        let started = Instant::now();
        let index = SortedIndex::build(&sorted)?;
        let building = started.elapsed().as_nanos() as f64 / keys as f64;
        let by_index = || index.ranks(&asked);
        let by_search = || -> UInt64Array {
            let values = sorted.values();
            let ranks = asked.values().iter().map(|query| values.partition_point(|key| key < query) as u64);
            ranks.collect::<Vec<_>>().into()
        };
        assert_eq!(by_index(), by_search());
        let (mut searches, mut indexes) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let timed = |run: &dyn Fn() -> UInt64Array| {
                let started = Instant::now();
                assert_eq!(run().values().len(), queries);
                started.elapsed().as_nanos() as f64 / queries as f64
            };
            searches.push(timed(&by_search));
            indexes.push(timed(&by_index));
        }
        let (search, index) = (median(&mut searches), median(&mut indexes));
        println!("| {keys} | {search:.1} | {index:.1} | {:.1} | {building:.1} |", search / index);
    }
    Ok(())
}
