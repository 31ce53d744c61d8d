//! The direct path: whole files searched by the engine in large pieces, results formatted into one buffer.
//!
//! A searcher that asks for one line after the other costs 30 to 90 ns a matching line; here lines are pushed, counted by popcount, and numbers
//! are written from a table. It takes what most searches are (lines, counts, paths, `-o`, `-n`, `-b`, `-v`, `-m`, headings) and leaves to the
//! general path everything else, and every file with a NUL byte or a byte order mark where that would matter: [`Direct::search`] then
//! answers nothing and has printed nothing. Both paths print the same bytes.

mod dense;
mod format;
mod piece;
mod printed;
mod stream;
mod turn;

use super::arguments::{Binary, Color, Encoding, Output};
use super::query::{Matching, Query};
use super::settings::Settings;
use super::walk::Haystack;
use super::worker::Found;
use dense::Dense;
use format::Format;
use pattern::map::Map;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};
pub(super) use stream::Streamed;

/// A NUL byte is looked for in this many first bytes of a mapped file, and so many are read of one that was found in a folder.
const PROBE_BYTES: usize = 64 << 10;

/// Files from this size on are mapped even where reading is asked for by default: one copy less.
const MAP_BYTES: u64 = 1 << 20;

/// What the direct path prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Lines,
    Matches,
    Count,
    CountMatches,
    Path,
    PathWithout,
    Quiet,
    QuietWithout,
}

/// A searcher of whole files.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    query: Query,
    answer: Answer,
    format: Format,
    invert: bool,
    max_count: Option<u64>,
    map: bool,
    text: bool,
    /// Files that were found end at their first NUL byte.
    quits: bool,
    sniff: bool,
    include_zero: bool,
    /// As many as the system offers where nothing is said.
    threads: Option<usize>,
    /// Programs for texts in which many lines match.
    dense: Arc<OnceLock<Option<Dense>>>,
    buffer: Vec<u8>,
}

impl Direct {
    /// The direct path for these settings, where it can do what they ask.
    pub(super) fn new(settings: &Settings, matching: &Matching) -> Option<Direct> {
        let Matching::Query(query) = matching else { return None };
        let said = &settings.said;
        let asked = settings.stats
            || said.multiline
            || said.crlf
            || said.null_data
            || said.replace.is_some()
            || said.pre.is_some()
            || said.search_zip
            || said.around.all
            || said.around.lines() != (0, 0)
            || said.stop_on_nonmatch
            || said.trim
            || said.max_columns.is_some()
            || said.vimgrep
            || settings.column;
        let decorated = settings.color != Color::Never
            || !said.hyperlink_format.is_empty()
            || said.path_separator.is_some_and(|byte| byte != b'/')
            || matches!(said.encoding, Encoding::From(_));
        // Separators between files need to know of both paths' results; with several threads the writer adds them.
        let separated = settings.threads == 1 && settings.file_separator.is_some();
        let answer = answer(settings)?;
        let spans = matches!(answer, Answer::Matches | Answer::CountMatches);
        let empty = spans && (query.main().can_be_empty() || said.invert_match);
        if asked || decorated || separated || empty {
            return None;
        }
        Some(Direct {
            query: query.clone(),
            answer,
            format: Format::new(settings),
            invert: said.invert_match,
            max_count: said.max_count,
            map: settings.map,
            text: said.binary == Binary::Text,
            quits: said.binary == Binary::Auto
                && !matches!(answer, Answer::PathWithout | Answer::QuietWithout),
            sniff: matches!(said.encoding, Encoding::Auto),
            include_zero: said.include_zero,
            threads: if settings.one_file { settings.file_threads } else { Some(1) },
            dense: Arc::default(),
            buffer: Vec::new(),
        })
    }

    /// Searches a file; nothing where the general path must.
    pub(super) fn search(&mut self, haystack: &Haystack, out: &mut impl Write) -> Option<io::Result<Found>> {
        if haystack.stdin {
            return None;
        }
        let mut file = match File::open(&haystack.path) {
            Ok(file) => file,
            Err(error) => return Some(Err(error)),
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        let content = self.content(haystack, &mut file, &mut buffer);
        let found = match content {
            Ok(Content::Mapped(map)) => self.content_of(haystack, &map, out),
            Ok(Content::Read(length)) => self.content_of(haystack, &buffer[..length], out),
            Ok(Content::Unknown) => None,
            Err(error) => Some(Err(error)),
        };
        self.buffer = buffer;
        found
    }

    /// Maps a file or reads all of it into `buffer`.
    fn content(&self, haystack: &Haystack, file: &mut File, buffer: &mut Vec<u8>) -> io::Result<Content> {
        let mut filled = 0;
        if !self.map && !haystack.named {
            // Most files of a tree are small: two calls, and nothing to ask before.
            buffer.resize(buffer.len().max(PROBE_BYTES), 0);
            filled = fill(file, &mut buffer[..PROBE_BYTES])?;
            if filled < PROBE_BYTES {
                return Ok(Content::Read(filled));
            }
            if self.quits(haystack) && memchr::memchr(0, &buffer[..filled]).is_some() {
                return Ok(Content::Read(filled));
            }
        }
        let length = file.metadata().ok().filter(|about| about.is_file()).map_or(0, |about| about.len());
        if self.map || length >= MAP_BYTES {
            if let Some(map) = Map::new(file) {
                return Ok(Content::Mapped(map));
            }
        }
        // Something without a length may never end: a pipe, a device.
        if length == 0 || length >= MAP_BYTES {
            return Ok(Content::Unknown);
        }
        // One byte more than expected, so that the end is seen without another call for a larger buffer.
        buffer.resize(buffer.len().max(length as usize + 1), 0);
        loop {
            filled += fill(file, &mut buffer[filled..])?;
            if filled < buffer.len() {
                return Ok(Content::Read(filled));
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
    ) -> Option<io::Result<Found>> {
        if self.sniff && is_marked(text) {
            return None;
        }
        // A file that was named and mapped is text until a line to be printed says otherwise.
        let checks_lines = self.map && haystack.named;
        let probe = if checks_lines { &text[..text.len().min(PROBE_BYTES)] } else { text };
        match memchr::memchr(0, probe).filter(|_| !self.text) {
            None => Some(self.text(haystack, text, checks_lines, out)),
            // Without a match in front of the NUL byte nothing is said of the file.
            Some(at) if self.quits(haystack) && !self.any(&text[..at]) => Some(Ok(Found::default())),
            Some(_) => None,
        }
    }

    /// Searches a text. With `checks_lines`, a line to be printed may still hold a NUL byte, and is then not printed.
    fn text(
        &self,
        haystack: &Haystack,
        text: &[u8],
        checks_lines: bool,
        out: &mut impl Write,
    ) -> io::Result<Found> {
        let path = haystack.path.as_os_str().as_bytes();
        let any = match self.answer {
            Answer::Lines | Answer::Matches => self.print(path, text, checks_lines && !self.text, out)?,
            Answer::Count | Answer::CountMatches => {
                let count = self.count(text);
                if count > 0 || self.include_zero {
                    out.write_all(&self.format.count(path, count))?;
                }
                count > 0
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
        Ok(Found { any, stats: None })
    }

    fn any(&self, text: &[u8]) -> bool {
        self.lines(text, |_| ControlFlow::Break(())).is_break()
    }

    /// Pushes the lines that are to be reported.
    fn lines(
        &self,
        text: &[u8],
        mut push: impl FnMut(std::ops::Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.invert {
            return self.query.matching_lines(text, push);
        }
        let mut at = 0;
        self.query.matching_lines(text, |line| {
            for other in pattern::line::each(&text[at..line.start], b'\n') {
                push(at + other.start..at + other.end)?;
            }
            at = line.end;
            ControlFlow::Continue(())
        })?;
        for other in pattern::line::each(&text[at..], b'\n') {
            push(at + other.start..at + other.end)?;
        }
        ControlFlow::Continue(())
    }
}

fn answer(settings: &Settings) -> Option<Answer> {
    let without = settings.output == Output::PathsWithout;
    Some(match settings.output {
        Output::Json => return None,
        _ if settings.said.quiet => {
            if without {
                Answer::QuietWithout
            } else {
                Answer::Quiet
            }
        }
        Output::Lines if settings.said.only_matching => Answer::Matches,
        Output::Lines => Answer::Lines,
        Output::Count => Answer::Count,
        Output::CountMatches => Answer::CountMatches,
        Output::Paths => Answer::Path,
        Output::PathsWithout => Answer::PathWithout,
    })
}

/// A file's content, as far as it is needed.
enum Content {
    Mapped(Map),
    /// So many first bytes of the buffer.
    Read(usize),
    /// It may have no end.
    Unknown,
}

/// Whether a text begins with a byte order mark.
fn is_marked(text: &[u8]) -> bool {
    [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| text.starts_with(mark))
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
