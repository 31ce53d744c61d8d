//! Prints lines with what goes beyond fields and text: colours, columns, replaced matches, and
//! lines around matches.
//!
//! All of it needs the matches of a line or the lines beside it, so lines are printed one by one.
//! The bytes are those of `grep-printer`, down to the order of escape sequences. **Leaves out**
//! what the general path does alone: inverted searches with several conditions and colours,
//! expressions that match nothing, lines that are trimmed or too long.

use super::around::{starts_back, Around, Limits};
use super::dense::is_dense;
use super::format::{decimal, Format};
use super::piece::{line_ends, PieceContext};
use super::print::ThreadScratch;
use super::printed::Printed;
use super::searcher::{Answer, Direct};
use grep_matcher::{Captures, Matcher};
use std::ops::{ControlFlow, Range};

/// The numbers in front of a line.
struct Numbers {
    line: u64,
    /// None for lines without a match.
    column: Option<usize>,
    offset: u64,
}

impl Format {
    /// Whether lines are printed with more than their plain fields.
    pub(super) fn is_decorated(&self) -> bool {
        self.paint.is_colored() || self.shows_spans() || self.around.is_some()
    }

    /// Whether the places of matches are needed to print a line.
    pub(super) fn shows_spans(&self) -> bool {
        self.column || self.paint.matched.is_some() || self.replacement.is_some()
    }

    fn push_numbers(&self, out: &mut Vec<u8>, numbers: &Numbers, separator: &[u8]) {
        let mut field = |is_shown, color: &[u8], number| {
            if is_shown {
                out.extend_from_slice(color);
                decimal(out, number);
                out.extend_from_slice(&self.paint.reset);
                out.extend_from_slice(separator);
            }
        };
        let column = numbers.column.filter(|_| self.column);
        field(self.line_number, &self.paint.line, numbers.line);
        field(column.is_some(), &self.paint.column, column.map_or(0, |column| column as u64 + 1));
        field(self.byte_offset, &self.paint.column, numbers.offset);
    }
}

impl Direct {
    /// Formats the reported lines of a piece into `printed`, and those around them. Returns the
    /// number of its line ends if they were counted.
    pub(super) fn print_decorated(
        &self,
        text: &[u8],
        context: &PieceContext<'_>,
        scratch: &mut ThreadScratch,
        printed: &mut Printed,
    ) -> Option<u64> {
        let mut around = std::mem::take(&mut scratch.around);
        let part = &text[context.piece.clone()];
        let mut page = Page {
            direct: self,
            text,
            context,
            part,
            around: &mut around,
            printed,
            next: context.first_line,
            counted: 0,
            done: 0,
            fields: Vec::new(),
            spans: Vec::new(),
            replaced: Vec::new(),
            captures: None,
        };
        // Where matches are many, all of a piece are found at once, and their lines by them.
        let by_matches = scratch.dense && !self.invert && context.most.is_none() && self.format.shows_spans();
        let mut is_cut = false;
        if !(by_matches && page.by_matches(scratch, &mut is_cut)) {
            is_cut = self.lines(part, |line| page.line(line)).is_break();
        }
        if let (Some(limits), false) = (self.format.around, is_cut) {
            if page.behind(part.len()).is_continue() {
                let done = page.done;
                page.around.keep(part, done, limits);
            }
        }
        let behind = || page.next - context.first_line + line_ends(&part[page.counted..]);
        let ends = self.format.line_number.then(behind);
        scratch.around = around;
        scratch.dense = is_dense(Answer::Matches, printed.reported, part.len());
        ends
    }
}

/// One piece that is being printed.
struct Page<'p> {
    direct: &'p Direct,
    text: &'p [u8],
    context: &'p PieceContext<'p>,
    part: &'p [u8],
    around: &'p mut Around,
    printed: &'p mut Printed,
    /// The number of the line that begins at `counted`.
    next: u64,
    counted: usize,
    /// The end of the last line of the piece that was printed.
    done: usize,
    fields: Vec<u8>,
    spans: Vec<Range<usize>>,
    /// A line whose matches were replaced.
    replaced: Vec<u8>,
    captures: Option<pattern::regex::Captures>,
}

impl Page<'_> {
    /// Prints the lines of all matches; false, and nothing is printed, if these cannot be found at
    /// once. `is_cut` tells whether a line ended the search.
    fn by_matches(&mut self, scratch: &mut ThreadScratch, is_cut: &mut bool) -> bool {
        let (part, mut line) = (self.part, 0..0);
        let is_possible = self.direct.each_match(part, scratch, &mut |spans| {
            for span in spans {
                if span.start >= line.end {
                    if !(*is_cut || line.is_empty()) {
                        *is_cut = self.line(line.clone()).is_break();
                    }
                    let start = memchr::memrchr(b'\n', &part[line.end..span.start]);
                    line.start = start.map_or(line.end, |at| line.end + at + 1);
                    line.end = pattern::line::end_of(part, span.end - 1, b'\n');
                    self.spans.clear();
                }
                self.spans.push(span.start - line.start..span.end - line.start);
            }
        });
        if !(*is_cut || line.is_empty()) {
            *is_cut = self.line(line).is_break();
        }
        self.spans.clear();
        is_possible
    }

    /// Prints a reported line, and what is around it.
    fn line(&mut self, line: Range<usize>) -> ControlFlow<()> {
        if let Some(limits) = self.direct.format.around {
            self.behind(line.start)?;
            self.before(line.start, limits)?;
            (self.around.pending, self.around.any) = (limits.after, true);
        }
        self.done = line.end;
        self.printed.lines += 1;
        self.check(&self.part[line.clone()], line.start as u64)?;
        let number = self.number(&line);
        let line = line.start..line.start + pattern::line::content(&self.part[line.clone()], b'\n');
        self.matched(number, line);
        match Some(self.printed.lines) == self.context.most {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Breaks at a line with a NUL byte, if such a line is not printed; it begins `from` bytes
    /// behind the beginning of the piece.
    fn check(&mut self, line: &[u8], from: u64) -> ControlFlow<()> {
        let found = if self.context.checks_lines { memchr::memchr(0, line) } else { None };
        let Some(at) = found else { return ControlFlow::Continue(()) };
        self.printed.binary = Some(self.offset().wrapping_add(from) + at as u64);
        ControlFlow::Break(())
    }

    /// The place of the piece in the whole text.
    fn offset(&self) -> u64 {
        self.context.offset + self.context.piece.start as u64
    }

    /// The number of a line of the piece; those behind it are asked for later.
    fn number(&mut self, line: &Range<usize>) -> u64 {
        if !self.direct.format.line_number {
            return 0;
        }
        if self.counted < line.start {
            self.next += line_ends(&self.part[self.counted..line.start]);
        }
        (self.counted, self.next) = (line.end, self.next + 1);
        self.next - 1
    }

    /// Prints the lines up to `end` that are still due behind a match.
    fn behind(&mut self, end: usize) -> ControlFlow<()> {
        while self.around.pending > 0 && self.done < end {
            let line = self.done..pattern::line::end_of(self.part, self.done, b'\n');
            self.beside(line.clone())?;
            self.around.pending -= 1;
            self.done = line.end;
        }
        ControlFlow::Continue(())
    }

    /// Prints the lines in front of a match that begins at `start`, and what separates them from
    /// earlier ones.
    fn before(&mut self, start: usize, limits: Limits) -> ControlFlow<()> {
        let (first, lines) = starts_back(self.part, self.done, start, limits.before);
        // Only in front of the first printed line of a piece are there lines of earlier pieces.
        let (mut older, mut is_all) = (0..0, true);
        if first == 0 && self.done == 0 {
            (older, is_all) = self.around.last(limits.before - lines);
            is_all &= !self.around.skipped;
        }
        if self.around.any && (first > self.done || !is_all) {
            if let Some(separator) = &self.direct.format.context_separator {
                self.printed.push(separator);
                self.printed.push(b"\n");
            }
        }
        self.tail(older)?;
        let mut at = first;
        while at < start {
            let line = at..pattern::line::end_of(self.part, at, b'\n');
            self.beside(line.clone())?;
            at = line.end;
        }
        ControlFlow::Continue(())
    }

    /// Prints lines of the tail of earlier pieces.
    fn tail(&mut self, lines: Range<usize>) -> ControlFlow<()> {
        if lines.is_empty() {
            return ControlFlow::Continue(());
        }
        let tail = std::mem::take(&mut self.around.tail);
        let mut number = self.context.first_line.wrapping_sub(line_ends(&tail[lines.clone()]));
        for line in pattern::line::each(&tail[lines.clone()], b'\n') {
            let line = lines.start + line.start..lines.start + line.end;
            // The tail lies in front of the piece.
            let from = (line.start as u64).wrapping_sub(tail.len() as u64);
            self.check(&tail[line.clone()], from)?;
            self.context_fields(number, self.offset().wrapping_add(from));
            self.printed.push(&tail[line]);
            number = number.wrapping_add(1);
        }
        ControlFlow::Continue(())
    }

    /// Prints a line beside a match.
    fn beside(&mut self, line: Range<usize>) -> ControlFlow<()> {
        self.check(&self.part[line.clone()], line.start as u64)?;
        let number = self.number(&line);
        self.context_fields(number, self.offset() + line.start as u64);
        let content = pattern::line::content(&self.part[line.clone()], b'\n');
        self.part(line.start..line.start + content);
        self.printed.push(b"\n");
        ControlFlow::Continue(())
    }

    fn context_fields(&mut self, line: u64, offset: u64) {
        let format = &self.direct.format;
        self.fields.clear();
        self.fields.extend_from_slice(self.context.prefix_around);
        let numbers = Numbers { line, column: None, offset };
        format.push_numbers(&mut self.fields, &numbers, &format.context_field_separator);
        self.printed.push(&self.fields);
    }

    /// Prints a reported line, given without its end.
    fn matched(&mut self, number: u64, line: Range<usize>) {
        let direct = self.direct;
        let (format, content) = (&direct.format, &self.part[line.clone()]);
        let mut spans = std::mem::take(&mut self.spans);
        if spans.is_empty() && !direct.invert && (format.shows_spans() || direct.answer == Answer::Matches) {
            direct.query.main().matches_of_line(content, |span| spans.push(span));
        }
        self.printed.reported += spans.len() as u64;
        let start = line.start;
        let content = match &format.replacement {
            Some(replacement) if !spans.is_empty() => {
                self.replace(content, &mut spans, replacement);
                Content::Replaced
            }
            _ => Content::Piece(line),
        };
        match direct.answer {
            Answer::Matches => {
                for span in &spans {
                    self.fields(number, start, Some(span.start));
                    self.content(&content, span.clone(), std::slice::from_ref(span));
                }
            }
            _ => {
                self.fields(number, start, spans.first().map(|span| span.start));
                self.content(&content, 0..self.length(&content), &spans);
            }
        }
        spans.clear();
        self.spans = spans;
    }

    /// Prints the fields of a reported line that begins at `start` of the piece.
    fn fields(&mut self, line: u64, start: usize, column: Option<usize>) {
        let format = &self.direct.format;
        // Where a match is printed, its own place is told.
        let within = column.filter(|_| self.direct.answer == Answer::Matches).unwrap_or(0);
        let numbers = Numbers { line, column, offset: self.offset() + (start + within) as u64 };
        self.fields.clear();
        self.fields.extend_from_slice(self.context.prefix);
        format.push_numbers(&mut self.fields, &numbers, format.separator());
        self.printed.push(&self.fields);
    }

    /// Writes a line with its matches replaced into `replaced`; `spans` become those of the
    /// replacements.
    fn replace(&mut self, line: &[u8], spans: &mut [Range<usize>], replacement: &[u8]) {
        let regex = self.direct.query.main();
        let names_groups = memchr::memchr(b'$', replacement).is_some();
        self.replaced.clear();
        let mut at = 0;
        for span in spans {
            self.replaced.extend_from_slice(&line[at..span.start]);
            at = span.end;
            let start = self.replaced.len();
            if !names_groups {
                self.replaced.extend_from_slice(replacement);
            } else if let Some(captures) = groups(&mut self.captures, regex) {
                // The search from the beginning of a match finds this match.
                if regex.captures_at(line, span.start, captures).is_ok() {
                    let group = |name: &str| regex.capture_index(name);
                    captures.interpolate(group, line, replacement, &mut self.replaced);
                }
            }
            *span = start..self.replaced.len();
        }
        self.replaced.extend_from_slice(&line[at..]);
    }

    fn length(&self, content: &Content) -> usize {
        match content {
            Content::Piece(line) => line.len(),
            Content::Replaced => self.replaced.len(),
        }
    }

    /// Prints a part of a line and the line's end, with colours for some matches, which are in it.
    fn content(&mut self, content: &Content, part: Range<usize>, spans: &[Range<usize>]) {
        let paint = &self.direct.format.paint;
        match paint.matched.as_ref().filter(|_| !spans.is_empty()) {
            None => self.piece(content, part),
            Some(matched) => {
                self.printed.push(&paint.highlight);
                let (mut at, mut is_open) = (part.start, false);
                for span in spans.iter().filter(|span| !span.is_empty()) {
                    if span.start > at {
                        self.close(&mut is_open);
                        self.piece(content, at..span.start);
                    }
                    if !is_open {
                        self.printed.push(matched);
                        is_open = true;
                    }
                    self.piece(content, span.clone());
                    at = span.end;
                }
                self.close(&mut is_open);
                self.piece(content, at..part.end);
                if !paint.highlight.is_empty() {
                    self.printed.push(&paint.reset);
                }
            }
        }
        self.printed.push(b"\n");
    }

    /// Ends the colour of a match.
    fn close(&mut self, is_open: &mut bool) {
        if std::mem::take(is_open) {
            self.printed.push(self.direct.format.paint.behind_match());
        }
    }

    fn piece(&mut self, content: &Content, part: Range<usize>) {
        match content {
            Content::Piece(line) => self.part(line.start + part.start..line.start + part.end),
            Content::Replaced => self.printed.push(&self.replaced[part]),
        }
    }

    /// Prints bytes of the piece.
    fn part(&mut self, part: Range<usize>) {
        let base = self.context.piece.start;
        self.printed.stretch(self.text, base + part.start..base + part.end);
    }
}

/// Memory for the groups of a match.
fn groups<'c>(
    kept: &'c mut Option<pattern::regex::Captures>,
    regex: &pattern::Regex,
) -> Option<&'c mut pattern::regex::Captures> {
    if kept.is_none() {
        *kept = regex.new_captures().ok();
    }
    kept.as_mut()
}

/// The text of a line.
enum Content {
    /// Its own, at this place of the piece.
    Piece(Range<usize>),
    /// With replaced matches.
    Replaced,
}
