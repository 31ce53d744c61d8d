//! The construction of an expression from patterns and options.

use super::ascii::twin;
use super::automaton::Automaton;
use super::error::{Error, ErrorKind};
use super::expression::Regex;
use super::options::{Options, Unit};
use super::parse;
use super::spans::Spans;
use crate::plan::Plan;
use regex_automata::meta;
use regex_syntax::hir::Hir;

/// Builds a [`Regex`] from patterns and [`Options`].
///
/// ```
/// use lightfoot_pattern::regex::{Boundary, Case, RegexBuilder};
/// let word = RegexBuilder::new().with(|options| {
///     options.case = Case::Insensitive;
///     options.boundary = Boundary::Word;
/// });
/// let regex = word.build("error")?;
/// assert!(regex.is_match(b"Error: disk"));
/// assert!(!regex.is_match(b"terrors"));
/// # Ok::<(), lightfoot_pattern::regex::Error>(())
/// ```
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

    /// Replaces all options.
    pub fn options(mut self, options: Options) -> RegexBuilder {
        self.options = options;
        self
    }

    /// Changes options in place.
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> RegexBuilder {
        change(&mut self.options);
        self
    }

    /// Requests an engine of [`crate::plan::ENGINES`] by name, for tests and studies; it is used if
    /// it can run the pattern.
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
    /// A pattern does not parse, asks for a byte that it may not match, or all together are too
    /// large.
    pub fn build_many(&self, patterns: &[String]) -> Result<Regex, Error> {
        let hir = std::sync::Arc::new(parse::parse(patterns, &self.options)?);
        let automaton = self.automaton(hir.clone(), patterns)?;
        let plan = Plan::new(&hir, &self.options, self.engine);
        let within_lines =
            self.options.unit == Unit::Line || !can_match(&hir, self.options.terminator.byte());
        let can_be_empty = hir.properties().minimum_len() == Some(0);
        let ascii = twin(&hir).filter(|_| self.options.unit == Unit::Line).map(std::sync::Arc::new);
        let spans = Spans::new(automaton, hir.clone(), ascii.clone(), &self.options);
        Ok(Regex {
            spans,
            plan,
            options: self.options.clone(),
            within_lines,
            can_be_empty,
            hir,
            starts: Default::default(),
            ascii,
            ascii_starts: Default::default(),
            ends: Default::default(),
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
                None => {
                    Error { kind: ErrorKind::Syntax, pattern: whole, place: None, message: deepest(&*error) }
                }
            }
        })
    }
}

impl Regex {
    /// Compiles one pattern with the default options: lines end with a line feed.
    ///
    /// # Errors
    /// The pattern does not parse, asks for a line's end, or is too large.
    pub fn new(pattern: &str) -> Result<Regex, Error> {
        RegexBuilder::new().build(pattern)
    }
}

/// The innermost reason: the outer ones only repeat that building failed.
fn deepest(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), deepest)
}

fn is_word_boundary(look: regex_syntax::hir::Look) -> bool {
    regex_syntax::hir::LookSet::singleton(look).contains_word()
}

/// Whether a match may contain `byte`; true if that is not obvious.
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
        // The ends of the text are not those of a line, and those of a line are seen by looking at
        // the byte.
        HirKind::Look(look) => !is_word_boundary(*look),
        HirKind::Repetition(repetition) => can_match(&repetition.sub, byte),
        HirKind::Capture(capture) => can_match(&capture.sub, byte),
        HirKind::Concat(subs) | HirKind::Alternation(subs) => subs.iter().any(|sub| can_match(sub, byte)),
    }
}
