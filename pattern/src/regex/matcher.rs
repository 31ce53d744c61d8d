//! Implements `grep_matcher::Matcher`, the interface through which other searchers and printers use
//! a [`Regex`].

use super::captures::Captures;
use super::expression::Regex;
use super::options::{Terminator, Unit};
use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoError};
use regex_automata::Input;

impl grep_matcher::Captures for Captures {
    fn len(&self) -> usize {
        self.0.group_len()
    }

    fn get(&self, index: usize) -> Option<Match> {
        self.group(index).map(|span| Match::new(span.start, span.end))
    }
}

impl Matcher for Regex {
    type Captures = Captures;
    type Error = NoError;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        Ok(Regex::find_at(self, haystack, at).map(|found| Match::new(found.start, found.end)))
    }

    fn new_captures(&self) -> Result<Captures, NoError> {
        Ok(Captures(self.spans().create_captures()))
    }

    fn capture_count(&self) -> usize {
        self.spans().captures_len()
    }

    fn capture_index(&self, name: &str) -> Option<usize> {
        self.spans().group_info().to_index(regex_automata::util::primitives::PatternID::ZERO, name)
    }

    fn captures_at(&self, haystack: &[u8], at: usize, captures: &mut Captures) -> Result<bool, NoError> {
        captures.0.clear();
        let input = Input::new(haystack).span(at..haystack.len());
        self.spans().search_captures(&input, &mut captures.0);
        Ok(captures.0.is_match())
    }

    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, NoError> {
        let input = Input::new(haystack).span(at..haystack.len()).earliest(true);
        Ok(self.spans().search_half(&input).map(|half| half.offset()))
    }

    /// Bytes that no match contains: only the terminator is reported, because callers need no more.
    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        static LINE_FEED: std::sync::OnceLock<ByteSet> = std::sync::OnceLock::new();
        (self.within_lines && self.options.terminator != Terminator::Nul).then(|| {
            LINE_FEED.get_or_init(|| {
                let mut set = ByteSet::empty();
                set.add(b'\n');
                set
            })
        })
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        match (self.options.unit, self.options.terminator) {
            (Unit::Text, _) => None,
            (Unit::Line, Terminator::LineFeed) => Some(LineTerminator::byte(b'\n')),
            (Unit::Line, Terminator::CrLf) => Some(LineTerminator::crlf()),
            // `^` also matches behind a line feed in this mode, so records must be searched one by
            // one.
            (Unit::Line, Terminator::Nul) => None,
        }
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, NoError> {
        Ok(self.first_line(haystack).map(|line| LineMatchKind::Confirmed(line.start)))
    }
}
