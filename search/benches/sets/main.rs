//! `cargo bench -p lightfoot-search --bench sets -- [--keys N] [--distribution NAME] [--growing]`:
//! intersections of two sorted sets at size ratios from 1:1 to 1:10,000, against merges of the
//! sorted arrays.
//!
//! The larger set has N keys of `u32`; half of the smaller one's are among them. Peers get the
//! sorted arrays, which they can read faster than an index decodes them: a plain merge, a merge
//! without branches on keys, a galloping merge, and the standard library's binary search and
//! ordered sets. All run in interleaved rounds; medians of nanoseconds per key of the smaller set.
//!
//! `--growing` instead times insertions into a `GrowingIndex` and into a `BTreeSet`, and batches
//! beside a delta.

use lightfoot_search::sample::{hits, Distribution, Random, DISTRIBUTIONS};
use lightfoot_search::{GrowingIndex, Index};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

/// Rounds of all contestants.
const ROUNDS: usize = 7;

/// A contestant: its name, and what it does; it returns how many keys it found.
type Work<'a> = (&'static str, Box<dyn FnMut() -> usize + 'a>);

/// Median nanoseconds of each piece of work.
fn medians(work: &mut [Work<'_>]) -> Vec<f64> {
    let mut times = vec![Vec::new(); work.len()];
    let expected = work[0].1();
    for _ in 0..ROUNDS {
        for ((name, work), times) in work.iter_mut().zip(&mut times) {
            let start = Instant::now();
            let found = black_box(work());
            times.push(start.elapsed().as_nanos() as f64);
            assert_eq!(found, expected, "{name} finds other keys");
        }
    }
    let middle = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    };
    times.iter_mut().map(middle).collect()
}

/// The textbook's merge.
fn merge(a: &[u32], b: &[u32], out: &mut Vec<u32>) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                out.push(a[i]);
                (i, j) = (i + 1, j + 1);
            }
        }
    }
}

/// A merge whose steps depend on keys by arithmetic alone.
fn merge_branch_free(a: &[u32], b: &[u32], out: &mut Vec<u32>) {
    out.resize(a.len().min(b.len()) + 1, 0);
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        out[count] = x;
        count += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    out.truncate(count);
}

/// For each key of the smaller set: steps that double, then halving.
fn gallop(small: &[u32], large: &[u32], out: &mut Vec<u32>) {
    let mut from = 0;
    for &key in small {
        let mut step = 1;
        while from + step < large.len() && large[from + step] < key {
            step *= 2;
        }
        let (low, high) = (from + step / 2, (from + step + 1).min(large.len()));
        from = low + large[low..high].partition_point(|&other| other < key);
        if from == large.len() {
            return;
        }
        if large[from] == key {
            out.push(key);
        }
    }
}

fn search(small: &[u32], large: &[u32], out: &mut Vec<u32>) {
    out.extend(small.iter().filter(|key| large.binary_search(key).is_ok()));
}

/// Another set, half of whose keys are in `large`.
fn sharing(large: &[u32], n: usize) -> Vec<u32> {
    let mut random = Random::new(9);
    let mut keys: Vec<u32> = (0..n)
        .map(|_| match random.below(2) {
            0 => large[random.below(large.len() as u64) as usize],
            _ => random.bits() as u32 >> 1,
        })
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn keys(distribution: Distribution, n: usize) -> Vec<u32> {
    let wide = distribution.keys(n, u64::from(u32::MAX) / 2, 1);
    let mut keys: Vec<u32> = wide.into_iter().map(|key| key as u32).collect();
    keys.dedup();
    keys
}

fn intersections(n: usize, distribution: Distribution) {
    let large = keys(distribution, n);
    let index = Index::build(&large).expect("sorted keys");
    let ordered: BTreeSet<u32> = large.iter().copied().collect();
    println!("{} keys in the larger set, layout {}", large.len(), index.layout().name());
    println!("ratio   index  merge  branch-free  gallop  binary search  BTreeSet  gallop/index");
    for ratio in [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000] {
        let small = sharing(&large, (n / ratio).max(1));
        let other = Index::build(&small).expect("sorted keys");
        let set: BTreeSet<u32> = small.iter().copied().collect();
        let on_arrays = |way: fn(&[u32], &[u32], &mut Vec<u32>)| {
            let (small, large) = (&small, &large);
            Box::new(move || {
                let mut out = Vec::new();
                way(small, large, &mut out);
                out.len()
            })
        };
        let figures = medians(&mut [
            ("index", Box::new(|| index.intersection(&other).len())),
            ("merge", on_arrays(merge)),
            ("branch-free", on_arrays(merge_branch_free)),
            ("gallop", on_arrays(gallop)),
            ("binary search", on_arrays(search)),
            ("BTreeSet", Box::new(|| set.intersection(&ordered).count())),
        ]);
        print!("1:{ratio:<6}");
        figures.iter().for_each(|ns| print!("{:>7.1}", ns / small.len() as f64));
        println!("{:>10.2}", figures[3] / figures[0]);
    }
}

fn growing(n: usize, distribution: Distribution) {
    let keys = keys(distribution, n);
    let mut random = Random::new(4);
    let more: Vec<u32> = (0..200_000).map(|_| random.bits() as u32 >> 1).collect();
    let growing = GrowingIndex::build(&keys).expect("sorted keys");
    let mut set: BTreeSet<u32> = keys.iter().copied().collect();
    let queries = hits(&keys, 1 << 18, 5);
    let mut ranks = vec![0; queries.len()];
    let mut batch = |what: &str, snapshot: &lightfoot_search::Snapshot<u32>| {
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                snapshot.batch(&queries, &mut ranks);
                start.elapsed().as_nanos() as f64 / queries.len() as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("batch {what}: {:.2} ns per query", times[ROUNDS / 2]);
    };
    batch("of the index alone", &growing.snapshot());
    for size in [1, 100, 10_000] {
        let mut times = Vec::new();
        let all = Instant::now();
        for keys in more.chunks(size).take(20_000) {
            let start = Instant::now();
            growing.insert(keys);
            times.push(start.elapsed().as_nanos() as f64);
        }
        let count = more.len().min(20_000 * size);
        let each = all.elapsed().as_nanos() as f64 / count as f64;
        let start = Instant::now();
        set.extend(&more[..count]);
        let peer = start.elapsed().as_nanos() as f64 / count as f64;
        times.sort_by(f64::total_cmp);
        println!(
            "insertions of {size}: {each:.0} ns a key (BTreeSet {peer:.0}), median {:.1} µs, slowest {:.1} µs",
            times[times.len() / 2] / 1e3,
            times[times.len() - 1] / 1e3
        );
        batch("while keys are added", &growing.snapshot());
    }
}

fn main() {
    let (mut n, mut distribution, mut grows) = (4_000_000, Distribution::Uniform, false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--keys" => n = value().parse().expect("a number of keys"),
            "--distribution" => {
                let name = value();
                let known = DISTRIBUTIONS.iter().find(|(_, known)| *known == name);
                distribution = known.unwrap_or_else(|| panic!("no distribution {name}")).0;
            }
            "--growing" => grows = true,
            _ => {}
        }
    }
    if grows {
        growing(n, distribution);
    } else {
        intersections(n, distribution);
    }
}
