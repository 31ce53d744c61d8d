//! The compiler: from an expression to a program that marks the lines in which it matches.
//!
//! **Markers.** A marker at position `i` means: what has been matched so far ends before byte `i`. All positions are marked to begin
//! with; each part of the expression moves the markers on. In the end a line matches if any marker stands in it, its
//! terminator included: `MatchStar(m, ¬nl) ∧ nl`. No class holds the terminator, so no marker leaves its line.
//!
//! **Only whether, not where.** Since any match will do, what a match may leave out at its end is dropped (`\w+` at the end is `\w`), and from
//! "everywhere" a repetition gives no more than its least count (`[a-z]+ing` starts as `[a-z]ing` would). Both are equalities, not approximations.
//!
//! * a class: `advance(m ∧ c)`, or over characters of several bytes as [`utf8`] has it;
//! * `c*`: one MatchStar; `c{n}`: runs of `c` by doubling; any other star: a least fixed point;
//! * `^`, `$`, `\b`: masks on markers. A Unicode `\b` needs the character after the marker, whose class bit lies ahead on its last byte: what follows
//!   in the expression decides it, or the marker is moved to that byte where nothing follows.
//!
//! Left out: which of several matches is preferred (greed, order of alternatives) and where it starts; an engine for spans answers that
//! inside the marked lines. Source: Cameron et al. 2014, section 2.

mod backwards;
mod class;
mod error;
mod look;
mod repeat;
mod utf8;

pub use error::CompileError;

use crate::program::{BitProgram, Builder, Op, Value};
use class::ByteSet;
use regex_syntax::hir::{Class, Hir, HirKind, LookSet};
use std::collections::HashMap;
use utf8::{ClassStreams, Ranges, Structure};

/// Which lines the program marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// Those in which the expression matches.
    #[default]
    Matching,
    /// The others.
    Others,
}

/// What a program is compiled for.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// The byte that ends a line.
    pub terminator: u8,
    /// Which lines are marked.
    pub lines: Lines,
    /// The most operations that a program may have; larger ones are refused.
    pub operations: usize,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions { terminator: b'\n', lines: Lines::Matching, operations: 20_000 }
    }
}

/// Compiles an expression. The program marks the terminator of every line in which the `regex` crate's bytes API, given the line
/// without its terminator, finds a match.
///
/// # Errors
/// What cannot be expressed exactly, or not within the limit. Cost: microseconds for usual expressions, below a millisecond for Unicode classes.
pub fn compile(hir: &Hir, options: &CompileOptions) -> Result<BitProgram, CompileError> {
    compile_any(std::slice::from_ref(hir), options)
}

/// Compiles a set of expressions: the program marks the lines in which any of them matches, in one pass.
///
/// # Errors
/// As [`compile`].
pub fn compile_any(hirs: &[Hir], options: &CompileOptions) -> Result<BitProgram, CompileError> {
    let mut compiler = Compiler::new(options);
    compiler.declare(hirs)?;
    let mut union = compiler.builder.zero();
    for hir in hirs {
        let everywhere = compiler.everywhere();
        let markers = compiler.node(hir, everywhere, Follow::END)?;
        union = compiler.builder.or(union, markers.at);
    }
    let output = compiler.line_ends(union);
    let program = compiler.builder.finish(output);
    debug_assert_eq!(program.verify(), Ok(()));
    Ok(program)
}

/// Compiles an expression for texts that are read backwards, last byte first: the program marks position `i` where a match starts whose first byte is
/// the one before `i`, that is `i` bytes from the end of the text. Beside characters beyond ASCII it may mark more; on ASCII it is exact.
///
/// # Errors
/// What cannot be expressed, or not within the limit.
pub fn compile_starts(hir: &Hir, options: &CompileOptions) -> Result<BitProgram, CompileError> {
    let reversed = backwards::backwards(hir).ok_or(CompileError::Backwards)?;
    let mut compiler = Compiler { words: Words::Near, ..Compiler::new(options) };
    compiler.declare(std::slice::from_ref(&reversed))?;
    let everywhere = compiler.everywhere();
    let markers = compiler.node(&reversed, everywhere, Follow::with(Side::Unknown))?;
    let program = compiler.builder.finish(markers.at);
    debug_assert_eq!(program.verify(), Ok(()));
    Ok(program)
}

/// How assertions about ASCII words are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    Exact,
    /// Beside a byte beyond ASCII they hold.
    Near,
}

/// What is known about a character next to a marker. The line's ends count as characters that are not of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Word,
    NotWord,
    Unknown,
}

impl Side {
    fn or(self, other: Side) -> Side {
        if self == other {
            self
        } else {
            Side::Unknown
        }
    }
}

/// What follows a part of the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Follow {
    side: Side,
    /// Nothing: a marker that gets here has matched.
    is_end: bool,
}

impl Follow {
    const END: Follow = Follow { side: Side::Unknown, is_end: true };

    fn with(side: Side) -> Follow {
        Follow { side, is_end: false }
    }
}

/// Markers, and what is known about the character before each.
#[derive(Clone, Copy, Debug)]
struct Markers {
    at: Value,
    before: Side,
}

struct Compiler<'o> {
    options: &'o CompileOptions,
    builder: Builder,
    structure: Option<Structure>,
    unicode: HashMap<Ranges, ClassStreams>,
    /// Streams without a bit at terminators.
    within_lines: std::collections::HashSet<Value>,
    ascii_word: ByteSet,
    unicode_word: Ranges,
    words: Words,
}

impl<'o> Compiler<'o> {
    fn new(options: &'o CompileOptions) -> Compiler<'o> {
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
            words: Words::Exact,
        }
    }

    /// Computes all Unicode classes of the expressions, together and before anything else.
    fn declare(&mut self, hirs: &[Hir]) -> Result<(), CompileError> {
        let mut wanted: Vec<Ranges> = Vec::new();
        let mut looks = LookSet::empty();
        hirs.iter().for_each(|hir| {
            collect(hir, &mut wanted);
            looks = looks.union(hir.properties().look_set());
        });
        if looks.iter().any(look::is_unicode_word) {
            self.unicode_word = word_ranges();
            wanted.push(self.unicode_word.clone());
        }
        if looks.iter().any(look::asks_for_other_characters) {
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

    fn within_limit(&self) -> Result<(), CompileError> {
        if self.builder.len() > self.options.operations {
            return Err(CompileError::TooLarge { limit: self.options.operations });
        }
        Ok(())
    }

    fn everywhere(&self) -> Markers {
        Markers { at: self.builder.ones(), before: Side::Unknown }
    }

    fn is_everywhere(&self, markers: Markers) -> bool {
        markers.at == self.builder.ones()
    }

    /// The stream of a set of bytes, the terminator left out.
    fn bytes(&mut self, set: ByteSet) -> Value {
        let stream = class::stream(&mut self.builder, set.without(self.options.terminator));
        self.within_lines.insert(stream);
        stream
    }

    fn terminators(&mut self) -> Value {
        class::stream(&mut self.builder, ByteSet::single(self.options.terminator))
    }

    // --- parts of an expression

    fn node(&mut self, hir: &Hir, markers: Markers, follow: Follow) -> Result<Markers, CompileError> {
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

    fn concatenation(
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

    fn literal(&mut self, bytes: &[u8], markers: Markers) -> Markers {
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
    fn step(&mut self, markers: Value, class: Value) -> Value {
        let members = self.builder.and(markers, class);
        self.note_within_lines(members, class);
        self.builder.advance(members, 1)
    }

    fn note_within_lines(&mut self, part: Value, whole: Value) {
        if self.within_lines.contains(&whole) {
            self.within_lines.insert(part);
        }
    }

    fn class(&mut self, class: &Class, markers: Markers) -> Markers {
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

    fn structure(&self) -> Structure {
        self.structure.expect("Unicode classes are declared before they are used")
    }

    /// Markers moved over one character of the class.
    fn next(&mut self, markers: Value, class: &ClassStreams) -> Value {
        let members = self.members(markers, class);
        self.builder.advance(members, 1)
    }

    /// Last bytes of the members that stand at markers.
    fn members(&mut self, markers: Value, class: &ClassStreams) -> Value {
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
    fn long_member(&mut self, markers: Value, class: &ClassStreams, length: usize) -> Value {
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
    fn line_ends(&mut self, markers: Value) -> Value {
        let terminators = self.terminators();
        let within = self.builder.not(terminators);
        let markers = self.without_last_step(markers);
        let reached = self.builder.match_star(markers, within);
        match self.options.lines {
            Lines::Matching => self.builder.and(reached, terminators),
            Lines::Others => self.builder.and_not(terminators, reached),
        }
    }

    /// The same lines have a marker one byte earlier, if the byte that was passed is one of the line.
    fn without_last_step(&mut self, markers: Value) -> Value {
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

/// The parts without those at the end that may as well be empty.
fn without_optional_end(parts: &[Hir]) -> &[Hir] {
    let is_optional = |part: &Hir| {
        let properties = part.properties();
        properties.minimum_len() == Some(0) && properties.look_set().is_empty()
    };
    let needed = parts.iter().rposition(|part| !is_optional(part)).map_or(0, |last| last + 1);
    &parts[..needed]
}

/// The class as bytes, where all of its members are single bytes.
fn as_bytes(class: &Class) -> Option<ByteSet> {
    match class {
        Class::Bytes(class) => {
            Some(class.iter().fold(ByteSet::EMPTY, |set, range| set.with(range.start()..=range.end())))
        }
        Class::Unicode(class) => {
            let is_ascii = class.iter().all(|range| range.end() < '\u{80}');
            is_ascii.then(|| utf8::ascii_set(&unicode_ranges(class)))
        }
    }
}

fn as_ranges(class: &Class) -> Ranges {
    match class {
        Class::Unicode(class) => unicode_ranges(class),
        Class::Bytes(class) => {
            class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).collect()
        }
    }
}

fn unicode_ranges(class: &regex_syntax::hir::ClassUnicode) -> Ranges {
    class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).collect()
}

/// Code points of words, as `\w` has them.
fn word_ranges() -> Ranges {
    let hir = regex_syntax::parse(r"\w").expect("a Perl class parses");
    match hir.kind() {
        HirKind::Class(class) => as_ranges(class),
        _ => Vec::new(),
    }
}

/// Every code point that UTF-8 encodes.
fn all_ranges() -> Ranges {
    vec![(0, 0xD7FF), (0xE000, 0x10_FFFF)]
}

/// The code points that are not in `ranges`.
fn complement(ranges: &Ranges) -> Ranges {
    let mut next = 0;
    let mut gaps = Vec::new();
    for &(first, last) in ranges.iter().chain(&[(0x11_0000, 0x11_0000)]) {
        if next < first {
            gaps.push((next, first - 1));
        }
        next = last + 1;
    }
    gaps
}

/// Notes the Unicode classes of an expression.
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
