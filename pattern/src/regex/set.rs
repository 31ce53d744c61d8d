//! Sets of patterns: finds which patterns match, by one pass over the text and then one search per
//! pattern in the lines that match any.

use super::builder::RegexBuilder;
use super::error::Error;
use super::expression::Regex;
use super::options::Unit;
use std::ops::{ControlFlow, Range};

/// A set of patterns.
///
/// One pass finds the lines that match any pattern; only those are searched again, pattern by
/// pattern.
///
/// ```
/// let patterns = ["disk".to_owned(), "net".to_owned(), "cpu".to_owned()];
/// let set = lightfoot_pattern::RegexSet::new(&patterns)?;
/// assert_eq!(set.matches(b"cpu hot\ndisk full\n"), [0, 2]);
/// # Ok::<(), lightfoot_pattern::regex::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RegexSet {
    any: Regex,
    each: Vec<Regex>,
}

impl RegexSet {
    /// Compiles the patterns with the default options.
    ///
    /// # Errors
    /// The first pattern that does not parse, asks for a byte that it may not match, or is too
    /// large.
    pub fn new(patterns: &[String]) -> Result<RegexSet, Error> {
        RegexSet::with(&RegexBuilder::new(), patterns)
    }

    /// Compiles the patterns with a builder's options.
    ///
    /// # Errors
    /// The first pattern that does not parse, asks for a byte that it may not match, or is too
    /// large.
    pub fn with(builder: &RegexBuilder, patterns: &[String]) -> Result<RegexSet, Error> {
        let each = patterns.iter().map(|pattern| builder.build(pattern)).collect::<Result<_, _>>()?;
        Ok(RegexSet { any: builder.build_many(patterns)?, each })
    }

    /// The number of patterns.
    pub fn len(&self) -> usize {
        self.each.len()
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// Which patterns match anywhere in `text`, by index.
    pub fn matches(&self, text: &[u8]) -> Vec<usize> {
        let mut missing: Vec<usize> = (0..self.each.len()).collect();
        let _ = self.matching_lines(text, |_, found| {
            missing.retain(|index| !found.contains(index));
            if missing.is_empty() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        (0..self.each.len()).filter(|index| !missing.contains(index)).collect()
    }

    /// Pushes each line that any pattern matches, with the indices of those that do.
    pub fn matching_lines(
        &self,
        text: &[u8],
        mut push: impl FnMut(Range<usize>, &[usize]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut found = Vec::new();
        self.any.matching_lines(text, |line| {
            found.clear();
            let haystack = match self.any.options().unit {
                Unit::Line => &text[line.clone()],
                Unit::Text => text,
            };
            found.extend((0..self.each.len()).filter(|&index| self.each[index].is_match(haystack)));
            push(line, &found)
        })
    }
}
