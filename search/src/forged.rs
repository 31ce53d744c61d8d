//! Tests forged files, in which any word is changed and all checksums match. An index that opens
//! such a file answers within its bounds or refuses it; it never reads outside of its lines.

use alloc::string::String;
use alloc::vec::Vec;

use crate::file::{checksum, checksum_words, HEADER_LINES};
use crate::line::{lanes, lanes_mut, Line, LINE_BYTES};
use crate::sample::{Distribution, Random};
use crate::{BytesIndex, Index, Key, Map, Options, Value, LAYOUTS};

/// The bytes with some changed and the checksums made to match.
fn forged(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let lines = bytes.len() / LINE_BYTES;
    let mut forged = alloc::vec![Line::ZERO; lines];
    lanes_mut::<u8>(&mut forged).copy_from_slice(bytes);
    for _ in 0..=random.below(3) {
        // The header, its neighbourhood and the rest are equally likely.
        let reach = [24, 64, lines * 8][random.below(3) as usize].min(lines * 8);
        let word = &mut lanes_mut::<u64>(&mut forged)[random.below(reach as u64) as usize];
        *word = match random.below(6) {
            0 => word.wrapping_add(1),
            1 => word.wrapping_sub(1),
            2 => 0,
            3 => u64::MAX,
            4 => *word ^ 1 << random.below(64),
            _ => random.bits() >> random.below(64),
        };
    }
    sealed(lanes::<u8>(&forged))
}

/// The bytes with checksums that match.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut lines = alloc::vec![Line::ZERO; bytes.len() / LINE_BYTES];
    lanes_mut::<u8>(&mut lines).copy_from_slice(bytes);
    let payload = checksum(&lines[HEADER_LINES..]);
    let words = lanes_mut::<u64>(&mut lines);
    words[22] = payload;
    words[23] = checksum_words(&words[..23]);
    lanes::<u8>(&lines).to_vec()
}

/// Opens forged bytes and, when they are accepted, asks everything there is to ask.
fn ask<K: Key>(bytes: &[u8], queries: &[K]) -> bool {
    let Ok(index) = Index::<K>::from_bytes(bytes) else { return false };
    let mut ranks = alloc::vec![0; queries.len()];
    index.batch(queries, &mut ranks);
    for (&query, &rank) in queries.iter().zip(&ranks) {
        assert!(rank <= index.len());
        assert_eq!(index.lower_bound(query), rank);
        assert!(index.upper_bound(query) >= rank);
    }
    assert_eq!(index.iter().count(), index.len());
    index.get(index.len() / 2);
    true
}

fn forge<K: Key>(keys: &[K], queries: &[K], rounds: usize) -> usize {
    let mut random = Random::new(u64::from(K::TYPE.code()));
    let mut accepted = 0;
    let rounds = if cfg!(miri) { 2 } else { rounds };
    for entry in LAYOUTS {
        let options = Options { layout: Some(entry.layout), ..Options::default() };
        let Ok(index) = Index::build_with(keys, &options) else { continue };
        let bytes = index.to_bytes();
        accepted += (0..rounds).filter(|_| ask(&forged(&bytes, &mut random), queries)).count();
    }
    accepted
}

#[test]
fn a_forged_file_is_refused_or_answers() {
    let mut accepted = 0;
    for (n, distribution) in [
        (300, Distribution::Uniform),
        (5000, Distribution::Uniform),
        (2000, Distribution::OneKey),
        (2000, Distribution::Prefixes),
        (2000, Distribution::Normal),
    ] {
        let wide = distribution.keys(if cfg!(miri) { n / 10 } else { n }, u64::MAX, 9);
        let narrow: Vec<u32> = wide.iter().map(|&key| (key >> 32) as u32).collect();
        let dense: Vec<u32> = wide.iter().map(|&key| (key >> 44) as u32).collect();
        let giant: Vec<u128> = wide.iter().map(|&key| u128::from(key) << 30).collect();
        let queries: Vec<u64> = wide.iter().step_by(7).copied().chain([0, u64::MAX]).collect();
        let short: Vec<u32> = queries.iter().map(|&query| (query >> 32) as u32).collect();
        accepted += forge(&wide, &queries, 400);
        accepted += forge(&narrow, &short, 400);
        accepted += forge(&dense, &short, 400);
        accepted += forge(&giant, &[0, 1 << 80, u128::MAX], 200);
    }
    assert!(
        accepted > 0 || cfg!(miri),
        "a forgery of unused bytes is accepted, so the others were refused for a reason"
    );
}

#[test]
fn forged_copies_are_refused_or_answer() {
    let rounds = if cfg!(miri) { 2 } else { 2000 };
    let keys: Vec<u32> =
        Distribution::OneKey.keys(20_000, 1 << 30, 9).into_iter().map(|key| key as u32).collect();
    let bytes = Index::build(&keys).unwrap().to_bytes();
    let mut random = Random::new(12);
    // The number of copies and their key are forged alone, too.
    let mut accepted = 0;
    for round in 0..rounds {
        let mut words = forged(&bytes, &mut random);
        if round % 2 == 0 {
            words = bytes.clone();
            let at = if round % 4 == 0 { 12 } else { 14 } * 8;
            words[at + random.below(8) as usize] ^= 1 << random.below(8);
            words = sealed(&words);
        }
        accepted += usize::from(ask(&words, &[0, keys[0], keys[10_000], keys[10_000] + 1, u32::MAX]));
    }
    assert!(accepted > 0 || cfg!(miri), "a smaller number of copies is a number of copies");
}

#[test]
fn forged_strings_are_refused_or_answer() {
    let rounds = if cfg!(miri) { 20 } else { 2000 };
    let strings: Vec<String> = (0..rounds).map(|i| alloc::format!("key/{:05}", i * 7 % 9001)).collect();
    let bytes = BytesIndex::build_unsorted(strings).unwrap().to_bytes();
    let mut random = Random::new(6);
    for _ in 0..rounds {
        let Ok(index) = BytesIndex::from_bytes(&forged(&bytes, &mut random)) else { continue };
        for query in [&b"key/00100"[..], b"", b"key/", b"kez", b"key/\xff"] {
            assert!(index.equal_range(query).end <= index.len());
            index.starting_with(query);
        }
        assert_eq!(index.iter().count(), index.len());
    }
}

fn forge_map<V: Value>(keys: &[u32], values: Vec<V>, rounds: usize) -> usize {
    let bytes = Map::build(keys, values).unwrap().to_bytes();
    let mut random = Random::new(bytes.len() as u64);
    let opened = (0..rounds).filter_map(|_| Map::<u32, V>::from_bytes(&forged(&bytes, &mut random)).ok());
    opened
        .map(|map| {
            assert_eq!(map.values().len(), map.len());
            assert_eq!(map.iter().rev().count(), map.len());
            assert!(map.get_all(keys[0]).len() <= map.len());
        })
        .count()
}

#[test]
fn forged_maps_are_refused_or_answer() {
    let rounds = if cfg!(miri) { 20 } else { 2000 };
    let keys: Vec<u32> = (0..500).map(|i| i * 9).collect();
    let numbers = keys.iter().map(|&key| u64::from(key) << 7).collect();
    let strings: Vec<String> = keys.iter().map(|key| alloc::format!("{key}")).collect();
    let accepted = forge_map::<u64>(&keys, numbers, rounds) + forge_map::<String>(&keys, strings, rounds);
    assert!(accepted > 0 || cfg!(miri), "a forged number is a number");
}
