//! Reverses an expression: the result matches the same texts last byte first, and perhaps more.
//!
//! A program finds where matches *end*. On the reversed text, the ends of matches of the reversed
//! expression are the starts of all matches of the expression, including those that a search would
//! not prefer. The caller confirms each place, so a superset suffices: characters beyond ASCII
//! become any bytes that could encode a character of the same length (except in classes of few
//! ranges), and a word assertion beside such a byte holds (`WordAssertions::Near`). On ASCII the
//! result is exact. **Leaves out** `\r\n` as one line end.

use super::utf8::as_bytes;
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, HirKind, Look, Repetition};
use regex_syntax::utf8::{Utf8Sequence, Utf8Sequences};

/// Classes of more sequences of bytes are approximated.
const MOST_SEQUENCES: usize = 4;

/// The reversed expression; `None` if an assertion has no counterpart.
pub(super) fn backwards(hir: &Hir) -> Option<Hir> {
    Some(match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0.iter().rev().copied().collect::<Vec<u8>>()),
        HirKind::Class(class) => backwards_class(class),
        HirKind::Look(look) => Hir::look(backwards_look(*look)?),
        HirKind::Capture(capture) => backwards(&capture.sub)?,
        HirKind::Repetition(repetition) => backwards_repetition(repetition)?,
        HirKind::Concat(parts) => Hir::concat(parts.iter().rev().map(backwards).collect::<Option<_>>()?),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(backwards).collect::<Option<_>>()?),
    })
}

fn backwards_look(look: Look) -> Option<Look> {
    Some(match look {
        Look::Start | Look::StartLF => Look::EndLF,
        Look::End | Look::EndLF => Look::StartLF,
        Look::StartCRLF | Look::EndCRLF => return None,
        Look::WordAscii | Look::WordUnicode => Look::WordAscii,
        Look::WordAsciiNegate | Look::WordUnicodeNegate => Look::WordAsciiNegate,
        Look::WordStartAscii | Look::WordStartUnicode => Look::WordEndAscii,
        Look::WordEndAscii | Look::WordEndUnicode => Look::WordStartAscii,
        Look::WordStartHalfAscii | Look::WordStartHalfUnicode => Look::WordEndHalfAscii,
        Look::WordEndHalfAscii | Look::WordEndHalfUnicode => Look::WordStartHalfAscii,
    })
}

/// A repetition. Any number of characters beyond ASCII becomes any number of bytes beyond ASCII:
/// one addition instead of a fixed point.
fn backwards_repetition(repetition: &Repetition) -> Option<Hir> {
    let sub = backwards(&repetition.sub)?;
    let again = |sub, min, max| Hir::repetition(Repetition { min, max, greedy: true, sub: Box::new(sub) });
    if let (HirKind::Class(class), None) = (repetition.sub.kind(), repetition.max) {
        if as_bytes(class).is_none() {
            let mut bytes = ascii_of(class);
            bytes.push(ClassBytesRange::new(0x80, 0xFF));
            let rest = again(Hir::class(Class::Bytes(bytes)), 0, None);
            return Some(Hir::concat(vec![again(sub, repetition.min, Some(repetition.min)), rest]));
        }
    }
    Some(again(sub, repetition.min, repetition.max))
}

fn backwards_class(class: &Class) -> Hir {
    let Class::Unicode(characters) = class else { return Hir::class(class.clone()) };
    let ascii = Hir::class(Class::Bytes(ascii_of(class)));
    let sequences = |from: char, to: char| Utf8Sequences::new(from.max('\u{80}'), to);
    let long = characters.iter().filter(|range| range.end() >= '\u{80}');
    let all: Vec<Utf8Sequence> =
        long.flat_map(|range| sequences(range.start(), range.end())).take(MOST_SEQUENCES + 1).collect();
    if all.is_empty() {
        return ascii;
    }
    let mut parts = vec![ascii];
    if all.len() <= MOST_SEQUENCES {
        parts.extend(all.iter().map(backwards_sequence));
    } else {
        parts.push(any_long(characters.iter().map(|range| (range.start(), range.end()))));
    }
    Hir::alternation(parts)
}

fn backwards_sequence(sequence: &Utf8Sequence) -> Hir {
    let bytes = sequence.as_slice().iter().rev().map(|range| byte_range(range.start, range.end));
    Hir::concat(bytes.collect())
}

/// Bytes that may encode a character as long as those of the ranges.
fn any_long(ranges: impl Iterator<Item = (char, char)>) -> Hir {
    let (mut least, mut most) = (4, 2);
    for (from, to) in ranges.filter(|&(_, to)| to >= '\u{80}') {
        least = least.min(from.len_utf8().max(2));
        most = most.max(to.len_utf8());
    }
    let bytes = |count: usize| u32::try_from(count).unwrap_or(3);
    let middles = Repetition {
        min: bytes(least - 1),
        max: Some(bytes(most - 1)),
        greedy: true,
        sub: Box::new(byte_range(0x80, 0xBF)),
    };
    Hir::concat(vec![Hir::repetition(middles), byte_range(0xC2, 0xF4)])
}

fn byte_range(from: u8, to: u8) -> Hir {
    Hir::class(Class::Bytes(ClassBytes::new([ClassBytesRange::new(from, to)])))
}

fn ascii_of(class: &Class) -> ClassBytes {
    let low = |code: u32| u8::try_from(code.min(0x7F)).unwrap_or(0x7F);
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => {
            class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).collect()
        }
        Class::Bytes(class) => {
            class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).collect()
        }
    };
    let ascii = ranges.into_iter().filter(|&(from, _)| from < 0x80);
    ClassBytes::new(ascii.map(|(from, to)| ClassBytesRange::new(low(from), low(to))))
}
