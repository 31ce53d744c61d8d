//! The misses of caches of many sizes from one pass: `cargo run --example curve`.

use lightfoot_simulate::distance::{CurveSizes, SizesError, StackDistances};
use lightfoot_simulate::event::{Record, RecordKind};
use lightfoot_simulate::Sharing;

fn main() -> Result<(), SizesError> {
    // A table of 16 KiB read over and over, and beside it a stream over 1 MiB.
    let table = (0..20_000u64).map(|n| 0x10_0000 + n * 64 % (16 << 10));
    let stream = (0..20_000u64).map(|n| 0x100_0000 + n * 208 % (1 << 20));
    let addresses = table.zip(stream).flat_map(|(one, other)| [one, other]);
    let records: Vec<Record> = addresses.filter_map(|at| Record::new(RecordKind::Load, 8, 0, at)).collect();

    let sizes = CurveSizes::doubling(64, 1 << 10, 8 << 20)?;
    let mut distances = StackDistances::new(&sizes, Sharing::AllThreads);
    distances.records(0, &records);
    for (bytes, misses) in distances.curve().data() {
        println!("{:>6} KiB {misses:>8} misses of {}", bytes >> 10, records.len());
    }
    Ok(())
}
