//! Searches text that is not held as a whole, such as a pipe or a large file: it is read and
//! searched piece by piece.
//!
//! A piece is the result of one read up to the end of a line, so a line is reported as soon as it
//! was written. The beginning of the next line moves to the place in front of the next read, which
//! itself always begins at a cache line: the system copies a seventh faster from the start of a
//! page to the start of a line of memory. Memory is bounded by the longest line. If NUL bytes end
//! lines or the search, the buffer is as large as that of `grep-searcher`, so that binary text is
//! given up at the same line. Texts that begin with a byte order mark are left to the general path,
//! together with the bytes that were read. Pieces of a large file may be mapped in place of being
//! read, as [`mapped`](super::mapped) chooses.

use super::mapped::{Map, Way};
use super::piece::{line_ends, PieceContext, Sizes, LINE_BYTES};
use super::print::{PieceSink, ThreadScratch};
use super::printed::Printed;
use super::searcher::{is_marked, Answer, Direct};
use crate::outcome::SearchOutcome;
use crate::walk::Haystack;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

/// Bytes of the longest byte order mark.
const MARK_BYTES: usize = 3;

/// The outcome of the search of a stream.
pub(crate) enum Streamed {
    Searched(io::Result<SearchOutcome>),
    /// The stream needs the general path; these first bytes were read.
    Left(Vec<u8>),
}

/// How a NUL byte in a text is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nul {
    /// As any other byte.
    Ignored,
    /// As the end of a line: the text is binary, and its matches are not printed.
    EndsLine,
    /// As the end of the search.
    EndsSearch,
    /// As the end of printing, if a line to be printed has one.
    InLines,
}

/// What a stream does with lines that are longer than a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LongLines {
    /// It holds them whole.
    Whole,
    /// It stops at their beginning.
    InParts,
}

/// What comes next in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Whole lines.
    Piece,
    /// The beginning of a line that is longer than a piece.
    Long,
    End,
}

/// A stream, and its current piece.
pub(super) struct Stream<'f, R> {
    from: R,
    /// The file in memory, if it may be mapped, and the piece, if it is.
    map: Option<Map<'f>>,
    buffer: Vec<u8>,
    /// Where the piece begins in the buffer.
    start: usize,
    /// Where the bytes that were read end.
    filled: usize,
    /// The end of the last complete line, or of the stream.
    whole: usize,
    /// Where the next read may end.
    limit: usize,
    /// The bytes that a piece may have: few for the first one, so that its results come early.
    room: usize,
    /// The expected length of the text: the buffer need not be longer.
    expected: usize,
    /// The place of the piece's first byte in the stream.
    offset: u64,
    on_nul: Nul,
    /// The place of the first NUL byte in the stream, as far as it was searched.
    nul: Option<u64>,
    sizes: Sizes,
}

impl<'f, R: Read> Stream<'f, R> {
    fn new(from: R, on_nul: Nul, sizes: Sizes) -> Stream<'f, R> {
        Stream::begun(from, on_nul, Vec::new(), 0, usize::MAX, sizes)
    }

    /// A stream whose first `filled` bytes are in `buffer` already, of about `expected` bytes.
    pub(super) fn begun(
        from: R,
        on_nul: Nul,
        mut buffer: Vec<u8>,
        filled: usize,
        expected: usize,
        sizes: Sizes,
    ) -> Stream<'f, R> {
        let room = sizes.first.max(filled).max(MARK_BYTES);
        buffer.resize(room.max(buffer.len()), 0);
        let (start, whole, limit) = (0, 0, room);
        Stream {
            from,
            map: None,
            buffer,
            start,
            filled,
            whole,
            limit,
            room,
            expected,
            offset: 0,
            on_nul,
            nul: None,
            sizes,
        }
    }

    /// The stream with its file mapped, where that is possible and quicker.
    pub(super) fn with_map(self, map: Option<Map<'f>>) -> Stream<'f, R> {
        Stream { map, ..self }
    }

    /// Returns the buffer for the next stream.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    fn piece(&self) -> &[u8] {
        match self.mapped_piece() {
            Some((map, piece)) => &map.text()[piece.clone()],
            None => &self.buffer[self.start..self.whole],
        }
    }

    /// The mapped file and the piece in it, unless the piece was read.
    fn mapped_piece(&self) -> Option<(&Map<'f>, &Range<usize>)> {
        self.map.as_ref().and_then(|map| map.piece.as_ref().map(|piece| (map, piece)))
    }

    /// Whether the results of the piece count; if not, the file has become shorter, and what is
    /// left of the piece comes next.
    #[inline(never)]
    fn stands(&mut self) -> io::Result<bool> {
        match self.mapped_piece() {
            Some((map, piece)) if !map.stands() => {
                self.read_from(piece.start)?;
                self.map = None;
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// Forgets what was read, and reads on from a place of the file.
    #[inline(never)]
    fn read_from(&mut self, at: usize) -> io::Result<()> {
        if let Some(map) = &mut self.map {
            map.piece = None;
            map.file().seek(SeekFrom::Start(at as u64))?;
        }
        (self.start, self.whole, self.filled) = (0, 0, 0);
        self.roll();
        self.offset = at as u64;
        Ok(())
    }

    /// Continues with lines of the mapped file; false if they are to be read.
    #[inline(never)]
    fn next_mapped(&mut self) -> io::Result<bool> {
        let Some(map) = &mut self.map else { return Ok(false) };
        let at = match &map.piece {
            Some(piece) => piece.end,
            None => self.offset as usize + self.whole - self.start,
        };
        let way = map.way_at(at);
        let was_mapped = map.piece.take().is_some();
        if way == Way::Mapped {
            map.piece = map.lines_from(at, &self.sizes);
            if map.piece.is_some() {
                self.offset = at as u64;
                return Ok(true);
            }
        }
        if was_mapped {
            self.read_from(at)?;
        }
        if way == Way::Mapped {
            // The end, or a long line.
            self.map = None;
        }
        Ok(false)
    }

    /// Whether a NUL byte ended the search.
    fn has_quit(&self) -> bool {
        self.on_nul == Nul::EndsSearch && self.nul.is_some()
    }

    /// Reads once, enlarges a full buffer first, and returns the number of bytes.
    fn read(&mut self) -> io::Result<usize> {
        if self.filled == self.limit {
            let used = self.filled - self.start;
            let more = match self.on_nul {
                // Binary text is given up where buffers that double end.
                Nul::EndsLine | Nul::EndsSearch => used,
                // A long line is read in pieces that stay in the cache while their ends of lines
                // are looked for.
                Nul::Ignored | Nul::InLines => self.sizes.piece,
            };
            let wish = used + more;
            self.room = if self.expected > used { wish.min(self.expected) } else { wish };
            self.limit = self.start + self.room;
            self.buffer.resize(self.limit.max(self.buffer.len()), 0);
        }
        self.read_up_to(self.limit)
    }

    /// Reads once, up to a place of the buffer.
    fn read_up_to(&mut self, end: usize) -> io::Result<usize> {
        loop {
            match self.from.read(&mut self.buffer[self.filled..end]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.inspect(|bytes| self.filled += bytes),
            }
        }
    }

    /// Reads enough first bytes to recognise a byte order mark; they form a piece of their own.
    /// Returns whether they are one.
    fn is_marked(&mut self) -> io::Result<bool> {
        while self.filled < MARK_BYTES && self.read_up_to(MARK_BYTES)? > 0 {}
        Ok(is_marked(&self.buffer[..self.filled]))
    }

    /// Moves what follows the piece in front of the place of the next read.
    fn roll(&mut self) {
        let rest = self.filled - self.whole;
        self.offset += (self.whole - self.start) as u64;
        self.room = match self.on_nul {
            Nul::EndsLine | Nul::EndsSearch => self.room.max(self.sizes.first),
            Nul::Ignored | Nul::InLines => self.sizes.piece,
        };
        let wish = rest.max(self.sizes.front);
        // A buffer that grows may move, and is then aligned in another way: that costs speed once.
        self.buffer.resize((wish + LINE_BYTES + self.room).max(self.buffer.len()), 0);
        let from = wish + self.buffer[wish..].as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES);
        self.buffer.copy_within(self.whole..self.filled, from - rest);
        (self.start, self.whole, self.filled) = (from - rest, from - rest, from);
        // Binary text is given up where a buffer of a certain length ends, the beginning of the
        // line included.
        self.limit = match self.on_nul {
            Nul::EndsLine | Nul::EndsSearch => self.start + self.room,
            Nul::Ignored | Nul::InLines => from + self.room,
        };
        self.buffer.resize(self.limit.max(self.buffer.len()), 0);
    }

    /// Continues with the next piece of whole lines; false at the end.
    fn next(&mut self) -> io::Result<bool> {
        Ok(self.advance(LongLines::Whole)? != Next::End)
    }

    /// Continues with the next piece.
    fn advance(&mut self, long_lines: LongLines) -> io::Result<Next> {
        if self.next_mapped()? {
            return Ok(Next::Piece);
        }
        // `fresh` is where the bytes begin whose ends of lines were not looked for yet: after a
        // piece there are none, as the last end of a line ended it.
        let mut fresh = self.start;
        if self.whole > self.start {
            self.roll();
            fresh = self.filled;
        }
        loop {
            self.look_for_nul(fresh);
            if self.has_quit() {
                return Ok(Next::End);
            }
            if let Some(at) = memchr::memrchr(b'\n', &self.buffer[fresh..self.filled]) {
                self.whole = fresh + at + 1;
                return Ok(Next::Piece);
            }
            fresh = self.filled;
            if long_lines == LongLines::InParts && self.filled == self.limit && self.filled > self.start {
                return Ok(Next::Long);
            }
            if self.read()? == 0 {
                self.whole = self.filled;
                return Ok(if self.filled > self.start { Next::Piece } else { Next::End });
            }
        }
    }

    /// The beginning of a long line, as far as it was read.
    fn beginning(&self) -> &[u8] {
        &self.buffer[self.start..self.filled]
    }

    /// Reads on to the end of a long line, unless it is longer than `most` bytes, and goes on
    /// behind it; its place in the buffer, without its terminator.
    fn line_up_to(&mut self, most: usize) -> io::Result<Option<Range<usize>>> {
        // The line goes to the front, so that the buffer does not grow from line to line.
        self.whole = self.start;
        self.roll();
        let mut fresh = self.start;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[fresh..self.filled]) {
                let line = self.start..fresh + at;
                self.offset += line.len() as u64 + 1;
                self.start = line.end + 1;
                self.whole = self.start;
                return Ok(Some(line));
            }
            if self.filled - self.start > most {
                return Ok(None);
            }
            fresh = self.filled;
            if self.read()? == 0 {
                let line = self.start..self.filled;
                self.offset += line.len() as u64;
                self.start = self.filled;
                self.whole = self.filled;
                return Ok(Some(line));
            }
        }
    }

    /// Hands a long line to `visit` part by part, without its terminator, and goes on behind it.
    fn rest_of_line(&mut self, mut visit: impl FnMut(&[u8])) -> io::Result<()> {
        visit(self.beginning());
        loop {
            // No byte of the buffer is needed any more.
            self.whole = self.filled;
            self.roll();
            if self.read_up_to(self.limit)? == 0 {
                return Ok(());
            }
            let part = self.beginning();
            if let Some(at) = memchr::memchr(b'\n', part) {
                visit(&part[..at]);
                self.offset += at as u64 + 1;
                self.start += at + 1;
                self.whole = self.start;
                return Ok(());
            }
            visit(part);
        }
    }

    /// Records the first NUL byte, and replaces those from `fresh` on by line ends if they count as
    /// such.
    fn look_for_nul(&mut self, fresh: usize) {
        if !matches!(self.on_nul, Nul::EndsLine | Nul::EndsSearch) {
            return;
        }
        let mut at = fresh;
        while let Some(found) = memchr::memchr(0, &self.buffer[at..self.filled]) {
            at += found;
            self.nul.get_or_insert(self.offset + (at - self.start) as u64);
            if self.on_nul == Nul::EndsSearch {
                return;
            }
            self.buffer[at] = b'\n';
        }
    }
}

impl Direct {
    /// Searches a stream that has no length and may have no end.
    pub(crate) fn stream(&self, haystack: &Haystack, from: impl Read, out: &mut impl Write) -> Streamed {
        let on_nul = if self.text { Nul::Ignored } else { Nul::EndsLine };
        let mut stream = Stream::new(from, on_nul, self.sizes);
        // Lines in front of a NUL byte may be lines around a match.
        let is_general = !self.can_stream() || self.format.around.is_some() && on_nul == Nul::EndsLine;
        let is_marked = if self.sniff { stream.is_marked() } else { Ok(false) };
        match is_marked {
            Err(error) => Streamed::Searched(Err(error)),
            Ok(is_marked) if is_marked || is_general => {
                stream.buffer.truncate(stream.filled);
                Streamed::Left(stream.buffer)
            }
            Ok(_) => Streamed::Searched(self.search_stream(haystack, &mut stream, out)),
        }
    }

    /// Whether results of pieces can be combined. A limit is one of lines, which does not bound a
    /// sum of matches.
    pub(super) fn can_stream(&self) -> bool {
        self.answer != Answer::CountMatches || self.max_count.is_none()
    }

    pub(super) fn search_stream(
        &self,
        haystack: &Haystack,
        stream: &mut Stream<'_, impl Read>,
        out: &mut impl Write,
    ) -> io::Result<SearchOutcome> {
        let path = haystack.shown().as_os_str().as_bytes();
        let any = match self.answer {
            Answer::Lines | Answer::Matches => self.print_stream(path, stream, out)?,
            Answer::Count | Answer::CountMatches => {
                let count = self.count_stream(stream)?;
                // A file that turned out to be binary has no count.
                if !stream.has_quit() {
                    return self.say_count(path, count, out);
                }
                false
            }
            Answer::Path | Answer::PathWithout => {
                let any = self.any_in_stream(stream)? == (self.answer == Answer::Path);
                if any {
                    out.write_all(&self.format.path_line(path))?;
                }
                any
            }
            Answer::Quiet => self.any_in_stream(stream)?,
            Answer::QuietWithout => !self.any_in_stream(stream)?,
        };
        Ok(SearchOutcome { any, stats: None })
    }

    fn any_in_stream(&self, stream: &mut Stream<'_, impl Read>) -> io::Result<bool> {
        let mut long_lines = self.long_lines(stream);
        loop {
            let found = match stream.advance(long_lines)? {
                Next::End => return Ok(false),
                Next::Piece => self.any(stream.piece()) && stream.stands()?,
                Next::Long => match self.long_line(stream)? {
                    Some(is_reported) => is_reported,
                    None => {
                        long_lines = LongLines::Whole;
                        false
                    }
                },
            };
            if found {
                return Ok(true);
            }
        }
    }

    fn count_stream(&self, stream: &mut Stream<'_, impl Read>) -> io::Result<u64> {
        let (mut count, mut scratch) = (0, ThreadScratch::default());
        let mut long_lines = self.long_lines(stream);
        loop {
            match (stream.advance(long_lines)?, self.max_count) {
                (Next::End, _) => break,
                (Next::Long, _) => match self.long_line(stream)? {
                    Some(is_reported) => count += u64::from(is_reported),
                    None => long_lines = LongLines::Whole,
                },
                (Next::Piece, most) => {
                    let found = match most {
                        None => self.count_piece(stream.piece(), &mut scratch),
                        Some(most) => self.count_up_to(stream.piece(), most - count),
                    };
                    count += if stream.stands()? { found } else { 0 };
                    if most == Some(count) {
                        break;
                    }
                }
            }
        }
        Ok(count)
    }

    /// Whether lines that are longer than a piece can be searched in parts: where only whether they
    /// match is asked, and NUL bytes mean nothing.
    fn long_lines<R>(&self, stream: &Stream<'_, R>) -> LongLines {
        let is_asked_for_lines = self.answer != Answer::CountMatches && self.max_count.is_none();
        let is_text = matches!(stream.on_nul, Nul::Ignored | Nul::InLines);
        match is_asked_for_lines && is_text && self.query.is_plain() {
            true => LongLines::InParts,
            false => LongLines::Whole,
        }
    }

    /// Searches a line that is longer than a piece, and answers whether it is to be reported;
    /// `None` if it has to be read whole.
    fn long_line(&self, stream: &mut Stream<'_, impl Read>) -> io::Result<Option<bool>> {
        if self.matches_early(stream.beginning()) {
            stream.rest_of_line(|_| ())?;
            return Ok(Some(!self.invert));
        }
        if self.query.main().looks_for_string() {
            if let Some(line) = stream.line_up_to(self.sizes.whole)? {
                let line = &stream.buffer[line];
                // The empty line is none for the engine: this one is longer than a piece.
                return Ok(Some(self.query.main().is_match(line) != self.invert));
            }
        }
        let Some(mut line) = self.query.main().long_line() else { return Ok(None) };
        stream.rest_of_line(|part| line.feed(part))?;
        Ok(Some(line.finish() != self.invert))
    }

    fn print_stream(
        &self,
        path: &[u8],
        stream: &mut Stream<'_, impl Read>,
        out: &mut impl Write,
    ) -> io::Result<bool> {
        let prefix = self.format.prefix(path);
        let checks_lines = stream.on_nul == Nul::InLines;
        let prefix_around = &*self.format.prefix_around(path);
        let mut context =
            PieceContext { checks_lines, prefix_around, ..PieceContext::new(&prefix, self.max_count) };
        let (mut printed, mut scratch, mut any) = (Printed::default(), ThreadScratch::default(), false);
        while stream.next()? {
            let text = stream.piece();
            // A stream with a NUL byte is binary. Matches of the pieces before it were printed;
            // from it on, the first piece with a match ends the search, and only a notice reports
            // that match.
            if stream.nul.is_some() && self.any(text) {
                any = true;
                break;
            }
            if stream.nul.is_none() {
                context.piece = 0..text.len();
                context.offset = stream.offset;
                let ends = self.print_piece(text, &context, &mut scratch, &mut printed);
                if stream.mapped_piece().is_some() {
                    // What is written later could be gone by then.
                    printed.keep_copy(text);
                    if !stream.stands()? {
                        continue;
                    }
                }
                let text = stream.piece();
                // Each piece has its own sink, because a sink borrows the text and the next read
                // overwrites it. `any` carries over, so that the heading is written once.
                let mut sink = PieceSink { direct: self, path, text, out: &mut *out, any };
                let written = sink.write(&printed)?;
                any = sink.any;
                context.most = context.most.map(|most| most - printed.lines);
                if written.is_break() || context.most == Some(0) {
                    return Ok(any);
                }
                if self.format.line_number {
                    context.first_line += ends.unwrap_or_else(|| line_ends(text));
                }
            }
        }
        // Without a match nothing is said about the NUL byte.
        if let Some(at) = stream.nul.filter(|_| any) {
            let notice =
                if stream.has_quit() { self.format.stopped(path, at) } else { self.format.binary(path, at) };
            out.write_all(&notice)?;
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests;
