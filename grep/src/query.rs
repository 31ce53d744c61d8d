//! The conditions on a line: the pattern, every pattern of `--and`, and none of `--not`.
//!
//! Spans are those of the main pattern. The other patterns are tried only on lines that the main
//! one matches. PCRE2 may match the main pattern.

use super::arguments::{Boundary, Case, Engine};
use super::card;
use super::settings::Settings;
use anyhow::{bail, Result};
use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoError};
use pattern::regex::{Captures, RegexBuilder};
use pattern::superset::{superset, Candidates};
use pattern::Regex;
use std::ops::{ControlFlow, Range};

/// Our engine, with further conditions.
#[derive(Clone, Debug)]
pub(super) struct Query {
    main: Regex,
    and: Vec<Regex>,
    not: Vec<Regex>,
}

/// The engine that matches.
#[derive(Clone, Debug)]
pub(super) enum Matching {
    /// Ours.
    Query(Query),
    /// PCRE2.
    Pcre2(Candidates<grep_pcre2::RegexMatcher>),
}

impl Matching {
    /// Compiles the patterns that the settings give.
    ///
    /// # Errors
    /// When a pattern is refused: the pattern with a mark at the place, and what is wrong there.
    pub(super) fn new(settings: &Settings) -> Result<Matching> {
        match settings.arguments.engine {
            Engine::Default => Ok(Matching::Query(Query::new(settings)?)),
            Engine::Cuda => Ok(Matching::Query(Query::new(settings)?.on_card(settings)?)),
            Engine::Pcre2 => Ok(Matching::Pcre2(pcre2(settings)?)),
            Engine::Auto => match Query::new(settings) {
                Ok(query) if card::choose(settings, query.main()).wins => {
                    Ok(Matching::Query(query.clone().on_card(settings).unwrap_or(query)))
                }
                Ok(query) => Ok(Matching::Query(query)),
                Err(ours) => match pcre2(settings) {
                    Ok(matcher) => Ok(Matching::Pcre2(matcher)),
                    Err(theirs) => bail!("{ours}\nPCRE2 refuses the pattern as well: {theirs}"),
                },
            },
        }
    }
}

impl Query {
    fn new(settings: &Settings) -> Result<Query> {
        let builder = RegexBuilder::new().options(settings.expression());
        let build = |patterns: &[String]| builder.build_many(patterns).map_err(|error| advised(&error));
        let each = |patterns: &[String]| -> Result<Vec<Regex>> {
            patterns.iter().map(|pattern| build(std::slice::from_ref(pattern))).collect()
        };
        let (and, not) = (&settings.arguments.and, &settings.arguments.not);
        if settings.arguments.multiline && !(and.is_empty() && not.is_empty()) {
            bail!("--and and --not speak about lines and cannot be combined with --multiline");
        }
        Ok(Query { main: build(&settings.patterns)?, and: each(and)?, not: each(not)? })
    }

    /// This query with its main expression on a graphics card.
    fn on_card(self, settings: &Settings) -> Result<Query> {
        card::prepare();
        let builder = RegexBuilder::new().options(settings.expression()).engine("cuda");
        let main = builder.build_many(&settings.patterns).map_err(|error| advised(&error))?;
        if main.engine() != "cuda" {
            // Tries again only to get the reason.
            main.on_card()?;
        }
        Ok(Query { main, ..self })
    }

    /// The main expression.
    pub(super) fn main(&self) -> &Regex {
        &self.main
    }

    /// Whether there are no further conditions.
    pub(super) fn is_plain(&self) -> bool {
        self.and.is_empty() && self.not.is_empty()
    }

    /// Whether a line meets the further conditions.
    fn permits(&self, line: &[u8]) -> bool {
        self.and.iter().all(|regex| regex.is_match(line))
            && !self.not.iter().any(|regex| regex.is_match(line))
    }

    /// Pushes the lines of `text` that satisfy the query.
    pub(super) fn matching_lines(
        &self,
        text: &[u8],
        mut push: impl FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.is_plain() {
            return self.main.matching_lines(text, push);
        }
        self.main.matching_lines(text, |line| {
            if self.permits(&text[line.clone()]) {
                push(line)?;
            }
            ControlFlow::Continue(())
        })
    }

    /// The number of lines of `text` that satisfy the query.
    pub(super) fn count_lines(&self, text: &[u8]) -> u64 {
        if self.is_plain() {
            return self.main.count_lines(text);
        }
        let mut count = 0;
        let _ = self.matching_lines(text, |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }
}

/// The error, with the flag that helps.
fn advised(error: &pattern::regex::Error) -> anyhow::Error {
    use pattern::regex::ErrorKind;
    let advice = match error.kind {
        ErrorKind::LineEnd(_) => "\n--multiline (-U) lets a match span lines.",
        ErrorKind::Excluded(_) => "\n--text (-a) searches files with NUL bytes as text.",
        ErrorKind::TooLarge(_) => "\n--regex-size-limit raises the limit.",
        _ if error.message.contains("backreferences") || error.message.contains("look-around") => {
            "\n--pcre2 (-P) has back-references and look-around."
        }
        _ => "",
    };
    anyhow::anyhow!("{error}{advice}")
}

/// PCRE2, which confirms the lines that our engine finds by a superset of the patterns, if they
/// have one.
fn pcre2(settings: &Settings) -> Result<Candidates<grep_pcre2::RegexMatcher>> {
    let arguments = &settings.arguments;
    if !(arguments.and.is_empty() && arguments.not.is_empty()) {
        bail!("--and and --not cannot be combined with --pcre2");
    }
    let mut builder = grep_pcre2::RegexMatcherBuilder::new();
    builder.multi_line(true).fixed_strings(arguments.fixed_strings).crlf(arguments.crlf);
    match arguments.case {
        Case::Sensitive => builder.caseless(false),
        Case::Insensitive => builder.caseless(true),
        Case::Smart => builder.case_smart(true),
    };
    match arguments.boundary {
        Boundary::None => (),
        Boundary::Word => {
            builder.word(true);
        }
        Boundary::Line => {
            builder.whole_line(true);
        }
    }
    // Patterns that backtrack soon exhaust the default of 32 KB.
    builder.jit_if_available(true).max_jit_stack_size(Some(10 << 20));
    if !arguments.no_unicode {
        builder.utf(true).ucp(true);
    }
    if arguments.multiline {
        builder.dotall(arguments.multiline_dotall);
    }
    let exact = builder.build_many(&settings.patterns)?;
    Ok(Candidates::new(exact, superset(&settings.patterns, &settings.expression())))
}

impl Matcher for Query {
    type Captures = Captures;
    type Error = NoError;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        Matcher::find_at(&self.main, haystack, at)
    }

    fn new_captures(&self) -> Result<Captures, NoError> {
        self.main.new_captures()
    }

    fn capture_count(&self) -> usize {
        self.main.capture_count()
    }

    fn capture_index(&self, name: &str) -> Option<usize> {
        self.main.capture_index(name)
    }

    fn captures_at(&self, haystack: &[u8], at: usize, captures: &mut Captures) -> Result<bool, NoError> {
        self.main.captures_at(haystack, at, captures)
    }

    /// Searchers that look at one line at a time call this.
    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, NoError> {
        let found = self.main.shortest_match_at(haystack, at)?;
        Ok(found.filter(|_| self.is_plain() || self.permits(haystack)))
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        self.main.non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.main.line_terminator()
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, NoError> {
        let mut at = 0;
        while let Some(line) = self.main.first_line(&haystack[at..]) {
            if self.is_plain() || self.permits(&haystack[at + line.start..at + line.end]) {
                return Ok(Some(LineMatchKind::Confirmed(at + line.start)));
            }
            at += line.end;
        }
        Ok(None)
    }
}
