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
