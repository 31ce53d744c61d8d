//! Files of which only the needed sections are read.
//!
//! A program may be a hundred megabytes of code and debug information, of which a report needs the
//! symbol tables. The buffer is as long as the file and zero; headers are read into their places at
//! once, sections as they are asked for. Untouched pages of it cost nothing, and a parser cannot
//! tell it from the whole file as long as it keeps to loaded sections. (A memory map would be
//! unsafe code: the file may change under it.)

use crate::elf::File;
use object::{Object, ObjectSection};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Larger files are not looked at.
const BYTES_MAX: u64 = 1 << 36;
/// Bytes of a 64-bit ELF header.
const HEADER_BYTES: usize = 64;

/// The buffer.
#[derive(Debug)]
pub(crate) struct Sparse {
    file: Option<std::fs::File>,
    bytes: Vec<u8>,
}

impl Sparse {
    /// A file's headers; `None` where it is no 64-bit ELF file.
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
        // The names of sections are a section themselves; its index stands at 0x3e, a header holds
        // offset and size at 0x18.
        let names = usize::from(u16_at(&sparse.bytes, 0x3e)?);
        let header = sections.start + names * HEADER_BYTES;
        let start = u64_at(&sparse.bytes, header + 0x18)?;
        let end = start.checked_add(u64_at(&sparse.bytes, header + 0x20)?)?;
        sparse.read(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
        sparse.parse().is_some().then_some(sparse)
    }

    /// Bytes that are all there.
    pub(crate) fn whole(bytes: Vec<u8>) -> Sparse {
        Sparse { file: None, bytes }
    }

    /// The file, of which loaded sections may be looked at.
    pub(crate) fn parse(&self) -> Option<File<'_>> {
        File::parse(&*self.bytes).ok()
    }

    /// Loads sections by name; one that cannot be read stays zero.
    pub(crate) fn load(&mut self, wanted: impl Fn(&str) -> bool) {
        if self.file.is_none() {
            return;
        }
        let Some(file) = self.parse() else { return };
        let wanted = file.sections().filter(|section| section.name().is_ok_and(&wanted));
        let ranges: Vec<(u64, u64)> = wanted.filter_map(|section| section.file_range()).collect();
        for (start, size) in ranges {
            let (Ok(start), Ok(size)) = (usize::try_from(start), usize::try_from(size)) else { continue };
            // What cannot be read has no names.
            let _ = self.read(start..start.saturating_add(size));
        }
    }

    fn read(&mut self, range: Range<usize>) -> Option<()> {
        let start = range.start as u64;
        let place = self.bytes.get_mut(range)?;
        self.file.as_ref()?.read_exact_at(place, start).ok()
    }
}

/// Where program headers and section headers lie.
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
