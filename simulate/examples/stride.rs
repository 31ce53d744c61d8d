//! Walks over a table with several strides and prints how often each level misses:
//! `cargo run --example stride`.
//!
//! Nothing is instrumented: the addresses come from a loop.

use lightfoot_simulate::event::{Record, RecordKind};
use lightfoot_simulate::{Geometry, GeometryError, Hierarchy, Levels};

/// Bytes of the table.
const TABLE_BYTES: u64 = 1 << 20;

/// Loads of 8 bytes over the table, `stride_bytes` apart; the first pass warms the caches.
fn walk(stride_bytes: u64) -> Vec<Record> {
    let pass = (0..TABLE_BYTES).step_by(stride_bytes as usize);
    let load = |offset| Record::new(RecordKind::Load, 8, 0, 0x10_0000 + offset);
    pass.clone().chain(pass).filter_map(load).collect()
}

fn main() -> Result<(), GeometryError> {
    let first = Geometry::cache(32 << 10, 8, 64);
    let levels = Levels::two_level(first, first, Geometry::cache(2 << 20, 16, 64));
    println!("{:>6} {:>10} {:>10} {:>10}", "stride", "loads", "L1D", "L2");
    for stride_bytes in [8, 16, 64, 256, 4096] {
        let records = walk(stride_bytes);
        let mut hierarchy = Hierarchy::new(&levels)?;
        hierarchy.records(0, &records);
        let counts = hierarchy.counts();
        let [first, second] = [0, 1].map(|level| counts.cache(level).loads);
        println!("{stride_bytes:>6} {:>10} {first:>10} {second:>10}", records.len());
    }
    Ok(())
}
