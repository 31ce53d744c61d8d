//! Complex references: hand-made examples of each shape, and round trips of all.

use lightfoot_event::{
    masked_reference, Access, AddressWidth, Complex, Direction, Groups, Malformed, MaskedLayout, Record,
    Segment, Shape, StateFormat, StateLayout, Step, StringOperation,
};
use proptest::prelude::*;
use Access::{Load, Store};

fn check(shape: Shape, values: &[u64], expected: &[(u64, u32, Access)]) {
    let complex = Complex::new(shape, values);
    let mut group = Vec::new();
    complex.encode(77, &mut group);
    assert_eq!(Complex::decode(&group), Ok(complex));
    let mut found = Vec::new();
    complex.references(&StateLayout::default(), |address, size, access| found.push((address, size, access)));
    assert_eq!(found, expected, "{complex:?}");
}

fn string(operation: StringOperation, element_bytes: u8) -> Shape {
    Shape::String { operation, element_bytes, width: AddressWidth::Bits64, segment: Segment::Flat }
}

#[test]
fn strings() {
    use StringOperation::*;
    check(
        string(Movs, 8),
        &[0x100, 0x200, 0x210],
        &[(0x100, 8, Load), (0x200, 8, Store), (0x108, 8, Load), (0x208, 8, Store)],
    );
    // Direction flag set: it walks down.
    check(string(Stos, 2), &[0, 0x200, 0x1fc], &[(0x200, 2, Store), (0x1fe, 2, Store)]);
    check(string(Lods, 4), &[0x100, 0xdead, 0x104], &[(0x100, 4, Load)]);
    check(string(Scas, 1), &[0, 0x200, 0x200], &[]);
    check(string(Cmps, 1), &[0x100, 0x200, 0x201], &[(0x100, 1, Load), (0x200, 1, Load)]);
    // 32-bit offsets wrap below the segment base.
    let shape = Shape::String {
        operation: Lods,
        element_bytes: 8,
        width: AddressWidth::Bits32,
        segment: Segment::Based,
    };
    check(shape, &[0xffff_fff8, 0, 8, 1 << 40], &[(0x100_ffff_fff8, 8, Load), (1 << 40, 8, Load)]);
}

#[test]
fn masked_and_gathered() {
    let masked = |layout| Shape::Masked { direction: Direction::Store, layout, element_bytes: 4, count: 16 };
    check(masked(MaskedLayout::InPlace), &[0x1000, 0b0110_1000], &[(0x100c, 16, Store)]);
    check(masked(MaskedLayout::InPlace), &[0x1000, 0xff_0000], &[]);
    check(masked(MaskedLayout::Packed), &[0x1000, 0b0110_1000], &[(0x1000, 12, Store)]);
    check(masked(MaskedLayout::Broadcast), &[0x1000, 0x8000], &[(0x1000, 4, Store)]);
    let gather = Shape::Gather {
        direction: Direction::Load,
        scale: 8,
        index_bytes: 4,
        element_bytes: 8,
        count: 4,
        width: AddressWidth::Bits64,
    };
    let indices = [3 << 32 | 2, 0xffff_ffff << 32 | 5];
    check(
        gather,
        &[0x1000, 0b1011, indices[0], indices[1]],
        &[(0x1010, 8, Load), (0x1018, 8, Load), (0xff8, 8, Load)],
    );
}

#[test]
fn areas() {
    let state = |format| Shape::State { direction: Direction::Load, format };
    check(state(StateFormat::Standard), &[0x40, 0b111], &[(0x40, 832, Load)]);
    check(state(StateFormat::Compact), &[0x40, 0b110_0111], &[(0x40, 576 + 256 + 64 + 512, Load)]);
    check(state(StateFormat::Compact), &[0x40, 1 << 18 | 0b10_0011], &[(0x40, 640 + 8192, Load)]);
    check(state(StateFormat::Restore), &[0x40, 0b111, 0], &[(0x40, 832, Load)]);
    check(state(StateFormat::Restore), &[0x40, 0b100_011, 1 << 63 | 0b100_111], &[(0x40, 896, Load)]);
    check(Shape::Sized { direction: Direction::Store, size_bytes: 300 }, &[5], &[(5, 300, Store)]);
    let tile = Shape::Tile { direction: Direction::Store };
    check(tile, &[0x1000, 0x100, 2, 64], &[(0x1000, 64, Store), (0x1100, 64, Store)]);
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Load), Just(Direction::Store)]
}

fn width() -> impl Strategy<Value = AddressWidth> {
    prop_oneof![Just(AddressWidth::Bits64), Just(AddressWidth::Bits32)]
}

fn shape() -> impl Strategy<Value = Shape> {
    use StringOperation::*;
    let power = |limit: u32| (0..=limit).prop_map(|bit| 1u8 << bit);
    let string = (prop::sample::select(vec![Movs, Stos, Lods, Scas, Cmps]), power(3), width(), any::<bool>())
        .prop_map(|(operation, element_bytes, width, based)| Shape::String {
            operation,
            element_bytes,
            width,
            segment: if based { Segment::Based } else { Segment::Flat },
        });
    let layouts = vec![MaskedLayout::InPlace, MaskedLayout::Packed, MaskedLayout::Broadcast];
    let masked = (direction(), prop::sample::select(layouts), power(5), 1u8..=64).prop_map(
        |(direction, layout, element_bytes, count)| Shape::Masked { direction, layout, element_bytes, count },
    );
    let gather = (direction(), power(3), prop::sample::select(vec![4u8, 8]), any::<bool>(), 1u8..=8, width())
        .prop_map(|(direction, scale, index_bytes, wide, half, width)| Shape::Gather {
            direction,
            scale,
            index_bytes,
            element_bytes: if wide { 8 } else { 4 },
            count: half * (8 / index_bytes),
            width,
        });
    let formats = vec![StateFormat::Standard, StateFormat::Compact, StateFormat::Restore];
    let state = (direction(), prop::sample::select(formats))
        .prop_map(|(direction, format)| Shape::State { direction, format });
    let sized = (direction(), 1u16..=0x7fff)
        .prop_map(|(direction, size_bytes)| Shape::Sized { direction, size_bytes });
    let tile = direction().prop_map(|direction| Shape::Tile { direction });
    prop_oneof![string, masked, gather, state, sized, tile]
}

proptest! {
    #[test]
    fn every_shape_survives_its_constant(shape in shape()) {
        prop_assert_eq!(Shape::from_extra(shape.extra()), Ok(shape));
    }

    #[test]
    fn every_group_survives(shape in shape(), words in prop::array::uniform10(any::<u64>()), site in 0u32..1 << 24) {
        let complex = Complex::new(shape, &words[..shape.values()]);
        let mut group = Vec::new();
        complex.encode(site, &mut group);
        prop_assert_eq!(Complex::decode(&group), Ok(complex));
        prop_assert!(group.iter().all(|record| record.site() == site as usize));
        prop_assert!(Complex::decode(&group[..group.len() - 1]).is_err());
    }

    #[test]
    fn constants_are_unique(extra in any::<u32>()) {
        if let Ok(shape) = Shape::from_extra(extra) {
            prop_assert_eq!(shape.extra(), extra);
        }
    }
}

proptest! {
    /// A group is taken at once exactly where its records, taken one by one, make a whole masked
    /// access; what it then holds is the same.
    #[test]
    fn masked_accesses_taken_at_once_are_those_taken_one_by_one(
        shapes in prop::collection::vec(shape(), 1..6), words in prop::array::uniform10(any::<u64>()), hurt in 0usize..12, cut in any::<bool>(),
    ) {
        let (mut at_once, mut one_by_one) = (Groups::default(), Groups::default());
        for shape in shapes {
            let mut group = Vec::new();
            Complex::new(shape, &words[..shape.values()]).encode(7, &mut group);
            match (hurt, &mut group[..]) {
                (0, [first, ..]) => first.extra ^= 1 << 31,
                (1, [_, .., last]) => last.what ^= 1 << 8,
                (2, [_, .., last]) => last.extra ^= 2,
                _ => {}
            }
            group.truncate(group.len() - usize::from(cut));
            let taken = at_once.masked(&group);
            let mut whole = None;
            for record in &group {
                if let Step::Whole(site, complex) = one_by_one.push(record) {
                    prop_assert_eq!(site, 7);
                    whole = Some(complex).filter(|complex| matches!(complex.shape, Shape::Masked { .. }));
                }
            }
            if one_by_one.is_open() {
                one_by_one = Groups::default();
            }
            prop_assert_eq!(taken, whole.map(|complex| (complex.shape, [complex.values[0], complex.values[1]])));
            if let Some(complex) = whole {
                let mut references = Vec::new();
                complex.references(&StateLayout::default(), |address, size_bytes, access| references.push((address, size_bytes, access)));
                let [base, mask, ..] = complex.values;
                prop_assert_eq!(masked_reference(complex.shape, base, mask).into_iter().collect::<Vec<_>>(), references);
            }
        }
    }
}

#[test]
fn damage_is_named() {
    let tile = Complex::new(Shape::Tile { direction: Direction::Load }, &[1, 2, 3, 4]);
    let mut group = Vec::new();
    tile.encode(9, &mut group);
    assert_eq!(Complex::decode(&group[1..]), Err(Malformed::NotComplex));
    assert_eq!(Complex::decode(&group[..3]), Err(Malformed::Values(3, 4)));
    group[2].extra = 7;
    assert_eq!(Complex::decode(&group), Err(Malformed::Payload(2)));
    group[0].extra = 0xff;
    assert_eq!(Complex::decode(&group), Err(Malformed::UnknownShape(0xff)));
    assert_eq!(Complex::decode(&[Record::default()]), Err(Malformed::NotComplex));
}

/// What a reference touches: its first and last block, its size and direction.
fn blocks(line_bytes: u64) -> impl Fn(&(u64, u32, Access)) -> (u64, u64, u32, Access) {
    move |&(address, size_bytes, access)| {
        let last = address.wrapping_add(u64::from(size_bytes.max(1)) - 1);
        (address / line_bytes, last / line_bytes, size_bytes, access)
    }
}

proptest! {
    /// Stretches are the references, block by block; only references within one block are put
    /// together.
    #[test]
    fn stretches_are_the_references(
        shape in shape(), source in any::<u64>(), destination in any::<u64>(), iterations in -300i64..300,
        base in any::<u64>(), line in 2u32..9,
    ) {
        let mut values = [source, destination, 0, base, base, 0, 0, 0, 0, 0];
        if let Shape::String { operation, element_bytes, .. } = shape {
            let start = if operation == StringOperation::Lods { source } else { destination };
            values[2] = start.wrapping_add((iterations * i64::from(element_bytes)) as u64);
        }
        let complex = Complex::new(shape, &values[..shape.values()]);
        let (layout, line_bytes) = (StateLayout::default(), 1 << line);
        let of = blocks(line_bytes);
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        complex.references(&layout, |address, size, access| expected.push(of(&(address, size, access))));
        let made = |wanted| expected.iter().filter(|(.., access)| *access == wanted).count() as u64;
        prop_assert_eq!(complex.loads_and_stores(&layout), (made(Load), made(Store)));
        let mut calls = 0u64;
        let mut together = true;
        complex.stretches(&layout, line_bytes, |references, times| {
            calls += 1;
            together &= times == 1 || references.iter().map(&of).all(|(first, last, ..)| first == last);
            (0..times).for_each(|_| found.extend(references.iter().map(&of)));
        });
        prop_assert_eq!(found, expected);
        prop_assert!(together);
        if let Shape::String { element_bytes: 1, .. } = shape {
            prop_assert!(calls <= 2 * (300 / line_bytes + 3), "{} calls", calls);
        }
    }
}

#[test]
fn extra_words_of_frequent_masked_accesses_are_known_by_their_bits() {
    let (has, may) = Shape::MASKED_EXTRA;
    let mut shapes = 0;
    for fields in 0..1u32 << 16 {
        let extra = has | fields << 16;
        if extra & !may == has {
            let shape = Shape::from_extra(extra).expect("a shape");
            assert!(matches!(shape, Shape::Masked { .. }) && shape.values() == 2, "{shape:?}");
            shapes += 1;
        }
    }
    // Two directions, two layouts, four sizes of elements, and as many elements as 64.
    assert_eq!(shapes, 2 * 2 * 4 * 64);
}
