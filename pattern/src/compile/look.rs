//! Assertions: masks on markers.
//!
//! `^` holds behind a terminator, `$` at one, whatever byte that is; for both, a line is the whole text. `\A` and `\z` are the same, because each line is
//! searched by itself. Word assertions compare the characters on both sides. The one before is known: its class bit stands on the byte before the
//! marker. The one after is too where words are ASCII; a Unicode one has its bit on its last byte, up to three bytes ahead. There the expression
//! itself decides: what follows is of words, or is not, or nothing follows, and then the marker may move ahead and stay.

use super::class::ByteSet;
use super::utf8::{ascii_set, found_backwards, ClassStreams, Ranges};
use super::{as_bytes, as_ranges, CompileError, Compiler, Follow, Markers, Side, Words};
use crate::program::Value;
use regex_syntax::hir::{Hir, HirKind, Look};

/// What a word assertion demands of one side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Demand {
    Word,
    /// Not of a word, or not a character at all.
    NotWord,
    /// Not of a word, and a character or the line's end.
    OtherCharacter,
    Anything,
}

use Demand::{Anything, NotWord, OtherCharacter, Word};

/// A word assertion as the pairs of demands that satisfy it, before and after.
fn word_pairs(look: Look) -> &'static [(Demand, Demand)] {
    match look {
        Look::WordAscii | Look::WordUnicode => &[(Word, NotWord), (NotWord, Word)],
        Look::WordAsciiNegate => &[(Word, Word), (NotWord, NotWord)],
        Look::WordUnicodeNegate => &[(Word, Word), (OtherCharacter, OtherCharacter)],
        Look::WordStartAscii | Look::WordStartUnicode => &[(NotWord, Word)],
        Look::WordEndAscii | Look::WordEndUnicode => &[(Word, NotWord)],
        Look::WordStartHalfAscii => &[(NotWord, Anything)],
        Look::WordStartHalfUnicode => &[(OtherCharacter, Anything)],
        Look::WordEndHalfAscii => &[(Anything, NotWord)],
        Look::WordEndHalfUnicode => &[(Anything, OtherCharacter)],
        _ => &[],
    }
}

pub(super) fn is_unicode_word(look: Look) -> bool {
    matches!(
        look,
        Look::WordUnicode
            | Look::WordUnicodeNegate
            | Look::WordStartUnicode
            | Look::WordEndUnicode
            | Look::WordStartHalfUnicode
            | Look::WordEndHalfUnicode
    )
}

/// Whether the assertion distinguishes characters that are not of words from bytes that are no characters.
pub(super) fn asks_for_other_characters(look: Look) -> bool {
    word_pairs(look).iter().any(|&(before, after)| before == OtherCharacter || after == OtherCharacter)
}

/// How a word assertion is written.
fn written(look: Look) -> &'static str {
    match look {
        Look::WordUnicode => r"\b",
        Look::WordUnicodeNegate => r"\B",
        Look::WordStartUnicode => r"\b{start}",
        Look::WordEndUnicode => r"\b{end}",
        Look::WordStartHalfUnicode => r"\b{start-half}",
        _ => r"\b{end-half}",
    }
}

impl Compiler<'_> {
    pub(super) fn look(
        &mut self,
        look: Look,
        markers: Markers,
        follow: Follow,
    ) -> Result<Markers, CompileError> {
        let at = match look {
            Look::Start | Look::StartLF => {
                let starts = self.line_starts();
                self.builder.and(markers.at, starts)
            }
            Look::End | Look::EndLF => {
                let ends = self.terminators();
                self.builder.and(markers.at, ends)
            }
            Look::StartCRLF | Look::EndCRLF => self.crlf(look, markers.at),
            look if is_unicode_word(look) => self.unicode_word_look(look, markers, follow)?,
            look => self.ascii_word_look(look, markers.at),
        };
        Ok(Markers { at, ..markers })
    }

    /// Positions behind a terminator, and the first one.
    fn line_starts(&mut self) -> Value {
        let terminators = self.terminators();
        self.builder.advance_from_start(terminators)
    }

    /// A line ends before `\r\n`, before a lone `\r` and before a lone `\n`, and never between the two.
    fn crlf(&mut self, look: Look, markers: Value) -> Value {
        let returns = self.bytes(ByteSet::single(b'\r'));
        let terminators = self.terminators();
        let after_return = self.builder.advance(returns, 1);
        let mask = if look == Look::EndCRLF {
            let lone = self.builder.and_not(terminators, after_return);
            self.builder.or(returns, lone)
        } else {
            let starts = self.line_starts();
            let lone = self.builder.and_not(after_return, terminators);
            self.builder.or(starts, lone)
        };
        self.builder.and(markers, mask)
    }

    fn ascii_word_look(&mut self, look: Look, markers: Value) -> Value {
        let word = self.bytes(self.ascii_word);
        let before = self.builder.advance(word, 1);
        let mut union = self.builder.zero();
        for &(left, right) in word_pairs(look) {
            let kept = self.demand(markers, left, before);
            let kept = self.demand(kept, right, word);
            union = self.builder.or(union, kept);
        }
        match self.words {
            Words::Exact => union,
            Words::Near => self.or_beside_long(markers, union),
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
    ) -> Result<Value, CompileError> {
        let mut union = self.builder.zero();
        for &(left, right) in word_pairs(look) {
            let kept = self.demand_before(markers, left);
            let kept = self.demand_after(look, kept, right, follow)?;
            union = self.builder.or(union, kept);
        }
        Ok(union)
    }

    fn demand_before(&mut self, markers: Markers, demand: Demand) -> Value {
        match (demand, markers.before) {
            (Anything, _) | (Word, Side::Word) => return markers.at,
            (NotWord | OtherCharacter, Side::NotWord) => return markers.at,
            (Word, Side::NotWord) | (NotWord | OtherCharacter, Side::Word) => return self.builder.zero(),
            _ => {}
        }
        let word = self.found_backwards(&self.unicode_word.clone());
        let before = self.builder.advance(word, 1);
        let kept = self.demand(markers.at, demand, before);
        if demand == OtherCharacter {
            let valid = self.characters();
            let before = self.builder.advance_from_start(valid);
            return self.builder.and(kept, before);
        }
        kept
    }

    /// Bytes after which decoding backwards finds a member of the class.
    fn found_backwards(&mut self, ranges: &Ranges) -> Value {
        let (structure, streams) = (self.structure(), self.unicode[ranges]);
        let ascii = ascii_set(ranges).without(self.options.terminator);
        found_backwards(&mut self.builder, &structure, &streams, ascii)
    }

    /// Bytes after which decoding backwards finds any character, terminators included.
    fn characters(&mut self) -> Value {
        let valid = self.found_backwards(&super::all_ranges());
        let terminators = self.terminators();
        self.builder.or(valid, terminators)
    }

    fn demand_after(
        &mut self,
        look: Look,
        markers: Value,
        demand: Demand,
        follow: Follow,
    ) -> Result<Value, CompileError> {
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
        if !follow.is_end {
            return Err(CompileError::WordAhead { look: written(look) });
        }
        let word = self.unicode[&self.unicode_word.clone()];
        Ok(match demand {
            Word => self.members(markers, &word),
            NotWord => self.not_before_word(markers, &word),
            OtherCharacter => self.before_other_character(markers),
            Anything => markers,
        })
    }

    /// Markers before a valid character that is not of a word, or at a line's end; moved to the character's last byte.
    fn before_other_character(&mut self, markers: Value) -> Value {
        let terminators = self.terminators();
        let at_end = self.builder.and(markers, terminators);
        let others = self.unicode[&super::complement(&self.unicode_word)];
        let at_other = self.members(markers, &others);
        self.builder.or(at_end, at_other)
    }

    /// Markers that no word character follows, moved within the line to where that is certain: past the bytes of a character that belongs
    /// together, to its last byte or to where it breaks off.
    fn not_before_word(&mut self, markers: Value, word: &ClassStreams) -> Value {
        let structure = self.structure();
        let lead = structure.any_lead(&mut self.builder);
        let here = self.builder.and_not(markers, lead);
        let mut certain = self.builder.and_not(here, word.ascii);
        let mut going = self.builder.and(markers, lead);
        let long_words =
            word.last.iter().fold(self.builder.zero(), |union, &last| self.builder.or(union, last));
        for _ in 0..3 {
            let moved = self.builder.advance(going, 1);
            let stopped = self.builder.and_not(moved, structure.middle);
            let stopped = self.builder.and_not(stopped, long_words);
            certain = self.builder.or(certain, stopped);
            going = self.builder.and(moved, structure.middle);
        }
        certain
    }

    // --- what stands beside a marker, as far as the expression tells

    /// What the first character of `hir` is, if `then` follows it.
    pub(super) fn first(&self, hir: &Hir, then: Follow) -> Follow {
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
        match set.without(self.options.terminator) {
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
