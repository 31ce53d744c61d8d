//! The agreement runner: one index, or every layout on every kernel, held against the reference.
//!
//! `tests/agree.rs` runs it on what everybody gets; the crate's own tests run it once more, where
//! the families have their dummy members.

use lightfoot_search::sample::{Random, DISTRIBUTIONS};
use lightfoot_search::{reference, Error, Index, Isa, Key, Layout, Options, KERNELS, LAYOUTS};

/// Kernels of this machine.
pub(crate) fn kernels() -> impl Iterator<Item = Isa> {
    KERNELS.iter().copied().filter(|isa| isa.is_available())
}

/// Builds with one layout and kernel; a refusal is an answer too.
pub(crate) fn build<K: Key>(keys: &[K], layout: Layout, isa: Isa) -> Option<Index<K>> {
    let options = Options { layout: Some(layout), isa: Some(isa), ..Options::default() };
    match Index::build_with(keys, &options) {
        Ok(index) => Some(index),
        Err(Error::Refused { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Holds one index against the reference: ranks one by one and as batches of several lengths,
/// ranges, keys and iteration.
pub(crate) fn check_index<K: Key>(index: &Index<K>, keys: &[K], queries: &[K], what: &str) {
    let expected: Vec<usize> = queries.iter().map(|&q| reference::lower_bound(keys, q)).collect();
    for (&q, &rank) in queries.iter().zip(&expected) {
        assert_eq!(index.lower_bound(q), rank, "{what}: lower_bound({q:?})");
        assert_eq!(index.equal_range(q), reference::equal_range(keys, q), "{what}: equal_range({q:?})");
        assert_eq!(index.contains(q), !reference::equal_range(keys, q).is_empty(), "{what}: contains({q:?})");
    }
    let mut ranks = vec![usize::MAX; queries.len()];
    for length in [queries.len(), 1, 15, 16, 31, 33, 65, 0] {
        let length = length.min(queries.len());
        ranks.fill(usize::MAX);
        index.batch(&queries[..length], &mut ranks[..length]);
        assert_eq!(ranks[..length], expected[..length], "{what}: batch of {length}");
    }
    assert_eq!(index.len(), keys.len(), "{what}");
    let same = |a: &K, b: &K| a.compare(b).is_eq();
    assert!(
        index.iter().len() == keys.len() && index.iter().zip(keys).all(|(a, b)| same(&a, b)),
        "{what}: iteration"
    );
    let backwards = || index.iter().rev().zip(keys.iter().rev());
    assert!(
        index.iter().rev().len() == keys.len() && backwards().all(|(a, b)| same(&a, b)),
        "{what}: backwards"
    );
    for rank in [0, 1, keys.len() / 2, keys.len().saturating_sub(1), keys.len()] {
        let (got, wanted) = (index.get(rank), keys.get(rank));
        assert!(
            got.is_some() == wanted.is_some() && got.iter().zip(wanted).all(|(a, b)| same(a, b)),
            "{what}: get({rank})"
        );
    }
}

/// All layouts, all kernels, and the planner's own choice.
pub(crate) fn check<K: Key>(keys: &[K], queries: &[K], what: &str) {
    for isa in kernels() {
        for entry in LAYOUTS {
            if let Some(index) = build(keys, entry.layout, isa) {
                let what = format!("{what}, {} keys, {} on {}", keys.len(), entry.name, isa.name());
                check_index(&index, keys, queries, &what);
            }
        }
    }
    let planned = Index::build(keys).expect("sorted keys");
    check_index(
        &planned,
        keys,
        queries,
        &format!("{what}, {} keys, planned: {}", keys.len(), planned.explain()),
    );
    let bytes = planned.to_bytes();
    check_index(&Index::from_bytes(&bytes).expect("own bytes"), keys, queries, what);
}

/// Sizes around lines, nodes and levels of 8, 9, 16 and 17.
#[cfg(miri)]
const SIZES: &[usize] = &[0, 1, 16, 33, 273, 649];
#[cfg(not(miri))]
const SIZES: &[usize] = &[
    0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 71, 72, 73, 127, 128, 129, 255, 256, 257, 271,
    272, 273, 287, 288, 289, 575, 576, 577, 647, 648, 649, 1023, 1024, 1025, 4095, 4096, 4097, 4623, 4624,
    4625, 5000,
];

/// How many keys and how many other numbers are asked for.
const QUERIES: usize = if cfg!(miri) { 8 } else { 60 };

/// Queries that matter: extremes, keys, neighbours, and some anywhere.
pub(crate) fn queries_u64(keys: &[u64], max: u64, random: &mut Random) -> Vec<u64> {
    let mut queries = vec![0, 1, max, max - 1, max / 2];
    let some = keys.len().min(QUERIES);
    for i in 0..some {
        let key = keys[i * keys.len() / some];
        queries.extend([key, key.saturating_sub(1), key.saturating_add(1).min(max)]);
    }
    queries.extend(keys.last());
    queries.extend((0..QUERIES).map(|_| random.bits() & max));
    queries
}

/// Runs one key type over all sizes and distributions; `convert` must keep the order of numbers up
/// to `max`.
pub(crate) fn check_type<K: Key>(max: u64, what: &str, convert: impl Fn(u64) -> K) {
    let mut random = Random::new(11);
    for (number, &n) in SIZES.iter().enumerate() {
        let (distribution, name) = DISTRIBUTIONS[number % DISTRIBUTIONS.len()];
        let mut keys = distribution.keys(n, max, n as u64);
        if number % 3 == 1 {
            // Full range: both extremes are keys, MAX more than once.
            keys.iter_mut().take(1).for_each(|key| *key = 0);
            keys.iter_mut().rev().take(1 + n / 9).for_each(|key| *key = max);
        }
        let queries: Vec<K> = queries_u64(&keys, max, &mut random).into_iter().map(&convert).collect();
        let keys: Vec<K> = keys.into_iter().map(&convert).collect();
        check(&keys, &queries, &format!("{what} {name}"));
    }
}
