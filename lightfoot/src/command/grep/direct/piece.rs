//! A text in pieces that end at lines' ends: searched one by one or by several threads, results in order.
//!
//! A piece is small enough for the second-level cache: counting its line ends, finding its lines and copying them then cost memory once. Line numbers
//! of a piece need the line ends of all pieces before it; a thread counts those of its piece first of all, so the next never waits long.

use super::dense::{is_dense, Bits};
use super::printed::Printed;
use super::turn::{Turn, Turns};
use super::{Answer, Direct};
use pattern::regex::Scratch;
use std::io::{self, Write};
use std::ops::{ControlFlow, Range};

/// Bytes of a piece, but for the line that it ends in.
const PIECE_BYTES: usize = 256 << 10;

/// Texts from this size on are searched by several threads.
const SHARED_BYTES: usize = 4 << 20;

/// Bytes of the first piece that is printed: it tells whether the text is dense.
const FIRST_BYTES: usize = 64 << 10;

/// Bytes of a long line that are looked at first.
const EARLY_BYTES: usize = 64 << 10;

/// Where marks leave more than this part of all matches undecided, lines are faster.
const UNDECIDED_PART: u64 = 8;

/// And are so for the next pieces.
const UNMARKED_PIECES: u32 = 64;

/// Bytes behind a match that may decide whether it is one: a character.
const AHEAD_BYTES: usize = 4;

/// A piece to be printed.
#[derive(Clone, Debug)]
pub(super) struct Ticket<'t> {
    pub(super) piece: Range<usize>,
    /// The number of its first line.
    pub(super) first_line: u64,
    /// What every line begins with.
    pub(super) prefix: &'t [u8],
    /// Lines with NUL bytes are not printed.
    pub(super) checks_lines: bool,
    /// At most so many lines, where there is a limit.
    pub(super) most: Option<u64>,
    /// What was read before the text.
    pub(super) offset: u64,
}

impl<'t> Ticket<'t> {
    /// For the start of a text.
    pub(super) fn new(prefix: &'t [u8], most: Option<u64>) -> Ticket<'t> {
        Ticket { piece: 0..0, first_line: 1, prefix, checks_lines: false, most, offset: 0 }
    }
}

/// The pieces of a text, the first one of about so many bytes.
pub(super) fn pieces(text: &[u8], first_bytes: usize) -> impl Iterator<Item = Range<usize>> + Send + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        (start < text.len()).then(|| {
            let bytes = if start == 0 { first_bytes } else { PIECE_BYTES };
            let wish = (start + bytes).min(text.len());
            let piece = start..pattern::line::end_of(text, wish - 1, b'\n');
            start = piece.end;
            piece
        })
    })
}

/// Has a piece of a mapped text mapped to memory; of one with a long line only the start, as a match there spares the rest.
fn populate(text: &[u8], piece: &Range<usize>) {
    if text.len() as u64 >= super::MAP_BYTES {
        pattern::map::populate(&text[piece.start..piece.end.min(piece.start + 2 * PIECE_BYTES)]);
    }
}

/// Line ends of a text.
pub(super) fn line_ends(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

impl Direct {
    fn threads_for(&self, text: &[u8]) -> usize {
        if text.len() < SHARED_BYTES || self.max_count.is_some() {
            1
        } else {
            self.threads.unwrap_or_else(super::super::settings::cores)
        }
    }

    /// Lines or matches of a text, at most `max_count`.
    pub(super) fn count(&self, text: &[u8]) -> u64 {
        let threads = self.threads_for(text);
        let next = std::sync::Mutex::new(pieces(text, PIECE_BYTES));
        // In the head of the loop itself the lock would be held while the piece is searched.
        let take = || super::turn::lock(&next).next();
        let work = || {
            let (mut sum, mut bench) = (0, Bench::default());
            while let Some(piece) = take() {
                populate(text, &piece);
                sum += self.count_piece(&text[piece], &mut bench);
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

    pub(super) fn count_up_to(&self, text: &[u8], most: u64) -> u64 {
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

    pub(super) fn count_piece(&self, text: &[u8], bench: &mut Bench) -> u64 {
        match self.answer {
            Answer::CountMatches => {
                let mut count = 0;
                if !bench.dense || !self.each_match(text, bench, |_| count += 1) {
                    let _ = self.lines(text, |line| {
                        count += self.worth(&text[line]);
                        ControlFlow::Continue(())
                    });
                }
                bench.dense = is_dense(self.answer, count, text.len());
                count
            }
            _ if self.invert => {
                let open = u64::from(text.last().is_some_and(|&last| last != b'\n'));
                line_ends(text) + open - self.query.count_lines(text)
            }
            _ if text.len() > 2 * PIECE_BYTES => self.count_with_long_line(text),
            _ => self.query.count_lines(text),
        }
    }

    /// The same where the last line is long: a match near its start spares the rest of it.
    fn count_with_long_line(&self, text: &[u8]) -> u64 {
        let start = pattern::line::start_of(text, PIECE_BYTES, b'\n');
        let (others, line) = text.split_at(start);
        let long = if self.matches_early(line) { 1 } else { self.query.count_lines(line) };
        self.query.count_lines(others) + long
    }

    /// Whether a long line is seen to match by a part of it.
    fn matches_early(&self, line: &[u8]) -> bool {
        let part = &line[..line.len().min(EARLY_BYTES)];
        if !self.query.is_plain() || !self.query.main().is_match(part) {
            return false;
        }
        // What is asserted at the end of a match looks at one character behind it, which must be seen whole.
        let found = self.query.main().find_at(part, 0);
        found.is_some_and(|found| found.end + AHEAD_BYTES <= part.len())
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
        let ticket = Ticket { checks_lines, ..Ticket::new(&prefix, self.max_count) };
        let sink = Output { direct: self, path, text, out, any: false };
        match self.threads_for(text) {
            1 => self.print_alone(text, ticket, sink),
            threads => self.print_shared(text, &ticket, threads, sink),
        }
    }

    fn print_alone<W: Write>(
        &self,
        text: &[u8],
        mut ticket: Ticket<'_>,
        mut sink: Output<'_, W>,
    ) -> io::Result<bool> {
        let mut printed = Printed::default();
        let mut bench = Bench::default();
        for piece in pieces(text, FIRST_BYTES) {
            populate(text, &piece);
            ticket.piece = piece;
            let ends = self.print_piece(text, &ticket, &mut bench, &mut printed);
            ticket.most = ticket.most.map(|most| most - printed.lines);
            if sink.write(&printed)?.is_break() || ticket.most == Some(0) {
                break;
            }
            if self.format.line_number {
                ticket.first_line += ends.unwrap_or_else(|| line_ends(&text[ticket.piece.clone()]));
            }
        }
        Ok(sink.any)
    }

    fn print_shared<W: Write>(
        &self,
        text: &[u8],
        ticket: &Ticket<'_>,
        threads: usize,
        mut sink: Output<'_, W>,
    ) -> io::Result<bool> {
        let turns = Turns::new(pieces(text, FIRST_BYTES), threads);
        let work = |number, piece: Range<usize>, bench: &mut Bench| {
            populate(text, &piece);
            let lines = if self.format.line_number { line_ends(&text[piece.clone()]) } else { 0 };
            let before = turns.lines_before(number, lines);
            let mut printed = turns.buffer();
            let ticket = Ticket { piece, first_line: before + 1, ..ticket.clone() };
            self.print_piece(text, &ticket, bench, &mut printed);
            turns.hand_in(number, printed);
        };
        let worker = || {
            let mut bench = Bench::default();
            while let Some((number, piece)) = turns.next() {
                work(number, piece, &mut bench);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(worker);
            }
            let mut bench = Bench::default();
            loop {
                match turns.turn() {
                    Turn::Work(number, piece) => work(number, piece, &mut bench),
                    Turn::Finished => return Ok(sink.any),
                    Turn::Write(printed) => {
                        let written = sink.write(&printed);
                        if !matches!(written, Ok(ControlFlow::Continue(()))) {
                            turns.stop();
                            return written.map(|_| sink.any);
                        }
                        turns.give_back(printed);
                    }
                }
            }
        })
    }

    /// Formats the reported lines of a piece into `printed`; its line ends, where they were counted on the way.
    pub(super) fn print_piece(
        &self,
        text: &[u8],
        ticket: &Ticket<'_>,
        bench: &mut Bench,
        printed: &mut Printed,
    ) -> Option<u64> {
        let part = &text[ticket.piece.clone()];
        printed.clear();
        let any_nul = ticket.checks_lines && memchr::memchr(0, part).is_some();
        let by_bits = bench.dense && ticket.most.is_none() && !any_nul;
        let ends = if by_bits { self.print_bits(text, ticket, &mut bench.bits, printed) } else { None };
        let is_done = ends.is_some() || by_bits && self.print_marked(text, ticket, bench, printed);
        if !is_done {
            self.print_lines(text, ticket, any_nul, printed);
        }
        bench.dense = is_dense(self.answer, printed.lines, part.len());
        ends
    }

    /// Tells of all matches by marks of their starts; false where that is no way, or has turned out to be none for this text.
    fn each_match(&self, text: &[u8], bench: &mut Bench, mut tell: impl FnMut(Range<usize>)) -> bool {
        bench.unmarked = bench.unmarked.saturating_sub(1);
        if bench.unmarked > 0 || !self.query.is_plain() {
            return false;
        }
        let mut matches = 0;
        let undecided = self.query.main().each_match(text, &mut bench.marks, |found| {
            matches += 1;
            tell(found);
        });
        if undecided.is_some_and(|undecided| undecided * UNDECIDED_PART > matches) {
            bench.unmarked = UNMARKED_PIECES;
        }
        undecided.is_some()
    }

    /// Prints matches, where that is what is wanted and the expression has marks for their starts.
    fn print_marked(
        &self,
        text: &[u8],
        ticket: &Ticket<'_>,
        bench: &mut Bench,
        printed: &mut Printed,
    ) -> bool {
        if self.answer != Answer::Matches {
            return false;
        }
        let base = ticket.piece.start;
        let part = &text[ticket.piece.clone()];
        let plain = ticket.prefix.is_empty() && !self.format.line_number && !self.format.byte_offset;
        let (mut number, mut counted, mut matches) = (ticket.first_line, 0, 0);
        let mut fields = ticket.prefix.to_vec();
        let is_marked = self.each_match(part, bench, |found| {
            matches += 1;
            if !plain {
                if self.format.line_number {
                    number += line_ends(&part[counted..found.start]);
                    counted = found.start;
                }
                fields.truncate(ticket.prefix.len());
                self.format.numbers(&mut fields, number, ticket.offset + (base + found.start) as u64);
                printed.push(&fields);
            }
            printed.content(text, base + found.start..base + found.end);
        });
        printed.lines = matches;
        is_marked
    }

    /// The same line by line.
    fn print_lines(&self, text: &[u8], ticket: &Ticket<'_>, checks_lines: bool, printed: &mut Printed) {
        let base = ticket.piece.start;
        let part = &text[ticket.piece.clone()];
        let (mut next, mut counted) = (ticket.first_line, 0);
        let mut fields = ticket.prefix.to_vec();
        let mut report = |number: u64, content: Range<usize>| {
            fields.truncate(ticket.prefix.len());
            self.format.numbers(&mut fields, number, ticket.offset + content.start as u64);
            printed.push(&fields);
            printed.content(text, content);
        };
        let (mut lines, mut binary) = (0, None);
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
            lines += 1;
            let start = base + line.start;
            let line = &part[line];
            if checks_lines {
                binary = memchr::memchr(0, line).map(|at| start + at);
                if binary.is_some() {
                    return ControlFlow::Break(());
                }
            }
            let content = &line[..pattern::line::content(line, b'\n')];
            if self.answer == Answer::Matches {
                self.query
                    .main()
                    .matches_of_line(content, |span| report(number, start + span.start..start + span.end));
            } else {
                report(number, start..start + content.len());
            }
            if Some(lines) == ticket.most {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        (printed.lines, printed.binary) = (lines, binary);
    }
}

/// What a thread keeps from piece to piece.
#[derive(Debug, Default)]
pub(super) struct Bench {
    bits: Bits,
    marks: Scratch,
    /// So many pieces are searched line by line before marks are tried again.
    unmarked: u32,
    /// Many lines or matches of the last piece were reported.
    dense: bool,
}

/// Where results go, and what stands above and below them.
pub(super) struct Output<'o, W> {
    pub(super) direct: &'o Direct,
    pub(super) path: &'o [u8],
    pub(super) text: &'o [u8],
    pub(super) out: &'o mut W,
    pub(super) any: bool,
}

impl<W: Write> Output<'_, W> {
    /// Writes a piece's results; breaks behind a line that ended the search.
    pub(super) fn write(&mut self, printed: &Printed) -> io::Result<ControlFlow<()>> {
        if printed.lines > 0 && !self.any {
            self.any = true;
            if !printed.is_empty() {
                self.out.write_all(&self.direct.format.above(self.path))?;
            }
        }
        printed.write(self.text, self.out)?;
        let Some(at) = printed.binary else { return Ok(ControlFlow::Continue(())) };
        self.out.write_all(&self.direct.format.binary(self.path, at))?;
        Ok(ControlFlow::Break(()))
    }
}
