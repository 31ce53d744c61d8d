//! Tables of symbols, sorted and filled, kept on disk from run to run.
//!
//! **Problem.** A compiler's libraries have hundreds of thousands of symbols; to collect and sort
//! them takes longer than a small compile, in each run again. **Idea.** What was made of them is
//! kept by file, beside the lines (`kept_lines`), by the same rules: in a private folder, for the
//! same file with the same debug file and this build of the program, and with consistent numbers.
//! Names stay where they are, in the file's string tables. **Leaves out** small tables, which are
//! made as quickly as they are read.

use crate::kept_lines::{decoded, encoded, read_file, write_file, Reader};
use crate::table::{Entry, Name, Size, Symbol, Table};
use std::path::Path;

const MAGIC: &[u8; 8] = b"lfsymbl1";
/// Ends the names of files.
pub(crate) const ENDING: &str = ".symbols";
/// Tables with fewer ranges are not kept.
const RANGES_MIN: usize = 4096;
/// Marks the symbol of a range whose end is a guess.
const GUESSED: u32 = 1 << 31;

/// Numbers of the kinds of names in a file.
const UNNAMED: u32 = 0;
const LISTED: u32 = 1;
const STUB: u32 = 2;
const ALIASES: u32 = 3;
const WRITTEN: u32 = 4;

/// Reads the table that is kept of the file at `path`, and whether its gaps are filled; `None` if
/// there is none, or not of the file as `identity` describes it.
pub(crate) fn read(folder: &Path, path: &Path, identity: &[u64]) -> Option<(Table, bool)> {
    let bytes = read_file(folder, path, ENDING)?;
    decode(decoded(&bytes, MAGIC, path, identity)?)
}

/// Writes the table of the file at `path`. Nobody learns if that fails, because nothing depends on
/// it.
pub(crate) fn write(folder: &Path, (path, identity): (&Path, &[u64]), table: &Table, is_filled: bool) {
    if table.entries.len() >= RANGES_MIN && table.symbols.len() < GUESSED as usize {
        let bytes = encoded(MAGIC, path, identity, |body| encode(table, is_filled, body));
        write_file(folder, path, ENDING, &bytes);
    }
}

fn encode(table: &Table, is_filled: bool, body: &mut Vec<u8>) {
    let mut put = |number: u32| body.extend(number.to_le_bytes());
    [u32::from(is_filled), table.entries.len() as u32, table.symbols.len() as u32]
        .into_iter()
        .for_each(&mut put);
    for entry in &table.entries {
        let guessed = if entry.size == Size::Guessed { GUESSED } else { 0 };
        [entry.start as u32, (entry.start >> 32) as u32, entry.end as u32, (entry.end >> 32) as u32]
            .into_iter()
            .for_each(&mut put);
        put(entry.symbol as u32 | guessed);
    }
    let mut behind = Vec::new();
    for symbol in &table.symbols {
        let (kind, number) = match &symbol.name {
            Name::Unnamed => (UNNAMED, 0),
            Name::Listed(offset) => (LISTED, *offset),
            Name::Stub(offset) => (STUB, *offset),
            Name::Aliases(offsets) => {
                behind.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
                (ALIASES, offsets.len() as u32)
            }
            Name::Written(text) => {
                behind.extend(text.bytes());
                (WRITTEN, text.len() as u32)
            }
        };
        [symbol.address as u32, (symbol.address >> 32) as u32, kind, number].into_iter().for_each(&mut put);
    }
    body.extend(behind);
}

fn decode(mut reader: Reader<'_>) -> Option<(Table, bool)> {
    let is_filled = match reader.word()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let (ranges, symbols) = (reader.word()? as usize, reader.word()? as usize);
    let (ranges, _) = reader.take(ranges.checked_mul(20)?)?.as_chunks::<20>();
    let (rows, _) = reader.take(symbols.checked_mul(16)?)?.as_chunks::<16>();
    let word = |row: &[u8], at: usize| u32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
    let long = |row: &[u8], at: usize| u64::from(word(row, at)) | u64::from(word(row, at + 4)) << 32;
    let mut entries = Vec::with_capacity(ranges.len());
    let mut last = 0;
    for row in ranges {
        let (start, end, symbol) = (long(row, 0), long(row, 8), word(row, 16));
        let size = if symbol & GUESSED == 0 { Size::Stated } else { Size::Guessed };
        let symbol = (symbol & !GUESSED) as usize;
        // Look-ups rely on the order.
        if start < last || end <= start || symbol >= symbols {
            return None;
        }
        last = end;
        entries.push(Entry { start, end, symbol, size });
    }
    let mut all = Vec::with_capacity(symbols);
    for row in rows {
        let (address, number) = (long(row, 0), word(row, 12));
        let name = match word(row, 8) {
            UNNAMED => Name::Unnamed,
            LISTED => Name::Listed(number),
            STUB => Name::Stub(number),
            ALIASES => {
                let (offsets, _) = reader.take((number as usize).checked_mul(4)?)?.as_chunks::<4>();
                Name::Aliases(offsets.iter().map(|offset| u32::from_le_bytes(*offset)).collect())
            }
            WRITTEN => Name::Written(String::from_utf8(reader.take(number as usize)?.to_vec()).ok()?),
            _ => return None,
        };
        all.push(Symbol { address, name, function: None });
    }
    reader.is_empty().then_some((Table { entries, symbols: all }, is_filled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{At, Candidate};

    /// A table with names of all kinds, and with more ranges than the least that are kept.
    fn table() -> Table {
        let candidate =
            |start: u64, end: u64, name, size| Candidate { range: start..end, name, rank: 0, size };
        let many = (0..RANGES_MIN as u64)
            .map(|at| candidate(0x1000 + 16 * at, 0x100c + 16 * at, Name::Listed(at as u32), Size::Stated));
        let others = [
            candidate(0x1000, 0x100c, Name::Listed(7), Size::Stated),
            candidate(1 << 40, (1 << 40) + 9, Name::Stub(3), Size::Stated),
            candidate(1 << 41, (1 << 41) + 9, Name::Written("ä".into()), Size::Guessed),
            candidate(1 << 42, (1 << 42) + 9, Name::Unnamed, Size::Stated),
        ];
        Table::new(many.chain(others).collect())
    }

    fn same(one: &Table, other: &Table) -> bool {
        let names = |table: &Table| {
            table.symbols.iter().map(|symbol| (symbol.address, symbol.name.clone())).collect::<Vec<_>>()
        };
        let addresses = one.entries.iter().flat_map(|entry| [entry.start, entry.end, entry.end - 1]);
        names(one) == names(other) && addresses.chain([0, u64::MAX]).all(|at| one.find(at) == other.find(at))
    }

    #[test]
    fn a_table_is_found_again_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        let (path, identity) = (Path::new("/lib/a.so"), [7, u64::MAX]);
        let table = table();
        assert!(matches!(table.symbols[0].name, Name::Aliases(_)));
        assert!(read(place, path, &identity).is_none());
        for is_filled in [false, true] {
            write(place, (path, &identity), &table, is_filled);
            let (again, filled) = read(place, path, &identity).unwrap();
            assert!(same(&table, &again) && filled == is_filled);
            assert!(matches!(again.find(0x1004), At::Symbol(0, ..)));
        }
        // Another file, the file after a change, and a small table.
        assert!(read(place, Path::new("/lib/b.so"), &identity).is_none());
        assert!(read(place, path, &[7, 8]).is_none());
        let other = Path::new("/lib/c.so");
        write(place, (other, &identity), &Table::default(), true);
        assert!(read(place, other, &identity).is_none());
    }

    #[test]
    fn damaged_tables_are_refused_or_consistent() {
        let mut small = table();
        small.entries.drain(4..RANGES_MIN - 2);
        small.symbols.drain(4..RANGES_MIN - 2);
        small.entries.iter_mut().for_each(|entry| {
            entry.symbol = entry.symbol.min(4 + entry.symbol.saturating_sub(RANGES_MIN - 2));
        });
        let (path, identity) = (Path::new("a"), [1]);
        let encode_all = || encoded(MAGIC, path, &identity, |body| encode(&small, true, body));
        let bytes = encode_all();
        let read = |bytes: &[u8]| decode(decoded(bytes, MAGIC, path, &identity)?);
        assert!(same(&small, &read(&bytes).unwrap().0));
        let body = MAGIC.len() + 8;
        for at in 0..bytes.len() {
            assert!(read(&bytes[..at]).is_none(), "{at}");
            for change in [1, 0x80, 0xff] {
                let mut wrong = bytes.clone();
                wrong[at] ^= change;
                assert!(read(&wrong).is_none(), "{at}");
                // With the right sum, ranges are still in order and lead to symbols that exist.
                if at >= body {
                    let sum = crate::kept_lines::hash(&wrong[body..]).to_le_bytes();
                    wrong[MAGIC.len()..body].copy_from_slice(&sum);
                    if let Some((table, _)) = read(&wrong) {
                        assert!(table.entries.is_sorted_by(|one, next| one.end <= next.start));
                        assert!(table.entries.iter().all(|entry| entry.symbol < table.symbols.len()));
                    }
                }
            }
        }
    }
}
