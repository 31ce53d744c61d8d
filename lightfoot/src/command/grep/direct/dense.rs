//! Texts in which many lines match: printed from bits.
//!
//! Asking for one matching line after the other costs a call, a search for the line's start and a count of the lines between, together tens of
//! nanoseconds. Here a piece is scanned twice: for the ends of matching lines, and with the program of the empty expression, which marks
//! the end of every line. Starts and numbers then are arithmetic on words of 64 bits. Lines without fields that follow each other are one
//! copy. Left out: expressions without an exact program, which the caller prints line by line.
//!
//! Source of the idea: the line counts by population count of Cameron and others 2014, section 6.

use super::format::Counter;
use super::piece::Ticket;
use super::printed::Printed;
use super::{Answer, Direct};
use pattern::compile::{compile, CompileOptions};
use pattern::kernel::Scanner;
use pattern::Regex;
use std::ops::{ControlFlow, Range};

/// With a matching line in fewer bytes than this a text counts as dense.
const DENSE_BYTES: u64 = 384;

/// The same for a match whose span is asked for.
const DENSE_MATCH_BYTES: u64 = 4 << 10;

/// Longer pieces hold a line that is not worth bits.
const MOST_BYTES: usize = 8 << 20;

/// The programs: for matching lines, and for all of them.
#[derive(Debug)]
pub(super) struct Dense {
    matching: Scanner,
    every: Scanner,
}

/// Scratch memory of one thread.
#[derive(Debug, Default)]
pub(super) struct Bits {
    matching: Vec<u64>,
    every: Vec<u64>,
}

/// Whether so many reported lines or matches make a text of this length dense.
pub(super) fn is_dense(answer: Answer, reported: u64, bytes: usize) -> bool {
    let dense_bytes = match answer {
        Answer::Matches | Answer::CountMatches => DENSE_MATCH_BYTES,
        _ => DENSE_BYTES,
    };
    reported * dense_bytes > bytes as u64
}

impl Dense {
    /// The programs of an expression, where it has an exact one.
    pub(super) fn new(regex: &Regex) -> Option<Dense> {
        if !matches!(regex.engine(), "streams" | "literal" | "required") {
            return None;
        }
        let scanner = |regex: &Regex| {
            let options = CompileOptions {
                terminator: b'\n',
                operations: pattern::plan::MOST_OPERATIONS,
                ..CompileOptions::default()
            };
            compile(regex.hir(), &options).ok().map(|program| Scanner::new(&program))
        };
        Some(Dense { matching: scanner(regex)?, every: scanner(&Regex::new("").ok()?)? })
    }
}

fn collect(scanner: &Scanner, text: &[u8], words: &mut Vec<u64>) {
    words.clear();
    let _ = scanner.scan_for(text.len()).finish(text, |_, ends| {
        words.extend_from_slice(ends);
        ControlFlow::Continue(())
    });
}

/// Walks the reported lines of a piece: `visit` gets the number of lines in front of a line and its range without terminator. Answers the
/// number of all lines.
#[inline]
fn each_line(bits: &Bits, inverted: bool, mut visit: impl FnMut(u64, Range<usize>)) -> u64 {
    let (mut start, mut before) = (0, 0);
    for (at, (&every, &matching)) in bits.every.iter().zip(&bits.matching).enumerate() {
        let base = 64 * at;
        let wanted = if inverted { every & !matching } else { matching };
        if wanted == 0 {
            before += u64::from(every.count_ones());
            start = if every == 0 { start } else { base + 64 - every.leading_zeros() as usize };
            continue;
        }
        let mut left = every;
        while left != 0 {
            let end = base + left.trailing_zeros() as usize;
            if wanted & left & left.wrapping_neg() != 0 {
                visit(before, start..end);
            }
            before += 1;
            start = end + 1;
            left &= left - 1;
        }
    }
    before
}

impl Direct {
    /// The programs for dense texts, compiled when they are needed first.
    fn dense(&self) -> Option<&Dense> {
        let plain = self.query.is_plain() && self.answer == Answer::Lines;
        self.dense.get_or_init(|| plain.then(|| Dense::new(self.query.main())).flatten()).as_ref()
    }

    /// Formats the reported lines of a piece without NUL bytes from bits; the line ends of the piece, or nothing where that is no way
    /// for this piece.
    pub(super) fn print_bits(
        &self,
        text: &[u8],
        ticket: &Ticket<'_>,
        bits: &mut Bits,
        printed: &mut Printed,
    ) -> Option<u64> {
        let part = &text[ticket.piece.clone()];
        if part.len() > MOST_BYTES {
            return None;
        }
        let dense = self.dense()?;
        collect(&dense.matching, part, &mut bits.matching);
        collect(&dense.every, part, &mut bits.every);
        let alone = !self.format.byte_offset && ticket.prefix.is_empty();
        let counter = {
            let last = ticket.first_line + part.len() as u64;
            Counter::new(ticket.first_line, last, self.format.separator())
        };
        Some(match counter.filter(|_| alone && self.format.line_number) {
            Some(counter) => self.print_numbered(text, ticket, bits, counter, printed),
            None if alone && !self.format.line_number => self.print_runs(text, ticket, bits, printed),
            None => self.print_fields(text, ticket, bits, printed),
        })
    }

    fn print_numbered(
        &self,
        text: &[u8],
        ticket: &Ticket<'_>,
        bits: &Bits,
        mut counter: Counter,
        printed: &mut Printed,
    ) -> u64 {
        let base = ticket.piece.start;
        each_line(bits, self.invert, |before, line| {
            counter.set(ticket.first_line + before);
            printed.numbered(&counter, text, base + line.start..base + line.end);
        })
    }

    fn print_fields(&self, text: &[u8], ticket: &Ticket<'_>, bits: &Bits, printed: &mut Printed) -> u64 {
        let base = ticket.piece.start;
        let mut fields = ticket.prefix.to_vec();
        each_line(bits, self.invert, |before, line| {
            fields.truncate(ticket.prefix.len());
            let start = base + line.start;
            self.format.numbers(&mut fields, ticket.first_line + before, ticket.offset + start as u64);
            printed.push(&fields);
            printed.content(text, start..base + line.end);
            printed.lines += 1;
        })
    }

    /// Lines that follow each other are written at once.
    fn print_runs(&self, text: &[u8], ticket: &Ticket<'_>, bits: &Bits, printed: &mut Printed) -> u64 {
        let base = ticket.piece.start;
        let mut run = base..base;
        let mut lines = 0;
        let ends = each_line(bits, self.invert, |_, line| {
            lines += 1;
            if lines == 1 {
                run.start = base + line.start;
            } else if base + line.start != run.end + 1 {
                printed.content(text, run.clone());
                run.start = base + line.start;
            }
            run.end = base + line.end;
        });
        if lines > 0 {
            printed.content(text, run);
        }
        printed.lines += lines;
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pattern::line;

    /// What the bits say, against lines found one by one.
    fn lines(text: &[u8], pattern: &str, inverted: bool) -> Vec<(u64, Range<usize>)> {
        let dense = Dense::new(&Regex::new(pattern).unwrap()).unwrap();
        let mut bits = Bits::default();
        collect(&dense.matching, text, &mut bits.matching);
        collect(&dense.every, text, &mut bits.every);
        let mut found = Vec::new();
        let ends = each_line(&bits, inverted, |before, line| found.push((before, line)));
        assert_eq!(ends, line::each(text, b'\n').count() as u64);
        found
    }

    #[test]
    fn bits_give_lines_and_their_numbers() {
        let mut seed = 1_u64;
        for length in [0, 1, 2, 63, 64, 65, 511, 512, 513, 8191, 8192, 8193, 70_000] {
            for rarity in [2, 5, 70, 700] {
                let letters = (0..length).map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let roll = (seed >> 33) % rarity;
                    [b'\n', b'x'].get(roll as usize).copied().unwrap_or(b'a')
                });
                let text: Vec<u8> = letters.collect();
                for inverted in [false, true] {
                    let each = (0..).zip(line::each(&text, b'\n'));
                    let wanted = each.filter_map(|(before, line)| {
                        let content = line.start..line.start + line::content(&text[line.clone()], b'\n');
                        (text[content.clone()].contains(&b'x') != inverted).then_some((before, content))
                    });
                    assert_eq!(lines(&text, "x", inverted), wanted.collect::<Vec<_>>(), "{length} {rarity}");
                }
            }
        }
    }
}
