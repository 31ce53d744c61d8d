//! The fast hierarchy against its slow twin: any machine, any stream, any cut into batches.

mod common;

use common::{deeds, full, levels, Deed};
use event::{Access, Record, RecordKind, StateLayout};
use proptest::prelude::*;
use simulate::reference::{Naive, NaiveRefined};
use simulate::{Counts, Hierarchy, Modelled, References, Refined};

/// The fields that both must agree on: the twin does not count complex references apart.
fn misses(counts: &Counts) -> Counts {
    Counts { complex: Vec::new(), ..counts.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_fast_hierarchy_is_the_slow_one(levels in levels(), deeds in deeds(), batch in 1usize..200) {
        let records = full(&deeds);
        let mut fast = Hierarchy::new(&levels).unwrap().counting_write_backs();
        let mut slow = Naive::new(&levels);
        for batch in records.chunks(batch) {
            fast.records(0, batch);
            slow.records(0, batch);
        }
        prop_assert_eq!(misses(&fast.counts()), misses(&slow.counts()));
    }

    #[test]
    fn threads_share_what_is_shared(levels in levels(), one in deeds(), two in deeds()) {
        let streams = [full(&one), full(&two)];
        let mut fast = Hierarchy::new(&levels).unwrap().counting_write_backs();
        let mut slow = Naive::new(&levels);
        for round in 0..4 {
            for (thread, stream) in streams.iter().enumerate() {
                let quarter = stream.len() / 4;
                let batch = &stream[round * quarter..(round + 1) * quarter];
                fast.records(thread as u32, batch);
                slow.records(thread as u32, batch);
            }
        }
        prop_assert_eq!(misses(&fast.counts()), misses(&slow.counts()));
    }
}

/// Larger streams than random levels get: a preset's sets are many.
fn wide(deeds: &[Deed], stretch: u64) -> Vec<Deed> {
    let far = |address: u64| address.wrapping_mul(stretch);
    deeds
        .iter()
        .map(|deed| match *deed {
            Deed::Data { kind, site, address, size_bytes } => {
                Deed::Data { kind, site, address: far(address), size_bytes }
            }
            Deed::Block { block, address, len_bytes } => {
                Deed::Block { block, address: far(address), len_bytes }
            }
            ref other => other.clone(),
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn presets_agree(deeds in deeds(), stretch in prop::sample::select(vec![1u64, 17, 64, 4096, 32768])) {
        let records = full(&wide(&deeds, stretch));
        for preset in machine::PRESETS {
            let modelled = Modelled::of(&preset.machine()).unwrap().unwrap();
            if !modelled.levels.is_plain() {
                let mut fast = Refined::new(&modelled.levels).unwrap();
                let mut slow = NaiveRefined::new(&modelled.levels);
                fast.records(0, &records);
                slow.records(0, &records);
                prop_assert_eq!(misses(&fast.counts()), misses(&slow.counts()), "{}", preset.name);
                continue;
            }
            let mut fast = Hierarchy::new(&modelled.levels).unwrap().counting_write_backs();
            let mut slow = Naive::new(&modelled.levels);
            fast.records(0, &records);
            slow.records(0, &records);
            prop_assert_eq!(misses(&fast.counts()), misses(&slow.counts()), "{}", preset.name);
        }
    }
}

#[test]
fn write_backs_are_counted_only_where_asked_for() {
    let levels = Modelled::of(&machine::Machine::preset("cachegrind").unwrap()).unwrap().unwrap().levels;
    assert_eq!(Hierarchy::new(&levels).unwrap().counts().write_backs, None);
    assert_eq!(Hierarchy::new(&levels).unwrap().counting_write_backs().counts().write_backs, Some([0; 3]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn complex_references_are_counted_by_site(levels in levels(), deeds in deeds(), batch in 1usize..50) {
        let mut expected: Vec<References> = vec![References::default(); 64];
        for deed in &deeds {
            let Deed::Complex { site, complex } = deed else { continue };
            let counts = &mut expected[*site as usize];
            counts.executions += u64::from(complex.iterations() > 0);
            counts.iterations += complex.iterations();
            complex.references(&StateLayout::default(), |_, _, access| match access {
                Access::Load => counts.loads += 1,
                _ => counts.stores += 1,
            });
        }
        let mut hierarchy = Hierarchy::new(&levels).unwrap();
        full(&deeds).chunks(batch).for_each(|batch| hierarchy.records(0, batch));
        let mut found = hierarchy.counts().complex;
        found.resize(64, References::default());
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn damage_costs_one_group() {
    let load = Record::new(RecordKind::Load, 8, 0, 0x1000).unwrap();
    let orphan = Record::new(RecordKind::Payload, 0, 0, 0).unwrap();
    let records = [load, orphan, Record { address: 0x2000, ..load }];
    let levels = Modelled::of(&machine::Machine::preset("cachegrind").unwrap()).unwrap().unwrap().levels;
    let mut hierarchy = Hierarchy::new(&levels).unwrap();
    hierarchy.records(0, &records);
    assert_eq!((hierarchy.counts().damaged, hierarchy.counts().cache(0).loads), (1, 2));
}
