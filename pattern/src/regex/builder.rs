//! Options of an expression, and its construction.

use super::automaton::Automaton;
use super::error::Error;
use super::{parse, Regex};
use crate::plan::Plan;
use regex_automata::meta;
use regex_syntax::hir::Hir;

/// What one match lies within.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// A line: the text is many haystacks.
    #[default]
    Line,
    /// The whole text.
    Text,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Terminator {
    /// `\n`
    #[default]
    LineFeed,
    /// `\n`, and a `\r` before it belongs to it: `$` matches in front of both.
    CrLf,
    /// `\0`
    Nul,
}

impl Terminator {
    /// The last byte of a terminated line.
    pub fn byte(self) -> u8 {
        match self {
            Terminator::LineFeed | Terminator::CrLf => b'\n',
            Terminator::Nul => 0,
        }
    }
}

/// Upper and lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// They differ.
    #[default]
    Sensitive,
    /// They do not.
    Insensitive,
    /// They differ where any pattern holds an upper-case letter.
    Smart,
}

/// Where a match begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Boundary {
    /// Anywhere.
    #[default]
    None,
    /// Not inside a word at either end.
    Word,
    /// At the ends of a line.
    Line,
}

/// Everything a [`RegexBuilder`] can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// What a match lies within.
    pub unit: Unit,
    /// What ends a line.
    pub terminator: Terminator,
    /// Upper and lower case.
    pub case: Case,
    /// Where a match begins and ends.
    pub boundary: Boundary,
    /// Patterns are strings.
    pub fixed_strings: bool,
    /// Classes, case and boundaries are Unicode's rather than ASCII's.
    pub unicode: bool,
    /// Matches begin and end between characters, and classes match whole ones (only with [`Unit::Text`]).
    pub utf8: bool,
    /// White space and comments in patterns are skipped.
    pub ignore_whitespace: bool,
    /// `^` and `$` match at line ends (always so with [`Unit::Line`]).
    pub multi_line: bool,
    /// A dot matches line ends (only with [`Unit::Text`]).
    pub dot_matches_new_line: bool,
    /// A byte that no pattern may ask for.
    pub excluded: Option<u8>,
    /// Most memory of the compiled expression, in bytes.
    pub size_limit: usize,
    /// Most memory of the automaton's cache, in bytes.
    pub dfa_size_limit: usize,
    /// The byte of [`Unit::Text`] that `(?m)^`, `(?m)$` and a dot take for a line's end.
    pub text_line_end: u8,
}

impl Options {
    /// The byte that a dot does not match.
    pub(super) fn dot_excludes(&self) -> u8 {
        match self.unit {
            Unit::Line => b'\n',
            Unit::Text => self.text_line_end,
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            unit: Unit::Line,
            terminator: Terminator::LineFeed,
            case: Case::Sensitive,
            boundary: Boundary::None,
            fixed_strings: false,
            unicode: true,
            utf8: false,
            ignore_whitespace: false,
            multi_line: false,
            dot_matches_new_line: false,
            excluded: None,
            // Patterns come from a person at a terminal, not from the network: far above the defaults of `regex`.
            size_limit: 100 << 20,
            dfa_size_limit: 1000 << 20,
            text_line_end: b'\n',
        }
    }
}

/// Builds a [`Regex`] from patterns and [`Options`].
#[derive(Clone, Debug, Default)]
pub struct RegexBuilder {
    options: Options,
    engine: Option<&'static str>,
}

impl RegexBuilder {
    /// Default options.
    pub fn new() -> RegexBuilder {
        RegexBuilder::default()
    }

    /// These options.
    pub fn options(mut self, options: Options) -> RegexBuilder {
        self.options = options;
        self
    }

    /// Changes options in place.
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> RegexBuilder {
        change(&mut self.options);
        self
    }

    /// Insists on an engine of [`crate::plan::ENGINES`] by name, where it can run the pattern; tests and studies do.
    pub fn engine(mut self, name: &'static str) -> RegexBuilder {
        self.engine = Some(name);
        self
    }

    /// Compiles one pattern.
    ///
    /// # Errors
    /// The pattern does not parse, asks for a byte that it may not match, or is too large.
    pub fn build(&self, pattern: &str) -> Result<Regex, Error> {
        self.build_many(&[pattern.to_owned()])
    }

    /// Compiles the alternation of patterns, earlier ones first. No pattern at all matches nothing.
    ///
    /// # Errors
    /// As [`RegexBuilder::build`].
    pub fn build_many(&self, patterns: &[String]) -> Result<Regex, Error> {
        let hir = std::sync::Arc::new(parse::parse(patterns, &self.options)?);
        let automaton = self.automaton(hir.clone(), patterns)?;
        let plan = Plan::new(&hir, &self.options, self.engine);
        let within_lines =
            self.options.unit == Unit::Line || !can_match(&hir, self.options.terminator.byte());
        let can_be_empty = hir.properties().minimum_len() == Some(0);
        let spans = super::spans::Spans::new(automaton, hir.clone(), &self.options);
        Ok(Regex {
            spans,
            plan,
            options: self.options.clone(),
            within_lines,
            can_be_empty,
            hir,
            starts: Default::default(),
        })
    }

    fn automaton(&self, hir: std::sync::Arc<Hir>, patterns: &[String]) -> Result<Automaton, Error> {
        let limit = self.options.size_limit;
        let config = meta::Regex::config()
            .utf8_empty(self.options.utf8)
            .line_terminator(self.options.text_line_end)
            .hybrid_cache_capacity(self.options.dfa_size_limit);
        Automaton::new(hir, config, limit).map_err(|error| {
            let whole = patterns.join("\n");
            match error.size_limit() {
                Some(limit) => Error::too_large(&whole, limit),
                None => Error {
                    kind: super::ErrorKind::Syntax,
                    pattern: whole,
                    place: None,
                    said: deepest(&*error),
                },
            }
        })
    }
}

/// The innermost reason: the outer ones only repeat that building failed.
fn deepest(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), deepest)
}

fn is_word_boundary(look: regex_syntax::hir::Look) -> bool {
    regex_syntax::hir::LookSet::singleton(look).contains_word()
}

/// Whether a match may contain `byte`; true where that is not plain to see.
fn can_match(hir: &Hir, byte: u8) -> bool {
    use regex_syntax::hir::{Class, HirKind};
    match hir.kind() {
        HirKind::Empty => false,
        HirKind::Literal(literal) => literal.0.contains(&byte),
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().any(|range| range.start() <= char::from(byte) && char::from(byte) <= range.end())
        }
        HirKind::Class(Class::Bytes(class)) => {
            class.iter().any(|range| range.start() <= byte && byte <= range.end())
        }
        // The ends of the text are not those of a line, and those of a line are seen by looking at the byte.
        HirKind::Look(look) => !is_word_boundary(*look),
        HirKind::Repetition(repetition) => can_match(&repetition.sub, byte),
        HirKind::Capture(capture) => can_match(&capture.sub, byte),
        HirKind::Concat(subs) | HirKind::Alternation(subs) => subs.iter().any(|sub| can_match(sub, byte)),
    }
}
