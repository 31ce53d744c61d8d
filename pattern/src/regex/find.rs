//! Spans: all matches of a text in order.

use super::expression::Regex;
use super::options::Unit;
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

/// Size of the first window for which the engine lists matching lines: small, so that the first
/// match is found soon.
const FIRST_WINDOW: usize = 16 << 10;
/// Size of the windows of a long text: large enough to repay the engine's preparations for each
/// window, and small enough for the second-level cache, in which spans are then searched.
const WINDOW: usize = 512 << 10;

/// Iterator over matches; made by [`Regex::find_iter`].
#[derive(Debug)]
pub struct Matches<'r, 't> {
    regex: &'r Regex,
    text: &'t [u8],
    /// Matching lines whose spans were not searched yet.
    lines: VecDeque<Range<usize>>,
    /// End of the last window.
    searched: usize,
    /// Where the next match may begin, and the end of the last one, which an empty match must not
    /// touch.
    at: usize,
    last_end: Option<usize>,
}

impl<'r, 't> Matches<'r, 't> {
    pub(super) fn new(regex: &'r Regex, text: &'t [u8]) -> Matches<'r, 't> {
        Matches { regex, text, lines: VecDeque::new(), searched: 0, at: 0, last_end: None }
    }

    /// The next match within `end`.
    fn within(&mut self, end: usize) -> Option<Range<usize>> {
        let found = self.regex.next_match(self.text, self.at, end, self.last_end)?;
        self.at = found.end;
        self.last_end = Some(found.end);
        Some(found)
    }

    /// Lists the matching lines of the next window; false at the end of the text.
    fn refill(&mut self) -> bool {
        let terminator = self.regex.options.terminator.byte();
        while self.lines.is_empty() {
            if self.searched >= self.text.len() {
                return false;
            }
            let from = self.searched;
            let window = from.clamp(FIRST_WINDOW, WINDOW);
            let wish = (from + window).min(self.text.len());
            let end = crate::line::end_of(self.text, wish - 1, terminator);
            let lines = &mut self.lines;
            let _ = self.regex.matching_lines(&self.text[from..end], |line| {
                lines.push_back(from + line.start..from + line.end);
                ControlFlow::Continue(())
            });
            self.searched = end;
        }
        true
    }
}

impl Regex {
    /// All matches in order: leftmost, earlier alternatives first, none overlapping.
    ///
    /// ```
    /// let regex = lightfoot_pattern::Regex::new("ab|a")?;
    /// assert_eq!(regex.find_iter(b"ab a").collect::<Vec<_>>(), [0..2, 3..4]);
    /// # Ok::<(), lightfoot_pattern::regex::Error>(())
    /// ```
    pub fn find_iter<'r, 't>(&'r self, text: &'t [u8]) -> Matches<'r, 't> {
        Matches::new(self, text)
    }

    /// The number of matches of a text that is one unit: as many as [`Regex::find_iter`] gives.
    pub(crate) fn count_matches(&self, text: &[u8]) -> usize {
        debug_assert_eq!(self.options.unit, Unit::Text);
        if self.hir().properties().minimum_len().is_none_or(|bytes| bytes == 0) {
            return self.find_iter(text).count();
        }
        // The next match begins behind the end of one, wherever that began.
        let (mut count, mut at) = (0, 0);
        while let Some(end) = self.spans.search_end(text, at..text.len()) {
            (count, at) = (count + 1, end);
        }
        count
    }
}

impl Iterator for Matches<'_, '_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if self.regex.options.unit == Unit::Text {
            return self.within(self.text.len());
        }
        loop {
            if self.lines.is_empty() && !self.refill() {
                return None;
            }
            let line = self.lines.front()?.clone();
            let content =
                crate::line::content(&self.text[line.clone()], self.regex.options.terminator.byte());
            if self.at < line.start {
                (self.at, self.last_end) = (line.start, None);
            }
            match self.within(line.start + content) {
                Some(found) => return Some(found),
                None => {
                    self.lines.pop_front();
                    self.at = self.at.max(line.end);
                    self.last_end = None;
                }
            }
        }
    }
}
