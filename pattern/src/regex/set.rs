//! Sets of patterns: finds which patterns match which lines of a text, in one pass.

use super::builder::RegexBuilder;
use super::error::Error;
use super::expression::Regex;
use super::options::{Terminator, Unit};
use crate::bits::Bitmap;
use crate::compile::CompileOptions;
use crate::plan::expression::{has_long_characters, letters};
use crate::plan::{MOST_LETTERS, MOST_OPERATIONS};
use crate::set::{PushMatches, SetBits, SetEngine, SetPattern};
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Shorter texts are searched line by line: planning a set costs more.
const SMALL_BYTES: usize = 4 << 10;

/// A set of patterns.
///
/// One pass finds, for every pattern, the lines that it matches: patterns share their character
/// classes and all that they have in common, and those that need a rare string are looked for by
/// it. Which pattern is found how is decided by a sample of the first text of some kilobytes; later
/// texts may differ, which changes speed only. Clones share this decision.
///
/// ```
/// let patterns = ["disk".to_owned(), "net".to_owned(), "cpu".to_owned()];
/// let set = lightfoot_pattern::RegexSet::new(&patterns)?;
/// assert_eq!(set.matches(b"cpu hot\ndisk full\n"), [0, 2]);
/// # Ok::<(), lightfoot_pattern::regex::Error>(())
/// ```
#[derive(Clone)]
pub struct RegexSet {
    any: Regex,
    each: Vec<Regex>,
    /// Absent where matches do not lie within lines.
    engine: Option<Arc<SetEngine>>,
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
        let each = patterns.iter().map(|pattern| builder.build(pattern)).collect::<Result<Vec<_>, _>>()?;
        let any = builder.build_many(patterns)?;
        let options = any.options();
        // In lines that end with NUL, `^` also matches behind line feeds.
        let by_line = options.unit == Unit::Line && options.terminator != Terminator::Nul;
        let compile_options = CompileOptions {
            terminator: options.terminator.byte(),
            operations: MOST_OPERATIONS,
            ..CompileOptions::default()
        };
        let engine = by_line.then(|| {
            let patterns = each.iter().map(|regex| set_pattern(regex, true)).collect();
            Arc::new(SetEngine::new(patterns, compile_options))
        });
        Ok(RegexSet { any, each, engine })
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

    /// For each pattern a bitmap with a bit for each line of `text`, set where the pattern matches.
    /// With [`Unit::Text`] the lines are those in which a match of any pattern begins.
    ///
    /// ```
    /// let patterns = ["disk".to_owned(), "full$".to_owned()];
    /// let set = lightfoot_pattern::RegexSet::new(&patterns)?;
    /// let lines = set.line_bitmaps(b"disk hot\n\ndisk full\n");
    /// assert_eq!(lines[0].ones().collect::<Vec<_>>(), [0, 2]);
    /// assert_eq!(lines[1].ones().collect::<Vec<_>>(), [2]);
    /// # Ok::<(), lightfoot_pattern::regex::Error>(())
    /// ```
    pub fn line_bitmaps(&self, text: &[u8]) -> Vec<Bitmap> {
        if let Some(engine) = self.engine.as_ref().filter(|_| text.len() >= SMALL_BYTES) {
            let mut bits = SetBits::new(self.len());
            engine.scan(text, &mut bits);
            return bits.into_bitmaps();
        }
        let terminator = self.any.options().terminator.byte();
        let starts: Vec<usize> = crate::line::each(text, terminator).map(|line| line.start).collect();
        let mut bitmaps = vec![Bitmap::zeros(starts.len()); self.len()];
        let _ = self.matching_lines(text, |line, found| {
            if let Ok(number) = starts.binary_search(&line.start) {
                found.iter().for_each(|&pattern| bitmaps[pattern].set(number, true));
            }
            ControlFlow::Continue(())
        });
        bitmaps
    }

    /// Pushes each line that any pattern matches, with the indices of those that do.
    pub fn matching_lines(
        &self,
        text: &[u8],
        mut push: impl FnMut(Range<usize>, &[usize]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.engine.as_ref().filter(|_| text.len() >= SMALL_BYTES) {
            Some(engine) => engine.matching_lines(text, &mut push),
            None => self.one_by_one(text, &mut push),
        }
    }

    /// The definition: the lines that match any pattern, then each pattern in them.
    fn one_by_one(&self, text: &[u8], push: &mut PushMatches<'_>) -> ControlFlow<()> {
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

    /// How the patterns are shared out among engines, in words.
    pub fn explain(&self) -> String {
        match &self.engine {
            Some(engine) => engine.explain(),
            None => "each pattern by itself, as matches may span lines".to_owned(),
        }
    }
}

/// A pattern for the engines of a set; a program only where `may_have_program`.
pub(crate) fn set_pattern(regex: &Regex, may_have_program: bool) -> SetPattern {
    // Classes of characters behind half a character are decided byte by byte.
    let splits_characters = !regex.hir.properties().is_utf8() && has_long_characters(&regex.hir);
    let has_program = may_have_program && !splits_characters && letters(&regex.hir) <= MOST_LETTERS;
    SetPattern { hir: regex.hir.clone(), automaton: regex.spans().clone(), has_program }
}

impl fmt::Debug for RegexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegexSet").field("patterns", &self.len()).field("engine", &self.explain()).finish()
    }
}
