//! Holds a stream against the definition, and decodes a complex reference:
//! `cargo run --example check`.

use lightfoot_event::{
    AddressWidth, Check, Complex, Record, RecordKind, Segment, Shape, Sink, StateLayout, Stream,
    StringOperation,
};

fn main() {
    // `rep movsq` of three elements from 0x1000 to 0x2000: one group of records.
    let shape = Shape::String {
        operation: StringOperation::Movs,
        element_bytes: 8,
        width: AddressWidth::Bits64,
        segment: Segment::Flat,
    };
    let copy = Complex::new(shape, &[0x1000, 0x2000, 0x2018]);
    let mut records = Vec::new();
    copy.encode(4, &mut records);
    println!("{} records stand for:", records.len());
    copy.references(&StateLayout::default(), |address, size_bytes, access| {
        println!("  {access:?} of {size_bytes} bytes at {address:#x}");
    });

    // A stream of counts carries such groups, and no plain load.
    records.extend(Record::new(RecordKind::Load, 8, 5, 0x3000));
    let mut check = Check::new(Stream::Counts, None);
    check.records(1, &records);
    check.finish();
    for violation in &check.violations {
        println!("record {} of thread {}: {:?}", violation.index, violation.thread, violation.fault);
    }
    assert_eq!(check.violation_count, 1, "the load");
}
