//! Reads only the needed sections of a file.
//!
//! A program may have a hundred megabytes of code and debug information, while a report needs only
//! the symbol tables. The buffer has the length of the file and is zero at first; headers are read
//! into it at once, sections when they are needed. The system allocates no memory for untouched
//! pages, and a parser finds a normal file as long as it uses loaded sections only. A memory map
//! would need unsafe code, because another process may change the file.

use crate::elf::File;
use crate::strings::Strings;
use object::elf::SHF_COMPRESSED;
use object::{Object, ObjectSection, SectionFlags};
use std::borrow::Cow;
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Larger files are not read.
const BYTES_MAX: u64 = 1 << 36;
/// Bytes of a 64-bit ELF header.
const HEADER_BYTES: usize = 64;

/// A file's buffer, in which sections are loaded on demand.
#[derive(Debug)]
pub(crate) struct Sparse {
    file: Option<std::fs::File>,
    bytes: Vec<u8>,
}

impl Sparse {
    /// Opens a file and reads its headers; `None` if it is not a 64-bit ELF file.
    pub(crate) fn open(path: &Path) -> Option<Sparse> {
        let file = std::fs::File::open(path).ok()?;
        let length = file.metadata().ok().filter(|about| about.is_file())?.len();
        if !(HEADER_BYTES as u64..=BYTES_MAX).contains(&length) {
            return None;
        }
        let bytes = vec![0; usize::try_from(length).ok()?];
        let mut sparse = Sparse { file: Some(file), bytes };
        sparse.read(0..HEADER_BYTES)?;
        let [segments, sections] = tables(&sparse.bytes)?;
        sparse.read(segments)?;
        sparse.read(sections.clone())?;
        // The names of sections are stored in a section; its index is at 0x3e of the header, and
        // its own header has offset and size from 0x18 on.
        let names = usize::from(u16_at(&sparse.bytes, 0x3e)?);
        let header = sections.start + names * HEADER_BYTES;
        let start = u64_at(&sparse.bytes, header + 0x18)?;
        let end = start.checked_add(u64_at(&sparse.bytes, header + 0x20)?)?;
        sparse.read(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
        sparse.parse().is_some().then_some(sparse)
    }

    /// A buffer whose bytes are all loaded.
    pub(crate) fn whole(bytes: Vec<u8>) -> Sparse {
        Sparse { file: None, bytes }
    }

    /// Numbers that change with the file: device, inode, size and times; `None` without a file.
    pub(crate) fn identity(&self) -> Option<[u64; 7]> {
        self.file.as_ref()?.metadata().ok().map(|about| identity(&about))
    }

    /// Parses the file. Only loaded sections have contents.
    pub(crate) fn parse(&self) -> Option<File<'_>> {
        File::parse(&*self.bytes).ok()
    }

    /// Loads the sections whose names `wanted` accepts; a section that cannot be read stays zero.
    pub(crate) fn load(&mut self, wanted: impl Fn(&str) -> bool) {
        if self.file.is_none() {
            return;
        }
        let Some(file) = self.parse() else { return };
        let wanted = file.sections().filter(|section| section.name().is_ok_and(&wanted));
        let ranges: Vec<(u64, u64)> = wanted.filter_map(|section| section.file_range()).collect();
        for (start, size) in ranges {
            let (Ok(start), Ok(size)) = (usize::try_from(start), usize::try_from(size)) else { continue };
            // A section that cannot be read stays zero, so it has no names.
            let _ = self.read(start..start.saturating_add(size));
        }
    }

    /// The contents of a section, in memory of their own: this buffer keeps none of them, unless
    /// the section is compressed. `None` if there is no such section.
    pub(crate) fn section(&mut self, name: &str) -> Option<Vec<u8>> {
        let parsed = self.parse()?;
        let section = parsed.section_by_name(name)?;
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return None };
        let plain =
            !sh_flags.contains(SHF_COMPRESSED) && !section.name().is_ok_and(|name| name.starts_with(".z"));
        if let Some(file) = self.file.as_ref().filter(|_| plain) {
            let (start, size) = section.file_range()?;
            // A forged size is no reason to ask for memory.
            if start.checked_add(size)? > self.bytes.len() as u64 {
                return None;
            }
            let mut contents = vec![0; usize::try_from(size).ok()?];
            file.read_exact_at(&mut contents, start).ok()?;
            return Some(contents);
        }
        self.load(|known| known == name);
        let parsed = self.parse()?;
        let section = parsed.section_by_name(name)?;
        section.uncompressed_data().ok().map(Cow::into_owned)
    }

    /// A string table, of which nothing is read yet.
    pub(crate) fn strings(&self, section: &str) -> Option<Strings> {
        let (start, size) = self.parse()?.section_by_name(section)?.file_range()?;
        let range = start..start.checked_add(size)?;
        match &self.file {
            Some(file) => Some(Strings::File(file.try_clone().ok()?, range)),
            None => {
                let (start, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
                self.bytes.get(start..end).map(|bytes| Strings::Memory(bytes.to_vec()))
            }
        }
    }

    fn read(&mut self, range: Range<usize>) -> Option<()> {
        let start = range.start as u64;
        let place = self.bytes.get_mut(range)?;
        self.file.as_ref()?.read_exact_at(place, start).ok()
    }
}

/// Numbers that change with a file: device, inode, size and times.
pub(crate) fn identity(about: &Metadata) -> [u64; 7] {
    let [mtime, ctime] = [about.mtime(), about.ctime()].map(|time| time as u64);
    let [mtime_ns, ctime_ns] = [about.mtime_nsec(), about.ctime_nsec()].map(|time| time as u64);
    [about.dev(), about.ino(), about.size(), mtime, mtime_ns, ctime, ctime_ns]
}

/// The file ranges of the program headers and of the section headers.
fn tables(header: &[u8]) -> Option<[Range<usize>; 2]> {
    let table = |offset: usize, entry_bytes: usize, count: usize| {
        let start = usize::try_from(u64_at(header, offset)?).ok()?;
        let bytes = usize::from(u16_at(header, entry_bytes)?) * usize::from(u16_at(header, count)?);
        Some(start..start.checked_add(bytes)?)
    };
    let sixty_four_bits = header.starts_with(&[0x7f, b'E', b'L', b'F', 2, 1]);
    sixty_four_bits.then_some(())?;
    Some([table(0x20, 0x36, 0x38)?, table(0x28, 0x3a, 0x3c)?])
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_read() {
        let path = std::env::current_exe().unwrap();
        let mut sparse = Sparse::open(&path).unwrap();
        let bytes = |sparse: &Sparse| {
            let file = sparse.parse().unwrap();
            let section = file.section_by_name(".symtab").unwrap();
            section.data().unwrap().iter().any(|byte| *byte != 0)
        };
        assert!(!bytes(&sparse));
        sparse.load(|name| name == ".symtab");
        assert!(bytes(&sparse));
    }

    #[test]
    fn a_section_alone_is_what_the_whole_file_has() {
        let path = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = File::parse(&*bytes).unwrap();
        let (mut sparse, mut whole) = (Sparse::open(&path).unwrap(), Sparse::whole(bytes.clone()));
        for name in [".text", ".strtab", ".debug_info", ".no such section"] {
            let expected = file.section_by_name(name);
            let expected = expected.map(|section| section.uncompressed_data().unwrap().into_owned());
            assert_eq!(sparse.section(name), expected, "{name}");
            assert_eq!(whole.section(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for text in ["", "short", &"long enough but no program, whatever its name says".repeat(3)] {
            std::fs::write(&path, text).unwrap();
            assert!(Sparse::open(&path).is_none());
        }
        let mut header = std::fs::read("/proc/self/exe").unwrap()[..64].to_vec();
        std::fs::write(&path, &header).unwrap();
        assert!(Sparse::open(&path).is_none());
        header.resize(100, 0xff);
        header[0x28..0x30].fill(0xff);
        std::fs::write(&path, &header).unwrap();
        assert!(Sparse::open(&path).is_none());
    }
}
