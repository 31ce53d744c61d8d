//! The compiler's state, and the compilation of all parts of an expression except repetitions and
//! assertions: here markers move (see the parent module).

use super::class::{self, ByteSet};
use super::error::CompileError;
use super::options::{CompileOptions, Haystack, Lines};
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
    /// Markers behind the last byte of a row, on that byte: the next byte is another row's. Empty
    /// where a terminator stands behind each haystack.
    pub(super) end: Value,
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
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            return Ok(());
        }
        let same_row = self.same_row();
        let structure = Structure::build(&mut self.builder, same_row);
        let terminator = (!self.has_marked_rows()).then_some(self.options.terminator);
        let streams = utf8::classes(&mut self.builder, &structure, &wanted, terminator);
        self.structure = Some(structure);
        self.unicode = wanted.into_iter().zip(streams).collect();
        self.within_limit()
    }

    /// Positions whose byte lies in one haystack with those one, two and three bytes before; all
    /// of them where terminators keep haystacks apart.
    fn same_row(&mut self) -> [Value; 3] {
        if !self.has_marked_rows() {
            return [self.builder.ones(); 3];
        }
        let ends = self.row_ends();
        let one = self.builder.advance_from_start(ends);
        let earlier = self.builder.advance(one, 1);
        let two = self.builder.or(one, earlier);
        let earliest = self.builder.advance(one, 2);
        let three = self.builder.or(two, earliest);
        [one, two, three].map(|starts| self.builder.not(starts))
    }

    pub(super) fn within_limit(&self) -> Result<(), CompileError> {
        if self.builder.len() > self.options.operations {
            return Err(CompileError::TooLarge { limit: self.options.operations });
        }
        Ok(())
    }

    pub(super) fn everywhere(&mut self) -> Markers {
        Markers { at: self.builder.ones(), end: self.row_ends(), before: Side::Unknown }
    }

    // --- rows without a byte between them

    pub(super) fn has_marked_rows(&self) -> bool {
        matches!(self.options.haystack, Haystack::MarkedRow { .. })
    }

    /// The last bytes of rows; empty where terminators end haystacks.
    pub(super) fn row_ends(&mut self) -> Value {
        match self.has_marked_rows() {
            true => self.builder.row_ends(),
            false => self.builder.zero(),
        }
    }

    /// Those positions behind which a byte of the same haystack follows, or its terminator.
    pub(super) fn within_row(&mut self, stream: Value) -> Value {
        let ends = self.row_ends();
        let within = self.builder.and_not(stream, ends);
        self.within_lines.insert(within);
        within
    }

    /// Those positions at which a row ends.
    pub(super) fn at_row_end(&mut self, stream: Value) -> Value {
        let ends = self.row_ends();
        self.builder.and(stream, ends)
    }

    /// Markers behind the bytes of `members`.
    pub(super) fn behind(&mut self, members: Value, before: Side) -> Markers {
        let within = match self.has_marked_rows() {
            true => self.within_row(members),
            false => members,
        };
        Markers { at: self.builder.advance(within, 1), end: self.at_row_end(members), before }
    }

    /// Positions behind the bytes of `stream` in the same haystack.
    pub(super) fn next_in_row(&mut self, stream: Value) -> Value {
        let within = match self.has_marked_rows() {
            true => self.within_row(stream),
            false => stream,
        };
        self.builder.advance(within, 1)
    }

    /// Both sets of markers.
    pub(super) fn either(&mut self, a: Markers, b: Markers) -> Markers {
        let (at, end) = (self.builder.or(a.at, b.at), self.builder.or(a.end, b.end));
        Markers { at, end, before: a.before.or(b.before) }
    }

    /// The set without the byte that ends a haystack, where there is one.
    pub(super) fn without_terminator(&self, set: ByteSet) -> ByteSet {
        match self.has_marked_rows() {
            true => set,
            false => set.without(self.options.terminator),
        }
    }

    pub(super) fn is_everywhere(&self, markers: Markers) -> bool {
        markers.at == self.builder.ones()
    }

    /// The stream of a set of bytes without the terminator.
    pub(super) fn bytes(&mut self, set: ByteSet) -> Value {
        let set = self.without_terminator(set);
        let stream = class::stream(&mut self.builder, set);
        self.within_lines.insert(stream);
        stream
    }

    /// The bytes that end haystacks, which belong to none; empty where rows are marked.
    pub(super) fn terminators(&mut self) -> Value {
        if self.has_marked_rows() {
            return self.builder.zero();
        }
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
                let none = self.builder.zero();
                let mut union = Markers { at: none, end: none, before: Side::Unknown };
                for (number, part) in parts.iter().enumerate() {
                    let moved = self.node(part, markers, follow)?;
                    union = if number == 0 { moved } else { self.either(union, moved) };
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

    pub(super) fn literal(&mut self, bytes: &[u8], mut markers: Markers) -> Markers {
        for &byte in bytes {
            let class = self.bytes(ByteSet::single(byte));
            markers = self.step(markers.at, class, Side::Unknown);
        }
        match bytes.last() {
            None => markers,
            Some(_) => Markers { before: self.side_of_last(bytes), ..markers },
        }
    }

    /// Markers moved over a byte of the class: `advance(markers ∧ class)`.
    pub(super) fn step(&mut self, markers: Value, class: Value, before: Side) -> Markers {
        let members = self.builder.and(markers, class);
        self.note_within_lines(members, class);
        self.behind(members, before)
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
                self.step(markers.at, stream, self.side_of_bytes(set))
            }
            None => {
                let ranges = as_ranges(class);
                let streams = self.unicode[&ranges];
                self.next(markers.at, &streams, self.side_of(&ranges))
            }
        }
    }

    pub(super) fn structure(&self) -> Structure {
        self.structure.expect("Unicode classes are declared before they are used")
    }

    /// Markers moved over one character of the class.
    pub(super) fn next(&mut self, markers: Value, class: &ClassStreams, before: Side) -> Markers {
        let members = self.members(markers, class);
        self.behind(members, before)
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

    /// The terminators of lines with a marker, or of the others; where rows are marked, their last
    /// bytes.
    pub(super) fn line_ends(&mut self, markers: Markers) -> Value {
        let terminators = match self.has_marked_rows() {
            true => self.row_ends(),
            false => self.terminators(),
        };
        let within = self.builder.not(terminators);
        let at = self.without_last_step(markers.at);
        let markers = self.builder.or(at, markers.end);
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
