//! Prints texts in which many lines match, from bits.
//!
//! Asking for one matching line after the other costs a call, a search for the line's start and a
//! count of the lines between, together tens of nanoseconds. Here a piece is scanned twice: for the
//! ends of matching lines, and with the program of the empty expression, which marks the end of
//! every line. Starts and numbers are then arithmetic on words of 64 bits. Consecutive lines
//! without fields are copied together. **Leaves out** expressions without an exact program, which
//! the caller prints line by line.
//!
//! Source of the idea: the line counts by population count of Cameron and others 2014, section 6.

use super::bits::{each_line, Bits, Dense};
use super::format::Counter;
use super::piece::PieceContext;
use super::printed::Printed;
use super::searcher::{Answer, Direct};

/// A text with more than one matching line per this many bytes counts as dense.
const DENSE_BYTES: u64 = 384;

/// A text with more than one match per this many bytes counts as dense, if spans are requested.
const DENSE_MATCH_BYTES: u64 = 4 << 10;

/// A piece that is longer has a line that is too long for bits.
const MOST_BYTES: usize = 8 << 20;

/// Whether this many reported lines or matches make a text of this length dense.
pub(super) fn is_dense(answer: Answer, reported: u64, bytes: usize) -> bool {
    let dense_bytes = match answer {
        Answer::Matches | Answer::CountMatches => DENSE_MATCH_BYTES,
        _ => DENSE_BYTES,
    };
    reported * dense_bytes > bytes as u64
}

impl Direct {
    /// The programs for dense texts, compiled when they are first needed.
    fn dense(&self) -> Option<&Dense> {
        let plain = self.query.is_plain() && self.answer == Answer::Lines;
        self.dense.get_or_init(|| plain.then(|| Dense::new(self.query.main())).flatten()).as_ref()
    }

    /// Formats the reported lines of a piece without NUL bytes from bits. Returns the number of its
    /// line ends; `None` if the piece cannot be printed in this way.
    pub(super) fn print_bits(
        &self,
        text: &[u8],
        context: &PieceContext<'_>,
        bits: &mut Bits,
        printed: &mut Printed,
    ) -> Option<u64> {
        let part = &text[context.piece.clone()];
        if part.len() > MOST_BYTES {
            return None;
        }
        let dense = self.dense()?;
        bits.mark(dense, part);
        let alone = !self.format.byte_offset && context.prefix.is_empty();
        let counter = {
            let last = context.first_line + part.len() as u64;
            Counter::new(context.first_line, last, self.format.separator())
        };
        Some(match counter.filter(|_| alone && self.format.line_number) {
            Some(counter) => self.print_numbered(text, context, bits, counter, printed),
            None if alone && !self.format.line_number => self.print_runs(text, context, bits, printed),
            None => self.print_fields(text, context, bits, printed),
        })
    }

    fn print_numbered(
        &self,
        text: &[u8],
        context: &PieceContext<'_>,
        bits: &Bits,
        mut counter: Counter,
        printed: &mut Printed,
    ) -> u64 {
        let base = context.piece.start;
        each_line(bits, self.invert, |before, line| {
            counter.set(context.first_line + before);
            printed.numbered(&counter, text, base + line.start..base + line.end);
        })
    }

    fn print_fields(
        &self,
        text: &[u8],
        context: &PieceContext<'_>,
        bits: &Bits,
        printed: &mut Printed,
    ) -> u64 {
        let base = context.piece.start;
        let mut fields = context.prefix.to_vec();
        each_line(bits, self.invert, |before, line| {
            fields.truncate(context.prefix.len());
            let start = base + line.start;
            self.format.numbers(&mut fields, context.first_line + before, context.offset + start as u64);
            printed.push(&fields);
            printed.content(text, start..base + line.end);
            printed.lines += 1;
        })
    }

    /// Writes consecutive lines together.
    fn print_runs(&self, text: &[u8], context: &PieceContext<'_>, bits: &Bits, printed: &mut Printed) -> u64 {
        let base = context.piece.start;
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
