//! The fast hierarchy against its slow twin: any machine, any stream, any cut into batches.

mod common;

use common::{deeds, full, levels, Deed};
use event::{Access, Record, RecordKind, Shape, StateLayout, StringOperation, Upcoming};
use lightfoot_simulate::distance::{CurveSizes, StackDistances};
use lightfoot_simulate::reference::{Naive, NaiveRefined};
use lightfoot_simulate::{
    Counts, Geometry, Hierarchy, Levels, Modelled, Outer, References, Refined, Sharing,
};
use proptest::prelude::*;

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

    /// Two threads take turns of several batches each; within a turn, touches wait for the next
    /// batch.
    #[test]
    fn touches_wait_for_the_batch_that_follows(levels in levels(), one in deeds(), two in deeds(), batch in 1usize..200) {
        let streams = [full(&one), full(&two)];
        let mut waiting = Hierarchy::new(&levels).unwrap().counting_write_backs();
        let mut fast = Hierarchy::new(&levels).unwrap().counting_write_backs();
        for turn in 0..4 {
            for (thread, stream) in streams.iter().enumerate() {
                let quarter = stream.len() / 4;
                let mut turn = &stream[turn * quarter..(turn + 1) * quarter];
                fast.records(thread as u32, turn);
                while !turn.is_empty() {
                    let (now, next) = turn.split_at(batch.min(turn.len()));
                    waiting.records_before(thread as u32, now, Upcoming::of(next));
                    turn = next;
                }
            }
        }
        prop_assert_eq!(waiting.counts(), fast.counts());
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The twin keeps the caches of each thread for ever.
    #[test]
    fn threads_that_end_leave_their_counts_and_no_caches(levels in levels(), one in deeds(), two in deeds()) {
        let streams = [full(&one), full(&two)];
        let mut fast = Hierarchy::new(&levels).unwrap().counting_write_backs();
        let mut apart = Hierarchy::new(&levels).unwrap().by_thread();
        let mut slow = Naive::new(&levels);
        let mut ended = Counts::default();
        for thread in 0..8 {
            let stream = &streams[thread as usize % 2];
            // Thread 0 lives on.
            for number in [0, thread] {
                fast.records(number, stream);
                apart.records(number, stream);
                slow.records(number, stream);
            }
            prop_assert_eq!(fast.living_threads(), 1 + usize::from(thread > 0));
            if thread > 0 {
                prop_assert_eq!(fast.end_thread(thread), None);
                ended.add(&apart.end_thread(thread).unwrap());
            }
        }
        prop_assert_eq!(misses(&fast.counts()), misses(&slow.counts()));
        apart.counts_of_threads().iter().for_each(|(_, counts)| ended.add(counts));
        prop_assert_eq!(ended.trimmed(), apart.counts());
        prop_assert_eq!(Counts { write_backs: None, ..fast.counts() }, apart.counts());
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
            let compares = |operation| matches!(operation, StringOperation::Cmps | StringOperation::Scas);
            if let Shape::String { operation, .. } = complex.shape {
                counts.counted_down += u64::from(complex.iterations() > 0 && !compares(operation));
            }
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

/// An area of 512 bytes in lines of 64 bytes that nobody used: eight misses of each level, and a
/// page.
#[test]
fn a_reference_over_many_lines_counts_its_lines() {
    let tlb = Geometry::tlb(16, 16, 4096);
    let outer = vec![Outer::new(Geometry::cache(1 << 20, 16, 64), Sharing::AllThreads)];
    let data = Levels::data_only(Geometry::cache(32 << 10, 8, 64));
    let levels = Levels { outer, data_tlb: Some(tlb), ..data };
    let state =
        event::Shape::State { direction: event::Direction::Load, format: event::StateFormat::Standard };
    let mut records = vec![Record::new(RecordKind::Store, 512, 1, 0x1_0000).unwrap()];
    // x87 and SSE: 512 bytes and a header of 64. It begins inside a line, and crosses a page.
    event::Complex::new(state, &[0x2_0fe0, 3]).encode(2, &mut records);
    records.push(Record::new(RecordKind::Load, 64, 3, 0x3_0020).unwrap());
    let (mut fast, mut slow) = (Hierarchy::new(&levels).unwrap(), Naive::new(&levels));
    let (mut refined, mut twin) = (Refined::new(&levels).unwrap(), NaiveRefined::new(&levels));
    fast.records(0, &records);
    slow.records(0, &records);
    refined.records(0, &records);
    twin.records(0, &records);
    for counts in [fast.counts(), refined.counts(), slow.counts(), twin.counts()] {
        assert_eq!((counts.sites[1].stores, counts.sites[1].tlbs), ([8, 8, 0], [1, 0]));
        let bytes: u64 = 576;
        let lines = (0x2_0fe0 + bytes - 1) / 64 - 0x2_0fe0 / 64 + 1;
        assert_eq!((counts.sites[2].loads, counts.sites[2].tlbs), ([lines, lines, 0], [2, 0]));
        assert_eq!(counts.sites[3].loads, [1, 1, 0], "a vector that crosses a line is one miss");
    }
    let counts = fast.counts();
    let once = References { loads: 1, iterations: 1, executions: 1, ..References::default() };
    assert_eq!(counts.complex[2], once, "it stays one reference");
    let mut curve = StackDistances::new(&CurveSizes::new(64, 64, &[32 << 10]).unwrap(), Sharing::PerThread);
    curve.records(0, &records);
    assert_eq!(curve.curve().points[0].1, counts.cache(0));
}
