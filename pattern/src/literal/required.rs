//! Lines that contain a string without which nothing matches, to be confirmed by the whole expression.
//!
//! `[а-яё]+ость\b` cannot match without `ость`: looking for that string costs less than computing Unicode classes for every byte, as long as
//! it is rare. [`Required::of`] reads the string off the expression: a literal on the way through all concatenations, captures and
//! repetitions of at least once. Of several it is the one whose rarest pair of neighbouring bytes is rarest ([`commonness`], a rough
//! table in place of statistics of a text that is not known yet). Where a text shows more than one hit in [`Required::sparse_bytes`] bytes the search
//! is given up, for this text and the next few, and bit streams go on. Left out: sets of strings, one of which every match contains.

use crate::line;
use crate::plan::Push;
use memchr::memmem::Finder;
use regex_syntax::hir::{Hir, HirKind};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// So many hits more than the text so far allows are let pass: to compile a program costs more than to confirm them.
const SLACK_HITS: usize = 64;
/// Automata look at a byte of a line while streams look at so many.
const CONFIRM_BYTES: usize = 4;
/// Longer lines are left to the streams.
const LONG_LINE_BYTES: usize = 16 << 10;
/// So many texts behind a dense one are taken for dense.
const DENSE_TEXTS: u32 = 31;

/// A search for a string that all matches contain.
#[derive(Debug)]
pub(crate) struct Required {
    finder: Finder<'static>,
    /// With fewer bytes to a hit other engines are faster.
    sparse_bytes: usize,
    /// Texts that are still taken for dense.
    dense_texts: AtomicU32,
}

impl Required {
    /// A string that each match contains, where the expression has one.
    pub(crate) fn of(hir: &Hir, sparse_bytes: usize) -> Option<Required> {
        let finder = Finder::new(rarest(hir)?).into_owned();
        Some(Required { finder, sparse_bytes, dense_texts: AtomicU32::new(0) })
    }

    /// The string.
    pub(crate) fn string(&self) -> &[u8] {
        self.finder.needle()
    }

    /// With fewer bytes to a hit the search is given up.
    pub(crate) fn sparse_bytes(&self) -> usize {
        self.sparse_bytes
    }

    /// Pushes the lines that contain the string and pass `confirm`. Answers where it stopped because the string is dense: at the start of a
    /// line, or at the end of the text when it did not.
    pub(crate) fn lines(
        &self,
        text: &[u8],
        terminator: u8,
        confirm: impl Fn(std::ops::Range<usize>) -> bool,
        push: &mut Push<'_>,
    ) -> ControlFlow<(), usize> {
        if self.dense_texts.load(Relaxed) > 0 {
            // Several threads may count one text twice or not at all: that changes speed only.
            let _ = self.dense_texts.fetch_update(Relaxed, Relaxed, |texts| texts.checked_sub(1));
            return ControlFlow::Continue(0);
        }
        let (mut at, mut spent) = (0, 0);
        while let Some(found) = self.finder.find(&text[at..]) {
            let start = at + line::start_of(&text[at..], found, terminator);
            let line = start..line::end_of(text, at + found, terminator);
            spent += self.sparse_bytes + CONFIRM_BYTES * line.len();
            if line.len() > LONG_LINE_BYTES || spent > line.end + SLACK_HITS * self.sparse_bytes {
                self.dense_texts.store(DENSE_TEXTS, Relaxed);
                return ControlFlow::Continue(start);
            }
            at = line.end;
            if confirm(line.clone()) {
                push(line)?;
            }
        }
        ControlFlow::Continue(text.len())
    }
}

/// The string of the expression that is likely to be rarest in a text.
pub(crate) fn rarest(hir: &Hir) -> Option<&[u8]> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(&literal.0),
        HirKind::Capture(capture) => rarest(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => rarest(&repetition.sub),
        HirKind::Concat(subs) => subs.iter().filter_map(rarest).min_by_key(|string| rank(string)),
        _ => None,
    }
}

/// Less is rarer: the rarest pair of the string, a single byte behind all pairs; of equals the longer one.
fn rank(string: &[u8]) -> (u32, usize) {
    (rarest_pair(string), usize::MAX - string.len())
}

/// How common the rarest two neighbouring bytes of a string are, from 4 to 18; more than that for a single byte.
pub(crate) fn rarest_pair(string: &[u8]) -> u32 {
    let pairs = string.windows(2).map(|pair| commonness(pair[0]) + commonness(pair[1]));
    pairs.min().unwrap_or(u32::MAX)
}

/// How common a byte is in texts and programs, from 0 to 9: about the logarithm of its share.
fn commonness(byte: u8) -> u32 {
    match byte {
        b' ' | b'e' | b't' => 9,
        b'a' | b'i' | b'n' | b'o' | b'r' | b's' => 8,
        b'c' | b'd' | b'h' | b'l' | b'm' | b'p' | b'u' | b'_' | 0xD0 | 0xD1 => 7,
        b'b' | b'f' | b'g' | b'k' | b'v' | b'w' | b'x' | b'y' | b'0' | b',' | b'.' | b'(' | b')' | b'/' => 6,
        b'A'..=b'Z' | b'1'..=b'9' | b'-' | b'=' | b'*' | b'"' | b'\t' | b';' | b':' => 5,
        b'j' | b'q' | b'z' | b'>' | b'<' | b'\'' | 0x80..=0xBF => 4,
        0xC0..=0xFF => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string_of(pattern: &str) -> Option<String> {
        let hir = regex_syntax::parse(pattern).unwrap();
        Required::of(&hir, 1024).map(|required| String::from_utf8_lossy(required.string()).into_owned())
    }

    #[test]
    fn every_match_contains_the_string() {
        for (pattern, string) in [
            (r"[а-яё]+ость\b", Some("ость")),
            (r"\w+ing", Some("ing")),
            (r"(\w+zoo)+\d", Some("zoo")),
            (r"the .* quiz", Some(" quiz")),
            (r"a+://b", Some("://b")),
            (r"(?:ab)*c", Some("c")),
            (r"ab|cd", None),
            (r"(?:ab){0,3}\w", None),
            (r"(?i)привет", None),
            ("", None),
        ] {
            assert_eq!(string_of(pattern).as_deref(), string, "{pattern}");
        }
    }

    #[test]
    fn a_dense_string_is_given_up_for_some_texts() {
        let hir = regex_syntax::parse(r"\w+ab").unwrap();
        let required = Required::of(&hir, 100).unwrap();
        let lines = |text: &[u8]| {
            let mut count = 0;
            let flow = required.lines(text, b'\n', |line| line.len() > 3, &mut |_| {
                count += 1;
                ControlFlow::Continue(())
            });
            (count, flow)
        };
        let rare = [&b"ab\n"[..], &b"-\n".repeat(1000), b"xxab"].concat();
        assert_eq!(lines(&rare), (1, ControlFlow::Continue(rare.len())));
        let (count, at) = lines(&b"xxab\n".repeat(1000));
        assert!(count > 0 && count <= SLACK_HITS, "{count}");
        assert_eq!(at, ControlFlow::Continue(5 * count));
        for _ in 0..DENSE_TEXTS {
            assert_eq!(lines(&rare), (0, ControlFlow::Continue(0)));
        }
        assert_eq!(lines(&rare), (1, ControlFlow::Continue(rare.len())));
        let long = [&b"ab xx\n"[..], &b"x".repeat(LONG_LINE_BYTES), b"ab"].concat();
        assert_eq!(lines(&long), (1, ControlFlow::Continue(6)));
    }
}
