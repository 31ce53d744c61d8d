//! What refined levels are for, on streams that show it: lines that move, policies that adapt,
//! slices, pages, and prefetchers that are late.

mod common;

use common::{deeds, full, geometry};
use event::{Record, RecordKind};
use lightfoot_simulate::reference::Naive;
use lightfoot_simulate::*;
use machine::SliceMasks;
use proptest::prelude::*;

fn load(line: u64) -> Record {
    Record::new(RecordKind::Load, 8, 0, line * 64).unwrap()
}

fn store(line: u64) -> Record {
    Record::new(RecordKind::Store, 8, 1, line * 64).unwrap()
}

fn run(levels: &Levels, records: &[Record]) -> Refined {
    let mut refined = Refined::new(levels).unwrap();
    refined.records(0, records);
    refined
}

fn misses(levels: &Levels, records: &[Record], level: usize) -> u64 {
    run(levels, records).counts().cache(level).total()
}

/// A cache of one set.
fn ways(ways: u32) -> Geometry {
    Geometry::cache(u64::from(ways) * 64, ways, 64)
}

fn behind(data: Geometry, outer: &[(Geometry, Inclusion)]) -> Levels {
    let outer = outer
        .iter()
        .map(|&(geometry, inclusion)| Outer { inclusion, ..Outer::new(geometry, Sharing::PerThread) });
    Levels { outer: outer.collect(), ..Levels::data_only(data) }
}

fn policy(name: &str) -> Policy {
    Policy::named(name).unwrap_or_else(|| panic!("{name} has a file"))
}

/// Skylake's server cores: loads pass the last level, which takes what the second one gives up,
/// changed or not.
#[test]
fn a_victim_level_takes_clean_lines_and_no_loads() {
    use Inclusion::{Exclusive, Independent};
    let levels = behind(ways(2), &[(ways(4), Independent), (ways(8), Exclusive)]);
    // Four lines fill the second level; none of them enters the third.
    let filled = run(&levels, &[load(0), store(1), load(2), load(3)]).traffic().levels;
    assert_eq!((filled[1].lines_in, filled[2].lines_in), (4, 0));
    assert_eq!((filled[0].dirty_out, filled[1].dirty_out, filled[1].clean_out), (1, 0, 0));
    // Four more push them out: one changed, three not.
    let sweep: Vec<Record> = [load(0), store(1)].into_iter().chain((2..8).map(load)).collect();
    let pushed = run(&levels, &sweep).traffic().levels;
    assert_eq!((pushed[1].dirty_out, pushed[1].clean_out, pushed[2].lines_in), (1, 3, 4));
    assert_eq!(pushed[2].supplied, 0);
    // They come back from there, and the changed one is still changed.
    let again: Vec<Record> = sweep.iter().copied().chain((0..4).map(load)).chain((8..14).map(load)).collect();
    let again = run(&levels, &again).traffic().levels;
    assert_eq!(again[2].supplied, 4);
    assert_eq!(again[1].lines_in - again[2].supplied, 14, "lines from memory, each once");
    assert_eq!(again[1].dirty_out, 2, "line 1 left the second level twice");
}

/// A loop over twice the cache: nothing is used twice, and stores leave by the same way as loads
/// come.
#[test]
fn traffic_of_a_copy() {
    use Inclusion::Independent;
    let levels = behind(ways(8), &[(ways(32), Independent)]);
    let copy: Vec<Record> = (0..640).flat_map(|n| [load(n), store(1000 + n)]).collect();
    let [first, second, _] = run(&levels, &copy).traffic().levels;
    assert_eq!((first.lines_in, second.lines_in), (1280, 1280));
    assert_eq!((first.dirty_out, second.dirty_out), (640 - 4, 640 - 16));
    assert_eq!((first.clean_out, second.clean_out), (0, 0), "unchanged lines are dropped");
}

/// Stores that no level takes are counted apart.
#[test]
fn stores_that_bypass_all_levels_reach_memory() {
    let levels = Levels::data_only(ways(4).bypassing());
    let traffic = run(&levels, &[store(0), load(1), store(1), store(2)]).traffic();
    assert_eq!((traffic.stores_to_memory, traffic.levels[0].lines_in), (2, 1));
}

/// A cycle that is one and a half times as long as the cache defeats a policy that lets every line
/// stay. A duel finds that out, and does as well as the better rival.
#[test]
fn a_duel_adapts() {
    let shape = Geometry::cache(64 * 16 * 64, 16, 64);
    let cycle: Vec<Record> = (0..40).flat_map(|_| (0..64 * 24).map(load)).collect();
    let [stays, leaves] = ["QLRU_H11_M1_R1_U2", "QLRU_H11_MR161_R1_U2"];
    let of = |name: &str| misses(&Levels::data_only(shape.with_policy(policy(name))), &cycle, 0);
    let duel = of(&format!("duel:{stays}:{leaves}:4"));
    let (alone, better) = (of(stays), of(leaves));
    assert!(better * 10 < alone * 8, "{alone} {better}");
    assert!(duel * 10 < better * 12, "{alone} {better} {duel}");
    // The other way round it stays with its first policy.
    let other = of(&format!("duel:{leaves}:{stays}:4"));
    assert!(other * 10 < better * 12, "{alone} {better} {other}");
}

/// The published policy of a second level, against a sequence worked out by hand: a hit makes age
/// 0, a new line has age 1, and the others grow to 3.
#[test]
fn ages_decide_as_published() {
    let levels = Levels::data_only(ways(4).with_policy(policy("QLRU_H00_M1_R0_U1")));
    // Ages by way after 0 1 2 3: 3 3 3 1. Line 4 replaces line 0 at once, line 5 line 1.
    assert_eq!(misses(&levels, &[0, 1, 2, 3, 4, 0].map(load), 0), 6);
    assert_eq!(misses(&levels, &[0, 1, 2, 3, 4, 3, 2].map(load), 0), 5);
    // A hit of line 0 before protects it.
    assert_eq!(misses(&levels, &[0, 1, 2, 3, 0, 4, 0].map(load), 0), 5);
}

/// Twelve ways in three trees: a cycle over the trees' first lines keeps all others.
#[test]
fn three_trees_take_turns() {
    let levels = Levels::data_only(ways(12).with_policy(policy("lru_plru4")));
    let fill = || (0..12).map(load);
    // New lines 12 to 14 replace one line of each tree, so nine of twelve are still there.
    let records: Vec<Record> = fill().chain((12..15).map(load)).collect();
    let refined = run(&levels, &records);
    let misses_then = |line: u64| {
        let records: Vec<Record> = records.iter().copied().chain([load(line)]).collect();
        misses(&levels, &records, 0) - refined.counts().cache(0).total()
    };
    let lost: Vec<u64> = (0..12).filter(|&line| misses_then(line) > 0).collect();
    assert_eq!(lost, [0, 4, 8]);
}

/// Lines a power of two apart meet in one set of each slice only; the published hash of two slices
/// (Maurice et al. 2015) parts them.
#[test]
fn slices_part_what_an_index_joins() {
    let plain = Geometry::cache(128 * 4 * 64, 4, 64);
    let sliced = plain.with_slices(SliceMasks::new(&[0x1b_5f57_5440]).unwrap());
    // Six lines 2^12 bytes apart: with 64 sets a slice all have index 0.
    let apart: Vec<Record> = (0..20).flat_map(|_| (0..6).map(|n| load(n * 64))).collect();
    let halves = |n: u64| SliceMasks::new(&[0x1b_5f57_5440]).unwrap().slice(n * 64 * 64);
    let ones: u64 = (0..6).map(halves).sum();
    assert!((2..=4).contains(&ones), "{ones} of 6 lines lie in slice 1");
    assert_eq!(misses(&Levels::data_only(sliced), &apart, 0), 6);
    let one_slice = Geometry::cache(64 * 4 * 64, 4, 64);
    assert_eq!(misses(&Levels::data_only(one_slice), &apart, 0), 120);
}

/// Pages that a cache's index joins lie apart in physical memory, and only for the outer level.
#[test]
fn physical_pages_change_outer_sets_only() {
    let first = Geometry::cache(4096, 1, 64);
    let levels = |pages| Levels {
        pages,
        ..behind(first, &[(Geometry::cache(64 * 64 * 2 * 64, 2, 64), Inclusion::Independent)])
    };
    // Eight lines, one every 256 KiB: one set of the second level.
    let records: Vec<Record> = (0..10).flat_map(|_| (0..8).map(|n| load(n * 4096))).collect();
    let of = |pages, level| misses(&levels(pages), &records, level);
    assert_eq!((of(Pages::Virtual, 0), of(Pages::Virtual, 1)), (80, 80));
    let random = Pages::Random { seed: 3, page_bytes: 4096 };
    assert_eq!((of(random, 0), of(random, 1)), (80, 8));
    assert_eq!(of(random, 1), of(random, 1));
}

#[test]
fn a_streamer_runs_ahead_of_a_scan() {
    let with = |kind| Levels::data_only(Geometry::cache(64 << 10, 16, 64).with_prefetch(kind));
    let up: Vec<Record> = (0..64).map(load).collect();
    let down: Vec<Record> = (0..64).rev().map(load).collect();
    for scan in [up, down] {
        let refined = run(&with(Prefetch::Streamer), &scan);
        assert_eq!(refined.counts().cache(0).loads, 3, "two steps, then all is there");
        assert_eq!(refined.traffic().levels[0].prefetched_in, 61);
    }
    // It does not leave the page, so that the next page begins anew.
    let pages: Vec<Record> = (0..256).map(load).collect();
    assert_eq!(misses(&with(Prefetch::Streamer), &pages, 0), 12);
    // The other line of the pair, and no more.
    let odd: Vec<Record> = [5, 4, 6, 7, 9].map(load).into();
    assert_eq!(misses(&with(Prefetch::AdjacentLine), &odd, 0), 3);
}

/// A line that is asked for by one of the next touches is late once, and then a hit.
#[test]
fn a_late_line_counts_once_and_is_no_miss() {
    let late = |late_touches| {
        let cache = Geometry::cache(64 << 10, 16, 64).with_prefetch(Prefetch::NextLine);
        Levels::data_only(cache.with_late_touches(late_touches))
    };
    let of = |late_touches, lines: &[u64]| {
        let records: Vec<Record> = lines.iter().map(|&line| load(line)).collect();
        let counts = run(&late(late_touches), &records).counts();
        (counts.cache(0).loads, counts.prefetched.unwrap()[0].late)
    };
    assert_eq!(of(0, &[0, 1]), (1, 0));
    assert_eq!(of(1, &[0, 1, 1]), (1, 1));
    assert_eq!(of(1, &[0, 0, 1]), (1, 0), "one touch lies between");
    assert_eq!(of(2, &[0, 0, 1, 1]), (1, 1));
    assert_eq!(of(2, &[0, 0, 0, 1]), (1, 0));
}

proptest! {
    /// One level and nothing behind it: the lines that leave are those that plain levels write
    /// back.
    #[test]
    fn one_level_moves_what_plain_levels_move(data in geometry(18, Just(64)), deeds in deeds()) {
        let (levels, records) = (Levels::data_only(data), full(&deeds));
        let mut naive = Naive::new(&levels);
        naive.records(0, &records);
        let refined = run(&levels, &records);
        prop_assert_eq!(Some(refined.traffic().dirty_out()), naive.counts().write_backs);
    }
}
