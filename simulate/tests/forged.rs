//! Records that no program wrote: whatever they say, simulators count something, and end. What the
//! engine lets through is bounded (sites that exist, blocks that are short, strings that a program
//! had the time for); addresses, sizes, kinds and groups are anything here.

mod common;

use common::levels;
use event::{
    AddressWidth, Check, Complex, Decoder, Record, RecordKind, Segment, Shape, Sink, Sites, StateLayout,
    Stream, StringOperation, COMPLEX_CODE, PAYLOAD_CODE,
};
use lightfoot_simulate::distance::{CurveSizes, StackDistances, WorkingSet};
use lightfoot_simulate::{Geometry, Hierarchy, Levels, Prefetch, Refined, Sharing, POLICIES};
use proptest::prelude::*;

/// Bytes that a forged string claims, at most.
const STRING_BYTES_MAX: u64 = 1 << 16;

/// Any sixteen bytes but for lengths that the engine does not let through.
fn anything() -> impl Strategy<Value = Record> {
    (any::<u64>(), 0u32..500, any::<u8>(), any::<u32>()).prop_map(|(address, site, code, extra)| {
        let block = code >> 4 == RecordKind::Block as u8;
        Record {
            address,
            what: site << 8 | u32::from(code),
            extra: if block { extra & 0xffff } else { extra },
        }
    })
}

/// A group of any shape and any values, which may lack its end.
fn group() -> impl Strategy<Value = Vec<Record>> {
    let extra =
        (0u32..7, 0u32..10, any::<u16>()).prop_map(|(kind, k, rest)| kind | k << 8 | u32::from(rest) << 16);
    (extra, prop::array::uniform10(any::<u64>()), 0usize..11, 0u32..500).prop_map(
        |(extra, values, len, site)| {
            let record = |(n, &address): (usize, &u64)| {
                let (code, extra) = if n == 0 { (COMPLEX_CODE, extra) } else { (PAYLOAD_CODE, n as u32) };
                Record { address, what: site << 8 | u32::from(code), extra }
            };
            let mut group: Vec<Record> = values.iter().enumerate().map(record).take(len).collect();
            // Strings and tiles of any values walk for ever: theirs are below.
            if let Ok(Shape::String { .. } | Shape::Tile { .. }) = Shape::from_extra(extra) {
                group.truncate(1);
            }
            group
        },
    )
}

/// A string instruction over many bytes, anywhere.
fn string() -> impl Strategy<Value = Vec<Record>> {
    use StringOperation::*;
    let operation = prop::sample::select(vec![Movs, Stos, Lods, Scas, Cmps]);
    let width = prop::sample::select(vec![AddressWidth::Bits64, AddressWidth::Bits32]);
    let moved = -(STRING_BYTES_MAX as i64)..STRING_BYTES_MAX as i64;
    (operation, 0u32..4, width, any::<[u64; 2]>(), moved).prop_map(
        |(operation, power, width, [one, two], moved)| {
            let shape = Shape::String { operation, element_bytes: 1 << power, width, segment: Segment::Flat };
            let start = if operation == Lods { one } else { two };
            let mut group = Vec::new();
            Complex::new(shape, &[one, two, start.wrapping_add(moved as u64)]).encode(3, &mut group);
            group
        },
    )
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let some = prop_oneof![6 => anything().prop_map(|record| vec![record]), 3 => group()];
    (prop::collection::vec(some, 0..300), prop::collection::vec(string(), 0..2)).prop_map(
        |(some, strings)| {
            let mut all = some.concat();
            all.extend(strings.concat());
            all
        },
    )
}

fn feed(sink: &mut impl Sink, records: &[Record], batch: usize) {
    for (n, part) in records.chunks(batch).enumerate() {
        sink.records(n as u32 % 3, part);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: prop::test_runner::RngSeed::Fixed(21), ..ProptestConfig::with_cases(150) })]

    #[test]
    fn hierarchies_take_anything(levels in levels(), records in records(), batch in 1usize..200) {
        let mut hierarchy = Hierarchy::new(&levels).unwrap();
        feed(&mut hierarchy, &records, batch);
        let counts = hierarchy.counts();
        prop_assert!(counts.sites.len() <= 500 && counts.blocks.len() <= 500);
        let totals = hierarchy.totals();
        prop_assert!(totals.caches[0].total() <= records.len() as u64 * 4 * STRING_BYTES_MAX);
    }

    #[test]
    fn refined_levels_take_anything(levels in levels(), records in records(), batch in 1usize..200, policy in prop::sample::select(POLICIES.to_vec())) {
        let mut levels: Levels = levels;
        levels.data.policy = policy;
        levels.data = levels.data.with_prefetch(Prefetch::NextLine);
        let Ok(mut refined) = Refined::new(&levels) else { return Ok(()) };
        feed(&mut refined, &records, batch);
        prop_assert!(refined.counts().sites.len() <= 500);
    }

    #[test]
    fn curves_and_working_sets_take_anything(records in records(), batch in 1usize..200) {
        let sizes = CurveSizes::doubling(64, 64, 1 << 16).unwrap();
        let mut distances = StackDistances::new(&sizes, Sharing::PerThread);
        feed(&mut distances, &records, batch);
        let curve = distances.curve();
        prop_assert!(curve.data().is_sorted_by(|small, large| small.1 >= large.1), "{:?}", curve);
        let mut touched = WorkingSet::new(64, 100, 16);
        for (n, part) in records.chunks(batch).enumerate() {
            touched.at(n as u64 * 10);
            touched.records(n as u32 % 3, part);
        }
        prop_assert!(!touched.windows().is_empty());
    }

    #[test]
    fn decoders_and_checkers_take_anything(some in prop::collection::vec(prop_oneof![anything().prop_map(|record| vec![record]), group()], 0..300)) {
        let records = some.concat();
        for stream in [Stream::Nothing, Stream::Counts, Stream::Full] {
            let mut check = Check::new(stream, Some(Sites::default()));
            feed(&mut check, &records, 7);
            check.finish();
        }
        let mut decoder = Decoder::new(0, 64, StateLayout::default());
        for record in &records {
            // What cannot be read is counted.
            let _ = decoder.decode(record, &Sites::default(), |_| ());
        }
    }
}

/// A string as long as a program of a few milliseconds can claim is walked line by line: element by
/// element this test would take minutes.
#[test]
fn a_long_string_is_walked_by_lines() {
    for width in [AddressWidth::Bits64, AddressWidth::Bits32] {
        let (operation, segment) = (StringOperation::Movs, Segment::Flat);
        let shape = Shape::String { operation, element_bytes: 1, width, segment };
        let (bytes, source, destination) = (1u64 << 27, 0x1000_0000u64, 0x4000_0100u64);
        let mut group = Vec::new();
        Complex::new(shape, &[source, destination, destination + bytes]).encode(3, &mut group);
        let levels = Levels::data_only(Geometry::cache(32 << 10, 8, 64));
        let mut hierarchy = Hierarchy::new(&levels).unwrap();
        hierarchy.records(0, &group);
        let mut refined = Refined::new(&levels).unwrap();
        refined.records(0, &group);
        let sizes = CurveSizes::doubling(64, 64, 1 << 16).unwrap();
        let mut distances = StackDistances::new(&sizes, Sharing::PerThread);
        distances.records(0, &group);
        let mut touched = WorkingSet::new(64, 100, 16);
        touched.records(0, &group);
        let lines = bytes / 64;
        for counts in [hierarchy.counts(), refined.counts()] {
            assert_eq!((counts.complex[3].loads, counts.complex[3].stores), (bytes, bytes));
            assert_eq!((counts.cache(0).loads, counts.cache(0).stores), (lines, lines));
        }
        // One line is too little for two that take turns.
        let curve = distances.curve().data();
        assert_eq!(curve[0], (64, 2 * bytes));
        assert!(curve[1..].iter().all(|&(_, misses)| misses == 2 * lines), "{curve:?}");
        assert_eq!(touched.windows()[0].lines, 2 * lines);
    }
}
