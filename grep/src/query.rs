//! The conditions on a line: the pattern, every pattern of `--and`, and none of `--not`.
//!
//! Spans are those of the main pattern. The other patterns are tried only on lines that the main
//! one matches.

use super::card;
use super::settings::Settings;
use anyhow::{bail, Result};
use grep_matcher::Matcher;
use pattern::regex::{RegexBuilder, Unit};
use pattern::Regex;
use std::ops::{ControlFlow, Range};

/// Our engine, with further conditions.
#[derive(Clone, Debug)]
pub(super) struct Query {
    main: Regex,
    and: Vec<Regex>,
    not: Vec<Regex>,
}

impl Query {
    /// Compiles the patterns that the settings give, for our engine.
    ///
    /// # Errors
    /// When a pattern is refused, or the conditions cannot be combined with `--multiline`.
    pub(super) fn new(settings: &Settings) -> Result<Query> {
        let builder = RegexBuilder::new().options(settings.expression());
        let build = |patterns: &[String]| builder.build_many(patterns).map_err(|error| advised(&error));
        let each = |patterns: &[String]| -> Result<Vec<Regex>> {
            patterns.iter().map(|pattern| build(std::slice::from_ref(pattern))).collect()
        };
        let (and, not) = (&settings.arguments.and, &settings.arguments.not);
        if settings.arguments.multiline && !(and.is_empty() && not.is_empty()) {
            bail!("--and and --not speak about lines and cannot be combined with --multiline");
        }
        let mut main = build(&settings.patterns)?;
        if settings.arguments.multiline && matches_within_lines(&main) {
            let mut options = settings.expression();
            options.unit = Unit::Line;
            let by_lines = RegexBuilder::new().options(options).build_many(&settings.patterns);
            main = by_lines.unwrap_or(main);
        }
        Ok(Query { main, and: each(and)?, not: each(not)? })
    }

    /// This query with its main expression on a graphics card.
    ///
    /// # Errors
    /// When there is no card, or the pattern cannot run there.
    pub(super) fn on_card(self, settings: &Settings) -> Result<Query> {
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
    pub(super) fn permits(&self, line: &[u8]) -> bool {
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

    /// Where the first line of `text` that satisfies the query starts, in bytes.
    pub(super) fn first_line(&self, text: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(line) = self.main.first_line(&text[at..]) {
            if self.is_plain() || self.permits(&text[at + line.start..at + line.end]) {
                return Some(at + line.start);
            }
            at += line.end;
        }
        None
    }

    /// Where the first line of `text` that satisfies the query ends, in bytes.
    pub(super) fn first_line_end(&self, text: &[u8]) -> Option<usize> {
        if self.is_plain() {
            return self.main.first_line_end(text);
        }
        let mut end = None;
        let _ = self.matching_lines(text, |line| {
            end = Some(line.end);
            ControlFlow::Break(())
        });
        end
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

/// Whether an expression for a whole text has only matches within lines, those that it has when it
/// is for lines.
fn matches_within_lines(regex: &Regex) -> bool {
    let looks = regex.hir().properties().look_set();
    let is_of_lines = regex.non_matching_bytes().is_some_and(|bytes| bytes.contains(b'\n'));
    is_of_lines && !regex.can_be_empty() && !looks.contains_anchor_haystack()
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
