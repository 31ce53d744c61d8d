//! Finds all matches of an expression whose matches have one number of characters: their ends by a
//! bit-stream program, their starts by counting characters back.
//!
//! **Problem.** Marks of starts are a superset beside characters beyond ASCII ([`super::starts`]),
//! and in texts of other scripts a general engine decides each of them.
//!
//! **Idea.** A program that reads forwards is exact for any text. Where all matches have as many
//! characters, the order of ends is that of starts, so that the leftmost match that is left is the
//! one with the first end. A Unicode assertion at the very end moves its mark to the last byte of
//! the next character, from where the end is that character's beginning. **Leaves out** places
//! beside what is no UTF-8, for which the answer is that somebody else must look.

use super::options::{Options, Terminator, Unit};
use super::starts::Scratch;
use crate::compile::{compile_ends, CompileOptions};
use crate::kernel::Scanner;
use crate::plan::MOST_OPERATIONS;
use regex_syntax::hir::{Class, Hir, HirKind, LookSet};
use std::ops::{ControlFlow, Range};

/// Finds ends, and starts by them.
pub(super) struct Ends {
    scanner: Scanner,
    /// The number of characters of each match.
    characters: usize,
    /// Whether a mark is moved to the last byte of the next character.
    is_moved: bool,
}

impl Ends {
    /// Creates it for an expression within lines; `None` if its matches differ in length, or have
    /// no exact program.
    pub(super) fn new(hir: &Hir, options: &Options) -> Option<Ends> {
        let is_plain = options.unit == Unit::Line && options.terminator == Terminator::LineFeed;
        let hir = without_group(hir);
        let characters = characters(hir).filter(|&count| is_plain && count > 0)?;
        let is_moved = ends_with_word_assertion(hir)?;
        let compile = CompileOptions { operations: MOST_OPERATIONS, ..CompileOptions::default() };
        let scanner = Scanner::new(&compile_ends(hir, &compile).ok()?);
        Some(Ends { scanner, characters, is_moved })
    }

    /// All matches of `text`, whole lines, with `base` added to their places; `None` where bytes
    /// that are no UTF-8 leave a match undecided.
    pub(super) fn matches<'s>(
        &self,
        text: &[u8],
        base: usize,
        scratch: &'s mut Scratch,
    ) -> Option<&'s [Range<usize>]> {
        let spans = &mut scratch.spans;
        spans.clear();
        let mut past = 0;
        let found = self.scanner.scan_for(text.len()).finish(text, |offset, words| {
            for (number, &word) in words.iter().enumerate() {
                let mut left = word;
                while left != 0 {
                    let mark = offset + 64 * number + left.trailing_zeros() as usize;
                    left &= left - 1;
                    // Behind the text are bytes that fill up a block.
                    if mark > text.len() {
                        return ControlFlow::Continue(());
                    }
                    let Some(span) = self.span(text, mark) else { return ControlFlow::Break(()) };
                    if span.start >= past {
                        past = span.end;
                        spans.push(base + span.start..base + span.end);
                    }
                }
            }
            ControlFlow::Continue(())
        });
        found.is_continue().then_some(&scratch.spans[..])
    }

    /// The match of a mark.
    #[inline]
    fn span(&self, text: &[u8], mark: usize) -> Option<Range<usize>> {
        let is_moved = self.is_moved && text.get(mark).is_some_and(|byte| !byte.is_ascii());
        let end = if is_moved { start_of_character(text, mark + 1)? } else { mark };
        let mut start = end;
        for _ in 0..self.characters {
            start = start_of_character(text, start)?;
        }
        Some(start..end)
    }
}

/// Where the character that ends at `end` begins; `None` where none ends there. Overlong forms and
/// surrogates pass: no class has them.
#[inline]
fn start_of_character(text: &[u8], end: usize) -> Option<usize> {
    let last = end.checked_sub(1)?;
    if text[last].is_ascii() {
        return Some(last);
    }
    let most = end.min(4);
    let bytes = (1..=most).find(|&bytes| text[end - bytes] & 0xC0 != 0x80)?;
    (text[end - bytes].leading_ones() as usize == bytes && bytes > 1).then_some(end - bytes)
}

/// The expression without a group around all of it.
fn without_group(hir: &Hir) -> &Hir {
    match hir.kind() {
        HirKind::Capture(capture) => without_group(&capture.sub),
        _ => hir,
    }
}

/// The number of characters of each match, where all have as many.
fn characters(hir: &Hir) -> Option<usize> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(0),
        HirKind::Literal(literal) => Some(std::str::from_utf8(&literal.0).ok()?.chars().count()),
        HirKind::Class(Class::Unicode(_)) => Some(1),
        HirKind::Class(Class::Bytes(class)) => class.is_ascii().then_some(1),
        HirKind::Capture(capture) => characters(&capture.sub),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.filter(|&max| max == repetition.min)?;
            characters(&repetition.sub)?.checked_mul(times as usize)
        }
        HirKind::Concat(subs) => {
            subs.iter().map(characters).try_fold(0, |sum: usize, count| sum.checked_add(count?))
        }
        HirKind::Alternation(subs) => {
            let counts = subs.iter().map(characters).collect::<Option<Vec<_>>>()?;
            counts.iter().all(|count| count == &counts[0]).then(|| counts[0])
        }
    }
}

/// Whether an assertion about Unicode words is the last part of an expression, so that it moves
/// marks; `None` where only some matches end with one.
fn ends_with_word_assertion(hir: &Hir) -> Option<bool> {
    let asks_for_words = |looks: LookSet| looks.contains_word_unicode();
    let last = match hir.kind() {
        HirKind::Concat(parts) => parts.last()?,
        _ => hir,
    };
    match last.kind() {
        HirKind::Look(look) => Some(asks_for_words(LookSet::singleton(*look))),
        // What may be empty would leave the end to the part before it.
        _ if last.properties().minimum_len() == Some(0) => None,
        _ => (!asks_for_words(last.properties().look_set())).then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pattern: &str) -> Hir {
        regex_syntax::ParserBuilder::new().utf8(false).multi_line(true).build().parse(pattern).unwrap()
    }

    #[test]
    fn matches_of_one_number_of_characters_are_told() {
        for (pattern, count, moved) in [
            (r"\b\w{6}\b", Some(6), Some(true)),
            (r"(\b[а-я]x{2}\b)", Some(3), Some(true)),
            ("кот|dog", Some(3), Some(false)),
            (r"(?-u:\b)\w", Some(1), Some(false)),
            (r"\w\b$", Some(1), Some(false)),
            (r"(?:a\b|bc\b)d", None, Some(false)),
            (r"x(?:a\b|b)", Some(2), None),
            (r"\w\b()", Some(1), None),
            (r"\w+", None, Some(false)),
            (r"(?-u:\xff)", None, Some(false)),
            (r"(?-u:[^a])", None, Some(false)),
            ("a{2,3}", None, Some(false)),
        ] {
            let hir = parse(pattern);
            let hir = without_group(&hir);
            assert_eq!((characters(hir), ends_with_word_assertion(hir)), (count, moved), "{pattern}");
        }
    }

    /// The matches are those of the `regex` crate, line by line, or it says that it cannot tell,
    /// which it can wherever a text is UTF-8.
    #[test]
    fn matches_are_those_of_regex() {
        let pieces: [&[u8]; 18] = [
            "кот".as_bytes(),
            b"dog",
            b"abcdef",
            "новост".as_bytes(),
            "漢字".as_bytes(),
            "\u{1f600}".as_bytes(),
            "é".as_bytes(),
            "\u{301}".as_bytes(),
            b" ",
            b" ",
            "—".as_bytes(),
            b"_x",
            b"\n",
            b"7",
            b"\xd0",
            b"\x80",
            b"\xe6\xbc",
            b"\xff",
        ];
        let mut seed = 76u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let (mut decided, mut undecided) = (0, 0);
        for pattern in [
            r"\b\w{6}\b",
            r"\b\w{3}\b",
            r"\w{2}",
            ".{3}",
            r"\Bо.",
            r"\w\B",
            r"[^a-z]{2}\b{start}",
            r".\b{end-half}",
            r"\W\b",
            r"^\w{3}\b",
            r"\w\b$",
            "кот|dog",
            r"\p{Han}{2}",
            r"(?i)É.",
            r"\S{5}\s",
        ] {
            let ends = Ends::new(&parse(pattern), &Options::default())
                .unwrap_or_else(|| panic!("{pattern} has ends"));
            let regex = regex::bytes::RegexBuilder::new(pattern).multi_line(true).build().unwrap();
            let mut scratch = Scratch::default();
            for round in 0..300 {
                // Without the last four pieces the text is UTF-8.
                let kinds = if round % 3 == 0 { pieces.len() } else { pieces.len() - 4 };
                let count = random(if round % 50 == 0 { 4000 } else { 60 });
                let text: Vec<u8> = (0..count).flat_map(|_| pieces[random(kinds)].to_vec()).collect();
                let mut expected = Vec::new();
                for line in crate::line::each(&text, b'\n') {
                    let content = line.start + crate::line::content(&text[line.clone()], b'\n');
                    let found = regex.find_iter(&text[line.start..content]);
                    expected.extend(found.map(|found| line.start + found.start()..line.start + found.end()));
                }
                match ends.matches(&text, 0, &mut scratch) {
                    Some(found) => {
                        assert_eq!(found, expected, "{pattern} in {:?}", String::from_utf8_lossy(&text));
                        decided += 1;
                    }
                    None => {
                        assert!(std::str::from_utf8(&text).is_err(), "{pattern}");
                        undecided += 1;
                    }
                }
            }
        }
        assert!(decided > 3000 && undecided > 50, "{decided} {undecided}");
    }
}
