//! Parsed 64-bit little-endian ELF files and their segments of code. Other files are not read.
//!
//! All readers of parts of a file (symbols, stubs, unwind tables, debug information) use the parsed
//! file of this module. Source: System V ABI, chapters 4 and 5.

use object::elf::{PF_X, PT_LOAD};
use object::read::elf::{ElfFile64, ProgramHeader};

/// A 64-bit little-endian ELF file, parsed.
pub(crate) type File<'data> = ElfFile64<'data, object::LittleEndian>;

/// A segment of code: `size_bytes` bytes at offset `offset` of the file, with link address
/// `address`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) size_bytes: u64,
}

/// The segments that are loaded as executable.
pub(crate) fn code_segments(file: &File<'_>) -> Vec<Segment> {
    let endian = file.endian();
    let headers = file.elf_program_headers().iter();
    let code = headers.filter(|h| h.p_type(endian) == PT_LOAD && h.p_flags(endian).contains(PF_X));
    let segment = |h: &object::elf::ProgramHeader64<object::LittleEndian>| Segment {
        offset: h.p_offset(endian),
        address: h.p_vaddr(endian),
        size_bytes: h.p_filesz(endian),
    };
    code.map(segment).collect()
}

impl Segment {
    /// The link address of the byte at `offset` of the file, if the segment holds it.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let within = offset.wrapping_sub(self.offset);
        (within < self.size_bytes).then(|| self.address.wrapping_add(within))
    }

    /// The offset in the file of the byte with link address `address`, if the segment holds it.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        let within = address.wrapping_sub(self.address);
        (within < self.size_bytes).then(|| self.offset.wrapping_add(within))
    }
}
