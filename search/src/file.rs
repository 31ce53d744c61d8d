//! The index file: three lines of header, then the lines of the index exactly as they are searched.
//!
//! ```text
//! word  0      magic "LFINDEX\x1a"          word 12..13  base of 128-bit keys
//! word  1      version, key type            word 14      shift of 128-bit keys
//! word  2      layout, header bytes         word 15..20  sizes of strings, for other keys 0
//! word  3      n                            word 21      why the layout was chosen
//! word  4      lines of the layout          word 22      checksum of everything behind the header
//! word  5      lines behind the layout      word 23      checksum of words 0..=22
//! word  6..11  numbers of the shape
//! ```
//!
//! Where copies of a key are counted and not stored, which keys of 128 bits never have, word 12 has
//! the key and the upper half of word 14 their number.
//!
//! Values beside keys stand behind all other lines. Of the words of sizes, 17 has their bytes, 18
//! the bytes of one plus 1, or all bits set where they vary, and 19 and 20 the name of their type.
//!
//! Words are 64-bit little endian; halves of words 1 and 2 are 32-bit, the lower one first. Opening
//! reads the file into memory of the process, on huge pages if it is large, and computes its
//! checksum; nothing is converted. Files are not mapped, because other programs could change a
//! mapped file later: a changed file would end a search in a panic, a shortened one in a signal.
//! Every change of a single line changes the checksum (each step of it is a bijection of the line's
//! words). A file could be forged with a matching checksum; so its lines are also checked to be in
//! the order on which searches rely, and it is refused or answers positions in `0..=n`. Fuzzing
//! builds (`cfg(fuzzing)`) skip the checksums, so that a fuzzer reaches those checks.
//!
//! Leaves out: compression, partial reads, big-endian machines.

use alloc::vec::Vec;

use crate::copies;
use crate::error::Error;
use crate::format::{KeyType, VERSION};
use crate::lane::{Frame, Lane};
use crate::layout::{Layout, Shape};
use crate::line::{lanes, Line, LINE_BYTES};
use crate::memory::Memory;
use crate::reason::Reason;

/// The first word of every index file.
const MAGIC: u64 = u64::from_le_bytes(*b"LFINDEX\x1a");
/// The highest code of a layout in files of format 1.
const FORMAT_1_LAYOUTS: u32 = 9;
/// The number of the shape that counts the cells of layout `pieces`.
const CELLS_WORD: usize = 3;
/// The first of the four words of sizes that speak of values.
pub(crate) const FIRST_VALUE_WORD: usize = 2;
/// Lines of the header.
pub(crate) const HEADER_LINES: usize = 3;
/// Words of the header.
const HEADER_WORDS: usize = HEADER_LINES * 8;

/// The contents of a file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: KeyType,
    pub(crate) layout: Layout,
    pub(crate) n: usize,
    pub(crate) core_lines: usize,
    pub(crate) full_lines: usize,
    pub(crate) words: [u64; 6],
    pub(crate) frame: Frame,
    pub(crate) extra: [u64; 6],
    pub(crate) reason: Reason,
    /// A key, and how many copies of it the layout does not hold.
    pub(crate) copies: (u64, usize),
}

/// A file's facts, without opening it for a particular key type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Type of the keys.
    pub kind: KeyType,
    /// Layout of the keys.
    pub layout: Layout,
    /// Number of keys.
    pub n: usize,
    /// Bytes of the whole file.
    pub bytes: usize,
    /// Checksum of the contents, which has been verified.
    pub checksum: u64,
}

impl Header {
    /// The header of an index in memory.
    pub(crate) fn of<L: Lane>(
        kind: KeyType,
        (n, reason): (usize, Reason),
        shape: &Shape<L>,
        full_lines: usize,
        frame: Frame,
    ) -> Header {
        let (layout, words) = (shape.layout(), shape.contents().numbers());
        Header {
            kind,
            layout,
            n,
            core_lines: shape.contents().lines(),
            full_lines,
            words,
            frame,
            extra: [0; 6],
            reason,
            copies: (0, 0),
        }
    }

    fn encode(&self, payload: u64) -> [u64; HEADER_WORDS] {
        let mut words = [0; HEADER_WORDS];
        words[0] = MAGIC;
        // Readers of format 1 know the layouts up to the ninth, and do not look at word 21. Those
        // of formats 2 and 3 know no pieces without cells.
        let of_layout = match self.layout.code() > FORMAT_1_LAYOUTS {
            true if self.words[CELLS_WORD] == 0 => 4,
            true => 2,
            false => 1,
        };
        let of_values = if self.extra[FIRST_VALUE_WORD..] == [0; 4] { 1 } else { 3 };
        let (copied, copies) = self.copies;
        let of_copies = if copies > 0 { 5 } else { 1 };
        let version = self.kind.version().max(of_layout).max(of_values).max(of_copies);
        words[1] = u64::from(version) | u64::from(self.kind.code()) << 32;
        words[2] = u64::from(self.layout.code()) | ((HEADER_LINES * LINE_BYTES) as u64) << 32;
        words[3] = self.n as u64;
        words[4] = self.core_lines as u64;
        words[5] = self.full_lines as u64;
        words[6..12].copy_from_slice(&self.words);
        words[12] = if copies > 0 { copied } else { self.frame.base as u64 };
        words[13] = (self.frame.base >> 64) as u64;
        words[14] = u64::from(self.frame.shift) | (copies as u64) << 32;
        words[15..21].copy_from_slice(&self.extra);
        words[21] = self.reason.word();
        words[22] = payload;
        words[23] = checksum_words(&words[..23]);
        words
    }

    /// Reads a header and checks it against the lines that follow.
    fn decode(lines: &[Line], file_bytes: usize) -> Result<(Header, u64), Error> {
        let (header, sum) = Header::describe(lines, file_bytes)?;
        if sum != checksum(&lines[HEADER_LINES..]) && !cfg!(fuzzing) {
            return Err(Error::Damaged { what: "the checksum does not match the contents" });
        }
        Ok((header, sum))
    }

    /// Reads a header, and the checksum of what should follow it, from a file's first lines.
    fn describe(lines: &[Line], file_bytes: usize) -> Result<(Header, u64), Error> {
        let words: &[u64] = lanes(&lines[..lines.len().min(HEADER_LINES)]);
        // Check in this order: is it an index file, of which version, is its header complete, and
        // is the file as long as the header says.
        if words.first() != Some(&MAGIC) {
            return Err(if cfg!(target_endian = "big") { Error::BigEndian } else { Error::Foreign });
        }
        let version = words[1] as u32;
        if version > VERSION {
            return Err(Error::Newer { version });
        }
        if words.len() < HEADER_WORDS {
            return Err(Error::Truncated {
                expected: (HEADER_LINES * LINE_BYTES) as u64,
                found: file_bytes as u64,
            });
        }
        if words[23] != checksum_words(&words[..23]) && !cfg!(fuzzing) {
            return Err(Error::Damaged { what: "the header's checksum does not match" });
        }
        let header =
            Header::from_words(words).ok_or(Error::Damaged { what: "the header describes no index" })?;
        let lines_in_all = words[4].saturating_add(words[5]).saturating_add(HEADER_LINES as u64);
        let expected = lines_in_all.saturating_mul(LINE_BYTES as u64);
        if expected != file_bytes as u64 {
            return Err(match expected > file_bytes as u64 {
                true => Error::Truncated { expected, found: file_bytes as u64 },
                false => Error::Damaged { what: "bytes follow the end of the index" },
            });
        }
        Ok((header, words[22]))
    }

    fn from_words(words: &[u64]) -> Option<Header> {
        let sized = (1..=VERSION).contains(&(words[1] as u32))
            && (words[2] >> 32) as usize == HEADER_LINES * LINE_BYTES;
        let copies = (words[14] >> 32) as usize;
        let (copied, base) = if copies > 0 { (words[12], 0) } else { (0, words[12]) };
        let header = Header {
            kind: KeyType::from_code((words[1] >> 32) as u32)?,
            layout: Layout::from_code(words[2] as u32)?,
            n: usize::try_from(words[3]).ok()?,
            core_lines: usize::try_from(words[4]).ok()?,
            full_lines: usize::try_from(words[5]).ok()?,
            words: words[6..12].try_into().ok()?,
            frame: Frame { base: u128::from(base) | u128::from(words[13]) << 64, shift: words[14] as u32 },
            extra: words[15..21].try_into().ok()?,
            reason: Reason::from_word(words[21]),
            copies: (copied, copies),
        };
        // Copies stand beside exact keys only, which have no frame.
        let copied =
            copies == 0 || header.frame == Frame::default() && copies::are_plausible(header.n, copies);
        // Every key that is stored takes at least a byte, so n cannot be so large that a shape's
        // arithmetic overflows.
        let stored = header.n.saturating_sub(copies);
        let plausible = stored <= header.core_lines.saturating_mul(LINE_BYTES) && header.frame.shift < 128;
        (sized && plausible && copied).then_some(header)
    }

    /// The shape that the header describes, when it is as long as the file says.
    pub(crate) fn shape<L: Lane>(&self) -> Result<Shape<L>, Error> {
        Shape::from_numbers(self.layout, self.n - self.copies.1, self.words)
            .filter(|shape| shape.contents().lines() == self.core_lines)
            .ok_or(Error::Damaged { what: "the header's numbers describe no layout" })
    }
}

/// An opened file: its header, the layout's lines, and the lines behind them.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) header: Header,
    pub(crate) core: Memory,
    pub(crate) full: Memory,
}

/// Checks `memory` as a file of `file_bytes` bytes holding keys of type `kind`.
pub(crate) fn open(memory: &Memory, file_bytes: usize, kind: KeyType) -> Result<Opened, Error> {
    let (header, _) = Header::decode(memory.lines(), file_bytes)?;
    if header.kind != kind {
        return Err(Error::OtherType { found: header.kind, expected: kind });
    }
    let middle = HEADER_LINES + header.core_lines;
    let core = memory.part(HEADER_LINES..middle);
    let full = memory.part(middle..middle + header.full_lines);
    Ok(Opened { header, core, full })
}

/// The facts of a file in memory.
#[cfg(feature = "std")]
pub(crate) fn inspect(memory: &Memory, file_bytes: usize) -> Result<Inspection, Error> {
    let (header, checksum) = Header::decode(memory.lines(), file_bytes)?;
    Ok(Inspection { kind: header.kind, layout: header.layout, n: header.n, bytes: file_bytes, checksum })
}

/// Copies `bytes` to aligned memory, where they can be searched.
pub(crate) fn copied(bytes: &[u8]) -> Memory {
    let mut lines = alloc::vec![Line::ZERO; bytes.len().div_ceil(LINE_BYTES)];
    crate::line::lanes_mut::<u8>(&mut lines)[..bytes.len()].copy_from_slice(bytes);
    Memory::from_vec(lines)
}

/// The whole file as bytes: the header, and the parts end to end.
pub(crate) fn encode(header: &Header, parts: &[&[Line]]) -> Vec<u8> {
    let lines: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::with_capacity((HEADER_LINES + lines) * LINE_BYTES);
    for word in header.encode(checksum_of_parts(parts)) {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    parts.iter().for_each(|part| bytes.extend_from_slice(lanes(part)));
    bytes
}

/// The facts of the index file at `path`: type, layout and size, its checksum verified.
///
/// # Errors
/// The system's error, or how the file is damaged.
#[cfg(feature = "std")]
pub fn inspect_file(path: impl AsRef<std::path::Path>) -> Result<Inspection, Error> {
    let (memory, bytes) = read(path.as_ref())?;
    inspect(&memory, bytes)
}

/// Reads the file at `path` into memory that no other process can change.
#[cfg(feature = "std")]
pub(crate) fn read(path: &std::path::Path) -> Result<(Memory, usize), Error> {
    let mut options = std::fs::OpenOptions::new();
    // Opening a pipe would wait for its writer.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.read(true).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(std::io::Error::other("not a regular file, as index files are").into());
    }
    let bytes = usize::try_from(about.len()).map_err(std::io::Error::other)?;
    // A file that is no index is not read as a whole.
    let mut head = [Line::ZERO; HEADER_LINES];
    let head = &mut head[..HEADER_LINES.min(bytes / LINE_BYTES)];
    std::io::Read::read_exact(&mut &file, crate::line::lanes_mut(head))?;
    Header::describe(head, bytes)?;
    let memory = crate::memory::read_file(&file, head, bytes / LINE_BYTES)?;
    Ok((memory, bytes))
}

/// Writes the header and the parts as a whole or not at all: beside `path`, then renamed over it. A
/// device or a pipe is written to directly.
#[cfg(feature = "std")]
pub(crate) fn save(path: &std::path::Path, header: &Header, parts: &[&[Line]]) -> Result<(), Error> {
    use std::io::Write;
    if cfg!(target_endian = "big") {
        return Err(Error::BigEndian);
    }
    let write = |mut file: std::fs::File| -> std::io::Result<()> {
        let words = header.encode(checksum_of_parts(parts));
        file.write_all(crate::line::bytes_of(&words[..]))?;
        parts.iter().try_for_each(|part| file.write_all(lanes(part)))?;
        file.flush()
    };
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return std::fs::OpenOptions::new().write(true).open(path).and_then(write).map_err(Error::Io);
    }
    let (file, beside) = create_beside(path)?;
    write(file).and_then(|()| std::fs::rename(&beside, path)).map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        Error::Io(error)
    })
}

/// Creates a file beside `path` under an unused name; does not follow a link that another user has
/// put there.
#[cfg(feature = "std")]
fn create_beside(path: &std::path::Path) -> std::io::Result<(std::fs::File, std::path::PathBuf)> {
    const NAMES: usize = 100;
    let mut taken = None;
    for number in 0..NAMES {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(std::format!(".{}.{number}.part", std::process::id()));
        let beside = path.with_file_name(name);
        match std::fs::OpenOptions::new().write(true).create_new(true).open(&beside) {
            Ok(file) => return Ok((file, beside)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => taken = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(taken.unwrap_or_else(|| std::io::ErrorKind::AlreadyExists.into()))
}

const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;

/// Eight running words, one per word of a line.
#[derive(Clone, Copy)]
struct RunningChecksum([u64; 8], u64);

impl RunningChecksum {
    const START: RunningChecksum = RunningChecksum([1, 2, 3, 5, 7, 11, 13, 17], 0);

    /// Adds lines. Each word's step is a bijection, so contents that differ in one line have
    /// different checksums in that word from there on.
    fn take(mut self, lines: &[Line]) -> RunningChecksum {
        for line in lines {
            for (sum, word) in self.0.iter_mut().zip(line.u64s()) {
                *sum = (*sum ^ word).wrapping_mul(PRIME).rotate_left(29);
            }
        }
        self.1 += lines.len() as u64;
        self
    }

    fn finish(self) -> u64 {
        self.0.iter().fold(self.1, |sum, word| (sum.rotate_left(5) ^ word ^ word >> 32).wrapping_mul(PRIME))
    }
}

/// The checksum of lines.
pub(crate) fn checksum(lines: &[Line]) -> u64 {
    RunningChecksum::START.take(lines).finish()
}

/// The checksum of stretches of lines, one behind the other.
fn checksum_of_parts(parts: &[&[Line]]) -> u64 {
    parts.iter().fold(RunningChecksum::START, |sum, part| sum.take(part)).finish()
}

/// The checksum of the header's words.
pub(crate) fn checksum_words(words: &[u64]) -> u64 {
    words.iter().fold(MAGIC, |sum, word| (sum ^ word).wrapping_mul(PRIME).rotate_left(29))
}
