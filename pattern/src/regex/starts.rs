//! Finds all matches of a text with many matches: starts by a bit-stream program, ends by a small
//! automaton.
//!
//! Searching the spans of one matching line after the other prepares a search for each and reads
//! every line twice. Here a program runs over the text backwards and marks every place where a
//! match can start ([`compile_starts`]). The first mark at or behind the end of the last match is
//! the start of the next one, because no match starts before it; an anchored automaton walks from
//! there to the end of the preferred match. It supports ASCII only, so its tables are small, and
//! stops at the first other byte; searches that it cannot decide go to the general engine, line by
//! line. **Leaves out** expressions that match the empty string, and line ends other than a line
//! feed.

use super::options::{Options, Terminator, Unit};
use crate::compile::{compile_starts, CompileOptions};
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
use std::ops::ControlFlow;

/// Larger tables would not stay in the caches.
const TABLE_BYTES: usize = 256 << 10;

/// Finds starts and ends.
pub(super) struct Starts {
    scanner: Scanner,
    walk: dense::DFA<Vec<u32>>,
    /// The first state by the byte before, and at the start of the text; none where it takes more
    /// than ASCII to tell.
    first: Vec<Option<StateID>>,
}

/// Scratch memory of [`super::Regex::each_match`], to be used again.
#[derive(Debug, Default)]
pub struct Scratch {
    reversed: Vec<u8>,
    marks: Vec<u64>,
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
        Some(Starts { scanner, walk, first })
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

impl Scratch {
    /// The first marked place of a text of `length` bytes at or behind `at`.
    #[inline]
    pub(super) fn next(&self, length: usize, at: usize) -> Option<usize> {
        // Marks are counted from the end of the text.
        let last = length - at;
        let word = (last / 64).min(self.marks.len().checked_sub(1)?);
        let within = if word == last / 64 { u64::MAX >> (63 - last % 64) } else { u64::MAX };
        let mut left = self.marks[word] & within;
        let mut rest = self.marks[..word].iter().rev();
        let mut base = 64 * word;
        while left == 0 {
            left = *rest.next()?;
            base -= 64;
        }
        Some(length - (base + 63 - left.leading_zeros() as usize))
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

    #[test]
    fn marks_are_found_from_any_place() {
        let length = 200;
        let starts = [0, 1, 63, 64, 65, 127, 128, 136, 137, 199];
        let mut scratch = Scratch { reversed: Vec::new(), marks: vec![0; length / 64 + 1] };
        for start in starts {
            let mark = length - start;
            scratch.marks[mark / 64] |= 1 << (mark % 64);
        }
        for at in 0..=length {
            let expected = starts.iter().copied().find(|&start| start >= at);
            assert_eq!(scratch.next(length, at), expected, "{at}");
        }
        assert_eq!(Scratch::default().next(0, 0), None);
    }
}
