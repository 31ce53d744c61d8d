//! Miss curves against their slow twin, against simulated caches, and under the filter that is said
//! to be exact; working sets against sets.

mod common;

use common::{deeds, full, levels};
use event::{Access, Decoder, Record, ReferenceKind, Sites, StateLayout, Stream};
use lightfoot_simulate::distance::{CurveSizes, MissCurve, StackDistances, Window, WorkingSet, SIZES_MAX};
use lightfoot_simulate::filter::FilterModel;
use lightfoot_simulate::reference::NaiveDistances;
use lightfoot_simulate::{plan_levels, Geometry, Hierarchy, Levels, Misses, Sharing, WriteBacks};
use proptest::prelude::*;
use std::collections::HashSet;

fn sizes() -> impl Strategy<Value = CurveSizes> {
    let sets = prop_oneof![3 => Just(1u64), 1 => Just(4), 1 => 1u64..20];
    let ways = prop::collection::btree_set(1u64..60, 1..=SIZES_MAX);
    (prop::sample::select(vec![16u32, 32, 64]), sets, ways).prop_map(|(line_bytes, sets, ways)| {
        let bytes: Vec<u64> = ways.iter().map(|ways| ways * sets * u64::from(line_bytes)).collect();
        CurveSizes::new(line_bytes, sets, &bytes).unwrap()
    })
}

fn sharing() -> impl Strategy<Value = Sharing> {
    prop_oneof![Just(Sharing::PerThread), Just(Sharing::AllThreads)]
}

fn fast(sizes: &CurveSizes, records: &[Record]) -> MissCurve {
    let mut distances = StackDistances::new(sizes, Sharing::PerThread);
    distances.records(0, records);
    distances.curve()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn curves_are_those_of_the_twin(
        sizes in sizes(), sharing in sharing(), one in deeds(), two in deeds(), batch in 1usize..100,
    ) {
        let mut fast = StackDistances::new(&sizes, sharing);
        let mut slow = NaiveDistances::new(&sizes, sharing);
        let (one, two) = (full(&one), full(&two));
        let (mut first, mut second) = (one.chunks(batch), two.chunks(batch));
        loop {
            let batches = [first.next(), second.next()];
            if batches == [None, None] {
                break;
            }
            for (thread, batch) in batches.into_iter().enumerate() {
                let batch = batch.unwrap_or_default();
                fast.records(thread as u32, batch);
                slow.records(thread as u32, batch);
            }
        }
        prop_assert_eq!(fast.curve(), slow.curve());
    }

    /// The twin keeps the stacks of each thread for ever.
    #[test]
    fn threads_that_end_leave_their_distances(
        sizes in sizes(), sharing in sharing(), one in deeds(), two in deeds(),
    ) {
        let streams = [full(&one), full(&two)];
        let mut fast = StackDistances::new(&sizes, sharing);
        let mut slow = NaiveDistances::new(&sizes, sharing);
        for thread in 1..5 {
            // Thread 0 lives on.
            for number in [0, thread] {
                fast.records(number, &streams[thread as usize % 2]);
                slow.records(number, &streams[thread as usize % 2]);
            }
            fast.end_thread(thread);
        }
        prop_assert_eq!(fast.stacks(), 1);
        prop_assert_eq!(fast.curve(), slow.curve());
    }

    #[test]
    fn the_filter_changes_no_miss(sizes in sizes(), deeds in deeds()) {
        let full = full(&deeds);
        let mut filtered = Vec::new();
        FilterModel::new(&sizes.filter()).apply(&full, &mut filtered);
        prop_assert_eq!(fast(&sizes, &filtered), fast(&sizes, &full));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn each_point_is_a_simulated_cache(sizes in sizes(), deeds in deeds()) {
        let records = full(&deeds);
        for (bytes, misses) in fast(&sizes, &records).points {
            let ways = (bytes / sizes.sets() / u64::from(sizes.line_bytes())) as u32;
            let geometry = Geometry::cache(bytes, ways, sizes.line_bytes());
            let mut hierarchy =
                Hierarchy::new(&Levels { instruction: Some(geometry), ..Levels::data_only(geometry) }).unwrap();
            hierarchy.records(0, &records);
            let found = hierarchy.counts().cache(0);
            prop_assert_eq!(found.loads, misses.loads);
            prop_assert_eq!(found.instructions, misses.instructions);
            prop_assert_eq!(found.stores, misses.stores);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn what_warms_a_cache_does_not_count(
        sizes in sizes(), deeds in deeds(), counts in prop::collection::vec(any::<bool>(), 1..8), batch in 1usize..30,
    ) {
        let records = full(&deeds);
        let mut fast = StackDistances::new(&sizes, Sharing::PerThread);
        let mut slow = NaiveDistances::new(&sizes, Sharing::PerThread);
        let mut expected: Vec<Misses> = slow.curve().points.iter().map(|_| Misses::default()).collect();
        for (records, counts) in records.chunks(batch).zip(counts.iter().cycle()) {
            let before = slow.curve();
            slow.records(0, records);
            if !counts {
                fast.warm(0, records);
                continue;
            }
            fast.records(0, records);
            for ((sum, (_, now)), (_, before)) in expected.iter_mut().zip(slow.curve().points).zip(before.points) {
                sum.loads += now.loads - before.loads;
                sum.stores += now.stores - before.stores;
                sum.instructions += now.instructions - before.instructions;
            }
        }
        let found: Vec<Misses> = fast.curve().points.into_iter().map(|(_, misses)| misses).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_curve_beside_levels_shares_their_first_one(levels in levels(), deeds in deeds()) {
        let planned = plan_levels(&levels, WriteBacks::Ignored).stream;
        let (sizes, stream) = CurveSizes::beside(&levels, &planned).unwrap();
        let records = full(&deeds);
        let mut recorded = Vec::new();
        match &stream {
            Stream::Filtered(filter) => FilterModel::new(filter).apply(&records, &mut recorded),
            _ => recorded.clone_from(&records),
        }
        let mut distances = StackDistances::new(&sizes, Sharing::PerThread).data_only();
        distances.records(0, &recorded);
        let mut hierarchy = Hierarchy::of_stream(&levels, &stream).unwrap();
        hierarchy.records(0, &recorded);
        let of_full = |(bytes, misses): (u64, Misses)| (bytes, Misses { instructions: 0, ..misses });
        let full: Vec<_> = fast(&sizes, &records).points.into_iter().map(of_full).collect();
        prop_assert_eq!(&distances.curve().points, &full);
        let data = levels.data;
        let bytes = data.sets * u64::from(data.ways) * u64::from(data.line_bytes);
        if let Some((_, misses)) = full.iter().find(|(size, _)| *size == bytes && sizes.sets() == data.sets) {
            let found = hierarchy.counts().cache(0);
            if data.store_miss == lightfoot_simulate::StoreMiss::Allocate {
                prop_assert_eq!((found.loads, found.stores), (misses.loads, misses.stores));
            }
        }
    }

    #[test]
    fn working_sets_are_sets(
        deeds in deeds(), first_window in 1u64..9, windows_max in 1usize..9, batch in 1usize..30, steps in prop::collection::vec(0u64..40, 1..9),
        sets in prop::sample::select(vec![1u32, 4, 16]),
    ) {
        let (line_bytes, windows_max) = (32u32, 2 * windows_max);
        let records = full(&deeds);
        let mut step = 0;
        let batches: Vec<(u64, &[Record])> = records.chunks(batch).zip(steps.iter().cycle()).map(|(records, more)| {
            step += more;
            (step, records)
        }).collect();
        let mut fast = WorkingSet::new(line_bytes, first_window, windows_max);
        for (step, records) in &batches {
            fast.at(*step);
            fast.records(0, records);
        }
        let windows = fast.windows();
        prop_assert!(windows.len() <= windows_max);
        prop_assert!(fast.window() == first_window || windows.len() > windows_max / 2);
        prop_assert_eq!(&windows, &touched(&batches, line_bytes, fast.window(), windows.len()));
        // Filtered, each window may lack a line for each set, and no first touch.
        let filter = CurveSizes::new(line_bytes, sets.into(), &[u64::from(line_bytes * sets)]).unwrap().filter();
        let mut model = FilterModel::new(&filter);
        let mut filtered = WorkingSet::new(line_bytes, first_window, windows_max);
        for (step, records) in &batches {
            let mut recorded = Vec::new();
            model.apply(records, &mut recorded);
            filtered.at(*step);
            filtered.records(0, &recorded);
        }
        for (found, whole) in filtered.windows().into_iter().zip(windows) {
            prop_assert_eq!((found.new_lines, found.new_pages), (whole.new_lines, whole.new_pages));
            prop_assert!(found.lines <= whole.lines && found.lines + u64::from(sets) >= whole.lines);
            prop_assert!(found.pages <= whole.pages && found.pages + u64::from(sets) >= whole.pages);
        }
    }
}

/// Windows the slow way: a set of lines and one of pages for each.
fn touched(batches: &[(u64, &[Record])], line_bytes: u32, window: u64, count: usize) -> Vec<Window> {
    let mut decoder = Decoder::new(0, line_bytes, StateLayout::default());
    let mut windows = vec![[HashSet::new(), HashSet::new()]; count];
    for (step, records) in batches {
        for record in *records {
            // What cannot be read touches nothing.
            let _ = decoder.decode(record, &Sites::default(), |reference| {
                if !matches!(reference.kind, ReferenceKind::Data(Access::Load | Access::Store)) {
                    return;
                }
                let last = reference.address.saturating_add(u64::from(reference.size_bytes.max(1)) - 1);
                for (set, bytes) in
                    windows[(step / window) as usize].iter_mut().zip([line_bytes.into(), 4096])
                {
                    set.extend(reference.address / bytes..=last / bytes);
                }
            });
        }
    }
    let mut ever = [HashSet::new(), HashSet::new()];
    let window = |sets: &[HashSet<u64>; 2]| {
        let [lines, pages] = sets;
        let new: Vec<u64> = ever
            .iter_mut()
            .zip(sets)
            .map(|(ever, set)| set.iter().filter(|&&item| ever.insert(item)).count() as u64)
            .collect();
        Window { lines: lines.len() as u64, pages: pages.len() as u64, new_lines: new[0], new_pages: new[1] }
    };
    windows.iter().map(window).collect()
}

#[test]
fn what_a_cyclic_walk_misses() {
    let sizes = CurveSizes::doubling(64, 64, 512).unwrap();
    let load = |line: u64| Record::new(event::RecordKind::Load, 8, 0, line * 64).unwrap();
    let records: Vec<Record> = (0..40).map(|n| load(n % 4)).collect();
    assert_eq!(fast(&sizes, &records).data(), [(64, 40), (128, 40), (256, 4), (512, 4)]);
}
