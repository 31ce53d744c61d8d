//! A program with two regions; count them apart with
//! `lightfoot count --region NAME -- target/debug/examples/two_regions`.
//!
//! Run by itself it only prints its result: marks do nothing natively.

use lightfoot_region::{region, region_begin, region_end};

/// The place of `key`, counted as region `lookup`.
fn lookup(table: &[u64], key: u64) -> Option<usize> {
    let _open = region!("lookup");
    table.binary_search(&key).ok()
}

fn main() {
    region_begin!("fill");
    let table: Vec<u64> = (0..100_000).map(|n| n * 3).collect();
    region_end!("fill");

    let found = (0..100_000).filter(|&key| lookup(&table, key).is_some()).count();
    println!("{found} of 100000 keys are there");
}
