//! Adds a section with data to an executable, in a way that tools that rewrite executables keep it.
//!
//! `strip` and `objcopy` drop bytes behind the end of an ELF file, but keep a section that no
//! segment loads. The section is added without moving anything that exists:
//!
//! ```text
//! before:  header │ segments … │ names │ section table
//! after:   header │ segments … │ names │ section table │ carried bytes │ names' │ section table'
//!            └── its pointer to the table changes ─────────────────────────────────▲
//! ```
//!
//! The old names and the old table stay behind as unused bytes. **Leaves out** 32-bit and
//! big-endian files: the file is lightfoot's own. Source: System V Application Binary Interface,
//! chapter 4.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The section's name.
const NAME: &[u8] = b".lightfoot\0";
const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 64;
/// The most sections of a file that are read; an executable of this project has about forty.
const ENTRIES_MAX: usize = 4096;
/// The most bytes of section names that are read.
const NAMES_MAX: u64 = 1 << 20;

/// Offsets of fields in the file's header and in an entry of the section table.
mod field {
    pub(super) const TABLE: usize = 0x28;
    pub(super) const ENTRY_BYTES: usize = 0x3a;
    pub(super) const ENTRIES: usize = 0x3c;
    pub(super) const NAMES_INDEX: usize = 0x3e;
    pub(super) const KIND: usize = 4;
    pub(super) const OFFSET: usize = 24;
    pub(super) const SIZE: usize = 32;
    pub(super) const ALIGNMENT: usize = 48;
}

/// `SHT_PROGBITS`: bytes whose meaning is the program's own.
const PROGRAM_BITS: u32 = 1;

fn half(bytes: &[u8], at: usize) -> usize {
    u16::from_le_bytes([bytes[at], bytes[at + 1]]).into()
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn set_long(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// The file range of the section that an entry of the section table describes.
fn place(entry: &[u8]) -> Option<Range<u64>> {
    let start = long(entry, field::OFFSET);
    Some(start..start.checked_add(long(entry, field::SIZE))?)
}

/// The section table as the file's header describes it.
struct Table {
    offset: u64,
    entries: usize,
    names_index: usize,
}

impl Table {
    /// Reads the header; `None` if it is not of a file that this module supports.
    fn of(header: &[u8]) -> Option<Table> {
        let understood = header.len() >= HEADER_BYTES && header.starts_with(b"\x7fELF\x02\x01");
        if !understood || half(header, field::ENTRY_BYTES) != ENTRY_BYTES {
            return None;
        }
        let (entries, names_index) = (half(header, field::ENTRIES), half(header, field::NAMES_INDEX));
        let offset = long(header, field::TABLE);
        (names_index < entries && entries < ENTRIES_MAX).then_some(Table { offset, entries, names_index })
    }
}

/// Adds section `carried` to an executable; `None` if that has no section table.
pub(super) fn with_section(executable: &[u8], carried: &[u8]) -> Option<Vec<u8>> {
    let table = Table::of(executable)?;
    let start = usize::try_from(table.offset).ok()?;
    let mut entries = executable.get(start..start.checked_add(table.entries * ENTRY_BYTES)?)?.to_vec();
    let names_entry = table.names_index * ENTRY_BYTES;
    let names = place(&entries[names_entry..])?;
    let names = executable.get(usize::try_from(names.start).ok()?..usize::try_from(names.end).ok()?)?;
    let mut file = executable.to_vec();
    let carried_at = file.len() as u64;
    file.extend_from_slice(carried);
    // A copy of all names, with the new one behind them.
    let names_at = file.len() as u64;
    let name = u32::try_from(names.len()).ok()?;
    file.extend_from_slice(names);
    file.extend_from_slice(NAME);
    set_long(&mut entries, names_entry + field::OFFSET, names_at);
    set_long(&mut entries, names_entry + field::SIZE, (names.len() + NAME.len()) as u64);
    let mut entry = [0; ENTRY_BYTES];
    entry[..4].copy_from_slice(&name.to_le_bytes());
    entry[field::KIND..field::KIND + 4].copy_from_slice(&PROGRAM_BITS.to_le_bytes());
    set_long(&mut entry, field::OFFSET, carried_at);
    set_long(&mut entry, field::SIZE, carried.len() as u64);
    set_long(&mut entry, field::ALIGNMENT, 1);
    // Programs map the table as an array of structures, so it must be aligned.
    file.resize(file.len().next_multiple_of(8), 0);
    let table_at = file.len() as u64;
    file.extend_from_slice(&entries);
    file.extend_from_slice(&entry);
    set_long(&mut file, field::TABLE, table_at);
    let count = u16::try_from(table.entries + 1).ok()?;
    file[field::ENTRIES..field::ENTRIES + 2].copy_from_slice(&count.to_le_bytes());
    Some(file)
}

/// The file range of the section in `file`, if there is one; this takes three short reads.
pub(super) fn section(file: &File) -> Option<Range<u64>> {
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0).ok()?;
    let table = Table::of(&header)?;
    let mut entries = vec![0; table.entries * ENTRY_BYTES];
    file.read_exact_at(&mut entries, table.offset).ok()?;
    let names = place(&entries[table.names_index * ENTRY_BYTES..])?;
    let mut text = vec![0; usize::try_from((names.end - names.start).min(NAMES_MAX)).ok()?];
    file.read_exact_at(&mut text, names.start).ok()?;
    let mut entries = entries.chunks_exact(ENTRY_BYTES);
    let name = |entry: &[u8]| u32::from_le_bytes(std::array::from_fn(|byte| entry[byte])) as usize;
    let ours = entries.find(|entry| text.get(name(entry)..).is_some_and(|text| text.starts_with(NAME)))?;
    place(ours)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A file with an empty section and one of names, and nothing to run.
    pub(in crate::command) fn smallest() -> Vec<u8> {
        let names = b"\0.shstrtab\0";
        let mut file = vec![0; HEADER_BYTES];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file.extend_from_slice(names);
        file.resize(file.len().next_multiple_of(8), 0);
        let table_at = file.len() as u64;
        file.extend_from_slice(&[0; ENTRY_BYTES]);
        let mut entry = [0; ENTRY_BYTES];
        entry[0] = 1;
        entry[field::KIND] = 3;
        set_long(&mut entry, field::OFFSET, HEADER_BYTES as u64);
        set_long(&mut entry, field::SIZE, names.len() as u64);
        file.extend_from_slice(&entry);
        set_long(&mut file, field::TABLE, table_at);
        file[field::ENTRY_BYTES] = ENTRY_BYTES as u8;
        file[field::ENTRIES] = 2;
        file[field::NAMES_INDEX] = 1;
        file
    }

    fn found(bytes: &[u8]) -> Option<Range<u64>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, bytes).unwrap();
        section(&File::open(path).unwrap())
    }

    #[test]
    fn a_section_that_was_added_is_found() {
        let plain = smallest();
        assert_eq!(found(&plain), None);
        let file = with_section(&plain, b"what it carries").unwrap();
        let at = found(&file).unwrap();
        assert_eq!(&file[at.start as usize..at.end as usize], b"what it carries");
        assert_eq!(file[..field::TABLE], plain[..field::TABLE]);
    }

    #[test]
    fn files_that_are_cut_or_lie_have_no_section() {
        let file = with_section(&smallest(), b"what it carries").unwrap();
        for length in 0..file.len() {
            assert_eq!(found(&file[..length]), None, "{length}");
            let _ = with_section(&file[..length], b"x");
        }
        for at in 0..file.len() {
            let mut changed = file.clone();
            changed[at] = 0xff;
            let _ = (found(&changed), with_section(&changed, b"x"));
        }
        assert_eq!(with_section(b"#!/bin/sh", b"x"), None);
    }
}
