//! A text in pieces that end at lines' ends: searched one by one or by several threads, results in order.
//!
//! A piece is small enough for the second-level cache: counting its line ends, finding its lines and copying them then cost memory once. Line numbers
//! of a piece need the line ends of all pieces before it; a thread counts those of its piece first of all, so the next never waits long.

use super::turn::Turns;
use super::{Answer, Direct};
use std::io::{self, Write};
use std::ops::{ControlFlow, Range};

/// Bytes of a piece, but for the line that it ends in.
const PIECE_BYTES: usize = 1 << 20;

/// Texts from this size on are searched by several threads.
const SHARED_BYTES: usize = 4 << 20;

/// What one piece gave.
#[derive(Default)]
pub(super) struct Printed {
    bytes: Vec<u8>,
    lines: u64,
    /// Where the first line that was not printed for its NUL byte has it.
    binary: Option<usize>,
}

/// The pieces of a text.
pub(super) fn pieces(text: &[u8]) -> impl Iterator<Item = Range<usize>> + Send + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        (start < text.len()).then(|| {
            let wish = (start + PIECE_BYTES).min(text.len());
            let piece = start..pattern::line::end_of(text, wish - 1, b'\n');
            start = piece.end;
            piece
        })
    })
}

/// Line ends of a text.
fn line_ends(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

impl Direct {
    fn threads_for(&self, text: &[u8]) -> usize {
        if text.len() < SHARED_BYTES || self.max_count.is_some() {
            1
        } else {
            self.threads
        }
    }

    /// Lines or matches of a text, at most `max_count`.
    pub(super) fn count(&self, text: &[u8]) -> u64 {
        let threads = self.threads_for(text);
        let next = std::sync::Mutex::new(pieces(text));
        let work = || {
            let mut sum = 0;
            while let Some(piece) = super::turn::lock(&next).next() {
                sum += self.count_piece(&text[piece]);
            }
            sum
        };
        if let Some(most) = self.max_count {
            return self.count_up_to(text, most);
        }
        if threads == 1 {
            return work();
        }
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            work() + others.into_iter().filter_map(|other| other.join().ok()).sum::<u64>()
        })
    }

    fn count_up_to(&self, text: &[u8], most: u64) -> u64 {
        let (mut lines, mut count) = (0, 0);
        let _ = self.lines(text, |line| {
            lines += 1;
            count += self.worth(&text[line]);
            if lines == most {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        count
    }

    fn count_piece(&self, text: &[u8]) -> u64 {
        match self.answer {
            Answer::CountMatches => {
                let mut count = 0;
                let _ = self.lines(text, |line| {
                    count += self.worth(&text[line]);
                    ControlFlow::Continue(())
                });
                count
            }
            _ if self.invert => {
                let open = u64::from(text.last().is_some_and(|&last| last != b'\n'));
                line_ends(text) + open - self.query.count_lines(text)
            }
            _ => self.query.count_lines(text),
        }
    }

    /// What a reported line adds to the count.
    fn worth(&self, line: &[u8]) -> u64 {
        if self.answer != Answer::CountMatches {
            return 1;
        }
        let mut count = 0;
        let content = pattern::line::content(line, b'\n');
        self.query.main().matches_of_line(&line[..content], |_| count += 1);
        count
    }

    /// Prints lines or matches; whether there was any.
    pub(super) fn print(
        &self,
        path: &[u8],
        text: &[u8],
        checks_lines: bool,
        out: &mut impl Write,
    ) -> io::Result<bool> {
        let prefix = self.format.prefix(path);
        let mut sink = Output { direct: self, path, out, any: false };
        let threads = self.threads_for(text);
        if threads > 1 {
            return self.print_shared(text, &prefix, checks_lines, threads, sink);
        }
        let mut line_number = 1;
        let mut left = self.max_count.unwrap_or(u64::MAX);
        let mut printed = Printed::default();
        for piece in pieces(text) {
            printed.bytes.clear();
            printed.lines = 0;
            self.print_piece(text, piece.clone(), line_number, &prefix, checks_lines, left, &mut printed);
            left -= printed.lines;
            if sink.write(&printed)?.is_break() || left == 0 {
                break;
            }
            if self.format.line_number {
                line_number += line_ends(&text[piece]);
            }
        }
        Ok(sink.any)
    }

    fn print_shared<W: Write>(
        &self,
        text: &[u8],
        prefix: &[u8],
        checks_lines: bool,
        threads: usize,
        mut sink: Output<'_, W>,
    ) -> io::Result<bool> {
        let turns = Turns::new(pieces(text), threads);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((number, piece)) = turns.next() {
                        let lines = if self.format.line_number { line_ends(&text[piece.clone()]) } else { 0 };
                        let before = turns.lines_before(number, lines);
                        let mut printed = turns.buffer();
                        printed.bytes.clear();
                        (printed.lines, printed.binary) = (0, None);
                        self.print_piece(
                            text,
                            piece,
                            before + 1,
                            prefix,
                            checks_lines,
                            u64::MAX,
                            &mut printed,
                        );
                        turns.hand_in(number, printed);
                    }
                });
            }
            while let Some(printed) = turns.take() {
                let written = sink.write(&printed);
                if !matches!(written, Ok(ControlFlow::Continue(()))) {
                    turns.stop();
                    let _ = written?;
                    break;
                }
                turns.give_back(printed);
            }
            Ok(sink.any)
        })
    }

    /// Formats the reported lines of a piece, at most `most`, into `printed`.
    #[allow(clippy::too_many_arguments, reason = "the hot loop, with everything it reads spelt out")]
    fn print_piece(
        &self,
        text: &[u8],
        piece: Range<usize>,
        first_line: u64,
        prefix: &[u8],
        checks_lines: bool,
        most: u64,
        printed: &mut Printed,
    ) {
        let part = &text[piece.clone()];
        let (mut next, mut counted) = (first_line, 0);
        let Printed { bytes, lines, binary } = printed;
        let _ = self.lines(part, |line| {
            if self.format.line_number {
                // Lines that follow each other have nothing between them to be counted.
                if counted < line.start {
                    next += line_ends(&part[counted..line.start]);
                }
                counted = line.end;
            }
            let number = next;
            next += 1;
            let offset = (piece.start + line.start) as u64;
            let line = &part[line];
            *lines += 1;
            if checks_lines {
                if let Some(at) = memchr::memchr(0, line) {
                    *binary = Some(offset as usize + at);
                    return ControlFlow::Break(());
                }
            }
            let content = &line[..pattern::line::content(line, b'\n')];
            if self.answer == Answer::Matches {
                self.query.main().matches_of_line(content, |span| {
                    bytes.extend_from_slice(prefix);
                    self.format.numbers(bytes, number, offset + span.start as u64);
                    bytes.extend_from_slice(&content[span]);
                    bytes.push(b'\n');
                });
            } else {
                bytes.extend_from_slice(prefix);
                self.format.numbers(bytes, number, offset);
                bytes.extend_from_slice(content);
                bytes.push(b'\n');
            }
            if *lines == most {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
    }
}

/// Where results go, and what stands above and below them.
struct Output<'o, W> {
    direct: &'o Direct,
    path: &'o [u8],
    out: &'o mut W,
    any: bool,
}

impl<W: Write> Output<'_, W> {
    /// Writes a piece's results; breaks behind a line that ended the search.
    fn write(&mut self, printed: &Printed) -> io::Result<ControlFlow<()>> {
        if printed.lines > 0 && !self.any {
            self.any = true;
            if !printed.bytes.is_empty() {
                self.out.write_all(&self.direct.format.above(self.path))?;
            }
        }
        self.out.write_all(&printed.bytes)?;
        let Some(at) = printed.binary else { return Ok(ControlFlow::Continue(())) };
        self.out.write_all(&self.direct.format.binary(self.path, at))?;
        Ok(ControlFlow::Break(()))
    }
}
