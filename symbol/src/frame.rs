//! Finds functions in unwind tables: `.eh_frame` survives `strip`, because exceptions and
//! backtraces need it.
//!
//! The result is ranges of addresses without names. A table has tens of thousands of functions and
//! few common entries, and functions that follow each other nearly always name the same one; so the
//! last common entry is kept and not parsed again. Source: Linux Standard Base 5, section 10.6.1.

use crate::elf::File;
use gimli::{BaseAddresses, CieOrFde, EhFrame, EhFrameOffset, LittleEndian, UnwindSection};
use object::{Object, ObjectSection};
use std::ops::Range;

/// The address ranges of all functions with unwind information, sorted. An entry that cannot be
/// parsed ends the list.
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
    let mut entries = frames.entries(&bases);
    let mut ranges = Vec::new();
    let mut last: Option<(EhFrameOffset, _)> = None;
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(|section, bases, offset| match &last {
            Some((known, common)) if *known == offset => Ok(Clone::clone(common)),
            _ => {
                let common = section.cie_from_offset(bases, offset)?;
                last = Some((offset, common.clone()));
                Ok(common)
            }
        });
        let Ok(fde) = fde else { continue };
        let start = fde.initial_address();
        ranges.push(start..start.saturating_add(fde.len()));
    }
    ranges.sort_by_key(|range| range.start);
    ranges
}
