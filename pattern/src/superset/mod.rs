//! Candidate lines for a stronger engine: where a pattern with look-around or back-references can
//! match at all.
//!
//! [`Candidates`] joins an exact matcher, such as PCRE2's, with a [`Regex`] that matches every line
//! which the exact one does, and some more: bit streams find the lines, the exact matcher confirms
//! them. The superset of a Perl-compatible pattern drops look-around and word boundaries, puts a
//! group's own expression where it is referred to, and takes any character beyond ASCII for a
//! member of every class that may hold some, so that no difference between two tables of Unicode
//! matters. A pattern with other constructs (recursion, conditions, verbs) has no superset, and
//! every line goes to the exact matcher.

mod class;
mod rewrite;

use crate::regex::{Boundary, Case, Options, RegexBuilder, Terminator, Unit};
use crate::Regex;
use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher};

/// An expression that matches, within lines, wherever one of these Perl-compatible patterns does.
/// It is `None` if there is none for these patterns, or if it would match every line. Several
/// patterns are one alternation, `(?:first)|(?:second)`. It reads the options for case, fixed
/// strings, the terminator and Unicode; without Unicode it is `None`.
///
/// ```
/// use lightfoot_pattern::{regex::Options, superset::superset};
/// // Look-ahead is dropped: the superset finds the lines that an exact engine then confirms.
/// let candidates = superset(&["foo(?=bar)".to_owned()], &Options::default()).unwrap();
/// assert_eq!(candidates.count_lines(b"foobar\nfoobaz\nqux\n"), 2);
/// ```
pub fn superset(patterns: &[String], options: &Options) -> Option<Regex> {
    let is_understood = options.unit == Unit::Line
        && options.terminator == Terminator::LineFeed
        && options.unicode
        && !options.ignore_whitespace;
    if !is_understood {
        return None;
    }
    let mut folds = options.case != Case::Sensitive;
    let rewritten: Vec<String> = match options.fixed_strings {
        // Two engines may fold the case of characters beyond ASCII differently.
        true if folds && !patterns.iter().all(|pattern| pattern.is_ascii()) => return None,
        true => patterns.iter().map(|pattern| regex_syntax::escape(pattern)).collect(),
        false => {
            // Groups are numbered through all patterns, so the patterns are joined as the exact
            // engine joins them before they are rewritten.
            let joined = match patterns {
                [one] => one.clone(),
                many => format!("(?:{})", many.join(")|(?:")),
            };
            folds |= rewrite::sets_flags(&joined);
            vec![rewrite::rewritten(&joined, folds)?]
        }
    };
    let case = if folds { Case::Insensitive } else { Case::Sensitive };
    let own = Options { case, boundary: Boundary::None, fixed_strings: false, ..options.clone() };
    let regex = RegexBuilder::new().options(own).build_many(&rewritten).ok()?;
    (!regex.can_be_empty()).then_some(regex)
}

/// A matcher that is asked only about the lines which another one has found.
#[derive(Clone, Debug)]
pub struct Candidates<M> {
    exact: M,
    superset: Option<Regex>,
}

impl<M: Matcher> Candidates<M> {
    /// `superset` must match every line that `exact` does; without a superset, `exact` is asked
    /// about all lines. Lines end with a line feed, and `exact` is asked about single lines.
    pub fn new(exact: M, superset: Option<Regex>) -> Candidates<M> {
        Candidates { exact, superset }
    }

    /// The expression that finds candidates; `None` if every line is one.
    pub fn superset(&self) -> Option<&Regex> {
        self.superset.as_ref()
    }

    /// The number of lines of `text` that match.
    ///
    /// # Errors
    /// The errors of the exact matcher.
    pub fn count_lines(&self, text: &[u8]) -> Result<u64, M::Error> {
        let mut count = 0;
        let mut failure = None;
        let mut look = |line: std::ops::Range<usize>| {
            let content = crate::line::content(&text[line.clone()], b'\n');
            match self.exact.is_match(&text[line.start..line.start + content]) {
                Ok(is_match) => {
                    count += u64::from(is_match);
                    std::ops::ControlFlow::Continue(())
                }
                Err(error) => {
                    failure = Some(error);
                    std::ops::ControlFlow::Break(())
                }
            }
        };
        let _ = match &self.superset {
            Some(superset) => superset.matching_lines(text, look),
            None => crate::line::each(text, b'\n').try_for_each(&mut look),
        };
        failure.map_or(Ok(count), Err)
    }
}

impl<M: Matcher> Matcher for Candidates<M> {
    type Captures = M::Captures;
    type Error = M::Error;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, M::Error> {
        self.exact.find_at(haystack, at)
    }

    fn new_captures(&self) -> Result<M::Captures, M::Error> {
        self.exact.new_captures()
    }

    fn capture_count(&self) -> usize {
        self.exact.capture_count()
    }

    fn capture_index(&self, name: &str) -> Option<usize> {
        self.exact.capture_index(name)
    }

    fn try_find_iter<F, E>(&self, haystack: &[u8], matched: F) -> Result<Result<(), E>, M::Error>
    where
        F: FnMut(Match) -> Result<bool, E>,
    {
        self.exact.try_find_iter(haystack, matched)
    }

    fn captures_at(&self, haystack: &[u8], at: usize, captures: &mut M::Captures) -> Result<bool, M::Error> {
        self.exact.captures_at(haystack, at, captures)
    }

    fn is_match_at(&self, haystack: &[u8], at: usize) -> Result<bool, M::Error> {
        self.exact.is_match_at(haystack, at)
    }

    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, M::Error> {
        self.exact.shortest_match_at(haystack, at)
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        self.exact.non_matching_bytes()
    }

    /// The terminator is given only if there is a superset: then a searcher asks for candidates.
    fn line_terminator(&self) -> Option<LineTerminator> {
        match self.superset {
            Some(_) => Some(LineTerminator::byte(b'\n')),
            None => self.exact.line_terminator(),
        }
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, M::Error> {
        match &self.superset {
            Some(superset) => {
                Ok(superset.first_line(haystack).map(|line| LineMatchKind::Candidate(line.start)))
            }
            None => self.exact.find_candidate_line(haystack),
        }
    }
}
