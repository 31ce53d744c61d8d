//! The compiler's state, and the compilation of all parts of an expression except repetitions and
//! assertions: here markers move (see the parent module).

use super::class::{self, ByteSet};
use super::error::CompileError;
use super::options::{CompileOptions, Lines};
use super::utf8::{
    self, all_ranges, as_bytes, as_ranges, complement, word_ranges, ClassStreams, Ranges, Structure,
};
use super::word;
use crate::program::{Builder, Op, Value};
use regex_syntax::hir::{Class, Hir, HirKind, LookSet};
use std::collections::HashMap;

/// The treatment of assertions about ASCII words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordAssertions {
    Exact,
    /// They hold beside a byte beyond ASCII, which is a superset.
    Near,
}

/// What is known about the character next to a marker. The ends of the line count as characters
/// that are not part of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Word,
    NotWord,
    Unknown,
}

impl Side {
    pub(super) fn or(self, other: Side) -> Side {
        if self == other {
            self
        } else {
            Side::Unknown
        }
    }
}

/// The expression behind a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Follow {
    pub(super) side: Side,
    /// Nothing follows: a marker that arrives here has matched.
    pub(super) is_end: bool,
}

impl Follow {
    pub(super) const END: Follow = Follow { side: Side::Unknown, is_end: true };

    pub(super) fn with(side: Side) -> Follow {
        Follow { side, is_end: false }
    }
}

/// Markers, and what is known about the character before each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Markers {
    pub(super) at: Value,
    pub(super) before: Side,
}

pub(super) struct Compiler<'o> {
    pub(super) options: &'o CompileOptions,
    pub(super) builder: Builder,
    structure: Option<Structure>,
    pub(super) unicode: HashMap<Ranges, ClassStreams>,
    /// Streams without a bit at terminators.
    within_lines: std::collections::HashSet<Value>,
    pub(super) ascii_word: ByteSet,
    pub(super) unicode_word: Ranges,
    pub(super) words: WordAssertions,
}

impl<'o> Compiler<'o> {
    pub(super) fn new(options: &'o CompileOptions) -> Compiler<'o> {
        let ascii_word =
            ByteSet::EMPTY.with(b'a'..=b'z').with(b'A'..=b'Z').with(b'0'..=b'9').with(b'_'..=b'_');
        Compiler {
            options,
            builder: Builder::new(options.terminator),
            structure: None,
            unicode: HashMap::new(),
            within_lines: std::collections::HashSet::new(),
            ascii_word,
            unicode_word: Vec::new(),
            words: WordAssertions::Exact,
        }
    }

    /// Computes all Unicode classes of the expressions at once, before anything else.
    pub(super) fn declare(&mut self, hirs: &[Hir]) -> Result<(), CompileError> {
        let mut wanted: Vec<Ranges> = Vec::new();
        let mut looks = LookSet::empty();
        hirs.iter().for_each(|hir| {
            collect(hir, &mut wanted);
            looks = looks.union(hir.properties().look_set());
        });
        if looks.iter().any(word::is_unicode_word) {
            self.unicode_word = word_ranges();
            wanted.push(self.unicode_word.clone());
        }
        if looks.iter().any(word::asks_for_other_characters) {
            wanted.extend([complement(&self.unicode_word), all_ranges()]);
        }
        wanted.sort();
        wanted.dedup();
        if wanted.is_empty() {
            return Ok(());
        }
        let structure = Structure::build(&mut self.builder);
        let streams = utf8::classes(&mut self.builder, &structure, &wanted, self.options.terminator);
        self.structure = Some(structure);
        self.unicode = wanted.into_iter().zip(streams).collect();
        self.within_limit()
    }

    pub(super) fn within_limit(&self) -> Result<(), CompileError> {
        if self.builder.len() > self.options.operations {
            return Err(CompileError::TooLarge { limit: self.options.operations });
        }
        Ok(())
    }

    pub(super) fn everywhere(&self) -> Markers {
        Markers { at: self.builder.ones(), before: Side::Unknown }
    }

    pub(super) fn is_everywhere(&self, markers: Markers) -> bool {
        markers.at == self.builder.ones()
    }

    /// The stream of a set of bytes without the terminator.
    pub(super) fn bytes(&mut self, set: ByteSet) -> Value {
        let stream = class::stream(&mut self.builder, set.without(self.options.terminator));
        self.within_lines.insert(stream);
        stream
    }

    pub(super) fn terminators(&mut self) -> Value {
        class::stream(&mut self.builder, ByteSet::single(self.options.terminator))
    }

    // --- parts of an expression

    pub(super) fn node(
        &mut self,
        hir: &Hir,
        markers: Markers,
        follow: Follow,
    ) -> Result<Markers, CompileError> {
        self.within_limit()?;
        match hir.kind() {
            HirKind::Empty => Ok(markers),
            HirKind::Literal(literal) => Ok(self.literal(&literal.0, markers)),
            HirKind::Class(class) => Ok(self.class(class, markers)),
            HirKind::Look(look) => self.look(*look, markers, follow),
            HirKind::Repetition(repetition) => self.repetition(repetition, markers, follow),
            HirKind::Capture(capture) => self.node(&capture.sub, markers, follow),
            HirKind::Concat(parts) => self.concatenation(parts, markers, follow),
            HirKind::Alternation(parts) => {
                let mut union = Markers { at: self.builder.zero(), before: Side::Unknown };
                for (number, part) in parts.iter().enumerate() {
                    let moved = self.node(part, markers, follow)?;
                    let before = if number == 0 { moved.before } else { union.before.or(moved.before) };
                    union = Markers { at: self.builder.or(union.at, moved.at), before };
                }
                Ok(union)
            }
        }
    }

    pub(super) fn concatenation(
        &mut self,
        parts: &[Hir],
        mut markers: Markers,
        follow: Follow,
    ) -> Result<Markers, CompileError> {
        let parts = if follow.is_end { without_optional_end(parts) } else { parts };
        for (at, part) in parts.iter().enumerate() {
            let rest = &parts[at + 1..];
            let part_follow = rest.iter().rev().fold(follow, |follow, part| self.first(part, follow));
            let is_end = follow.is_end && rest.is_empty();
            markers = self.node(part, markers, Follow { is_end, ..part_follow })?;
        }
        Ok(markers)
    }

    pub(super) fn literal(&mut self, bytes: &[u8], markers: Markers) -> Markers {
        let mut at = markers.at;
        for &byte in bytes {
            let class = self.bytes(ByteSet::single(byte));
            at = self.step(at, class);
        }
        let before = match bytes.last() {
            None => markers.before,
            Some(_) => self.side_of_last(bytes),
        };
        Markers { at, before }
    }

    /// `advance(markers ∧ class)`.
    pub(super) fn step(&mut self, markers: Value, class: Value) -> Value {
        let members = self.builder.and(markers, class);
        self.note_within_lines(members, class);
        self.builder.advance(members, 1)
    }

    pub(super) fn note_within_lines(&mut self, part: Value, whole: Value) {
        if self.within_lines.contains(&whole) {
            self.within_lines.insert(part);
        }
    }

    pub(super) fn class(&mut self, class: &Class, markers: Markers) -> Markers {
        match as_bytes(class) {
            Some(set) => {
                let stream = self.bytes(set);
                Markers { at: self.step(markers.at, stream), before: self.side_of_bytes(set) }
            }
            None => {
                let ranges = as_ranges(class);
                let streams = self.unicode[&ranges];
                Markers { at: self.next(markers.at, &streams), before: self.side_of(&ranges) }
            }
        }
    }

    pub(super) fn structure(&self) -> Structure {
        self.structure.expect("Unicode classes are declared before they are used")
    }

    /// Markers moved over one character of the class.
    pub(super) fn next(&mut self, markers: Value, class: &ClassStreams) -> Value {
        let members = self.members(markers, class);
        self.builder.advance(members, 1)
    }

    /// Last bytes of the members that stand at markers.
    pub(super) fn members(&mut self, markers: Value, class: &ClassStreams) -> Value {
        let mut members = self.builder.and(markers, class.ascii);
        self.within_lines.insert(class.ascii);
        for at in 0..3 {
            let long = self.long_member(markers, class, at);
            members = self.builder.or(members, long);
        }
        self.within_lines.insert(members);
        members
    }

    /// Last bytes of the members of `length + 2` bytes that stand at markers.
    pub(super) fn long_member(&mut self, markers: Value, class: &ClassStreams, length: usize) -> Value {
        if class.last[length] == self.builder.zero() || markers == self.builder.zero() {
            return self.builder.zero();
        }
        if markers == self.builder.ones() {
            return class.last[length];
        }
        let lead = self.structure().lead[length];
        let at_lead = self.builder.and(markers, lead);
        let at_last = self.builder.advance(at_lead, length as u32 + 1);
        self.builder.and(at_last, class.last[length])
    }

    // --- lines

    /// The terminators of lines with a marker, or of the others.
    pub(super) fn line_ends(&mut self, markers: Value) -> Value {
        let terminators = self.terminators();
        let within = self.builder.not(terminators);
        let markers = self.without_last_step(markers);
        let reached = self.builder.match_star(markers, within);
        match self.options.lines {
            Lines::Matching => self.builder.and(reached, terminators),
            Lines::Others => self.builder.and_not(terminators, reached),
        }
    }

    /// Markers before their last step, if that does not change which lines have one: the last byte
    /// is in the same line.
    pub(super) fn without_last_step(&mut self, markers: Value) -> Value {
        match self.builder.op(markers) {
            Some(&Op::Advance { by: 1, of, .. }) if self.within_lines.contains(&of) => of,
            Some(&Op::Or(a, b)) => {
                let (a, b) = (self.without_last_step(a), self.without_last_step(b));
                self.builder.or(a, b)
            }
            _ => markers,
        }
    }
}

/// The parts without those at the end that may match the empty string.
fn without_optional_end(parts: &[Hir]) -> &[Hir] {
    let is_optional = |part: &Hir| {
        let properties = part.properties();
        properties.minimum_len() == Some(0) && properties.look_set().is_empty()
    };
    let needed = parts.iter().rposition(|part| !is_optional(part)).map_or(0, |last| last + 1);
    &parts[..needed]
}

/// Collects the Unicode classes of an expression.
fn collect(hir: &Hir, classes: &mut Vec<Ranges>) {
    match hir.kind() {
        HirKind::Class(class) if as_bytes(class).is_none() => classes.push(as_ranges(class)),
        HirKind::Repetition(repetition) => collect(&repetition.sub, classes),
        HirKind::Capture(capture) => collect(&capture.sub, classes),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().for_each(|part| collect(part, classes));
        }
        _ => {}
    }
}
