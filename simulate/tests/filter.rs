//! The filtered stream gives the misses of the full one, at every level, on any machine.

mod common;

use common::{deeds, full, levels};
use event::{Record, RecordKind, Stream};
use proptest::prelude::*;
use simulate::filter::FilterModel;
use simulate::reference::Naive;
use simulate::{plan_levels, Counts, Geometry, Hierarchy, Levels, WriteBacks};

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
        prop_assert_eq!(fast(&levels, &filtered), fast(&levels, &full));
        prop_assert_eq!(slow(&levels, &filtered), slow(&levels, &full));
    }
}

/// Too rare for chance: the second page of a crossing access takes the first place from a page whose line the filter still knows.
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
