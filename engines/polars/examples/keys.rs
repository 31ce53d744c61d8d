//! Look-ups of random keys in a sorted column, by Polars' `search_sorted` and by an index, in one
//! process.
//!
//! `cargo run --release --manifest-path engines/Cargo.toml -p lightfoot-polars --example keys`
//! `[-- KEYS ROUNDS]`: medians of interleaved rounds, nanoseconds a key, and their ratio.

use lightfoot_polars::{SearchSortedSide, SortedIndex};
use polars_core::prelude::*;
use polars_ops::series::search_sorted;
use std::time::Instant;

/// SplitMix64 of a number.
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Seconds of a call, and its result.
fn timed<T>(call: impl FnOnce() -> T) -> (f64, T) {
    let started = Instant::now();
    let result = call();
    (started.elapsed().as_secs_f64(), result)
}

fn main() -> PolarsResult<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, default: usize| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    let (wanted, rounds) = (number(0, 300_000), number(1, 5));
    println!("{wanted} keys, medians of {rounds} rounds");
    println!("| rows | Polars, ns a key | lightfoot, ns a key | ratio | building, ns a row |");
    println!("|---:|---:|---:|---:|---:|");
    let keys: Vec<i64> = (0..wanted as u64).map(|key| mixed(!key) as i64).collect();
    let keys = Series::new("keys".into(), keys);
    for rows in [10_000, 100_000, 1_000_000, 10_000_000] {
        let mut values: Vec<i64> = (0..rows as u64).map(|row| mixed(row) as i64).collect();
        values.sort_unstable();
        let sorted = Series::new("sorted".into(), values);
        let (building, index) = timed(|| SortedIndex::build(&sorted));
        let index = index?;
        let side = SearchSortedSide::Left;
        let (mut their_times, mut our_times) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (seconds, theirs) = timed(|| search_sorted(&sorted, &keys, side, false));
            their_times.push(seconds);
            let (seconds, ours) = timed(|| index.search_sorted(&keys, side));
            our_times.push(seconds);
            assert_eq!(ours?.to_vec(), theirs?.to_vec());
        }
        let nanoseconds = |seconds: f64| 1e9 * seconds / wanted as f64;
        let (their, our) = (nanoseconds(median(&mut their_times)), nanoseconds(median(&mut our_times)));
        let building = 1e9 * building / rows as f64;
        println!("| {rows} | {their:.1} | {our:.1} | {:.1} | {building:.0} |", their / our);
    }
    Ok(())
}
