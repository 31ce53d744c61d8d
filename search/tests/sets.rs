//! Intersections against sets of the standard library, at sizes that take both ways.

use lightfoot_search::sample::{Distribution, Random};
use lightfoot_search::{Index, Key};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn check<K: Key + Ord>(a: Vec<K>, b: Vec<K>) {
    let (left, right): (BTreeSet<K>, BTreeSet<K>) =
        (a.iter().copied().collect(), b.iter().copied().collect());
    let expected: Vec<K> = left.intersection(&right).copied().collect();
    let (a, b) = (Index::build_unsorted(a).expect("sorted"), Index::build_unsorted(b).expect("sorted"));
    assert_eq!(a.intersection(&b), expected, "{} and {} keys", a.len(), b.len());
    assert_eq!(b.intersection(&a), expected, "{} and {} keys", b.len(), a.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_sets_share_what_they_share(
        a in prop::collection::vec(0u32..300, 0..400),
        b in prop::collection::vec(0u32..300, 0..60),
        extremes in prop::collection::vec(prop::sample::select(&[0u64, 1, u64::MAX - 1, u64::MAX]), 0..40),
        tuples in prop::collection::vec((0u8..9, -4i16..4), 0..200),
    ) {
        check(a, b);
        let half = extremes.len() / 7;
        check(extremes[..half].to_vec(), extremes[half..].to_vec());
        let half = tuples.len() / 3;
        check(tuples[..half].to_vec(), tuples[half..].to_vec());
    }
}

#[test]
fn large_sets_of_every_ratio() {
    let mut random = Random::new(3);
    for distribution in [Distribution::Uniform, Distribution::Clustered, Distribution::OneKey] {
        let large = distribution.keys(20_000, u64::from(u32::MAX), 5);
        for small in [1, 5, 100, 1023, 1024, 1025, 3000, 4000, 20_000] {
            // Half of the smaller set's keys are in the larger one, and some repeat.
            let keys: Vec<u64> = (0..small)
                .map(|_| match random.below(2) {
                    0 => large[random.below(20_000) as usize],
                    _ => random.below(1 << 32),
                })
                .collect();
            check(keys.clone(), large.clone());
            let narrow = |keys: &[u64]| keys.iter().map(|&key| key as u32).collect::<Vec<u32>>();
            check(narrow(&keys), narrow(&large));
        }
    }
}

#[test]
fn repeats_across_chunks_are_given_once() {
    let a: Vec<u32> = (0..5000).map(|i| i / 1500).collect();
    let b: Vec<u32> = (0..2000).map(|i| i / 900).collect();
    check(a.clone(), b);
    check(a, (0..60_000).map(|i| i / 20_000).collect());
    check(vec![u32::MAX; 1500], vec![u32::MAX; 9001]);
}
