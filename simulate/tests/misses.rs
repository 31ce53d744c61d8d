//! Misses by record against the differences of sums, record by record.

mod common;

use common::{deeds, levels};
use event::Record;
use lightfoot_simulate::{Hierarchy, MissSide, RecordMiss, Totals, CACHES_MAX};
use proptest::prelude::*;

/// Loads, stores and fetches that missed each level.
type Missed = [[u64; 3]; CACHES_MAX];

fn of_totals(totals: &Totals) -> Missed {
    std::array::from_fn(|level| {
        let misses = totals.caches[level];
        [misses.loads, misses.stores, misses.instructions]
    })
}

fn of_log(misses: &[RecordMiss]) -> Missed {
    let mut missed = Missed::default();
    for miss in misses {
        let kind = match miss.side {
            MissSide::Load => 0,
            MissSide::Store => 1,
            MissSide::Fetch => 2,
        };
        missed[usize::from(miss.level)][kind] += 1;
    }
    missed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_miss_is_one_of_its_record(levels in levels(), deeds in deeds(), batch in 1usize..60) {
        let mut logged = Hierarchy::new(&levels).unwrap();
        let mut plain = Hierarchy::new(&levels).unwrap();
        let mut misses = Vec::new();
        for deeds in deeds.chunks(batch) {
            let mut records: Vec<Record> = Vec::new();
            let mut expected = Vec::new();
            for deed in deeds {
                let (first, before) = (records.len() as u32, of_totals(&plain.totals()));
                deed.record(&mut records);
                plain.records(0, &records[first as usize..]);
                let after = of_totals(&plain.totals());
                let more: Missed = std::array::from_fn(|level| {
                    std::array::from_fn(|kind| after[level][kind] - before[level][kind])
                });
                expected.push((first, records.len() as u32, more));
            }
            misses.clear();
            logged.records_logged(0, &records, &mut misses);
            prop_assert!(misses.is_sorted());
            for (first, end, expected) in expected {
                let from = misses.partition_point(|miss| miss.record < first);
                let to = misses.partition_point(|miss| miss.record < end);
                prop_assert_eq!(of_log(&misses[from..to]), expected, "records {} to {}", first, end);
            }
        }
        prop_assert_eq!(logged.counts(), plain.counts());
    }
}
