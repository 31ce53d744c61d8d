//! The filtered stream gives the misses of the full one, at every level, on any machine.

mod common;

use common::{deeds, full, levels};
use event::{Record, Stream};
use proptest::prelude::*;
use simulate::filter::FilterModel;
use simulate::reference::Naive;
use simulate::{plan_levels, Counts, Hierarchy, Levels, WriteBacks};

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
