//! Writes a small stream to a file in memory, reads it back, and counts records by kind:
//! `cargo run --example count [FILE]`; with a file, what that holds.

use lightfoot_event::file::{Header, Reader, Writer};
use lightfoot_event::{Counter, Record, RecordKind, StateLayout, Stream};
use std::io::{self, Read};

/// A loop of three instructions, a hundred times.
fn made() -> io::Result<Vec<u8>> {
    let header = Header { stream: Stream::Full, layout: StateLayout::default() };
    let mut writer = Writer::new(Vec::new(), &header)?;
    let record = |kind, site, address| Record::new(kind, 8, site, address).expect("8 bytes have a code");
    let records: Vec<Record> = (0..100)
        .flat_map(|n| [record(RecordKind::Load, 0, 0x1000 + 8 * n), record(RecordKind::Store, 1, 0x2000)])
        .collect();
    writer.records(1, &records)?;
    writer.finish()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let input: Box<dyn Read> = match std::env::args().nth(1) {
        Some(path) => Box::new(io::BufReader::new(std::fs::File::open(path)?)),
        None => Box::new(io::Cursor::new(made()?)),
    };
    let mut reader = Reader::new(input)?;
    let mut counter = Counter::default();
    let ending = reader.replay(&mut counter)?;
    for kind in
        [RecordKind::Load, RecordKind::Store, RecordKind::Modify, RecordKind::Fetch, RecordKind::Block]
    {
        println!("{:>12} {kind:?}", counter.count(kind));
    }
    println!("{:>12} records in all; the file ended: {ending:?}", counter.total());
    Ok(())
}
