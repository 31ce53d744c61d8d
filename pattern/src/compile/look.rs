//! Assertions: masks on markers.
//!
//! **Problem.** A marker stands before a byte and says that the expression matched up to there. An
//! assertion keeps the markers where it holds. For lines that is a stream of line starts or ends.
//! For words it depends on the characters on both sides, and those may be several bytes long:
//!
//! ```text
//! text       a    c3   a9   b          "aéb"
//! word class 1    .    1    1          a class bit stands on the last byte of its character
//! marker          ^                    before é: the bit of the character ahead is one byte away
//! ```
//!
//! **Idea.** The character before is always known: its class bit stands on the byte before the
//! marker, or decoding backwards from there finds it. The character after is known too where words
//! are ASCII, whose one byte is the marker's own. For a Unicode word the expression itself decides:
//!
//! 1. what follows in the expression begins with a word character (`\bé`), or with something else,
//!    or ends the line: then one side of the assertion is a constant ([`Side`]);
//! 2. nothing follows: then nobody minds where the marker stands, and it moves ahead to the last
//!    byte of the next character, where the class bit is;
//! 3. otherwise there is no program ([`CompileError::WordAhead`]), and the pattern's lines are
//!    confirmed by another engine.
//!
//! A word assertion is a table of pairs of demands (before, after) that satisfy it: `\b` is (word,
//! not word) or (not word, word). The mask is the union over the pairs.
//!
//! **Invariants.** No marker leaves its line: the line's end counts as a character that is not of a
//! word, and moving ahead stops there. Bytes that are no UTF-8 are no characters, neither of a word
//! nor other ones; `\B` and the half assertions ask for the difference ([`OtherCharacter`]).
//!
//! `^` holds behind a terminator, `$` at one, whatever byte that is; for both, a line is the whole
//! text, and so for `\A` and `\z`, because each line is searched by itself. A row of a column may
//! hold lines ([`Haystack::Row`]): there `(?m)^` and `(?m)$` hold beside its line ends as well.

use super::class::ByteSet;
use super::compiler::{Compiler, Follow, Markers, Side, WordAssertions};
use super::error::CompileError;
use super::options::Haystack;
use super::utf8::{
    all_ranges, as_bytes, as_ranges, ascii_set, complement, found_backwards, ClassStreams, Ranges,
};
use super::word::Demand::{self, Anything, NotWord, OtherCharacter, Word};
use super::word::{is_unicode_word, word_pairs, written};
use crate::program::Value;
use regex_syntax::hir::{Hir, HirKind, Look};

impl Compiler<'_> {
    pub(super) fn look(
        &mut self,
        look: Look,
        markers: Markers,
        follow: Follow,
    ) -> Result<Markers, CompileError> {
        let (at, end) = match look {
            Look::Start | Look::StartLF => {
                let starts = self.line_starts();
                let starts = self.or_within_row(look, starts);
                let end = match (look, self.line_end()) {
                    (Look::StartLF, Some(line_ends)) => self.builder.and(markers.end, line_ends),
                    _ => self.builder.zero(),
                };
                (self.builder.and(markers.at, starts), end)
            }
            Look::End | Look::EndLF => {
                let ends = self.terminators();
                let ends = self.or_within_row(look, ends);
                (self.builder.and(markers.at, ends), markers.end)
            }
            Look::StartCRLF | Look::EndCRLF => self.crlf(look, markers),
            look if is_unicode_word(look) => self.unicode_word_look(look, markers, follow)?,
            look => self.ascii_word_look(look, markers),
        };
        Ok(Markers { at, end, ..markers })
    }

    /// The first bytes of haystacks.
    fn line_starts(&mut self) -> Value {
        let ends = match self.has_marked_rows() {
            true => self.row_ends(),
            false => self.terminators(),
        };
        self.builder.advance_from_start(ends)
    }

    /// The bytes that end lines within rows, where haystacks are rows.
    fn line_end(&mut self) -> Option<Value> {
        match self.options.haystack {
            Haystack::Line => None,
            Haystack::Row { line_end } | Haystack::MarkedRow { line_end } => {
                Some(self.bytes(ByteSet::single(line_end)))
            }
        }
    }

    /// `ends`, the starts or ends of haystacks, and for `(?m)^` and `(?m)$` those of lines in rows.
    fn or_within_row(&mut self, look: Look, ends: Value) -> Value {
        let Some(line_ends) = self.line_end() else { return ends };
        match look {
            Look::StartLF => {
                let line_starts = self.next_in_row(line_ends);
                self.builder.or(ends, line_starts)
            }
            Look::EndLF => self.builder.or(ends, line_ends),
            _ => ends,
        }
    }

    /// Line ends with `\r\n`: a line ends before `\r\n`, before a lone `\r` and before a lone `\n`,
    /// but never between the two. Where haystacks are lines, their terminators are the `\n`; rows
    /// hold those, and end lines besides.
    fn crlf(&mut self, look: Look, markers: Markers) -> (Value, Value) {
        let returns = self.bytes(ByteSet::single(b'\r'));
        let is_row = self.options.haystack != Haystack::Line;
        let feeds = match is_row {
            true => self.bytes(ByteSet::single(b'\n')),
            false => self.terminators(),
        };
        let after_return = self.next_in_row(returns);
        if look == Look::EndCRLF {
            let lone = self.builder.and_not(feeds, after_return);
            let ends = self.builder.or(returns, lone);
            let terminators = self.terminators();
            let of_rows = if is_row { terminators } else { self.builder.zero() };
            let ends = self.builder.or(ends, of_rows);
            return (self.builder.and(markers.at, ends), markers.end);
        }
        let starts = self.line_starts();
        let after_feed = if is_row { self.next_in_row(feeds) } else { self.builder.zero() };
        let starts = self.builder.or(starts, after_feed);
        let lone = self.builder.and_not(after_return, feeds);
        let starts = self.builder.or(starts, lone);
        let either = self.builder.or(returns, feeds);
        (self.builder.and(markers.at, starts), self.builder.and(markers.end, either))
    }

    fn ascii_word_look(&mut self, look: Look, markers: Markers) -> (Value, Value) {
        // Characters on both sides are single bytes: the one ahead at the marker, the one behind
        // moved up by one. Behind a row's last byte nothing is ahead, and that byte is behind.
        let word = self.bytes(self.ascii_word);
        let before = self.next_in_row(word);
        let none = self.builder.zero();
        let (mut union, mut end) = (none, none);
        for &(left, right) in word_pairs(look) {
            let kept = self.demand(markers.at, left, before);
            let kept = self.demand(kept, right, word);
            union = self.builder.or(union, kept);
            let kept = self.demand(markers.end, left, word);
            let kept = self.demand(kept, right, none);
            end = self.builder.or(end, kept);
        }
        match self.words {
            WordAssertions::Exact => (union, end),
            WordAssertions::Near => {
                // Behind a row's last byte, only that one is beside the assertion.
                let long = self.bytes(ByteSet::EMPTY.with(0x80..=0xFF));
                let kept = self.builder.and(markers.end, long);
                (self.or_beside_long(markers.at, union), self.builder.or(end, kept))
            }
        }
    }

    /// `kept`, and the markers beside a byte beyond ASCII.
    fn or_beside_long(&mut self, markers: Value, kept: Value) -> Value {
        let long = self.bytes(ByteSet::EMPTY.with(0x80..=0xFF));
        let behind = self.builder.advance(long, 1);
        let beside = self.builder.or(long, behind);
        let beside = self.builder.and(markers, beside);
        self.builder.or(kept, beside)
    }

    fn demand(&mut self, markers: Value, demand: Demand, word: Value) -> Value {
        match demand {
            Word => self.builder.and(markers, word),
            NotWord | OtherCharacter => self.builder.and_not(markers, word),
            Anything => markers,
        }
    }

    fn unicode_word_look(
        &mut self,
        look: Look,
        markers: Markers,
        follow: Follow,
    ) -> Result<(Value, Value), CompileError> {
        let none = self.builder.zero();
        let (mut union, mut end) = (none, none);
        for &(left, right) in word_pairs(look) {
            let kept = self.demand_before(markers, left);
            let at = self.demand_after(look, kept.at, right, follow)?;
            union = self.builder.or(union, at);
            // Behind a row's last byte nothing is ahead, which is not of a word.
            let kept = self.demand(kept.end, right, none);
            end = self.builder.or(end, kept);
        }
        Ok((union, end))
    }

    fn demand_before(&mut self, markers: Markers, demand: Demand) -> Markers {
        // The part of the expression before the marker may decide it.
        let none = self.builder.zero();
        match (demand, markers.before) {
            (Anything, _) | (Word, Side::Word) => return markers,
            (NotWord | OtherCharacter, Side::NotWord) => return markers,
            (Word, Side::NotWord) | (NotWord | OtherCharacter, Side::Word) => {
                return Markers { at: none, end: none, ..markers }
            }
            _ => {}
        }
        // Otherwise the text decides: a class bit on the byte before the marker.
        let word = self.found_backwards(&self.unicode_word.clone());
        let before = self.next_in_row(word);
        let mut kept = Markers {
            at: self.demand(markers.at, demand, before),
            end: self.demand(markers.end, demand, word),
            ..markers
        };
        // A byte that is no character is not of a word, but no other character either.
        if demand == OtherCharacter {
            let valid = self.found_backwards(&all_ranges());
            let before = match self.has_marked_rows() {
                true => {
                    let (behind, starts) = (self.next_in_row(valid), self.line_starts());
                    self.builder.or(behind, starts)
                }
                false => {
                    let terminators = self.terminators();
                    let valid = self.builder.or(valid, terminators);
                    self.builder.advance_from_start(valid)
                }
            };
            kept.at = self.builder.and(kept.at, before);
            kept.end = self.builder.and(kept.end, valid);
        }
        kept
    }

    /// Bytes after which decoding backwards finds a member of the class.
    fn found_backwards(&mut self, ranges: &Ranges) -> Value {
        let (structure, streams) = (self.structure(), self.unicode[ranges]);
        let ascii = self.without_terminator(ascii_set(ranges));
        found_backwards(&mut self.builder, &structure, &streams, ascii)
    }

    fn demand_after(
        &mut self,
        look: Look,
        markers: Value,
        demand: Demand,
        follow: Follow,
    ) -> Result<Value, CompileError> {
        // The part of the expression behind the marker may decide it.
        match (demand, follow.side) {
            (Anything, _) | (Word, Side::Word) => return Ok(markers),
            // What follows is a character, or the line's end.
            (NotWord | OtherCharacter, Side::NotWord) => return Ok(markers),
            (Word, Side::NotWord) | (NotWord | OtherCharacter, Side::Word) => return Ok(self.builder.zero()),
            _ => {}
        }
        if markers == self.builder.zero() {
            return Ok(markers);
        }
        // The next part may begin with either: its class bit is ahead of the place where it must
        // match.
        if !follow.is_end {
            return Err(CompileError::WordAhead { look: written(look) });
        }
        // Nothing follows: markers may move to the byte with the class bit.
        let word = self.unicode[&self.unicode_word.clone()];
        Ok(match demand {
            Word => self.members(markers, &word),
            NotWord => self.not_before_word(markers, &word),
            OtherCharacter => self.before_other_character(markers),
            Anything => markers,
        })
    }

    /// Markers before a valid character that is not of a word, or at a line's end; moved to the
    /// character's last byte.
    fn before_other_character(&mut self, markers: Value) -> Value {
        let terminators = self.terminators();
        let at_end = self.builder.and(markers, terminators);
        let others = self.unicode[&complement(&self.unicode_word)];
        let at_other = self.members(markers, &others);
        self.builder.or(at_end, at_other)
    }

    /// Markers that no word character follows, moved within the line to where that is certain: past
    /// the bytes of a character that belongs together, to its last byte or to where it breaks off.
    fn not_before_word(&mut self, markers: Value, word: &ClassStreams) -> Value {
        // Markers before a single byte are decided at once; those before the first byte of a longer
        // character go with it.
        let structure = self.structure();
        let lead = structure.any_lead(&mut self.builder);
        let here = self.builder.and_not(markers, lead);
        let mut certain = self.builder.and_not(here, word.ascii);
        let mut going = self.builder.and(markers, lead);
        let long_words =
            word.last.iter().fold(self.builder.zero(), |union, &last| self.builder.or(union, last));
        // At most three bytes follow the first. A marker stops on a byte that does not continue the
        // character, or on its last one, unless that is the last byte of a word character.
        for _ in 0..3 {
            // A row that ends within the character ends before a word character could.
            let ended = self.at_row_end(going);
            certain = self.builder.or(certain, ended);
            let moved = self.next_in_row(going);
            let stopped = self.builder.and_not(moved, structure.middle);
            let stopped = self.builder.and_not(stopped, long_words);
            certain = self.builder.or(certain, stopped);
            going = self.builder.and(moved, structure.middle);
        }
        certain
    }

    // --- what stands beside a marker, as far as the expression tells

    /// What is known about the first character of `hir`, if `then` follows it.
    pub(super) fn first(&self, hir: &Hir, then: Follow) -> Follow {
        // Only the first character counts: a part that matches the empty string is followed by the
        // next one.
        let side = match hir.kind() {
            HirKind::Empty => return then,
            HirKind::Literal(literal) => self.side_of_first(&literal.0),
            HirKind::Class(class) => match as_bytes(class) {
                Some(set) => self.side_of_bytes(set),
                None => self.side_of(&as_ranges(class)),
            },
            HirKind::Look(Look::End | Look::EndLF) => Side::NotWord,
            HirKind::Look(_) => return Follow::with(then.side),
            HirKind::Capture(capture) => return self.first(&capture.sub, then),
            HirKind::Repetition(repetition) => {
                // If a repetition may be empty, the first character is its own or that of the next
                // part.
                let repeated = self.first(&repetition.sub, Follow::with(Side::Unknown));
                if repetition.min > 0 && repetition.sub.properties().minimum_len() > Some(0) {
                    repeated.side
                } else {
                    repeated.side.or(then.side)
                }
            }
            HirKind::Concat(parts) => {
                return parts.iter().rev().fold(then, |then, part| self.first(part, then));
            }
            HirKind::Alternation(parts) => {
                let sides = parts.iter().map(|part| self.first(part, then).side);
                sides.reduce(Side::or).unwrap_or(Side::Unknown)
            }
        };
        Follow::with(side)
    }

    pub(super) fn side_of_bytes(&self, set: ByteSet) -> Side {
        let ascii = ByteSet::EMPTY.with(0..=0x7F);
        match self.without_terminator(set) {
            set if !set.is_subset(ascii) => Side::Unknown,
            set if set.is_subset(self.ascii_word) => Side::Word,
            set if set.is_disjoint(self.ascii_word) => Side::NotWord,
            _ => Side::Unknown,
        }
    }

    pub(super) fn side_of(&self, ranges: &Ranges) -> Side {
        match (ranges.iter().all(|&range| self.is_word(range)), self.has_words(ranges)) {
            (true, _) => Side::Word,
            (_, false) => Side::NotWord,
            _ => Side::Unknown,
        }
    }

    fn is_word(&self, (first, last): (u32, u32)) -> bool {
        self.unicode_word.iter().any(|&(low, high)| low <= first && last <= high)
    }

    fn has_words(&self, ranges: &Ranges) -> bool {
        let words = &self.unicode_word;
        words.is_empty()
            || ranges.iter().any(|&(a, b)| words.iter().any(|&(low, high)| a <= high && low <= b))
    }

    fn side_of_character(&self, character: Option<char>) -> Side {
        character.map_or(Side::Unknown, |character| {
            let code = u32::from(character);
            if code < 0x80 {
                self.side_of_bytes(ascii_set(&vec![(code, code)]))
            } else {
                self.side_of(&vec![(code, code)])
            }
        })
    }

    fn side_of_first(&self, bytes: &[u8]) -> Side {
        let valid = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
        };
        self.side_of_character(valid.chars().next())
    }

    pub(super) fn side_of_last(&self, bytes: &[u8]) -> Side {
        self.side_of_character(std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next_back()))
    }
}
