//! The filtered stream gives the misses of the full one, at every level, on any machine.

mod common;

use common::{deeds, full, levels};
use event::{FetchFilter, Record, RecordKind, Stream};
use lightfoot_simulate::filter::FilterModel;
use lightfoot_simulate::reference::Naive;
use lightfoot_simulate::{plan_levels, Counts, Geometry, Hierarchy, Levels, WriteBacks};
use proptest::prelude::*;

fn filtered(levels: &Levels, full: &[Record]) -> Vec<Record> {
    let Stream::Filtered(filter) = plan_levels(levels, WriteBacks::Ignored).stream else {
        panic!("not filtered")
    };
    let mut records = Vec::new();
    FilterModel::new(&filter).apply(full, &mut records);
    records
}

fn fast(levels: &Levels, records: &[Record]) -> Counts {
    let mut hierarchy = Hierarchy::new(levels).unwrap();
    hierarchy.records(0, records);
    hierarchy.counts()
}

/// Of a filtered stream; cut into two batches.
fn of_stream(levels: &Levels, records: &[Record]) -> Counts {
    let mut hierarchy =
        Hierarchy::of_stream(levels, &plan_levels(levels, WriteBacks::Ignored).stream).unwrap();
    let (one, other) = records.split_at(records.len() / 2);
    hierarchy.records(0, one);
    hierarchy.records(0, other);
    hierarchy.counts()
}

fn keeps_a_first_level(levels: &Levels) -> bool {
    let Stream::Filtered(filter) = plan_levels(levels, WriteBacks::Ignored).stream else { return false };
    filter.fetches != FetchFilter::LastOfSet || filter.resident_pages().is_some()
}

fn slow(levels: &Levels, records: &[Record]) -> Counts {
    let mut naive = Naive::new(levels);
    naive.records(0, records);
    Counts { write_backs: None, ..naive.counts() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn filtering_changes_no_miss(levels in levels(), deeds in deeds()) {
        let full = full(&deeds);
        let filtered = filtered(&levels, &full);
        prop_assert_eq!(of_stream(&levels, &filtered), fast(&levels, &full));
        if !keeps_a_first_level(&levels) {
            prop_assert_eq!(slow(&levels, &filtered), slow(&levels, &full));
        }
    }
}

/// An engine that cannot filter sends the full stream, whatever was asked for.
#[test]
fn a_full_stream_is_taken_where_misses_were_expected() {
    let levels = Levels::two_level(
        Geometry::cache(256, 2, 32),
        Geometry::cache(256, 2, 32),
        Geometry::cache(4096, 4, 64),
    );
    assert!(keeps_a_first_level(&levels));
    let block = |address| Record { extra: 70, ..Record::new(RecordKind::Block, 0, 3, address).unwrap() };
    let full: Vec<Record> = (0..50).map(|n| block(n * 37 % 600)).collect();
    assert_eq!(of_stream(&levels, &full), slow(&levels, &full));
}

/// Too rare for chance: the second page of a crossing access takes the first place from a page
/// whose line the filter still knows.
#[test]
fn the_second_page_of_a_crossing_access_is_news() {
    let data = Geometry::cache(1024, 4, 32);
    let levels = Levels { data_tlb: Some(Geometry::tlb(3, 3, 128)), ..Levels::data_only(data) };
    let load = |address, size_bytes| Record::new(RecordKind::Load, size_bytes, 0, address).unwrap();
    let other = load(0x1020, 8);
    let crossing = load(0x107c, 8);
    // Were `other` dropped behind the crossing access, its page would leave one miss too early.
    let full = [other, crossing, other, load(0x4000, 8), load(0x5000, 8), other];
    let filtered = filtered(&levels, &full);
    assert_eq!(fast(&levels, &filtered), slow(&levels, &full));
    assert_eq!(fast(&levels, &filtered).tlb(0).total(), 4);
}
