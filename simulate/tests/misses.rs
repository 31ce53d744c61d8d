//! Misses by interval against the differences of sums, record by record.

mod common;

use common::{deeds, levels};
use event::Record;
use lightfoot_simulate::{
    Hierarchy, IntervalMisses, LocatedMiss, LocatedMisses, MissIntervals, MissSide, Totals, CACHES_MAX,
    TLBS_MAX,
};
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
                intervals.divide(std::iter::once(records.len() as u32));
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
    #[test]
    fn a_located_miss_is_one_of_its_record(levels in levels(), deeds in deeds(), batch in 1usize..60) {
        let mut logged = Hierarchy::new(&levels).unwrap();
        let mut plain = Hierarchy::new(&levels).unwrap();
        let mut located = LocatedMisses::default();
        for deeds in deeds.chunks(batch) {
            let mut records: Vec<Record> = Vec::new();
            // The first record behind each deed, and what the deed missed.
            let mut expected = Vec::new();
            for deed in deeds {
                let (first, before) = (records.len(), plain.totals());
                deed.record(&mut records);
                plain.records(0, &records[first..]);
                expected.push((records.len(), before, plain.totals()));
            }
            logged.records_located(0, &records, &mut located);
            let mut rest = (located.caches(), located.pages());
            for (end, before, after) in expected {
                let of_deed = |list: &[LocatedMiss]| list.partition_point(|miss| (miss.record as usize) < end);
                let (caches, more) = rest.0.split_at(of_deed(rest.0));
                let (pages, others) = rest.1.split_at(of_deed(rest.1));
                rest = (more, others);
                let count = |list: &[LocatedMiss], level: usize, side: MissSide| {
                    list.iter().filter(|miss| miss.missed(level) && miss.side() == side).count() as u64
                };
                let sides = [MissSide::Load, MissSide::Store, MissSide::Fetch];
                let (then, now) = (of_totals(&before), of_totals(&after));
                for level in 0..CACHES_MAX {
                    for (kind, side) in sides.into_iter().enumerate() {
                        prop_assert_eq!(count(caches, level, side), now[level][kind] - then[level][kind]);
                    }
                }
                for level in 0..TLBS_MAX {
                    let (now, then) = (after.tlbs[level], before.tlbs[level]);
                    let data = count(pages, level, MissSide::Load) + count(pages, level, MissSide::Store);
                    prop_assert_eq!(data, now.loads + now.stores - then.loads - then.stores);
                    let fetches = count(pages, level, MissSide::Fetch);
                    prop_assert_eq!(fetches, now.instructions - then.instructions);
                }
            }
            prop_assert!(rest.0.is_empty() && rest.1.is_empty());
        }
        prop_assert_eq!(logged.counts(), plain.counts());
    }
}
