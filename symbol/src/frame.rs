//! Finds functions in unwind tables: `.eh_frame` survives `strip`, because exceptions and
//! backtraces need it.
//!
//! The result is ranges of addresses without names. Nearly all tables have one form, which takes a
//! tenth of the time to read with nothing else in mind; other tables go the general way. Source:
//! Linux Standard Base 5, section 10.6.1.

use crate::elf::File;
use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindSection};
use object::{Object, ObjectSection};
use std::ops::Range;

type Frames<'a> = EhFrame<EndianSlice<'a, LittleEndian>>;

/// The ranges of all functions with unwind information, sorted by address. Entries that cannot be
/// read are left out.
pub(crate) fn functions(file: &File<'_>) -> Vec<Range<u64>> {
    let Some(section) = file.section_by_name(".eh_frame") else { return Vec::new() };
    let Ok(bytes) = section.uncompressed_data() else { return Vec::new() };
    let mut bases = BaseAddresses::default().set_eh_frame(section.address());
    if let Some(text) = file.section_by_name(".text") {
        bases = bases.set_text(text.address());
    }
    if let Some(got) = file.section_by_name(".got") {
        bases = bases.set_got(got.address());
    }
    let frames = EhFrame::new(&bytes, LittleEndian);
    let mut ranges =
        common(&bytes, section.address(), &frames, &bases).unwrap_or_else(|| general(&frames, &bases));
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// The ranges of a table of any form.
fn general(frames: &Frames<'_>, bases: &BaseAddresses) -> Vec<Range<u64>> {
    let mut entries = frames.entries(bases);
    let mut ranges = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else { continue };
        let start = fde.initial_address();
        ranges.push(start..start.saturating_add(fde.len()));
    }
    ranges
}

/// The ranges of a table whose addresses all are 32 bits relative to their own place; `None` if it
/// has any other form. `address` is that of the section.
fn common(bytes: &[u8], address: u64, frames: &Frames<'_>, bases: &BaseAddresses) -> Option<Vec<Range<u64>>> {
    const RELATIVE: gimli::DwEhPe = gimli::DwEhPe(gimli::DW_EH_PE_pcrel.0 | gimli::DW_EH_PE_sdata4.0);
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
    // An entry has some forty bytes.
    let mut ranges = Vec::with_capacity(bytes.len() / 32);
    let (mut at, mut known) = (0, None);
    while at < bytes.len() {
        let length = word(at)?;
        if length == 0 {
            // The linker puts one behind the last entry. In the middle, it is no common form.
            return (at + 4 >= bytes.len()).then_some(ranges);
        }
        let next = at.checked_add(4)?.checked_add(length as usize)?;
        let back = word(at + 4)? as usize;
        if length == u32::MAX || length < 12 || next > bytes.len() {
            return None;
        }
        if back != 0 {
            let common = (at + 4).checked_sub(back)?;
            if known != Some(common) {
                let entry = frames.cie_from_offset(bases, common.into()).ok()?;
                known = (entry.fde_address_encoding() == Some(RELATIVE)).then_some(common);
                known?;
            }
            let own = address.wrapping_add(at as u64 + 8);
            let start = own.wrapping_add_signed((word(at + 8)? as i32).into());
            let size = word(at + 12)?;
            if size > i32::MAX as u32 {
                return None;
            }
            ranges.push(start..start.saturating_add(size.into()));
        }
        at = next;
    }
    Some(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_form_is_read_as_the_general_one_is() {
        for path in ["/proc/self/exe", "/lib64/ld-linux-x86-64.so.2"] {
            let bytes = std::fs::read(path).unwrap();
            let file = File::parse(&*bytes).unwrap();
            let section = file.section_by_name(".eh_frame").unwrap();
            let (table, address) = (section.data().unwrap(), section.address());
            let frames = EhFrame::new(table, LittleEndian);
            let bases = BaseAddresses::default().set_eh_frame(address);
            let expected = general(&frames, &bases);
            assert!(expected.len() > 100);
            assert_eq!(common(table, address, &frames, &bases), Some(expected));
            // A table that ends within an entry has no common form.
            assert_eq!(common(&table[..(table.len() / 2) | 1], address, &frames, &bases), None);
        }
    }
}
