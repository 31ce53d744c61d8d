//! Counts and prints the results of a piece of a text.

use super::around::Around;
use super::bits::Bits;
use super::dense::is_dense;
use super::piece::{line_ends, pieces, PieceContext};
use super::printed::Printed;
use super::searcher::{Answer, Direct};
use crate::outcome::SearchOutcome;
use grep_matcher::Matcher;
use pattern::regex::Scratch;
use std::io::{self, Write};
use std::ops::{ControlFlow, Range};

/// If marks leave more than one in this many matches undecided, searching line by line is faster.
const UNDECIDED_PART: u64 = 8;

/// Pieces that are searched line by line after marks left too many matches undecided.
const UNMARKED_PIECES: u32 = 64;

/// Bytes behind a match that may decide whether it is one: those of a character.
const AHEAD_BYTES: usize = 4;

impl Direct {
    /// Prints a count if there is one to print, and returns whether it is above zero.
    pub(super) fn say_count(
        &self,
        path: &[u8],
        count: u64,
        out: &mut impl Write,
    ) -> io::Result<SearchOutcome> {
        if count > 0 || self.include_zero {
            out.write_all(&self.format.count(path, count))?;
        }
        Ok(SearchOutcome { any: count > 0, stats: None })
    }

    /// The number of lines or matches of a text, at most `max_count`.
    pub(super) fn count(&self, text: &[u8]) -> u64 {
        if let Some(most) = self.max_count {
            return self.count_up_to(text, most);
        }
        let mut scratch = ThreadScratch::default();
        let bytes = self.sizes.piece;
        pieces(text, bytes, bytes).map(|piece| self.count_piece(&text[piece], &mut scratch)).sum()
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

    pub(super) fn count_piece(&self, text: &[u8], scratch: &mut ThreadScratch) -> u64 {
        match self.answer {
            Answer::CountMatches => {
                let mut count = 0;
                if !scratch.dense || !self.each_match(text, scratch, &mut |spans| count += spans.len() as u64)
                {
                    let _ = self.lines(text, |line| {
                        count += self.worth(&text[line]);
                        ControlFlow::Continue(())
                    });
                }
                scratch.dense = is_dense(self.answer, count, text.len());
                count
            }
            _ if self.invert => {
                let open = u64::from(text.last().is_some_and(|&last| last != b'\n'));
                line_ends(text) + open - self.query.count_lines(text)
            }
            _ => self.count_lines(text),
        }
    }

    /// The number of matching lines of a text, in which lines may be long.
    ///
    /// Short lines are searched piece by piece. The end of a long line is not looked for before the
    /// line is searched, as that takes as long as the search: either its beginning shows that it
    /// matches, or the text is searched from there up to the next line that matches.
    fn count_lines(&self, text: &[u8]) -> u64 {
        let (mut count, mut at) = (0, 0);
        while at < text.len() {
            let rest = &text[at..];
            let near = &rest[..rest.len().min(self.sizes.early)];
            if near.len() < rest.len() && memchr::memchr(b'\n', near).is_none() {
                let matching = match self.matches_early(rest) {
                    true => Some(pattern::line::end_of(rest, near.len(), b'\n')),
                    false => self.query.first_line_end(rest),
                };
                let Some(end) = matching else { break };
                count += 1;
                at += end;
                continue;
            }
            let bytes = self.sizes.piece;
            let end = match rest.len() <= bytes + bytes / 2 {
                true => rest.len(),
                // The last line of a piece may be long: it comes next.
                false => match memchr::memrchr(b'\n', &rest[..bytes]) {
                    Some(last) => last + 1,
                    None => pattern::line::end_of(rest, bytes - 1, b'\n'),
                },
            };
            count += self.query.count_lines(&rest[..end]);
            at += end;
        }
        count
    }

    /// Whether the beginning of a long line shows that it matches.
    pub(super) fn matches_early(&self, line: &[u8]) -> bool {
        let part = &line[..line.len().min(self.sizes.early)];
        if !self.query.is_plain() || !self.query.main().is_match(part) {
            return false;
        }
        // Without assertions, what is a match in the part is one in the line.
        if self.query.main().hir().properties().look_set().is_empty() {
            return true;
        }
        // An assertion at the end of a match looks at one character behind it, which must be seen
        // whole. The shortest match suffices; finding the preferred one may take the whole part.
        let end = self.query.main().shortest_match_at(part, 0).ok().flatten();
        end.is_some_and(|end| end + AHEAD_BYTES <= part.len())
    }

    /// The number by which a reported line increases the count.
    fn worth(&self, line: &[u8]) -> u64 {
        if self.answer != Answer::CountMatches {
            return 1;
        }
        let mut count = 0;
        let content = pattern::line::content(line, b'\n');
        self.query.main().matches_of_line(&line[..content], |_| count += 1);
        count
    }

    /// Prints lines or matches, and returns whether there was any.
    pub(super) fn print(
        &self,
        path: &[u8],
        text: &[u8],
        checks_lines: bool,
        out: &mut impl Write,
    ) -> io::Result<bool> {
        let prefix = self.format.prefix(path);
        let prefix_around = &*self.format.prefix_around(path);
        let mut context =
            PieceContext { checks_lines, prefix_around, ..PieceContext::new(&prefix, self.max_count) };
        let mut sink = PieceSink { direct: self, path, text, out, any: false };
        let mut printed = Printed::default();
        let mut scratch = ThreadScratch::default();
        for piece in pieces(text, self.sizes.first, self.sizes.piece) {
            context.piece = piece;
            let ends = self.print_piece(text, &context, &mut scratch, &mut printed);
            context.most = context.most.map(|most| most - printed.lines);
            if sink.write(&printed)?.is_break() || context.most == Some(0) {
                break;
            }
            if self.format.line_number {
                context.first_line += ends.unwrap_or_else(|| line_ends(&text[context.piece.clone()]));
            }
        }
        Ok(sink.any)
    }

    /// Formats the reported lines of a piece into `printed`. Returns the number of its line ends if
    /// they were counted.
    pub(super) fn print_piece(
        &self,
        text: &[u8],
        context: &PieceContext<'_>,
        scratch: &mut ThreadScratch,
        printed: &mut Printed,
    ) -> Option<u64> {
        let part = &text[context.piece.clone()];
        printed.clear();
        if self.format.is_decorated() {
            return self.print_decorated(text, context, scratch, printed);
        }
        // Lines that are printed one by one are looked at one by one: a look at the whole piece
        // would read it from memory before the search does, which asks for it ahead.
        let any_nul = || context.checks_lines && memchr::memchr(0, part).is_some();
        let by_bits = scratch.dense && context.most.is_none() && !any_nul();
        let mut ends =
            if by_bits { self.print_bits(text, context, &mut scratch.bits, printed) } else { None };
        let is_done = ends.is_some() || by_bits && self.print_marked(text, context, scratch, printed);
        if !is_done {
            ends = self.print_lines(text, context, context.checks_lines, printed);
        }
        scratch.dense = is_dense(self.answer, printed.reported.max(printed.lines), part.len());
        ends
    }

    /// Visits all matches by marks of their starts. Returns false if that is impossible, or has
    /// turned out to be slower for this text.
    pub(super) fn each_match(
        &self,
        text: &[u8],
        scratch: &mut ThreadScratch,
        tell: &mut dyn FnMut(&[Range<usize>]),
    ) -> bool {
        scratch.unmarked = scratch.unmarked.saturating_sub(1);
        if scratch.unmarked > 0 || !self.query.is_plain() {
            return false;
        }
        let mut matches = 0;
        let undecided = self.query.main().each_match(text, &mut scratch.marks, &mut |spans| {
            matches += spans.len() as u64;
            tell(spans);
        });
        if undecided.is_some_and(|undecided| undecided * UNDECIDED_PART > matches) {
            scratch.unmarked = UNMARKED_PIECES;
        }
        undecided.is_some()
    }

    /// Prints matches, if matches are requested and the expression has marks for their starts.
    fn print_marked(
        &self,
        text: &[u8],
        context: &PieceContext<'_>,
        scratch: &mut ThreadScratch,
        printed: &mut Printed,
    ) -> bool {
        if self.answer != Answer::Matches {
            return false;
        }
        let base = context.piece.start;
        let part = &text[context.piece.clone()];
        // Without a prefix, a line number and an offset, there are no fields to format for each
        // match.
        let plain = context.prefix.is_empty() && !self.format.line_number && !self.format.byte_offset;
        let (mut number, mut counted, mut matches) = (context.first_line, 0, 0);
        let mut fields = context.prefix.to_vec();
        let is_marked = self.each_match(part, scratch, &mut |spans| {
            matches += spans.len() as u64;
            if plain {
                return printed.contents(text, base, spans);
            }
            for found in spans {
                if self.format.line_number {
                    number += line_ends(&part[counted..found.start]);
                    counted = found.start;
                }
                // The prefix stays in the buffer; only the numbers behind it change from match to
                // match.
                fields.truncate(context.prefix.len());
                self.format.numbers(&mut fields, number, context.offset + (base + found.start) as u64);
                printed.push(&fields);
                printed.content(text, base + found.start..base + found.end);
            }
        });
        // If there are no marks, nothing was pushed: `each_match` decides before its first match,
        // so the caller can still print this piece line by line.
        (printed.lines, printed.reported) = (matches, matches);
        is_marked
    }

    /// Prints lines, or the matches in them, line by line. Returns the number of line ends if they
    /// were counted.
    fn print_lines(
        &self,
        text: &[u8],
        context: &PieceContext<'_>,
        checks_lines: bool,
        printed: &mut Printed,
    ) -> Option<u64> {
        let base = context.piece.start;
        let part = &text[context.piece.clone()];
        let (mut next, mut counted) = (context.first_line, 0);
        let mut fields = context.prefix.to_vec();
        let mut reported = 0;
        let mut report = |number: u64, content: Range<usize>| {
            reported += 1;
            fields.truncate(context.prefix.len());
            self.format.numbers(&mut fields, number, context.offset + content.start as u64);
            printed.push(&fields);
            printed.content(text, content);
        };
        let (mut lines, mut binary) = (0, None);
        let _ = self.lines(part, |line| {
            if self.format.line_number {
                // Between consecutive lines there are no line ends to count.
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
                binary = memchr::memchr(0, line).map(|at| context.offset + (start + at) as u64);
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
            if Some(lines) == context.most {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        (printed.lines, printed.reported, printed.binary) = (lines, reported, binary);
        let behind = || next - context.first_line + line_ends(&part[counted..]);
        self.format.line_number.then(behind)
    }
}

/// State that a thread keeps from piece to piece.
#[derive(Debug, Default)]
pub(super) struct ThreadScratch {
    bits: Bits,
    marks: Scratch,
    pub(super) around: Around,
    /// The number of pieces to search line by line before marks are tried again.
    unmarked: u32,
    /// Whether many lines or matches of the last piece were reported.
    pub(super) dense: bool,
}

/// The writer of results, with the texts above and below them.
pub(super) struct PieceSink<'o, W> {
    pub(super) direct: &'o Direct,
    pub(super) path: &'o [u8],
    pub(super) text: &'o [u8],
    pub(super) out: &'o mut W,
    pub(super) any: bool,
}

impl<W: Write> PieceSink<'_, W> {
    /// Writes a piece's results. Breaks after a line that ended the search.
    pub(super) fn write(&mut self, printed: &Printed) -> io::Result<ControlFlow<()>> {
        if printed.lines > 0 && !self.any {
            self.any = true;
            if !printed.is_empty() {
                self.out.write_all(&self.direct.format.above(self.path))?;
            }
        }
        printed.write(self.text, self.out)?;
        let Some(at) = printed.binary else { return Ok(ControlFlow::Continue(())) };
        // A line in front of the first match may be what ended the search.
        if self.any {
            self.out.write_all(&self.direct.format.binary(self.path, at))?;
        }
        Ok(ControlFlow::Break(()))
    }
}
