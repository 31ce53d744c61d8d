//! What comes from a pipe: read piece by piece, searched as it comes.
//!
//! A piece is what one read gives up to the end of a line, so that a line is reported as soon as it was written; what is left of the next line moves to the
//! front. Memory is that of the longest line. NUL bytes end lines here unless everything is text, as they do in `grep-searcher`, with a buffer of the same
//! size: so a text that turns out to be binary is given up at the same line. Texts that begin with a byte order mark are left to the
//! general path, with what was read of them.

use super::piece::{Bench, Output, Ticket};
use super::printed::Printed;
use super::{is_marked, Answer, Direct, Found, Haystack};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;

/// As much is read at a time, but for longer lines.
const BUFFER_BYTES: usize = 64 << 10;

/// Bytes of the longest byte order mark.
const MARK_BYTES: usize = 3;

/// What became of a stream.
pub(crate) enum Streamed {
    Searched(io::Result<Found>),
    /// It needs the general path; these first bytes were read.
    Left(Vec<u8>),
}

/// A stream and the piece of it that is looked at.
struct Stream<R> {
    from: R,
    buffer: Vec<u8>,
    filled: usize,
    /// The end of the last whole line, or of the stream.
    whole: usize,
    /// The place in the stream of the buffer's first byte.
    offset: u64,
    /// NUL bytes end lines.
    converts: bool,
    /// The place in the stream of the first NUL byte.
    nul: Option<u64>,
}

impl<R: Read> Stream<R> {
    fn new(from: R, converts: bool) -> Stream<R> {
        Stream { from, buffer: vec![0; BUFFER_BYTES], filled: 0, whole: 0, offset: 0, converts, nul: None }
    }

    fn piece(&self) -> &[u8] {
        &self.buffer[..self.whole]
    }

    /// Reads once, with more room where there is none; how much.
    fn read(&mut self) -> io::Result<usize> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
        self.read_up_to(self.buffer.len())
    }

    /// Reads once, as far as a place of the buffer.
    fn read_up_to(&mut self, end: usize) -> io::Result<usize> {
        loop {
            match self.from.read(&mut self.buffer[self.filled..end]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.inspect(|bytes| self.filled += bytes),
            }
        }
    }

    /// Reads as many first bytes as it takes, which are a piece of their own then; whether they are a byte order mark.
    fn is_marked(&mut self) -> io::Result<bool> {
        while self.filled < MARK_BYTES && self.read_up_to(MARK_BYTES)? > 0 {}
        Ok(is_marked(&self.buffer[..self.filled]))
    }

    /// Goes on to the next piece; false at the end. `fresh` is where the bytes begin that were not looked at yet.
    fn next(&mut self) -> io::Result<bool> {
        let mut fresh = self.filled - self.whole;
        if self.offset == 0 && self.whole == 0 {
            // What was read to find a byte order mark.
            fresh = 0;
        }
        self.buffer.copy_within(self.whole..self.filled, 0);
        self.offset += self.whole as u64;
        self.filled -= self.whole;
        loop {
            self.convert(fresh);
            if let Some(at) = memchr::memrchr(b'\n', &self.buffer[fresh..self.filled]) {
                self.whole = fresh + at + 1;
                return Ok(true);
            }
            fresh = self.filled;
            if self.read()? == 0 {
                self.whole = self.filled;
                return Ok(self.filled > 0);
            }
        }
    }

    /// Makes line ends of the NUL bytes from `fresh` on.
    fn convert(&mut self, fresh: usize) {
        if !self.converts {
            return;
        }
        let mut at = fresh;
        while let Some(found) = memchr::memchr(0, &self.buffer[at..self.filled]) {
            at += found;
            self.nul.get_or_insert(self.offset + at as u64);
            self.buffer[at] = b'\n';
        }
    }
}

impl Direct {
    /// Searches what has no length and may have no end.
    pub(in super::super) fn stream(
        &self,
        haystack: &Haystack,
        from: impl Read,
        out: &mut impl Write,
    ) -> Streamed {
        let mut stream = Stream::new(from, !self.text);
        // The limit is one of lines, the sum one of matches.
        let is_general = self.answer == Answer::CountMatches && self.max_count.is_some();
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

    fn search_stream(
        &self,
        haystack: &Haystack,
        stream: &mut Stream<impl Read>,
        out: &mut impl Write,
    ) -> io::Result<Found> {
        let path = haystack.shown().as_os_str().as_bytes();
        let any = match self.answer {
            Answer::Lines | Answer::Matches => self.print_stream(path, stream, out)?,
            Answer::Count | Answer::CountMatches => {
                let count = self.count_stream(stream)?;
                if count > 0 || self.include_zero {
                    out.write_all(&self.format.count(path, count))?;
                }
                count > 0
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
        Ok(Found { any, stats: None })
    }

    fn any_in_stream(&self, stream: &mut Stream<impl Read>) -> io::Result<bool> {
        while stream.next()? {
            if self.any(stream.piece()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn count_stream(&self, stream: &mut Stream<impl Read>) -> io::Result<u64> {
        let (mut count, mut bench) = (0, Bench::default());
        while stream.next()? {
            match self.max_count {
                None => count += self.count_piece(stream.piece(), &mut bench),
                Some(most) => {
                    count += self.count_up_to(stream.piece(), most - count);
                    if count == most {
                        break;
                    }
                }
            }
        }
        Ok(count)
    }

    fn print_stream(
        &self,
        path: &[u8],
        stream: &mut Stream<impl Read>,
        out: &mut impl Write,
    ) -> io::Result<bool> {
        let prefix = self.format.prefix(path);
        let mut ticket = Ticket::new(&prefix, self.max_count);
        let (mut printed, mut bench, mut any) = (Printed::default(), Bench::default(), false);
        while stream.next()? {
            let text = stream.piece();
            if stream.nul.is_some() && self.any(text) {
                any = true;
                break;
            }
            if stream.nul.is_none() {
                ticket.piece = 0..text.len();
                ticket.offset = stream.offset;
                let ends = self.print_piece(text, &ticket, &mut bench, &mut printed);
                let mut sink = Output { direct: self, path, text, out: &mut *out, any };
                let _ = sink.write(&printed)?;
                any = sink.any;
                ticket.most = ticket.most.map(|most| most - printed.lines);
                if ticket.most == Some(0) {
                    return Ok(any);
                }
                if self.format.line_number {
                    ticket.first_line += ends.unwrap_or_else(|| super::piece::line_ends(text));
                }
            }
        }
        if let Some(at) = stream.nul.filter(|_| any) {
            out.write_all(&self.format.binary(path, at as usize))?;
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes in parts of certain lengths.
    struct Parts<'t>(&'t [u8], std::iter::Cycle<std::vec::IntoIter<usize>>);

    impl Read for Parts<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let wanted = self.1.next().unwrap_or(1).min(buffer.len());
            self.0.read(&mut buffer[..wanted])
        }
    }

    fn pieces(text: &[u8], lengths: Vec<usize>, converts: bool) -> (Vec<(u64, Vec<u8>)>, Option<u64>) {
        let mut stream = Stream::new(Parts(text, lengths.into_iter().cycle()), converts);
        assert!(!stream.is_marked().unwrap());
        let mut all = Vec::new();
        while stream.next().unwrap() {
            all.push((stream.offset, stream.piece().to_vec()));
        }
        (all, stream.nul)
    }

    #[test]
    fn pieces_are_whole_lines_of_the_whole_text() {
        let long =
            [&b"x".repeat(3 * BUFFER_BYTES)[..], b"\nshort\n", &b"ab\n".repeat(50_000), b"open"].concat();
        for text in [&b""[..], b"\n", b"a", b"a\nb", b"a\nb\n", &long] {
            for lengths in [vec![1, 7], vec![1 << 20], vec![3, 50_000, 1]] {
                let (pieces, nul) = pieces(text, lengths, true);
                let mut at = 0;
                for (number, (offset, piece)) in pieces.iter().enumerate() {
                    assert_eq!(*offset, at as u64);
                    assert!(piece.ends_with(b"\n") || number + 1 == pieces.len());
                    assert_eq!(piece[..], text[at..at + piece.len()]);
                    at += piece.len();
                }
                assert_eq!((at, nul), (text.len(), None));
            }
        }
    }

    #[test]
    fn a_nul_byte_ends_a_line_unless_everything_is_text() {
        for lengths in [vec![1], vec![2, 3], vec![100]] {
            let (all, nul) = pieces(b"abc\nd\0e\n\0f", lengths.clone(), true);
            assert_eq!(all.into_iter().flat_map(|(_, piece)| piece).collect::<Vec<u8>>(), b"abc\nd\ne\n\nf");
            assert_eq!(nul, Some(5));
            assert_eq!(pieces(b"a\0b\n", lengths, false).1, None);
        }
    }
}
