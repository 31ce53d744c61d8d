//! Names of a file's string tables, read when they are needed.
//!
//! **Problem.** The string tables of a compiler's libraries have tens of megabytes, and most
//! reports show some dozens of names. **Idea.** A name is its place in the table until somebody
//! asks for its text; then a few hundred bytes are read from there. The file stays open. **Leaves
//! out** which symbols a file has (`image`).

use std::fs::File;
use std::ops::{Deref, Range};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

/// The name of what has none that can be read.
const UNKNOWN: &str = "?";
/// The bytes that are read at once: nearly all names have fewer.
const READ_BYTES: usize = 256;

/// A string table, in its file or in memory.
#[derive(Debug)]
pub(crate) enum Strings {
    File(File, Range<u64>),
    Memory(Vec<u8>),
}

impl Strings {
    /// The text at offset `at`, up to its zero; `None` if it does not end or is no text.
    fn text(&self, at: u64) -> Option<String> {
        let mut text = Vec::new();
        loop {
            let mut buffer = [0; READ_BYTES];
            let place = at.checked_add(text.len() as u64)?;
            let read = self.read(place, &mut buffer)?;
            let bytes = &buffer[..read];
            if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                text.extend(&bytes[..end]);
                return String::from_utf8(text).ok();
            }
            text.extend(bytes);
        }
    }

    /// Reads what lies at offset `at`, as far as the buffer and the table reach; returns the number
    /// of bytes, which is not 0.
    fn read(&self, at: u64, buffer: &mut [u8]) -> Option<usize> {
        let read = match self {
            Strings::File(file, range) => {
                let start = range.start.checked_add(at)?;
                let room = range.end.checked_sub(start)?.min(buffer.len() as u64) as usize;
                file.read_at(&mut buffer[..room], start).ok()?
            }
            Strings::Memory(bytes) => {
                let rest = bytes.get(usize::try_from(at).ok()?..)?;
                let room = rest.len().min(buffer.len());
                buffer[..room].copy_from_slice(&rest[..room]);
                room
            }
        };
        (read > 0).then_some(read)
    }
}

/// Where a name is written.
#[derive(Clone, Debug)]
struct Place {
    strings: Arc<Strings>,
    /// Offsets in the table. Of several names of one address the shortest is taken.
    offsets: Vec<u32>,
    /// What is written behind the name.
    behind: &'static str,
}

/// The name of a function as its file spells it. It is read when it is first used as a text.
#[derive(Clone, Debug)]
pub struct FunctionName {
    text: OnceLock<String>,
    place: Option<Place>,
}

impl FunctionName {
    /// A name at these offsets of a string table: the shortest one of them. `behind` follows it.
    pub(crate) fn listed(strings: Arc<Strings>, offsets: Vec<u32>, behind: &'static str) -> FunctionName {
        FunctionName { text: OnceLock::new(), place: Some(Place { strings, offsets, behind }) }
    }

    /// The name as a text.
    pub fn as_str(&self) -> &str {
        self.text.get_or_init(|| self.place.as_ref().map_or_else(String::new, Place::name))
    }
}

impl Place {
    fn name(&self) -> String {
        let names = self.offsets.iter().map(|&offset| {
            let name = self.strings.text(offset.into()).unwrap_or_else(|| UNKNOWN.to_owned());
            // Linkers append a version, which is no part of the name.
            name.split_once('@').map_or_else(|| name.clone(), |(name, _)| name.to_owned())
        });
        let shortest = names.min_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
        shortest.unwrap_or_else(|| UNKNOWN.to_owned()) + self.behind
    }
}

impl From<String> for FunctionName {
    fn from(name: String) -> FunctionName {
        FunctionName { text: name.into(), place: None }
    }
}

impl Deref for FunctionName {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for FunctionName {
    fn eq(&self, other: &FunctionName) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for FunctionName {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A table with names of many lengths, in memory and in a file behind other bytes.
    fn tables(names: &[String]) -> (Vec<u32>, [Arc<Strings>; 2]) {
        let (mut bytes, mut offsets) = (vec![0], Vec::new());
        for name in names {
            offsets.push(bytes.len() as u32);
            bytes.extend(name.bytes().chain([0]));
        }
        bytes.extend(b"no zero follows");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[b'x'; 77]).unwrap();
        file.write_all(&bytes).unwrap();
        file.write_all(b"another section\0").unwrap();
        let range = 77..77 + bytes.len() as u64;
        (offsets, [Strings::File(file, range), Strings::Memory(bytes)].map(Arc::new))
    }

    #[test]
    fn names_are_read_whole_from_files_and_from_memory() {
        let lengths = [0, 1, 7, 254, 255, 256, 257, 511, 512, 513, 3000];
        let names: Vec<String> =
            lengths.iter().map(|&len| "abcdefg".chars().cycle().take(len).collect()).collect();
        let (offsets, tables) = tables(&names);
        for strings in tables {
            let name = |at: &[u32], behind| FunctionName::listed(strings.clone(), at.to_vec(), behind);
            for (offset, expected) in offsets.iter().zip(&names) {
                assert_eq!(name(&[*offset], "").as_str(), expected);
                assert_eq!(&*name(&[*offset], "@plt"), format!("{expected}@plt"));
            }
            assert_eq!(&*name(&[0], ""), "", "the table begins with an empty name");
            let unended = offsets.last().unwrap() + 3001;
            for wrong in [unended, unended + 3, unended + 100, u32::MAX] {
                assert_eq!(&*name(&[wrong], ""), UNKNOWN);
            }
        }
    }

    #[test]
    fn the_shortest_of_several_names_is_taken_without_its_version() {
        let names = ["memcpy@@GLIBC_2.14", "memmove", "__memcpy", "memcpz"].map(str::to_owned);
        let (offsets, [strings, _]) = tables(&names);
        let name = |at: &[usize]| {
            let offsets = at.iter().map(|&index| offsets[index]).collect();
            FunctionName::listed(strings.clone(), offsets, "").to_string()
        };
        assert_eq!(name(&[0]), "memcpy");
        assert_eq!([name(&[3, 0, 1]), name(&[1, 2]), name(&[2, 1])], ["memcpy", "memmove", "memmove"]);
    }
}
