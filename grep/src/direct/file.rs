//! Searches files that were named or found: small ones are read as a whole, others are passed on to
//! [`large`](super::large).

use super::folder::ShortReads;
use super::large::Large;
use super::searcher::{is_marked, Answer, Direct};
use crate::outcome::SearchOutcome;
use crate::walk::Haystack;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;

impl Direct {
    /// Searches a file; `None` if the general path must.
    pub(crate) fn search(
        &mut self,
        haystack: &Haystack,
        out: &mut impl Write,
    ) -> Option<io::Result<SearchOutcome>> {
        if haystack.stdin {
            return None;
        }
        let mut file = match File::open(&haystack.path) {
            Ok(file) => file,
            Err(error) => return Some(Err(error)),
        };
        let short = self.folder.short_reads(haystack, &file);
        let mut buffer = std::mem::take(&mut self.buffer);
        let content = self.content(haystack, &mut file, short, &mut buffer);
        let found = match content {
            Ok(Content::Whole(length)) => self.content_of(haystack, &buffer[..length], out),
            Ok(Content::Large { bytes, read }) => {
                self.large(haystack, Large { file: &file, bytes, read, sizes: self.sizes }, &mut buffer, out)
            }
            Ok(Content::Unknown) => None,
            Err(error) => Some(Err(error)),
        };
        self.buffer = buffer;
        found
    }

    /// Reads all of a file into `buffer`, or the beginning of a large one.
    fn content(
        &self,
        haystack: &Haystack,
        file: &mut File,
        short: ShortReads,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Content> {
        let mut filled = 0;
        if !haystack.named {
            // Most files of a tree are small: they take one call or two, and their length is not
            // asked for.
            buffer.resize(buffer.len().max(self.sizes.probe), 0);
            filled = match short {
                ShortReads::EndFile => read(file, &mut buffer[..self.sizes.probe])?,
                ShortReads::MayGoOn => fill(file, &mut buffer[..self.sizes.probe])?,
            };
            if filled < self.sizes.probe {
                return Ok(Content::Whole(filled));
            }
            if self.quits(haystack) && memchr::memchr(0, &buffer[..filled]).is_some() {
                return Ok(Content::Whole(filled));
            }
        }
        let bytes = file.metadata().ok().filter(|about| about.is_file()).map_or(0, |about| about.len());
        // A file without a length may have no end, as a pipe or a device.
        if bytes == 0 {
            return Ok(Content::Unknown);
        }
        if bytes >= self.sizes.large {
            buffer.resize(buffer.len().max(self.sizes.probe), 0);
            filled += fill(file, &mut buffer[filled..self.sizes.probe])?;
            return Ok(Content::Large { bytes, read: filled });
        }
        // One byte more than expected is read, so that the end is recognised without another call.
        buffer.resize(buffer.len().max(bytes as usize + 1), 0);
        loop {
            filled += fill(file, &mut buffer[filled..])?;
            if filled < buffer.len() {
                return Ok(Content::Whole(filled));
            }
            buffer.resize(2 * filled, 0);
        }
    }

    /// Whether the search of a file ends at its first NUL byte.
    fn quits(&self, haystack: &Haystack) -> bool {
        self.quits && !haystack.named
    }

    fn content_of(
        &self,
        haystack: &Haystack,
        text: &[u8],
        out: &mut impl Write,
    ) -> Option<io::Result<SearchOutcome>> {
        if self.sniff && is_marked(text) {
            return None;
        }
        let checks_lines = self.as_mapped && haystack.named;
        let probe = if checks_lines { &text[..text.len().min(self.sizes.probe)] } else { text };
        match memchr::memchr(0, probe).filter(|_| !self.text) {
            None => Some(self.text(haystack, text, checks_lines, out)),
            // Without a match before the NUL byte, nothing is printed for the file.
            Some(at) if self.quits(haystack) && !self.any(&text[..at]) => Some(Ok(SearchOutcome::default())),
            Some(_) => None,
        }
    }

    /// Searches a text. If `checks_lines` is set, a line to be printed may still hold a NUL byte,
    /// and is then not printed.
    fn text(
        &self,
        haystack: &Haystack,
        text: &[u8],
        checks_lines: bool,
        out: &mut impl Write,
    ) -> io::Result<SearchOutcome> {
        let path = haystack.path.as_os_str().as_bytes();
        let any = match self.answer {
            Answer::Lines | Answer::Matches => self.print(path, text, checks_lines && !self.text, out)?,
            Answer::Count | Answer::CountMatches => {
                return self.say_count(path, self.count(text), out);
            }
            Answer::Path | Answer::PathWithout => {
                let any = self.any(text) == (self.answer == Answer::Path);
                if any {
                    out.write_all(&self.format.path_line(path))?;
                }
                any
            }
            Answer::Quiet => self.any(text),
            Answer::QuietWithout => !self.any(text),
        };
        Ok(SearchOutcome { any, stats: None })
    }
}

/// A file's content as far as it was read.
enum Content {
    /// All of it, in this many first bytes of the buffer.
    Whole(usize),
    /// A large file of so many bytes, the first of which were read.
    Large { bytes: u64, read: usize },
    /// A file that may have no end.
    Unknown,
}

/// Reads once.
fn read(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            read => return read,
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
