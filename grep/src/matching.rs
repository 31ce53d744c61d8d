//! What matches: our engine with its conditions, or PCRE2.
//!
//! Searchers and printers are generic over what matches and are compiled again for each type of it.
//! This is one type for both engines, so that they are compiled once: that makes the command 1 %
//! smaller, and a call has one more branch.

use super::arguments::{Boundary, Case, Engine};
use super::card;
use super::query::Query;
use super::settings::Settings;
use anyhow::{bail, Result};
use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher};
use pattern::superset::{superset, Candidates};
use std::io;

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

/// The groups of a match.
#[derive(Clone, Debug)]
pub(super) enum Captures {
    /// Those of our engine.
    Query(pattern::regex::Captures),
    /// Those of PCRE2.
    Pcre2(grep_pcre2::RegexCaptures),
}

impl grep_matcher::Captures for Captures {
    fn len(&self) -> usize {
        match self {
            Captures::Query(captures) => captures.len(),
            Captures::Pcre2(captures) => captures.len(),
        }
    }

    fn get(&self, index: usize) -> Option<Match> {
        match self {
            Captures::Query(captures) => grep_matcher::Captures::get(captures, index),
            Captures::Pcre2(captures) => captures.get(index),
        }
    }
}

/// An error of PCRE2, in its own words.
fn failed(error: grep_pcre2::Error) -> io::Error {
    io::Error::other(error)
}

impl Matcher for Matching {
    type Captures = Captures;
    type Error = io::Error;

    fn find_at(&self, haystack: &[u8], at: usize) -> io::Result<Option<Match>> {
        match self {
            Matching::Query(query) => Ok(query.main().find_at(haystack, at).map(span)),
            Matching::Pcre2(matcher) => matcher.find_at(haystack, at).map_err(failed),
        }
    }

    fn new_captures(&self) -> io::Result<Captures> {
        match self {
            Matching::Query(query) => Ok(Captures::Query(query.main().new_captures()?)),
            Matching::Pcre2(matcher) => matcher.new_captures().map(Captures::Pcre2).map_err(failed),
        }
    }

    fn capture_count(&self) -> usize {
        match self {
            Matching::Query(query) => query.main().capture_count(),
            Matching::Pcre2(matcher) => matcher.capture_count(),
        }
    }

    fn capture_index(&self, name: &str) -> Option<usize> {
        match self {
            Matching::Query(query) => query.main().capture_index(name),
            Matching::Pcre2(matcher) => matcher.capture_index(name),
        }
    }

    fn try_find_iter<F, E>(&self, haystack: &[u8], matched: F) -> io::Result<Result<(), E>>
    where
        F: FnMut(Match) -> Result<bool, E>,
    {
        match self {
            Matching::Query(query) => Ok(query.main().try_find_iter(haystack, matched)?),
            Matching::Pcre2(matcher) => matcher.try_find_iter(haystack, matched).map_err(failed),
        }
    }

    fn captures_at(&self, haystack: &[u8], at: usize, captures: &mut Captures) -> io::Result<bool> {
        match (self, captures) {
            (Matching::Query(query), Captures::Query(captures)) => {
                Ok(query.main().captures_at(haystack, at, captures)?)
            }
            (Matching::Pcre2(matcher), Captures::Pcre2(captures)) => {
                matcher.captures_at(haystack, at, captures).map_err(failed)
            }
            // Groups of the other engine hold nothing of this match.
            _ => Ok(false),
        }
    }

    fn is_match_at(&self, haystack: &[u8], at: usize) -> io::Result<bool> {
        match self {
            Matching::Query(_) => Ok(self.shortest_match_at(haystack, at)?.is_some()),
            Matching::Pcre2(matcher) => matcher.is_match_at(haystack, at).map_err(failed),
        }
    }

    /// Searchers that look at one line at a time call this.
    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> io::Result<Option<usize>> {
        match self {
            Matching::Query(query) => {
                let found = query.main().shortest_match_at(haystack, at)?;
                Ok(found.filter(|_| query.is_plain() || query.permits(haystack)))
            }
            Matching::Pcre2(matcher) => matcher.shortest_match_at(haystack, at).map_err(failed),
        }
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        match self {
            Matching::Query(query) => query.main().non_matching_bytes(),
            Matching::Pcre2(matcher) => matcher.non_matching_bytes(),
        }
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        match self {
            Matching::Query(query) => query.main().line_terminator(),
            Matching::Pcre2(matcher) => matcher.line_terminator(),
        }
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> io::Result<Option<LineMatchKind>> {
        match self {
            Matching::Query(query) => Ok(query.first_line(haystack).map(LineMatchKind::Confirmed)),
            Matching::Pcre2(matcher) => matcher.find_candidate_line(haystack).map_err(failed),
        }
    }
}

fn span(found: std::ops::Range<usize>) -> Match {
    Match::new(found.start, found.end)
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
