//! The paper's algorithms find every item and nothing else, for every small n and several block
//! sizes.

use lightfoot_search::paper::ALGORITHMS;

#[test]
fn every_algorithm_finds_exactly_its_items_for_every_small_n() {
    for n in (0..150).chain([255, 256, 257, 511, 512, 1000, 1023, 1024, 4095, 4096, 4097, 10_000]) {
        let items: Vec<u32> = (0..n).map(|i| 3 * i + 1).collect();
        for block_bytes in [4, 12, 16, 32, 64, 128] {
            for algorithm in ALGORITHMS {
                let lookup = (algorithm.build)(&items, block_bytes);
                for &item in &items {
                    let slot = lookup.find(item);
                    assert_eq!(
                        slot.map(|slot| lookup.item(slot)),
                        Some(item),
                        "{} n={n} b={block_bytes}",
                        algorithm.name
                    );
                    assert_eq!(lookup.find(item - 1), None, "{} n={n} b={block_bytes}", algorithm.name);
                    assert_eq!(lookup.find(item + 1), None, "{} n={n} b={block_bytes}", algorithm.name);
                }
                assert_eq!(lookup.find(u32::MAX), None);
                assert_eq!(lookup.find_all(&items), items.len());
            }
        }
    }
}

#[test]
fn a_lookup_that_names_what_it_reads_answers_as_the_plain_one() {
    for n in (1..70).chain([255, 256, 257, 1000, 1023, 1024, 4096]) {
        let items: Vec<u32> = (0..n).map(|i| 3 * i + 1).collect();
        for block_bytes in [12, 32, 128] {
            for algorithm in ALGORITHMS {
                let lookup = (algorithm.build)(&items, block_bytes);
                let what = |query| format!("{} n={n} b={block_bytes} query={query}", algorithm.name);
                for query in 0..3 * n + 2 {
                    let mut touched = Vec::new();
                    let slot = lookup.find_touching(query, &mut |word| touched.push(word));
                    assert_eq!(slot, lookup.find(query), "{}", what(query));
                    assert!(touched.iter().all(|word| 4 * word < lookup.bytes()), "{}", what(query));
                    // A search that finds reads the slot last; none reads a word twice.
                    if let Some(slot) = slot {
                        assert_eq!(touched.last(), Some(&(slot as usize)), "{}", what(query));
                    }
                    let read = touched.len();
                    touched.sort_unstable();
                    touched.dedup();
                    assert_eq!(touched.len(), read, "{}", what(query));
                    assert!(
                        (1..=most_words(algorithm.name, n, block_bytes)).contains(&read),
                        "{}",
                        what(query)
                    );
                }
            }
        }
    }
}

/// The words that a search may read: an item a level of a binary tree and, where pointers are
/// stored, a pointer; in blocks the items that a binary search within each level's block compares.
fn most_words(algorithm: &str, n: u32, block_bytes: usize) -> usize {
    let levels = |n: usize| (usize::BITS - n.leading_zeros()) as usize;
    let in_blocks = |per: usize| {
        let (mut reach, mut height) = (0, 0);
        while reach < n as usize {
            reach = reach * (per + 1) + per;
            height += 1;
        }
        (height, levels(per))
    };
    match algorithm {
        "aware-implicit" => {
            let (height, compared) = in_blocks(block_bytes / 4);
            height * compared
        }
        "aware-explicit" => {
            let (height, compared) = in_blocks((block_bytes / 4).div_ceil(2) - 1);
            height * (compared + 1)
        }
        explicit if explicit.ends_with("explicit") => 2 * levels(n as usize),
        _ => levels(n as usize),
    }
}

#[test]
fn extremes_are_items_like_any_other() {
    let items = [0, 1, 7, u32::MAX - 1, u32::MAX];
    for algorithm in ALGORITHMS {
        let lookup = (algorithm.build)(&items, 32);
        assert!(items.iter().all(|&item| lookup.find(item).is_some()), "{}", algorithm.name);
        assert_eq!(lookup.find(2), None);
    }
}

#[test]
fn explicit_pointers_take_more_memory() {
    let items: Vec<u32> = (0..1023).collect();
    let bytes = |name: &str| (lightfoot_search::paper::algorithm(name).unwrap().build)(&items, 32).bytes();
    assert_eq!((bytes("classic-implicit"), bytes("classic-explicit")), (4 * 1023, 12 * 1023));
    assert_eq!((bytes("aware-implicit"), bytes("aware-explicit")), (32 * 128, 32 * 341));
    assert_eq!((bytes("oblivious-brodal"), bytes("oblivious-explicit")), (4 * 1023, 12 * 1023));
}
