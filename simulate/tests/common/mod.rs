//! Random machines and streams, loop-like and wild, shared by the agreement tests.
#![allow(dead_code, reason = "each test crate uses its own part")]

use event::{
    Complex, Direction, MaskedLayout, Record, RecordKind, Segment, Shape, StateFormat, StringOperation, SIZES,
};
use lightfoot_simulate::{FetchTlb, Geometry, Levels, Outer, Sharing};
use proptest::prelude::*;

/// A geometry with at most this many ways and lines of `line_bytes`.
pub(crate) fn geometry(
    ways_max: u32,
    line_bytes: impl Strategy<Value = u32>,
) -> impl Strategy<Value = Geometry> {
    let sets = prop_oneof![Just(1u64), Just(2), Just(4), Just(8), Just(16), 1u64..20];
    let ways = prop_oneof![1..=ways_max.min(4), Just(8.min(ways_max)), 1..=ways_max];
    (sets, ways, line_bytes, any::<bool>()).prop_map(|(sets, ways, line_bytes, bypass)| {
        let geometry = Geometry::cache(sets * u64::from(ways * line_bytes), ways, line_bytes);
        if bypass {
            geometry.bypassing()
        } else {
            geometry
        }
    })
}

fn sharing() -> impl Strategy<Value = Sharing> {
    prop_oneof![Just(Sharing::PerThread), Just(Sharing::AllThreads)]
}

fn lines() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![16u32, 32, 64])
}

fn pages() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![128u32, 256])
}

/// Any levels that can be simulated.
pub(crate) fn levels() -> impl Strategy<Value = Levels> {
    let outer =
        (geometry(20, Just(64)), sharing()).prop_map(|(geometry, sharing)| Outer::new(geometry, sharing));
    let outer = prop::collection::vec(outer, 0..=2);
    let fetches = prop_oneof![
        2 => Just(FetchTlb::Unified),
        2 => geometry(18, Just(256)).prop_map(FetchTlb::Own),
        1 => Just(FetchTlb::Absent),
    ];
    let first = (prop::option::of(geometry(18, lines())), geometry(18, lines()));
    let tlbs =
        (prop::option::of(geometry(18, pages())), prop::option::of(geometry(10, pages())), any::<bool>());
    (first, outer, tlbs, (geometry(10, Just(256)), fetches)).prop_map(
        |((instruction, data), outer, (data_tlb, instruction_tlb, second), (outer_tlb, fetches))| {
            let instruction_tlb = instruction.and(data_tlb).and(instruction_tlb);
            let whole = data_tlb.is_some() && instruction_tlb.is_some() == instruction.is_some();
            let outer_tlb = (second && whole).then_some(outer_tlb);
            let whole = outer_tlb.is_some() && instruction_tlb.is_some();
            let outer_fetch_tlb = if whole { fetches } else { FetchTlb::Unified };
            let tlbs =
                Levels { instruction_tlb, data_tlb, outer_tlb, outer_fetch_tlb, ..Levels::data_only(data) };
            Levels { instruction, outer, ..tlbs }
        },
    )
}

/// What a program does next, before it is known which records show it.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// Runs a block.
    Block { block: u32, address: u64, len_bytes: u32 },
    /// Loads, stores or modifies.
    Data { kind: RecordKind, site: u32, address: u64, size_bytes: u32 },
    /// Does what one record cannot say.
    Complex { site: u32, complex: Complex },
}

impl Deed {
    /// The records of a full stream.
    pub(crate) fn record(&self, records: &mut Vec<Record>) {
        match *self {
            Deed::Block { block, address, len_bytes } => {
                let record = Record::new(RecordKind::Block, 0, block, address);
                records.extend(record.map(|record| Record { extra: len_bytes, ..record }));
            }
            Deed::Data { kind, site, address, size_bytes } => {
                records.extend(Record::new(kind, size_bytes, site, address));
            }
            Deed::Complex { site, complex } => complex.encode(site, records),
        }
    }
}

fn address() -> impl Strategy<Value = u64> {
    // Small, so that lines meet again; sometimes anywhere, up to the last byte.
    prop_oneof![8 => 0u64..2048, 4 => (0u64..64).prop_map(|line| line * 32), 1 => any::<u64>(), 1 => u64::MAX - 600..=u64::MAX]
}

fn complex() -> impl Strategy<Value = Complex> {
    use StringOperation::*;
    let direction = || prop::sample::select(vec![Direction::Load, Direction::Store]);
    let string = (
        prop::sample::select(vec![Movs, Stos, Lods, Scas, Cmps]),
        0u32..4,
        address(),
        address(),
        prop_oneof![4 => -20i64..20, 1 => -300i64..300],
    )
        .prop_map(|(operation, power, source, destination, iterations)| {
            let width = event::AddressWidth::Bits64;
            let shape = Shape::String { operation, element_bytes: 1 << power, width, segment: Segment::Flat };
            let start = if operation == Lods { source } else { destination };
            let end = start.wrapping_add((iterations << power) as u64);
            Complex::new(shape, &[source, destination, end])
        });
    let masked = (direction(), address(), any::<u64>()).prop_map(|(direction, base, mask)| {
        let shape = Shape::Masked { direction, layout: MaskedLayout::InPlace, element_bytes: 4, count: 16 };
        Complex::new(shape, &[base, mask])
    });
    let gather =
        (direction(), address(), any::<[u64; 3]>()).prop_map(|(direction, base, [mask, one, two])| {
            let width = event::AddressWidth::Bits64;
            let shape =
                Shape::Gather { direction, scale: 4, index_bytes: 4, element_bytes: 4, count: 4, width };
            Complex::new(shape, &[base, mask, one & 0xff_0000_01ff, two & 0x3f_0000_00ff])
        });
    let state = (direction(), address(), 0u64..256).prop_map(|(direction, base, mask)| {
        Complex::new(Shape::State { direction, format: StateFormat::Compact }, &[base, mask])
    });
    let sized = (direction(), address(), 1u16..300).prop_map(|(direction, base, size_bytes)| {
        Complex::new(Shape::Sized { direction, size_bytes }, &[base])
    });
    let tile = (direction(), address(), 0u64..100, 0u64..9, 0u64..65).prop_map(
        |(direction, base, stride, rows, row_bytes)| {
            Complex::new(Shape::Tile { direction }, &[base, stride, rows, row_bytes])
        },
    );
    prop_oneof![string, masked, gather, state, sized, tile]
}

fn deed() -> impl Strategy<Value = Deed> {
    let kinds = vec![RecordKind::Load, RecordKind::Store, RecordKind::Modify, RecordKind::Prefetch];
    let sizes = prop_oneof![3 => prop::sample::select(vec![1u32, 4, 8]), 1 => prop::sample::select(SIZES[..14].to_vec())];
    let data = (prop::sample::select(kinds), 0u32..40, address(), sizes)
        .prop_map(|(kind, site, address, size_bytes)| Deed::Data { kind, site, address, size_bytes });
    let block = (0u32..20, address(), 1u32..200).prop_map(|(block, address, len_bytes)| Deed::Block {
        block,
        address,
        len_bytes,
    });
    let complex = (0u32..40, complex()).prop_map(|(site, complex)| Deed::Complex { site, complex });
    prop_oneof![8 => data, 3 => block, 1 => complex]
}

/// Deeds in any order, and loops that walk over memory.
pub(crate) fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let wild = prop::collection::vec(deed(), 0..150);
    let looping =
        (prop::collection::vec(deed(), 1..8), 1usize..30, 0u64..96).prop_map(|(body, rounds, stride)| {
            let mut deeds = Vec::new();
            for round in 0..rounds as u64 {
                deeds.extend(body.iter().map(|deed| match *deed {
                    Deed::Data { kind, site, address, size_bytes } => {
                        Deed::Data { kind, site, address: address.wrapping_add(round * stride), size_bytes }
                    }
                    ref other => other.clone(),
                }));
            }
            deeds
        });
    prop_oneof![wild, looping]
}

/// The full stream of `deeds`.
pub(crate) fn full(deeds: &[Deed]) -> Vec<Record> {
    let mut records = Vec::new();
    deeds.iter().for_each(|deed| deed.record(&mut records));
    records
}
