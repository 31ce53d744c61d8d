//! Skips the stretches of a text in which no line can match, in front of bit-stream programs.
//!
//! `[\w.+-]+@[\w-]+` cannot match without `@`. A program costs the same for every text, a search
//! for that byte half as much, and a text without it needs no more. Whether a text has it is not
//! known beforehand, so it is looked for all the time: what lies in front of it is skipped, and the
//! program goes on from its line for a while, longer each time that the string is near again. Where
//! it is everywhere, it is not looked for in the next texts at all. So a text in which the string
//! is frequent costs little more than the program alone, and one in which it is absent half.
//!
//! `(?i)человек` has no such string, but no match without a byte beyond ASCII: texts of ASCII are
//! skipped as well. Sources have dashes and arrows everywhere and Cyrillic letters nowhere, whose
//! first bytes are one or two: where a part of every match has so few, these are looked for.
//!
//! `\w+://|[^ @]+@` needs one of two strings. They are looked for one after the other, in windows
//! that stay in a cache, so that the second one costs half of the first.
//!
//! `^$` needs two line ends, one behind the other.
//!
//! **Leaves out** bytes that nearly every line holds, and sets of more strings.

use crate::kernel::ascii::ascii_prefix;
use crate::line;
use crate::literal::commonness::commonness;
use crate::literal::finder::Finder;
use crate::literal::required::{estimate, rarest};
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Behind a string that stands alone, the program runs over so many bytes: starting it costs as
/// much as a tenth of them.
const FIRST_BYTES: usize = 16 << 10;
/// This many texts after one that has the string everywhere are searched whole.
const DENSE_TEXTS: u32 = 31;
/// Single bytes that are as common stand in nearly every line.
const COMMON_BYTE: u32 = 9;

/// Each of two strings is estimated to be so rare, as pairs of bytes are counted, or is a byte
/// that is less common.
const RARE_STRING: u32 = 11;
const RARE_BYTE: u32 = 4;
/// Bytes through which two strings are looked for in turn.
const WINDOW_BYTES: usize = 64 << 10;

/// A search for something that every match contains.
#[derive(Debug)]
pub(super) struct Skipper {
    needed: Needed,
    /// Texts that are still taken to have it everywhere.
    dense_texts: AtomicU32,
}

/// What every match contains.
#[derive(Debug)]
enum Needed {
    String(Box<Finder>),
    /// One of two strings.
    EitherString(Box<[Finder; 2]>),
    /// One of two bytes.
    Either(u8, u8),
    /// A byte that is not ASCII.
    OtherByte,
    /// A line without a byte: one line end at the beginning, or two of them.
    EmptyLine(Box<Finder>),
}

impl Needed {
    fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        match self {
            Needed::String(finder) => finder.find(text, from),
            Needed::EitherString(finders) => first_of(finders, text, from),
            Needed::Either(one, other) => memchr::memchr2(*one, *other, &text[from..]).map(|at| from + at),
            Needed::EmptyLine(_) if text.get(from) == Some(&b'\n') => Some(from),
            Needed::EmptyLine(finder) => finder.find(text, from).map(|at| at + 1),
            Needed::OtherByte => Some(from + ascii_prefix(&text[from..])).filter(|&at| at < text.len()),
        }
    }
}

impl Skipper {
    /// What an expression needs, if it is something that some stretches of texts lack.
    pub(super) fn of(hir: &Hir) -> Option<Skipper> {
        let string = rarest(hir).filter(|string| match string {
            [] => false,
            [byte] => commonness(*byte) < COMMON_BYTE,
            _ => true,
        });
        let needed = match string {
            Some(string) => Needed::String(Box::new(Finder::new(string))),
            None => match (one_of(hir), other_bytes(hir)) {
                (Some(strings), _) => Needed::EitherString(Box::new(strings.map(Finder::new))),
                (None, Some((first, last))) if first == last => {
                    Needed::String(Box::new(Finder::new(&[first])))
                }
                (None, Some((first, last))) if first + 1 == last => Needed::Either(first, last),
                (None, None) if is_empty_line(hir) => Needed::EmptyLine(Box::new(Finder::new(b"\n\n"))),
                (None, other) => other.map(|_| Needed::OtherByte)?,
            },
        };
        Some(Skipper { needed, dense_texts: AtomicU32::new(0) })
    }

    /// What is needed, in words.
    pub(super) fn needed(&self) -> String {
        let shown = |finder: &Finder| match std::str::from_utf8(finder.string()) {
            Ok(string) => format!("{string:?}"),
            Err(_) => format!("the byte {:02X}", finder.string()[0]),
        };
        match &self.needed {
            Needed::String(finder) => shown(finder),
            Needed::EitherString(finders) => format!("{} or {}", shown(&finders[0]), shown(&finders[1])),
            Needed::Either(one, other) => format!("the bytes {one:02X} and {other:02X}"),
            Needed::EmptyLine(_) => "empty lines".to_owned(),
            Needed::OtherByte => "characters beyond ASCII".to_owned(),
        }
    }

    /// Hands the stretches of a text that may have matches to `search`: whole lines, in order.
    pub(super) fn stretches(
        &self,
        text: &[u8],
        terminator: u8,
        mut search: impl FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // `^` and `$` are those of the text's own lines, whatever ends these.
        if terminator != b'\n' && matches!(self.needed, Needed::EmptyLine(_)) {
            return search(0..text.len());
        }
        if self.dense_texts.load(Relaxed) > 0 {
            // Several threads may count one text twice or not at all: that changes speed only.
            let _ = self.dense_texts.fetch_update(Relaxed, Relaxed, |texts| texts.checked_sub(1));
            return search(0..text.len());
        }
        let (mut at, mut bytes, mut skipped) = (0, FIRST_BYTES, 0);
        while at < text.len() {
            let Some(found) = self.needed.find(text, at) else {
                skipped += text.len() - at;
                break;
            };
            let start = at + line::start_of(&text[at..], found - at, terminator);
            bytes = if at > 0 && start - at < bytes { 2 * bytes } else { FIRST_BYTES };
            let end = line::end_of(text, text.len().min(found.saturating_add(bytes)) - 1, terminator);
            skipped += start - at;
            at = end;
            search(start..end)?;
        }
        if text.len() > 2 * FIRST_BYTES && skipped < text.len() / 16 {
            self.dense_texts.store(DENSE_TEXTS, Relaxed);
        }
        ControlFlow::Continue(())
    }
}

/// Whether the expression is `^$`.
fn is_empty_line(hir: &Hir) -> bool {
    let is_look = |sub: &Hir, look| *sub.kind() == HirKind::Look(look);
    matches!(hir.kind(), HirKind::Concat(subs) if subs.len() == 2
        && is_look(&subs[0], Look::StartLF) && is_look(&subs[1], Look::EndLF))
}

/// Where the first of two strings stands that begins at `from` or behind it.
fn first_of(finders: &[Finder; 2], text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while at < text.len() {
        let window = text.len().min(at + WINDOW_BYTES);
        let (mut end, mut first) = (window, None);
        for finder in finders {
            // The string begins in the window, and before those that were found.
            let reach = text.len().min(end + finder.string().len() - 1);
            if let Some(found) = finder.find(&text[..reach], at) {
                (end, first) = (found, Some(found));
            }
        }
        if first.is_some() {
            return first;
        }
        at = window;
    }
    None
}

/// Two rare strings of which every match contains one, where the expression has two alternatives
/// that are more than strings: those have quick programs.
fn one_of(hir: &Hir) -> Option<[&[u8]; 2]> {
    match hir.kind() {
        HirKind::Capture(capture) => one_of(&capture.sub),
        HirKind::Concat(subs) => subs.iter().find_map(one_of),
        HirKind::Alternation(subs) if subs.len() == 2 => {
            let is_string = |sub: &Hir| matches!(sub.kind(), HirKind::Literal(_));
            let is_rare = |string: &[u8]| match string {
                [] => false,
                [byte] => commonness(*byte) < RARE_BYTE,
                _ => estimate(string) <= RARE_STRING,
            };
            let strings = [rarest(&subs[0])?, rarest(&subs[1])?];
            (!subs.iter().all(is_string) && strings.into_iter().all(is_rare)).then_some(strings)
        }
        _ => None,
    }
}

/// The narrowest range of bytes beyond ASCII of which every match contains one, as far as parts of
/// the expression tell.
fn other_bytes(hir: &Hir) -> Option<(u8, u8)> {
    let lead = |character: char| character.encode_utf8(&mut [0; 4]).as_bytes()[0];
    let range = |first: u8, last: u8| (!first.is_ascii()).then_some((first, last));
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.iter().find(|byte| !byte.is_ascii()).map(|&byte| (byte, byte)),
        HirKind::Class(Class::Unicode(class)) => {
            let (first, last) = (class.ranges().first()?.start(), class.ranges().last()?.end());
            range(lead(first), lead(last))
        }
        HirKind::Class(Class::Bytes(class)) => {
            range(class.ranges().first()?.start(), class.ranges().last()?.end())
        }
        HirKind::Capture(capture) => other_bytes(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => other_bytes(&repetition.sub),
        HirKind::Concat(subs) => subs.iter().filter_map(other_bytes).min_by_key(|(first, last)| last - first),
        HirKind::Alternation(subs) => {
            let all = subs.iter().map(other_bytes).collect::<Option<Vec<_>>>()?;
            all.into_iter().reduce(|(first, last), (low, high)| (first.min(low), last.max(high)))
        }
        HirKind::Repetition(_) | HirKind::Empty | HirKind::Look(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn skipper(pattern: &str) -> Option<Skipper> {
        Skipper::of(&regex_syntax::parse(pattern).unwrap())
    }

    fn stretches(skipper: &Skipper, text: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let _ = skipper.stretches(text, b'\n', |place| {
            found.push(place);
            ControlFlow::Continue(())
        });
        found
    }

    #[test]
    fn what_some_stretches_lack_is_looked_for() {
        for (pattern, needed) in [
            (r"[\w.+-]+@[\w-]+", Some("\"@\"")),
            (r"\w+\s*->\s*\w+ and", Some("\"->\"")),
            (r"\w+ing\b", Some("\"ing\"")),
            ("(?i)человек|über[a-z]", Some("characters beyond ASCII")),
            ("(?i)человек", Some("the byte D0")),
            ("[а-я]{2}", Some("the bytes D0 and D1")),
            ("(?:(?i)ж)+x|[а-ё]y", Some("the bytes D0 and D1")),
            (r"x?\p{Han}{5,}", Some("characters beyond ASCII")),
            (r"(?i)человек|man", None),
            (r"\p{Han}*", None),
            ("[ab]+", None),
            ("", None),
            ("[0-9]e[0-9]", None),
            (r"\w \w", None),
            (r"[a-z]+://[^ ]+|([^ @]+)@", Some("\"://\" or \"@\"")),
            (r"x?(ERROR.*timeout|WARN[0-9])$", Some("\"ERROR\" or \"WARN\"")),
            (r"[a-z]@|[0-9]e", None),
            (r"[a-z]@|[0-9]#|;%[a-z]", None),
            ("(?m)^$", Some("empty lines")),
            ("(?m)^$|^a+$", None),
            ("^$", None),
        ] {
            assert_eq!(skipper(pattern).map(|skipper| skipper.needed()).as_deref(), needed, "{pattern}");
        }
    }

    #[test]
    fn a_text_without_the_string_is_skipped() {
        let skipper = skipper("[a-z]+@").unwrap();
        let lines = b"a line without it\n".repeat(10_000);
        assert!(stretches(&skipper, &lines).is_empty());
        let middle = lines.len() / 2;
        let one = [&lines[..middle], b"a@b\n", &lines[middle..]].concat();
        let found = stretches(&skipper, &one);
        assert!(matches!(&found[..], [place] if place.start == middle && place.len() < 2 * FIRST_BYTES));
    }

    #[test]
    fn empty_lines_are_found_at_the_beginning_and_behind_others() {
        let skipper = skipper("(?m)^$").unwrap();
        let lines = b"a line with something\n".repeat(3_000);
        assert!(stretches(&skipper, &lines).is_empty());
        let long = [&lines[..], b"\n", &lines[..], &lines[..]].concat();
        let found = stretches(&skipper, &long);
        assert!(matches!(&found[..], [place] if place.start == lines.len() && place.end < 2 * lines.len()));
        let first = [b"\n", &lines[..]].concat();
        assert!(matches!(&stretches(&skipper, &first)[..], [place] if place.start == 0));
        // A stretch ends where an empty line begins.
        let next = [&b"\n"[..], &b"-".repeat(FIRST_BYTES), b"\n\n"].concat();
        let found = stretches(&skipper, &next);
        assert_eq!(found.iter().map(Range::len).sum::<usize>(), next.len());
        let place = skipper.stretches(&lines, 0, |place| {
            assert_eq!(place, 0..lines.len());
            ControlFlow::Break(())
        });
        assert!(place.is_break());
    }

    #[test]
    fn the_first_of_two_strings_is_found_wherever_windows_end() {
        let finders = [b"://".as_slice(), b"@"].map(Finder::new);
        for place in [0, 1, WINDOW_BYTES - 2, WINDOW_BYTES - 1, WINDOW_BYTES, 3 * WINDOW_BYTES] {
            for string in ["://", "@", "@://", "://@"] {
                let text = [&b"-".repeat(place)[..], string.as_bytes(), b"--@--://"].concat();
                for from in [0, 1, place] {
                    let naive = (from..text.len())
                        .find(|&at| text[at..].starts_with(b"@") || text[at..].starts_with(b"://"));
                    assert_eq!(first_of(&finders, &text, from), naive, "{string} {place} {from}");
                }
            }
        }
        assert_eq!(first_of(&finders, &b":/".repeat(WINDOW_BYTES), 0), None);
    }

    #[test]
    fn a_text_of_ascii_is_skipped_where_matches_need_other_characters() {
        let lines = b"a line of ASCII\n".repeat(10_000);
        let one = [&lines[..], "ещё\n".as_bytes()].concat();
        for pattern in ["[а-я]{2}", "(?i)ещё", r"\p{Cyrillic}щ*"] {
            let skipper = skipper(pattern).unwrap();
            assert!(stretches(&skipper, &lines).is_empty());
            assert!(matches!(&stretches(&skipper, &one)[..], [place] if *place == (lines.len()..one.len())));
        }
        // Other scripts are skipped where the first bytes of characters are few.
        let dashes = "a line of ASCII — and more →\n".repeat(10_000);
        assert!(stretches(&skipper("[а-я]{2}").unwrap(), dashes.as_bytes()).is_empty());
    }

    #[test]
    fn a_text_that_has_the_string_everywhere_ends_the_search_for_some_texts() {
        let skipper = skipper("[a-z]+@").unwrap();
        let (dense, none) = (b"a@b, and something else\n".repeat(10_000), b"nothing\n".repeat(10_000));
        let found = stretches(&skipper, &dense);
        assert!(found.len() < 8 && found.iter().map(Range::len).sum::<usize>() == dense.len());
        for _ in 0..DENSE_TEXTS {
            let found = stretches(&skipper, &none);
            assert!(matches!(&found[..], [place] if *place == (0..none.len())));
        }
        assert!(stretches(&skipper, &none).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 200,
            rng_seed: proptest::test_runner::RngSeed::Fixed(2027),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn stretches_are_lines_and_hold_the_string_wherever_it_stands(
            lines in prop::collection::vec(("[ab\n]{0,40}", any::<bool>(), 0usize..900), 0..40),
        ) {
            let mut text = Vec::new();
            for (line, holds, times) in &lines {
                text.extend(format!("{line}\n").repeat(*times).into_bytes());
                if *holds {
                    text.extend_from_slice(b"x@y\n");
                }
            }
            text.extend_from_slice(b"the end@");
            let skipper = skipper("[a-z]+@").unwrap();
            let mut past = 0;
            for place in stretches(&skipper, &text).into_iter().chain(std::iter::once(text.len()..text.len())) {
                prop_assert!(past <= place.start && place.start <= place.end);
                prop_assert!(!text[past..place.start].contains(&b'@'));
                for edge in [place.start, place.end] {
                    prop_assert!(edge == 0 || edge == text.len() || text[edge - 1] == b'\n');
                }
                past = place.end;
            }
        }
    }
}
