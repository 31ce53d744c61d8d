//! Agreement: every layout on every kernel for every key type answers what `partition_point`
//! answers.
//!
//! One runner, many data: sizes around every node size, all distributions, the extremes of each
//! type, each key and its neighbours. Under Miri fewer sizes and queries, on the scalar kernel,
//! which is then the only one: `MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p
//! search --test agree -- _keys strings maps --skip any_`.

mod agreement;

use agreement::{build, check, check_type, kernels, queries_u64};
use lightfoot_search::sample::{Distribution, Random, DISTRIBUTIONS};
use lightfoot_search::{reference, BytesIndex, Error, Index, Isa, Key, Layout, Options};
use proptest::prelude::*;

#[test]
fn u32_keys() {
    check_type(u64::from(u32::MAX), "u32", |k| k as u32);
}

#[test]
fn dense_u32_keys() {
    check_type(20_000, "u32 dense", |k| k as u32);
}

#[test]
fn u64_keys() {
    check_type(u64::MAX, "u64", |k| k);
}

#[test]
fn u64_keys_of_a_narrow_range() {
    check_type(1 << 22, "u64 narrow", |k| k + (1 << 60));
}

#[test]
fn i32_keys() {
    check_type(u64::from(u32::MAX), "i32", |k| (k as u32 ^ 1 << 31) as i32);
}

#[test]
fn i64_keys() {
    check_type(u64::MAX, "i64", |k| (k ^ 1 << 63) as i64);
}

/// The float whose place in total order is `k`, NaNs of every payload and both zeros included.
fn ordered_f32(k: u32) -> f32 {
    f32::from_bits(if k >> 31 == 1 { k ^ 1 << 31 } else { !k })
}

fn ordered_f64(k: u64) -> f64 {
    f64::from_bits(if k >> 63 == 1 { k ^ 1 << 63 } else { !k })
}

#[test]
fn f32_keys_in_total_order() {
    check_type(u64::from(u32::MAX), "f32", |k| ordered_f32(k as u32));
    let keys = [-f32::NAN, f32::NEG_INFINITY, -1.0, -0.0, -0.0, 0.0, 1.0, f32::INFINITY, f32::NAN];
    check(&keys, &keys, "f32 specials");
    let index = Index::build(&keys).unwrap();
    assert_eq!((index.equal_range(-0.0), index.equal_range(0.0)), (3..5, 5..6));
}

#[test]
fn f64_keys_in_total_order() {
    check_type(u64::MAX, "f64", ordered_f64);
}

#[test]
fn u128_keys_wide_and_narrow() {
    check_type(u64::MAX, "u128 wide", |k| u128::from(k) << 64 | u128::from(k));
    check_type(1 << 30, "u128 narrow", |k| u128::from(k) + (1 << 100));
    // All prefixes tie: the keys differ only in bits that the lane cannot hold.
    check_type(1 << 10, "u128 ties", |k| if k < 1 << 10 { u128::from(k) } else { u128::MAX });
}

#[test]
fn short_keys() {
    check_type(u64::from(u8::MAX), "u8", |k| k as u8);
    check_type(u64::from(u8::MAX), "i8", |k| (k as u8 ^ 1 << 7) as i8);
    check_type(u64::from(u16::MAX), "u16", |k| k as u16);
    check_type(u64::from(u16::MAX), "i16", |k| (k as u16 ^ 1 << 15) as i16);
}

#[test]
fn i128_keys_around_zero_and_wide() {
    check_type(u64::MAX, "i128 narrow", |k| i128::from(k) - (1 << 63));
    check_type(u64::MAX, "i128 wide", |k| i128::from(k ^ 1 << 63) << 64 >> 3 << 3 | i128::from(k >> 1));
}

/// The number whose place in order is the lowest 16 bits of `k`.
fn signed_i16(k: u64) -> i16 {
    (k as u16 ^ 1 << 15) as i16
}

#[test]
fn tuple_keys() {
    check_type((1 << 24) - 1, "(u8, u16)", |k| ((k >> 16) as u8, k as u16));
    check_type(u64::from(u32::MAX), "(i16, u8, u8)", |k| (signed_i16(k >> 16), (k >> 8) as u8, k as u8));
    check_type(u64::MAX, "(i32, f32)", |k| (((k >> 32) as u32 ^ 1 << 31) as i32, ordered_f32(k as u32)));
    check_type(u64::MAX, "(u8, i16, u8, u32)", |k| {
        ((k >> 56) as u8, signed_i16(k >> 40), (k >> 32) as u8, k as u32)
    });
    check_type(u64::MAX, "(u64, u64)", |k| (k >> 9, k << 55));
    check_type(u64::MAX, "(f64, u8)", |k| (ordered_f64(k & !0xFF), k as u8));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Keys of codes are ordered as Rust orders them, and indexes agree with the sorted array.
    #[test]
    fn any_short_and_tuple_keys_are_in_rusts_order(
        pairs in prop::collection::vec(any::<(i8, u16)>(), 0..400),
        wide in prop::collection::vec(any::<(i64, i32)>(), 0..400),
        four in prop::collection::vec(any::<(u8, i16, i8, u32)>(), 0..400),
        giant in prop::collection::vec(any::<i128>(), 0..400),
        small in prop::collection::vec(any::<i8>(), 0..400),
        floats in prop::collection::vec(any::<(u16, u64)>(), 0..400),
    ) {
        ordered(pairs, Ord::cmp)?;
        ordered(wide, Ord::cmp)?;
        ordered(four, Ord::cmp)?;
        ordered(giant, Ord::cmp)?;
        ordered(small, Ord::cmp)?;
        // Any bits are a float, NaNs among them.
        let floats = floats.into_iter().map(|(first, bits)| (first, f64::from_bits(bits))).collect();
        ordered(floats, |a: &(u16, f64), b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
    }
}

/// Builds from keys in any order, half of which are asked for only, and compares with the order
/// `compare`.
fn ordered<K: Key>(
    keys: Vec<K>,
    compare: impl Fn(&K, &K) -> core::cmp::Ordering,
) -> Result<(), TestCaseError> {
    let (held, _) = keys.split_at(keys.len() / 2);
    let index = Index::build_unsorted(held.to_vec()).unwrap();
    let mut sorted = held.to_vec();
    sorted.sort_by(&compare);
    prop_assert!(index.iter().zip(&sorted).all(|(a, b)| compare(&a, b).is_eq()));
    let mut ranks = vec![0; keys.len()];
    index.batch(&keys, &mut ranks);
    for (key, &rank) in keys.iter().zip(&ranks) {
        let below = sorted.partition_point(|other| compare(other, key).is_lt());
        let not_above = sorted.partition_point(|other| compare(other, key).is_le());
        prop_assert_eq!((index.lower_bound(*key), rank), (below, below), "{:?}", key);
        prop_assert_eq!(index.upper_bound(*key), not_above, "{:?}", key);
    }
    Ok(())
}

#[test]
fn many_keys_of_every_distribution() {
    let mut random = Random::new(5);
    let n = if cfg!(miri) { 900 } else { 300_000 };
    for &(distribution, name) in DISTRIBUTIONS {
        let keys = distribution.keys(n, u64::from(u32::MAX), 3);
        let queries: Vec<u32> =
            queries_u64(&keys, u64::from(u32::MAX), &mut random).iter().map(|&q| q as u32).collect();
        let narrow: Vec<u32> = keys.iter().map(|&key| key as u32).collect();
        check(&narrow, &queries, name);
        let keys = distribution.keys(n / 3, u64::MAX, 3);
        let queries = queries_u64(&keys, u64::MAX, &mut random);
        check(&keys, &queries, name);
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn lines_that_are_far_answer_alike() {
    // 16 MiB of keys and more: lines are asked for four groups ahead, into the second level on some
    // processors. One line a query, one table, cells, and directories or what takes their place.
    let shapes =
        [Distribution::Uniform, Distribution::Normal, Distribution::Timestamps, Distribution::PowerGaps];
    for distribution in shapes {
        let wide = distribution.keys(5 << 20, u64::from(u32::MAX) / 2, 1);
        let keys: Vec<u32> = wide.iter().map(|&key| key as u32).collect();
        let queries: Vec<u32> =
            keys.iter().step_by(997).flat_map(|&key| [key, key + 1, key.wrapping_sub(1)]).collect();
        let expected: Vec<usize> = queries.iter().map(|&q| reference::lower_bound(&keys, q)).collect();
        for isa in kernels() {
            let index = Index::build_with(&keys, &Options { isa: Some(isa), ..Options::default() }).unwrap();
            let mut ranks = vec![usize::MAX; queries.len()];
            index.batch(&queries, &mut ranks);
            assert_eq!(ranks, expected, "{distribution:?}, {}", index.explain());
        }
    }
}

#[test]
fn ten_million_duplicates_of_one_key() {
    let mut keys = vec![7u32; 10_000_000];
    keys.extend(8..100_000);
    let index = Index::build(&keys).unwrap();
    for q in [0, 6, 7, 8, 9, 99_999, 100_000, u32::MAX] {
        assert_eq!(index.equal_range(q), reference::equal_range(&keys, q), "{}", index.explain());
    }
}

#[test]
fn crowded_lines_overflow_and_too_crowded_ones_refuse() {
    // Even keys everywhere, and `extra` more in one place: from a directory with few blocks to one
    // too many.
    for extra in [20usize, 31, 100, 800, 920, 1000, 5000] {
        let mut keys: Vec<u32> = (0..200_000).map(|i| i * 20_000).collect();
        keys.extend((0..extra as u32).map(|i| 2_000_000_000 + i % 40));
        keys.sort_unstable();
        let queries: Vec<u32> =
            (1_999_990_000..2_000_010_000).step_by(7).chain(1_999_999_990..2_000_000_050).collect();
        check(&keys, &queries, &format!("{extra} extra keys"));
    }
}

/// Evenly spread keys: the first, the width of their range, and their number.
type Stretch = (u64, u64, usize);

/// Keys that are evenly spread in `stretches`: shapes that a table of pieces must follow or refuse.
fn stretched(stretches: &[Stretch], seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut keys = Vec::new();
    for &(first, width, count) in stretches {
        keys.extend((0..count).map(|_| first.saturating_add(random.below(width.max(1)))));
    }
    keys.sort_unstable();
    keys
}

fn check_both_widths(keys: &[u64], what: &str) {
    let mut random = Random::new(13);
    let queries = queries_u64(keys, u64::MAX, &mut random);
    check(keys, &queries, what);
    let narrow: Vec<u32> = keys.iter().map(|&key| (key >> 32) as u32).collect();
    let queries: Vec<u32> = queries.iter().map(|&query| (query >> 32) as u32).collect();
    check(&narrow, &queries, what);
}

#[test]
fn keys_that_are_hard_to_cut() {
    let top = u64::MAX;
    let shapes: [(&str, &[Stretch]); 8] = [
        ("outliers at both ends", &[(0, 1, 1), (1 << 62, 1 << 50, 4000), (top, 1, 1)]),
        ("many equal outliers", &[(0, 1, 900), (1 << 62, 1 << 50, 4000), (top, 1, 2000)]),
        ("two points", &[(0, 1, 2500), (top, 1, 2500)]),
        ("points in a line", &[(0, top, 3000), (1 << 61, 1, 27), (1 << 63, 1, 3000)]),
        ("ever denser", &[(0, top, 500), (0, 1 << 50, 800), (0, 1 << 40, 900), (0, 1 << 33, 2000)]),
        ("ever denser, upwards", &[(0, top, 500), (top - (1 << 44), 1 << 44, 3000)]),
        ("a power of two apart", &[(1 << 40, 1, 300), (1 << 50, 1, 300), (1 << 60, 1, 300)]),
        ("two cells", &[(0, 1 << 34, 3000), (1 << 63, 1 << 34, 3000)]),
    ];
    for (name, stretches) in shapes {
        check_both_widths(&stretched(stretches, 3), name);
    }
}

#[test]
fn byte_strings() {
    let mut random = Random::new(9);
    let alphabet = b"\0ab\xff";
    let sizes: &[usize] = if cfg!(miri) { &[0, 2, 17, 200] } else { &[0, 1, 2, 17, 200, 3000] };
    for &n in sizes {
        for common in ["", "https://example.org/"] {
            let mut strings: Vec<Vec<u8>> = (0..n)
                .map(|_| {
                    let length = random.below(14) as usize;
                    let tail = (0..length).map(|_| alphabet[random.below(4) as usize]);
                    common.bytes().chain(tail).collect()
                })
                .collect();
            strings.sort();
            let index = BytesIndex::build(&strings).unwrap();
            let again = BytesIndex::from_bytes(&index.to_bytes()).unwrap();
            let mut queries = strings.clone();
            queries.extend([
                vec![],
                vec![0],
                vec![255; 40],
                b"http".to_vec(),
                b"https://example.org0".to_vec(),
                b"a\0\0".to_vec(),
            ]);
            let refs: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
            let mut ranks = vec![0; refs.len()];
            index.batch(&refs, &mut ranks);
            for (query, &rank) in refs.iter().zip(&ranks) {
                let expected = strings.partition_point(|s| s.as_slice() < *query);
                let after = strings.partition_point(|s| s.as_slice() <= *query);
                assert_eq!(rank, expected, "{query:?}");
                assert_eq!(index.equal_range(query), expected..after, "{query:?}");
                assert_eq!(again.lower_bound(query), expected);
                assert_eq!(index.contains(query), expected != after);
                let starting = strings.iter().filter(|s| s.starts_with(query)).count();
                assert_eq!(index.starting_with(query).len(), starting, "{query:?}");
            }
            assert!(index.iter().eq(strings.iter().map(Vec::as_slice)));
        }
    }
    assert!(matches!(BytesIndex::build(&["b", "a"]), Err(Error::Unsorted { position: 1 })));
}

#[test]
fn unsorted_keys_are_refused_with_the_first_position() {
    for n in [2usize, 17, 1024, 1025, 1026, 5000] {
        for position in [1, n / 2, n - 1].into_iter().filter(|&position| position > 0) {
            let mut keys: Vec<u32> = (0..n as u32).map(|i| i + 10).collect();
            keys[position] = 1;
            assert!(
                matches!(Index::build(&keys), Err(Error::Unsorted { position: found }) if found == position)
            );
        }
    }
    assert!(matches!(Index::build(&[f64::NAN, 1.0]), Err(Error::Unsorted { position: 1 })));
}

#[test]
fn unsorted_builders_sort() {
    let mut random = Random::new(3);
    let keys: Vec<i64> = (0..50_000).map(|_| random.bits() as i64).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    assert!(Index::build_unsorted(keys.clone()).unwrap().iter().eq(sorted.iter().copied()));
    assert!(Index::build_parallel(keys.clone(), 3).unwrap().iter().eq(sorted.iter().copied()));
    let index = Index::build(&sorted).unwrap();
    let mut ranks = vec![0; keys.len()];
    index.batch_parallel(&keys, &mut ranks, 2);
    assert!(keys.iter().zip(&ranks).all(|(&key, &rank)| rank == reference::lower_bound(&sorted, key)));
}

#[test]
fn maps_find_values() {
    let map =
        lightfoot_search::Map::build_unsorted((0..1000u32).map(|i| (i * 37 % 500, i)).collect()).unwrap();
    assert_eq!(map.len(), 1000);
    for key in 0..600 {
        let expected: Vec<u32> = (0..1000).filter(|i| i * 37 % 500 == key).collect();
        assert_eq!(map.get_all(key), expected);
        assert_eq!(map.get(key), expected.first());
    }
    assert_eq!(map.range(3..=4).map(|(key, _)| key).collect::<Vec<_>>(), [3, 3, 4, 4]);
    assert_eq!(map.iter().count(), 1000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 60 }, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(20020101), ..ProptestConfig::default() })]

    #[test]
    fn any_u32_keys(mut keys in proptest::collection::vec(prop_oneof![any::<u32>(), 0..300u32, Just(u32::MAX)], 0..700), queries in proptest::collection::vec(any::<u32>(), 0..40)) {
        keys.sort_unstable();
        let neighbours = keys.iter().flat_map(|&k| [k, k.wrapping_add(1), k.wrapping_sub(1)]);
        let queries: Vec<u32> = queries.iter().copied().chain(neighbours.take(200)).collect();
        check(&keys, &queries, "any u32");
    }

    #[test]
    fn keys_come_once_from_both_ends(n in 0..1200u32, from_front in proptest::collection::vec(any::<bool>(), 1300)) {
        // Which end is asked varies; together the ends give each key once.
        let keys: Vec<u32> = (0..n).map(|i| i * 3).collect();
        let index = Index::build(&keys).unwrap();
        let (mut iter, mut expected) = (index.iter(), keys.iter().copied());
        for front in from_front {
            prop_assert_eq!(iter.len(), expected.len());
            let (found, wanted) = if front {
                (iter.next(), expected.next())
            } else {
                (iter.next_back(), expected.next_back())
            };
            prop_assert_eq!(found, wanted);
        }
        prop_assert_eq!(iter.next(), None);
    }

    #[test]
    fn any_stretches(stretches in proptest::collection::vec((any::<u64>(), 0..64u32, 1..900usize), 1..6), seed in any::<u64>()) {
        // Widths are powers of two up to the whole range.
        let stretches: Vec<Stretch> =
            stretches.into_iter().map(|(first, bits, count)| (first, 1 << bits, count)).collect();
        check_both_widths(&stretched(&stretches, seed), "any stretches");
    }

    #[test]
    fn any_f64_keys(mut keys in proptest::collection::vec(any::<u64>().prop_map(f64::from_bits), 0..300), queries in proptest::collection::vec(any::<f64>(), 0..40)) {
        keys.sort_by(f64::total_cmp);
        let queries: Vec<f64> = queries.iter().chain(&keys).copied().collect();
        check(&keys, &queries, "any f64");
    }

    #[test]
    fn ranges_of_i32_keys(mut keys in proptest::collection::vec(-50..50i32, 0..200), a in -60..60i32, b in -60..60i32) {
        keys.sort_unstable();
        let index = Index::build(&keys).unwrap();
        let expected = |keep: &dyn Fn(i32) -> bool| keys.iter().copied().filter(|&k| keep(k)).collect::<Vec<_>>();
        prop_assert_eq!(index.range(a..b).collect::<Vec<_>>(), expected(&|k| a <= k && k < b));
        prop_assert_eq!(index.range(a..=b).collect::<Vec<_>>(), expected(&|k| a <= k && k <= b));
        prop_assert_eq!(index.range(..b).collect::<Vec<_>>(), expected(&|k| k < b));
        prop_assert_eq!(index.range(a..).collect::<Vec<_>>(), expected(&|k| a <= k));
    }
}

#[test]
fn every_kernel_places_the_same_bytes() {
    for &(distribution, name) in DISTRIBUTIONS {
        for (n, max) in [(700, u64::MAX), (20_000, 1 << 31), (20_001, u64::MAX), (9_000, 30_000)] {
            let keys = distribution.keys(n, max, 9);
            let narrow: Vec<u32> = keys.iter().map(|&key| key as u32).collect();
            let wide = |isa| build(&keys, Layout::Split, isa).map(|index| index.to_bytes());
            let narrow = |isa| build(&narrow, Layout::Split, isa).map(|index| index.to_bytes());
            for isa in kernels() {
                assert!(wide(isa) == wide(Isa::Scalar), "{name} {n} {}", isa.name());
                let ordered = max <= u64::from(u32::MAX);
                assert!(!ordered || narrow(isa) == narrow(Isa::Scalar), "{name} {n} {}", isa.name());
            }
        }
    }
}

#[test]
fn any_number_of_threads_builds_the_same_bytes() {
    for &(distribution, name) in DISTRIBUTIONS {
        for (n, max) in [(1000, u64::MAX), (200_000, u64::MAX), (300_000, 1 << 31), (250_000, 1 << 22)] {
            let keys = distribution.keys(n, max, 5);
            let built = |threads| {
                let options = Options { threads: Some(threads), ..Options::default() };
                Index::build_with(&keys, &options).unwrap().to_bytes()
            };
            let alone = built(1);
            for threads in [2, 3, 7] {
                assert!(built(threads) == alone, "{name} {n} {threads}");
            }
            let mut shuffled = keys.clone();
            shuffled.rotate_left(n / 3);
            assert!(Index::build_parallel(shuffled, 2).unwrap().to_bytes() == alone, "{name} {n}");
        }
    }
}

#[test]
fn the_first_key_out_of_order_is_named_wherever_it_is() {
    let n = 200_000;
    let sorted = Distribution::Uniform.keys(n, u64::MAX, 5);
    for threads in [1, 2, 5] {
        for at in [1, 2, 63, 64, 65, 99_999, 100_000, 100_001, n - 2, n - 1] {
            for small in [0, sorted[at - 1] - 1] {
                let mut keys = sorted.clone();
                keys[at] = small;
                let options = Options { threads: Some(threads), ..Options::default() };
                let error = Index::build_with(&keys, &options).unwrap_err();
                assert!(
                    matches!(error, Error::Unsorted { position } if position == at),
                    "{threads} {at} {error}"
                );
            }
            let mut keys = sorted.clone();
            keys[at - 1] = u64::MAX;
            let options = Options { threads: Some(threads), ..Options::default() };
            assert!(
                matches!(Index::build_with(&keys, &options), Err(Error::Unsorted { position }) if position == at)
            );
        }
    }
}
