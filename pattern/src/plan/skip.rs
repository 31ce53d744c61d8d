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
//! skipped as well.
//!
//! **Leaves out** bytes that nearly every line holds, and sets of strings.

use crate::kernel::ascii::ascii_prefix;
use crate::line;
use crate::literal::commonness::commonness;
use crate::literal::finder::Finder;
use crate::literal::required::rarest;
use regex_syntax::hir::{Class, Hir, HirKind};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Behind a string that stands alone, the program runs over so many bytes: starting it costs as
/// much as a tenth of them.
const FIRST_BYTES: usize = 16 << 10;
/// This many texts after one that has the string everywhere are searched whole.
const DENSE_TEXTS: u32 = 31;
/// Single bytes that are as common stand in nearly every line.
const COMMON_BYTE: u32 = 9;

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
    /// A byte that is not ASCII.
    OtherByte,
}

impl Needed {
    fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        match self {
            Needed::String(finder) => finder.find(text, from),
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
            None if needs_other_byte(hir) => Needed::OtherByte,
            None => return None,
        };
        Some(Skipper { needed, dense_texts: AtomicU32::new(0) })
    }

    /// What is needed, in words.
    pub(super) fn needed(&self) -> String {
        match &self.needed {
            Needed::String(finder) => format!("{:?}", String::from_utf8_lossy(finder.string())),
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

/// Whether every match contains a byte that is not ASCII.
fn needs_other_byte(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => !literal.0.is_ascii(),
        HirKind::Class(Class::Unicode(class)) => {
            class.ranges().first().is_some_and(|range| !range.start().is_ascii())
        }
        HirKind::Class(Class::Bytes(class)) => {
            class.ranges().first().is_some_and(|range| !range.start().is_ascii())
        }
        HirKind::Capture(capture) => needs_other_byte(&capture.sub),
        HirKind::Repetition(repetition) => repetition.min > 0 && needs_other_byte(&repetition.sub),
        HirKind::Concat(subs) => subs.iter().any(needs_other_byte),
        HirKind::Alternation(subs) => subs.iter().all(needs_other_byte),
        HirKind::Empty | HirKind::Look(_) => false,
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
            (r"x?\p{Han}{5,}", Some("characters beyond ASCII")),
            (r"(?i)человек|man", None),
            (r"\p{Han}*", None),
            ("[ab]+", None),
            ("", None),
            ("[0-9]e[0-9]", None),
            (r"\w \w", None),
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
    fn a_text_of_ascii_is_skipped_where_matches_need_other_characters() {
        let skipper = skipper("[а-я]{2}").unwrap();
        let lines = b"a line of ASCII\n".repeat(10_000);
        assert!(stretches(&skipper, &lines).is_empty());
        let one = [&lines[..], "ещё\n".as_bytes()].concat();
        assert!(matches!(&stretches(&skipper, &one)[..], [place] if *place == (lines.len()..one.len())));
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
