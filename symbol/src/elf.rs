//! The one kind of file that is read: 64-bit little-endian ELF, and its segments of code.
//!
//! Every reader of a part of a file (symbols, stubs, unwind tables, debug information) takes the
//! parsed file from here, and none takes it from another reader. Source: System V ABI, chapters 4
//! and 5.

use object::elf::{PF_X, PT_LOAD};
use object::read::elf::{ElfFile64, ProgramHeader};

/// A 64-bit little-endian ELF file, parsed.
pub(crate) type File<'data> = ElfFile64<'data, object::LittleEndian>;

/// A segment of code: `size_bytes` bytes of the file at `offset` are mapped at `address` of the
/// file's own addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) size_bytes: u64,
}

/// The segments that are loaded to be executed.
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
    /// The file's own address of what lies at `offset` in it.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let within = offset.wrapping_sub(self.offset);
        (within < self.size_bytes).then(|| self.address.wrapping_add(within))
    }

    /// Where in the file that lies which has this `address`.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        let within = address.wrapping_sub(self.address);
        (within < self.size_bytes).then(|| self.offset.wrapping_add(within))
    }
}
