//! A million queries one after another and as batches, on an index of four million keys.
//!
//! `cargo run --release -p lightfoot-search --example batch`

use lightfoot_search::sample::{Distribution, Random};
use lightfoot_search::{Error, Index};
use std::time::Instant;

const KEYS: usize = 4 << 20;
const QUERIES: usize = 1 << 20;

fn main() -> Result<(), Error> {
    let keys = Distribution::Uniform.keys(KEYS, u64::MAX, 1);
    let start = Instant::now();
    let index = Index::build(&keys)?;
    println!("built in {:.1} ns per key", start.elapsed().as_nanos() as f64 / KEYS as f64);
    print!("{}", index.explain());

    let mut random = Random::new(7);
    let queries: Vec<u64> = (0..QUERIES).map(|_| random.bits()).collect();
    let mut ranks = vec![0; QUERIES];

    let per_query = |name: &str, start: Instant| {
        println!("{name:<16} {:6.1} ns per query", start.elapsed().as_nanos() as f64 / QUERIES as f64);
    };
    // One at a time: each query waits for its line of memory.
    let start = Instant::now();
    let sum: usize = queries.iter().map(|&query| index.lower_bound(query)).sum();
    per_query("one at a time", start);

    // A batch: the misses of dozens of queries are under way at once.
    let start = Instant::now();
    index.batch(&queries, &mut ranks);
    per_query("batch", start);
    assert_eq!(sum, ranks.iter().sum::<usize>());

    let start = Instant::now();
    index.batch_parallel(&queries, &mut ranks, 2);
    per_query("two threads", start);

    // What the standard library does on the sorted array.
    let start = Instant::now();
    let expected: usize = queries.iter().map(|query| keys.partition_point(|key| key < query)).sum();
    per_query("partition_point", start);
    assert_eq!(sum, expected);
    Ok(())
}
