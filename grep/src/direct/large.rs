//! Searches regular files that are too large for one buffer: one thread or several read them in
//! pieces.
//!
//! One thread reads a file as it reads a pipe. Several threads take ranges of equal size in turn
//! where they print; how they count is said in [`count`](super::count).
//! Each reads its range into its own buffer, which stays in its cache, and searches the lines that
//! *begin* in that range: it looks at the byte in front of the range, and reads on to the end of
//! the last line. So no thread waits for another one to find line ends, and memory is bounded by
//! the longest line. Line numbers of a range need the line ends of all ranges before it. A thread
//! counts those of its range first, so the next one never waits long. Ranges may be mapped in place
//! of being read, as [`mapped`](super::mapped) chooses.

use super::mapped::{Map, Pace, Way};
use super::piece::{line_ends, PieceContext, Sizes, LINE_BYTES};
use super::print::{PieceSink, ThreadScratch};
use super::searcher::{is_marked, Answer, Direct};
use super::spread::Spread;
use super::stream::{Nul, Stream};
use super::turn::{lock, Turn, Turns};
use crate::arguments::Mapping;
use crate::outcome::SearchOutcome;
use crate::walk::Haystack;
use mapped_file::MappedFile;
use std::fs::File;
use std::io::{self, Write};
use std::ops::{ControlFlow, Range};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

/// Bytes in front of a range that are read with it, of which the last one matters: with a whole
/// cache line of them, the system copies between places that are aligned alike.
const BEFORE_BYTES: usize = LINE_BYTES;

/// A large file whose first bytes were read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Large<'f> {
    pub(super) file: &'f File,
    /// The file's length when it was opened.
    pub(super) bytes: u64,
    /// The number of first bytes in the buffer.
    pub(super) read: usize,
    pub(super) sizes: Sizes,
}

impl Large<'_> {
    /// The ranges of the file; the first one has `first_bytes`.
    fn ranges(&self, first_bytes: usize) -> impl Iterator<Item = Range<usize>> + Send + '_ {
        let end = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        let mut start = 0;
        std::iter::from_fn(move || {
            (start < end).then(|| {
                let bytes = if start == 0 { first_bytes } else { self.sizes.piece };
                let range = start..start.saturating_add(bytes).min(end);
                start = range.end;
                range
            })
        })
    }

    /// Reads the lines that begin in a range.
    fn lines(&self, range: &Range<usize>, buffer: &mut Vec<u8>) -> io::Result<Lines> {
        // The byte in front of the range shows whether a line begins with the range.
        let before = range.start.min(BEFORE_BYTES);
        let from = range.start - before;
        let mut wanted = before + range.len() + self.sizes.beyond;
        // As long as for a range with a range in front of it, so that the second one fits, too.
        buffer.resize((LINE_BYTES + BEFORE_BYTES - before + wanted).max(buffer.len()), 0);
        // A buffer that grows for a long line may move and is then read to in another alignment,
        // which costs speed only.
        let begin = buffer.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES);
        let offset = from as u64;
        let mut filled = 0;
        loop {
            buffer.resize((begin + wanted).max(buffer.len()), 0);
            let free = &mut buffer[begin + filled..begin + wanted];
            filled += fill_at(self.file, free, (from + filled) as u64)?;
            let text = &buffer[begin..begin + filled];
            let own = filled.min(before + range.len());
            let start = match before {
                0 => 0,
                _ if own < before => own,
                _ => memchr::memchr(b'\n', &text[before - 1..own]).map_or(own, |at| before + at),
            };
            if start == own {
                return Ok(Lines { base: Base::Buffer(begin), place: 0..0, offset });
            }
            let line_end = memchr::memchr(b'\n', &text[own - 1..]).map(|at| own + at);
            match line_end {
                Some(end) => return Ok(Lines { base: Base::Buffer(begin), place: start..end, offset }),
                None if filled < wanted => {
                    return Ok(Lines { base: Base::Buffer(begin), place: start..filled, offset })
                }
                None => wanted = self.more_than(wanted, from),
            }
        }
    }

    /// The lines that begin in a range of the mapped file; `None` if they have to be read.
    #[inline(never)]
    fn mapped_lines(&self, range: &Range<usize>, mapped: &MappedFile) -> Option<Lines> {
        let text = mapped.bytes();
        let before = range.start.min(1);
        if !mapped.load(range.start - before..range.end.saturating_add(self.sizes.beyond)) {
            return None;
        }
        let own = &text[range.start - before..range.end];
        let start = match before {
            0 => 0,
            _ => memchr::memchr(b'\n', own).map_or(range.end, |at| range.start + at),
        };
        if start == range.end {
            return Some(Lines::mapped(0..0));
        }
        let end = range.end + memchr::memchr(b'\n', &text[range.end - 1..])?;
        Some(Lines::mapped(start..end))
    }

    /// The lines that begin in a range, in either way.
    #[inline(never)]
    pub(super) fn lines_by(
        &self,
        way: Way,
        range: &Range<usize>,
        mapped: Option<&MappedFile>,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Lines> {
        let of_map = mapped.filter(|_| way == Way::Mapped);
        match of_map.and_then(|mapped| self.mapped_lines(range, mapped)) {
            Some(lines) => Ok(lines),
            None => self.lines(range, buffer),
        }
    }

    /// A longer buffer for the bytes from `from` on: twice as long, but not longer than the file
    /// needs.
    fn more_than(&self, bytes: usize, from: usize) -> usize {
        let left = usize::try_from(self.bytes).unwrap_or(usize::MAX).saturating_sub(from) + 1;
        if left > bytes {
            left.min(2 * bytes)
        } else {
            2 * bytes
        }
    }
}

/// Where the text of lines begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// Here in a buffer: at the start of a cache line, because the system copies a seventh faster
    /// to there.
    Buffer(usize),
    /// With the mapped file.
    Mapped,
}

/// Whole lines in a buffer or in the mapped file.
pub(super) struct Lines {
    base: Base,
    /// The place of the lines in their text.
    place: Range<usize>,
    /// The place of the text's first byte in the file.
    offset: u64,
}

impl Lines {
    /// No lines.
    const NONE: Lines = Lines { base: Base::Buffer(0), place: 0..0, offset: 0 };

    /// The text that the lines are from.
    fn text<'b>(&self, buffer: &'b [u8], mapped: Option<&'b MappedFile>) -> &'b [u8] {
        match (self.base, mapped) {
            (Base::Mapped, Some(mapped)) => mapped.bytes(),
            (Base::Mapped, None) => &[],
            (Base::Buffer(begin), _) => &buffer[begin..],
        }
    }

    /// The lines alone.
    pub(super) fn only<'b>(&self, buffer: &'b [u8], mapped: Option<&'b MappedFile>) -> &'b [u8] {
        &self.text(buffer, mapped)[self.place.clone()]
    }

    /// Lines of the mapped file.
    pub(super) fn mapped(place: Range<usize>) -> Lines {
        Lines { base: Base::Mapped, place, offset: 0 }
    }

    /// The end of these lines in the mapped file; 0 if they were read.
    pub(super) fn mapped_end(&self) -> usize {
        if self.base == Base::Mapped {
            self.place.end
        } else {
            0
        }
    }

    /// Whether the file still has these lines, which were read from it or mapped.
    fn stand(&self, mapped: Option<&MappedFile>, file: &File) -> bool {
        let is_gone = |mapped: &MappedFile| !mapped.still_has(file, self.place.end);
        self.base != Base::Mapped || !mapped.is_some_and(is_gone)
    }
}

impl Direct {
    /// Searches a large file; `None` if the general path must. `buffer` has the file's first bytes.
    pub(super) fn large(
        &self,
        haystack: &Haystack,
        large: Large<'_>,
        buffer: &mut Vec<u8>,
        out: &mut impl Write,
    ) -> Option<io::Result<SearchOutcome>> {
        let on_nul = self.on_nul(haystack)?;
        let first = &buffer[..large.read];
        // These texts cannot be searched in pieces: a mark names an encoding, and a NUL byte in the
        // first bytes makes the whole file binary.
        let is_marked = self.sniff && is_marked(first);
        let is_binary = on_nul == Nul::InLines && memchr::memchr(0, first).is_some();
        // Lines around matches may have the NUL byte.
        let is_around = self.format.around.is_some() && !matches!(on_nul, Nul::Ignored | Nul::InLines);
        if is_marked || is_binary || is_around || !self.can_stream() {
            return None;
        }
        let path = haystack.path.as_os_str().as_bytes();
        let may_map = self.mapping != Mapping::Never && matches!(on_nul, Nul::Ignored | Nul::InLines);
        let mapped = if may_map { MappedFile::new(large.file, large.bytes) } else { None };
        let mut threads = self.threads_for(&large, on_nul);
        let mut long_line = None;
        if threads > 1 && memchr::memchr(b'\n', first).is_none() {
            // Threads that read would read each long line once for every range that it touches.
            long_line = self.long_line_of(mapped.as_ref());
            threads = if long_line.is_some() { threads } else { 1 };
        }
        match self.answer {
            Answer::Count | Answer::CountMatches if threads > 1 => {
                let count = self.count_shared(&large, mapped.as_ref(), threads, long_line);
                Some(count.and_then(|count| self.say_count(path, count, out)))
            }
            Answer::Lines | Answer::Matches if threads > 1 => {
                let checks_lines = on_nul == Nul::InLines;
                let shared = Shared { large, mapped: mapped.as_ref(), threads, checks_lines };
                let any = self.print_shared(path, shared, out);
                Some(any.map(|any| SearchOutcome { any, stats: None }))
            }
            _ => {
                // The stream continues with the bytes that were read already. One byte more than
                // the file's length leaves room for the read that finds its end, without doubling
                // the buffer.
                let expected =
                    usize::try_from(large.bytes).map_or(usize::MAX, |bytes| bytes.saturating_add(1));
                let begun = std::mem::take(buffer);
                let map = mapped.map(|mapped| Map::new(large.file, mapped, self.mapping));
                let stream = Stream::begun(large.file, on_nul, begun, large.read, expected, self.sizes);
                let mut stream = stream.with_map(map);
                let found = self.search_stream(haystack, &mut stream, out);
                *buffer = stream.into_buffer();
                Some(found)
            }
        }
    }

    /// How NUL bytes are treated in a file that is read in pieces; `None` if only the general path
    /// can search it.
    fn on_nul(&self, haystack: &Haystack) -> Option<Nul> {
        match (haystack.named, self.quits) {
            _ if self.text => Some(Nul::Ignored),
            (true, _) if self.as_mapped => Some(Nul::InLines),
            (true, _) => Some(Nul::EndsLine),
            (false, true) => Some(Nul::EndsSearch),
            (false, false) => self.searches_binary.then_some(Nul::EndsLine),
        }
    }

    /// The length of a file's first line, which is a long one, if threads can share the file all
    /// the same: they count, and lines are short beside it.
    fn long_line_of(&self, mapped: Option<&MappedFile>) -> Option<usize> {
        let is_counted = matches!(self.answer, Answer::Count | Answer::CountMatches);
        let text = mapped.filter(|_| is_counted)?.bytes();
        let line = memchr::memchr(b'\n', &text[..text.len().min(self.sizes.whole)])?;
        (line < text.len() / 8).then_some(line)
    }

    fn threads_for(&self, large: &Large<'_>, on_nul: Nul) -> usize {
        let is_whole = matches!(on_nul, Nul::Ignored | Nul::InLines)
            && self.max_count.is_none()
            && self.format.around.is_none();
        if large.bytes < self.sizes.shared || !is_whole {
            1
        } else {
            self.threads.unwrap_or_else(crate::settings::cores)
        }
    }

    fn print_shared(&self, path: &[u8], shared: Shared<'_>, out: &mut impl Write) -> io::Result<bool> {
        let Shared { large, mapped, threads, checks_lines } = shared;
        let prefix = self.format.prefix(path);
        let context = PieceContext { checks_lines, ..PieceContext::new(&prefix, None) };
        let mut sink = PieceSink { direct: self, path, text: &[], out, any: false };
        let turns = Turns::new(large.ranges(self.sizes.first), threads);
        let failed = Mutex::new(None);
        // Searches one range and hands in what is to be printed. Every range that was taken must be
        // handed in, because the writer waits for results in order: a range that cannot be read
        // counts as empty, and its error is reported at the end.
        let work = |number, range: Range<usize>, way, thread: &mut Thread| {
            let Thread { scratch, buffer, .. } = thread;
            let read = |way, buffer: &mut Vec<u8>| {
                large.lines_by(way, &range, mapped, buffer).unwrap_or_else(|error| {
                    lock(&failed).get_or_insert(error);
                    Lines::NONE
                })
            };
            let mut lines = read(way, buffer);
            let count_ends = self.format.line_number;
            let ends = if count_ends { line_ends(lines.only(buffer, mapped)) } else { 0 };
            // A thread waits here until all ranges in front of its own have counted their line
            // ends. The count precedes the search, so the wait is short.
            let before = turns.lines_before(number, ends);
            let mut printed = turns.buffer();
            loop {
                let (piece, offset) = (lines.place.clone(), lines.offset);
                let context = PieceContext { piece, offset, first_line: before + 1, ..context.clone() };
                let text = lines.text(buffer, mapped);
                self.print_piece(text, &context, scratch, &mut printed);
                // Long lines are not copied but point into the text, which therefore travels with
                // the result if it has any.
                match lines.base {
                    Base::Buffer(begin) => printed.keep(buffer, begin),
                    Base::Mapped => printed.keep_copy(text),
                }
                if lines.stand(mapped, large.file) {
                    break;
                }
                lines = read(Way::Read, buffer);
            }
            turns.hand_in(number, printed);
        };
        let spread = Spread::default();
        spread.take_processor();
        let worker = || {
            spread.take_processor();
            let mut thread = Thread::new(self.mapping);
            while let Some((number, range)) = turns.next() {
                let way = thread.way_of(&range);
                work(number, range, way, &mut thread);
            }
        };
        // The calling thread writes, because only it has `out`, and searches ranges while no result
        // is due.
        let any = std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(worker);
            }
            let mut thread = Thread::new(self.mapping);
            loop {
                match turns.turn() {
                    Turn::Work(number, range) => {
                        let way = thread.way_of(&range);
                        work(number, range, way, &mut thread);
                    }
                    Turn::Finished => return Ok(sink.any),
                    Turn::Write(printed) => {
                        let written = sink.write(&printed);
                        // A write error or a binary line ends the search: the others get no further
                        // ranges, and the scope waits until they have finished their current ones.
                        if !matches!(written, Ok(ControlFlow::Continue(()))) {
                            turns.stop();
                            return written.map(|_| sink.any);
                        }
                        turns.give_back(printed);
                    }
                }
            }
        })?;
        match failed.into_inner().ok().flatten() {
            Some(error) => Err(error),
            None => Ok(any),
        }
    }
}

/// What the threads of a search that prints share.
struct Shared<'f> {
    large: Large<'f>,
    mapped: Option<&'f MappedFile>,
    threads: usize,
    checks_lines: bool,
}

/// What a thread keeps from range to range.
struct Thread {
    scratch: ThreadScratch,
    buffer: Vec<u8>,
    pace: Pace,
    /// Bytes of the last range.
    bytes: usize,
}

impl Thread {
    fn new(mapping: Mapping) -> Thread {
        Thread { scratch: ThreadScratch::default(), buffer: Vec::new(), pace: Pace::new(mapping), bytes: 0 }
    }

    /// How the next range comes into memory.
    #[inline(never)]
    fn way_of(&mut self, range: &Range<usize>) -> Way {
        let last = std::mem::replace(&mut self.bytes, range.len());
        self.pace.next(last)
    }
}

/// Reads from a place of a file until the buffer is full or the file ends.
fn fill_at(file: &File, buffer: &mut [u8], from: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::super::piece::{FIRST_BYTES, PIECE_BYTES};
    use super::*;

    /// Makes a file with these bytes, and reads one range after the other as the threads do.
    fn read(text: &[u8], claimed: u64, first_bytes: usize) -> Vec<(u64, Vec<u8>)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let large = Large { file: &file, bytes: claimed, read: 0, sizes: Sizes::USUAL };
        let mut buffer = Vec::new();
        let lines = large.ranges(first_bytes).map(|range| {
            let lines = large.lines(&range, &mut buffer).unwrap();
            (lines.offset + lines.place.start as u64, lines.only(&buffer, None).to_vec())
        });
        lines.filter(|(_, lines)| !lines.is_empty()).collect()
    }

    #[test]
    fn every_line_is_in_one_piece() {
        let long = "l".repeat(3 * PIECE_BYTES + 7);
        let filler = "f".repeat(PIECE_BYTES - 1);
        let texts = [
            String::new(),
            "\n".repeat(2 * PIECE_BYTES + 1),
            "some line\n".repeat(70_000),
            format!("a\n{long}\nb\n{long}"),
            format!("{filler}\n{filler}\nx"),
            format!("{filler}\n\n{filler}x\n"),
            format!("{long}\n{}", "y\n".repeat(PIECE_BYTES)),
        ];
        for text in texts {
            for first_bytes in [1, FIRST_BYTES, PIECE_BYTES] {
                let mut at = 0;
                for (offset, piece) in read(text.as_bytes(), text.len() as u64, first_bytes) {
                    assert_eq!(offset, at as u64);
                    assert!(piece == text.as_bytes()[at..at + piece.len()]);
                    at += piece.len();
                    assert!(piece.ends_with(b"\n") || at == text.len());
                }
                assert_eq!(at, text.len());
            }
        }
    }

    #[test]
    fn a_file_that_has_become_shorter_is_read_as_far_as_it_goes() {
        let text = "some line\n".repeat(50_000);
        let pieces = read(text.as_bytes(), 10 * text.len() as u64, FIRST_BYTES);
        assert!(pieces.into_iter().flat_map(|(_, piece)| piece).eq(text.bytes()));
    }

    #[test]
    fn a_file_that_has_grown_is_read_to_the_end_of_a_line() {
        let text = "some line\n".repeat(50_000);
        let pieces = read(text.as_bytes(), 300_001, FIRST_BYTES);
        assert!(pieces.into_iter().flat_map(|(_, piece)| piece).eq(text.bytes().take(300_010)));
    }
}
