//! Misses by interval against the differences of sums, record by record.

mod common;

use common::{deeds, levels};
use event::Record;
use lightfoot_simulate::{Hierarchy, IntervalMisses, MissIntervals, MissSide, Totals, CACHES_MAX};
use proptest::prelude::*;

/// Loads, stores and fetches that missed each level.
type Missed = [[u64; 3]; CACHES_MAX];

fn of_totals(totals: &Totals) -> Missed {
    std::array::from_fn(|level| {
        let misses = totals.caches[level];
        [misses.loads, misses.stores, misses.instructions]
    })
}

fn of_interval(misses: &IntervalMisses) -> Missed {
    let sides = [MissSide::Load, MissSide::Store, MissSide::Fetch];
    std::array::from_fn(|level| sides.map(|side| misses[level][side as usize].into()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_miss_is_one_of_its_interval(levels in levels(), deeds in deeds(), batch in 1usize..60, together in 1usize..4) {
        let mut logged = Hierarchy::new(&levels).unwrap();
        let mut plain = Hierarchy::new(&levels).unwrap();
        let mut intervals = MissIntervals::default();
        for deeds in deeds.chunks(batch) {
            let mut records: Vec<Record> = Vec::new();
            let mut expected = Vec::new();
            intervals.clear();
            for deeds in deeds.chunks(together) {
                let (first, before) = (records.len(), of_totals(&plain.totals()));
                deeds.iter().for_each(|deed| deed.record(&mut records));
                plain.records(0, &records[first..]);
                records[first..].iter().for_each(|_| intervals.add_record());
                intervals.divide();
                let after = of_totals(&plain.totals());
                let more: Missed = std::array::from_fn(|level| {
                    std::array::from_fn(|kind| after[level][kind] - before[level][kind])
                });
                expected.push(more);
            }
            logged.records_divided(0, &records, &mut intervals);
            // Behind the last division lies an interval without records.
            expected.push(Missed::default());
            let found: Vec<Missed> = intervals.misses().iter().map(of_interval).collect();
            prop_assert_eq!(found, expected);
        }
        prop_assert_eq!(logged.counts(), plain.counts());
    }
}
