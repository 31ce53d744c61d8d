//! Dumps of generated code: a header, then records of what was loaded and moved.
//!
//! ```text
//!   header   magic "JiTD" | version | bytes of the header | machine | 0 | process | time | flags
//!   record   kind | bytes of the record | time | payload
//!   load     process | thread | address | address | bytes of code | number | name \0 | code
//!   move     process | thread | address | old address | new address | bytes | number
//! ```
//!
//! The first four bytes tell the order of bytes; only this machine's is read, because the dump is
//! one of a program that ran here. Records of other kinds are passed over.

use super::ranges::Ranges;
use std::io::{self, Read};

const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
const LOAD: u32 = 0;
const MOVE: u32 = 1;
/// Bytes of the header as version 1 has it.
const HEADER_BYTES: usize = 40;
/// Bytes before the payload of each record.
const PREFIX_BYTES: usize = 16;
/// A record that says it has more is no record, and ends the reading: code of 256 MB.
const RECORD_BYTES_MAX: usize = 1 << 28;

/// Reads the names of a dump, up to its end or to the first record that is none.
pub(super) fn read(mut dump: impl Read, ranges: &mut Ranges) {
    let Some(()) = header(&mut dump) else { return };
    let mut payload = Vec::new();
    while let Some(kind) = record(&mut dump, &mut payload) {
        match kind {
            LOAD => loaded(&payload, ranges),
            MOVE => moved(&payload, ranges),
            _ => Some(()),
        };
    }
}

/// Reads the header, with what later versions append to it.
fn header(dump: &mut impl Read) -> Option<()> {
    let mut bytes = [0; HEADER_BYTES];
    dump.read_exact(&mut bytes).ok()?;
    let known = u32_at(&bytes, 0)? == MAGIC && u32_at(&bytes, 4)? == VERSION;
    let more = u64::from(u32_at(&bytes, 8)?).checked_sub(HEADER_BYTES as u64)?;
    let skipped = io::copy(&mut dump.take(more), &mut io::sink()).ok()?;
    (known && skipped == more).then_some(())
}

/// Reads a record into `payload`, and returns its kind.
fn record(dump: &mut impl Read, payload: &mut Vec<u8>) -> Option<u32> {
    let mut prefix = [0; PREFIX_BYTES];
    dump.read_exact(&mut prefix).ok()?;
    let bytes = (u32_at(&prefix, 4)? as usize).checked_sub(PREFIX_BYTES)?;
    payload.clear();
    // The buffer grows with what there is, because a damaged file may promise anything.
    let read = dump.take(bytes.min(RECORD_BYTES_MAX) as u64).read_to_end(payload).ok()?;
    (read == bytes).then_some(())?;
    u32_at(&prefix, 0)
}

fn loaded(payload: &[u8], ranges: &mut Ranges) -> Option<()> {
    const NAME: usize = 40;
    let (address, bytes) = (u64_at(payload, 16)?, u64_at(payload, 24)?);
    let name = payload.get(NAME..)?.split(|&byte| byte == 0).next()?;
    let name = String::from_utf8_lossy(name).into_owned();
    ranges.name(address..address.checked_add(bytes)?, name);
    Some(())
}

fn moved(payload: &[u8], ranges: &mut Ranges) -> Option<()> {
    ranges.move_to(u64_at(payload, 16)?, u64_at(payload, 24)?);
    Some(())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
