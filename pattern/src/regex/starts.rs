//! Finds all matches of a text with many matches: starts by a bit-stream program, ends by a small
//! automaton.
//!
//! Searching the spans of one matching line after the other prepares a search for each and reads
//! every line twice. Here a program runs over the text backwards and marks every place where a
//! match can start ([`compile_starts`]). The first mark at or behind the end of the last match is
//! the start of the next one, because no match starts before it; an anchored automaton walks from
//! there to the end of the preferred match. It supports ASCII only, so its tables are small, and
//! stops at the first other byte; searches that it cannot decide go to the general engine, line by
//! line. Where all matches have one length and a mark is sure, a match is its mark. **Leaves out**
//! expressions that match the empty string, and line ends other than a line feed.

use super::ascii::twin;
use super::options::{Options, Terminator, Unit};
use crate::compile::{compile_starts, CompileOptions};
use crate::kernel::ascii::is_ascii;
use crate::kernel::Scanner;
use crate::plan::MOST_OPERATIONS;
use crate::transpose::reverse;
use regex_automata::dfa::{dense, Automaton, StartKind};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition,
};
use std::ops::{ControlFlow, Range};

/// Larger tables would not stay in the caches.
const TABLE_BYTES: usize = 256 << 10;

/// Finds starts and ends.
pub(super) struct Starts {
    scanner: Scanner,
    walk: dense::DFA<Vec<u32>>,
    /// The first state by the byte before, and at the start of the text; none where it takes more
    /// than ASCII to tell.
    first: Vec<Option<StateID>>,
    /// The length of all matches, where they have one and each mark is a match.
    fixed_bytes: Option<usize>,
    /// Whether that is so in texts of ASCII only.
    fixed_in_ascii: bool,
}

/// Matches that are handed on together.
pub(super) const BATCH_MATCHES: usize = 512;

/// Scratch memory of [`super::Regex::each_match`], to be used again.
#[derive(Debug, Default)]
pub struct Scratch {
    reversed: Vec<u8>,
    marks: Vec<u64>,
    pub(super) spans: Vec<Range<usize>>,
}

/// The end of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    At(usize),
    /// No match starts here.
    Nowhere,
    /// A byte beyond ASCII decides.
    Unknown,
}

/// The index of [`Starts::first`] at the start of a text.
const TEXT_START: usize = 256;

impl Starts {
    /// Creates it for an expression within lines; `None` if there is no program or no small
    /// automaton.
    pub(super) fn new(hir: &Hir, options: &Options) -> Option<Starts> {
        let is_plain = options.unit == Unit::Line && options.terminator == Terminator::LineFeed;
        let bytes = over_bytes(hir);
        if !is_plain || hir.properties().minimum_len() <= Some(0) {
            return None;
        }
        let compile = CompileOptions { operations: MOST_OPERATIONS, ..CompileOptions::default() };
        let scanner = Scanner::new(&compile_starts(hir, &compile).ok()?);
        let walk = walk(&bytes)?;
        let first = (0..=TEXT_START).map(|before| {
            let before = u8::try_from(before).ok();
            let config = start::Config::new().anchored(Anchored::Yes).look_behind(before);
            walk.start_state(&config).ok()
        });
        let first = first.collect();
        // Beside characters beyond ASCII, marks of classes of characters are a superset, and so are
        // assertions about words.
        let length = hir.properties().minimum_len();
        let fixed_bytes = length.filter(|_| length == hir.properties().maximum_len() && twin(hir).is_none());
        let fixed_in_ascii = hir.properties().look_set().contains_word();
        Some(Starts { scanner, walk, first, fixed_bytes, fixed_in_ascii })
    }

    /// Hands all matches of `text`, whole lines, to `push`, some at a time, in order and with
    /// `base` added to their places; `beyond` answers where this automaton cannot. The number of
    /// these questions.
    pub(super) fn each_match(
        &self,
        text: &[u8],
        base: usize,
        scratch: &mut Scratch,
        beyond: &dyn Fn(usize) -> Option<usize>,
        push: &mut dyn FnMut(&[Range<usize>]),
    ) -> u64 {
        self.mark(text, scratch);
        let (mut at, mut undecided) = (0, 0);
        let fixed_bytes = self.fixed_bytes.filter(|_| !self.fixed_in_ascii || is_ascii(text));
        let mut spans = std::mem::take(&mut scratch.spans);
        spans.clear();
        let (last, within) = (text.len() / 64, u64::MAX >> (63 - text.len() % 64));
        // Marks are counted from the end of the text.
        for (number, &word) in scratch.marks.iter().enumerate().take(last + 1).rev() {
            let mut left = if number == last { word & within } else { word };
            while left != 0 {
                let bit = 63 - left.leading_zeros() as usize;
                left ^= 1 << bit;
                let start = text.len() - (64 * number + bit);
                if start < at {
                    continue;
                }
                let end = match fixed_bytes {
                    Some(bytes) => Some(start + bytes),
                    None => match self.end_of(text, start) {
                        End::At(end) => Some(end),
                        End::Nowhere => None,
                        End::Unknown => {
                            undecided += 1;
                            beyond(start)
                        }
                    },
                };
                let Some(end) = end else { continue };
                at = end;
                spans.push(base + start..base + end);
                if spans.len() == BATCH_MATCHES {
                    push(&spans);
                    spans.clear();
                }
            }
        }
        push(&spans);
        scratch.spans = spans;
        undecided
    }

    /// Marks all places of `text`, whole lines, where a match can start.
    pub(super) fn mark(&self, text: &[u8], scratch: &mut Scratch) {
        if self.scanner.mark_backwards(text, &mut scratch.marks).is_some() {
            return;
        }
        reverse(text, &mut scratch.reversed);
        scratch.marks.clear();
        let marks = &mut scratch.marks;
        let _ = self.scanner.scan_for(text.len()).finish(&scratch.reversed, |_, words| {
            marks.extend_from_slice(words);
            ControlFlow::Continue(())
        });
    }

    /// The end of the match that starts at `start`.
    #[inline]
    pub(super) fn end_of(&self, text: &[u8], start: usize) -> End {
        let before = start.checked_sub(1).map_or(TEXT_START, |before| usize::from(text[before]));
        let Some(mut state) = self.first[before] else { return End::Unknown };
        let mut end = End::Nowhere;
        for (at, &byte) in (start..).zip(&text[start..]) {
            state = self.walk.next_state(state, byte);
            if self.walk.is_special_state(state) {
                // A match is reported one byte behind its end.
                if self.walk.is_match_state(state) {
                    end = End::At(at);
                } else if self.walk.is_quit_state(state) {
                    return End::Unknown;
                } else {
                    return end;
                }
            }
        }
        if self.walk.is_match_state(self.walk.next_eoi_state(state)) {
            end = End::At(text.len());
        }
        end
    }
}

/// The automaton that finds the end of the preferred match, for texts of ASCII.
fn walk(bytes: &Hir) -> Option<dense::DFA<Vec<u32>>> {
    let config = thompson::Config::new()
        .utf8(false)
        .which_captures(thompson::WhichCaptures::None)
        .nfa_size_limit(Some(TABLE_BYTES));
    let nfa = thompson::Compiler::new().configure(config).build_from_hir(bytes).ok()?;
    let mut config = dense::Config::new()
        .match_kind(MatchKind::LeftmostFirst)
        .start_kind(StartKind::Anchored)
        .accelerate(false)
        .unicode_word_boundary(true)
        .dfa_size_limit(Some(TABLE_BYTES))
        .determinize_size_limit(Some(4 * TABLE_BYTES));
    for byte in 0x80..=0xFF {
        config = config.quit(byte, true);
    }
    dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()
}

/// The expression over bytes, for an automaton that stops at bytes beyond ASCII: any of them stands
/// for a longer character, and a line's ends are those of a longer text's.
fn over_bytes(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0.clone()),
        HirKind::Class(Class::Unicode(class)) => Hir::class(Class::Bytes(bytes_of(class))),
        HirKind::Class(class) => Hir::class(class.clone()),
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End) => Hir::look(Look::EndLF),
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Capture(capture) => over_bytes(&capture.sub),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(over_bytes(&repetition.sub));
            Hir::repetition(Repetition { sub, ..repetition.clone() })
        }
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(over_bytes).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(over_bytes).collect()),
    }
}

fn bytes_of(class: &ClassUnicode) -> ClassBytes {
    let byte = |character: char| u8::try_from(u32::from(character)).unwrap_or(0xFF);
    let range = |range: &ClassUnicodeRange| match (byte(range.start()), byte(range.end())) {
        (0x80.., _) => ClassBytesRange::new(0x80, 0xFF),
        (from, 0x80..) => ClassBytesRange::new(from, 0xFF),
        (from, to) => ClassBytesRange::new(from, to),
    };
    ClassBytes::new(class.iter().map(range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use regex_syntax::ParserBuilder;

    /// Reading backwards is reading a reversed copy, whatever the length and the first byte.
    #[test]
    fn marks_are_those_of_a_reversed_copy() {
        let line = "sing, Ωμέγα dancing\n漢字 кошка going on and on; ing ing\n\n";
        let text: Vec<u8> = line.bytes().cycle().take(9000).collect();
        for pattern in [r"[a-z]+ing\b", r"\w+ \w+", "on", r"[^ ]{3,}", r"(?:o(?:n| )*)+;", "[а-я]+"] {
            let hir = ParserBuilder::new().utf8(false).build().parse(pattern).unwrap();
            let program = compile_starts(&hir, &CompileOptions::default()).unwrap();
            let Some(scanner) = Scanner::with_kernel(&program, Kernel::JitAvx512) else { return };
            for (start, end) in
                [(0, 9000), (1, 9000), (19, 8300), (20, 20 + 512), (40, 40 + 511), (7, 8), (5, 5)]
            {
                let text = &text[start..end];
                let (mut reversed, mut expected, mut marks) = (Vec::new(), Vec::new(), vec![7; 3]);
                reverse(text, &mut reversed);
                let _ = scanner.scan().finish(&reversed, |_, words| {
                    expected.extend_from_slice(words);
                    ControlFlow::Continue(())
                });
                scanner.mark_backwards(text, &mut marks).unwrap();
                assert_eq!(marks, expected, "{pattern} {start} {end}");
            }
        }
    }

    /// Matches of one length are found by their marks, others by a walk; the automaton of the
    /// `regex` crate says what they are.
    #[test]
    fn matches_of_one_length_are_their_marks() {
        let options = Options::default();
        let ascii = "sing, omega dancing\nkoshka going on and on; ing ing aaaaaa\n\n";
        let other = "sing, Ωμέγα dancing\n漢字 кошка going on and on; ing ing aaaaaa\n\n";
        for (pattern, is_fixed) in [
            (r"(?-u:\b[a-z]{6}\b)", true),
            (r"(?-u)\b[^ \n]{3}", true),
            ("aa", true),
            ("ш[а-к]", false),
            ("шк", true),
            ("on|in", true),
            ("on|ing", false),
            (r"\b[a-z]{6}\b", false),
            (r"(?-u:\w+)", false),
            ("(?m)^[a-z]{4}", true),
            ("(?m)[a-z]$", true),
        ] {
            let hir = ParserBuilder::new().utf8(false).build().parse(pattern).unwrap();
            let starts = Starts::new(&hir, &options).unwrap();
            assert_eq!(starts.fixed_bytes.is_some(), is_fixed, "{pattern}");
            let regex = regex::bytes::Regex::new(pattern).unwrap();
            for line in [ascii, other] {
                for length in [0, 1, 20, 62, 63, 64, 65, 127, 128, 511, 512, 513, 9000, 70_000] {
                    let text: Vec<u8> = line.bytes().cycle().take(length).collect();
                    let expected: Vec<_> = regex.find_iter(&text).map(|found| found.range()).collect();
                    let (mut found, mut scratch) = (Vec::new(), Scratch::default());
                    let beyond = |start| regex.find_at(&text, start).map(|found| found.end());
                    // What a walk cannot decide may start elsewhere: the engine says where.
                    let beyond = |start| {
                        let starts_here =
                            regex.find_at(&text, start).is_some_and(|found| found.start() == start);
                        beyond(start).filter(|_| starts_here)
                    };
                    starts.each_match(&text, 7, &mut scratch, &beyond, &mut |spans| {
                        assert!(spans.len() <= BATCH_MATCHES);
                        found.extend(spans.iter().map(|span| span.start - 7..span.end - 7));
                    });
                    assert_eq!(found, expected, "{pattern} in {length} bytes");
                }
            }
        }
    }
}
