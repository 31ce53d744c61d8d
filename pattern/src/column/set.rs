//! Sets of patterns over columns: which rows match each pattern, in one pass.
//!
//! Rows are copied to windows of a quarter megabyte with a separator behind each, and a window is
//! searched as lines are ([`crate::set`]). Rows that hold the separator are decided one by one.

use super::expression::ColumnRegex;
use super::gather::{REPLACEMENT, SEPARATOR};
use super::program::{compile_options, has_program};
use super::rows::Column;
use crate::bits::Bitmap;
use crate::regex::{set_pattern, Error, RegexBuilder};
use crate::set::{SetBits, SetEngine, WINDOW_BYTES};
use std::fmt;
use std::sync::Arc;

/// A set of patterns that is searched for in the rows of columns.
///
/// Each pattern matches the rows that a [`ColumnRegex`] of it matches. Which pattern is found how
/// is decided by a sample of the first column; this changes speed only. Clones share the decision.
///
/// ```
/// use lightfoot_pattern::column::{Column, ColumnRegexSet};
/// let column = Column::new(b"cpu hotdisk full", &[0, 7, 16])?;
/// let set = ColumnRegexSet::new(&["disk", "^cpu", "l+$"])?;
/// let rows: Vec<Vec<usize>> = set.scan(&column).iter().map(|rows| rows.ones().collect()).collect();
/// assert_eq!(rows, [vec![1], vec![0], vec![1]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ColumnRegexSet {
    each: Vec<ColumnRegex>,
    /// Absent where there is no pattern.
    engine: Option<Arc<SetEngine>>,
}

impl ColumnRegexSet {
    /// Compiles the patterns with the default options of [`RegexBuilder`].
    ///
    /// # Errors
    /// The first pattern that does not parse or is too large.
    pub fn new<P: AsRef<str>>(patterns: &[P]) -> Result<ColumnRegexSet, Error> {
        ColumnRegexSet::with(&RegexBuilder::new(), patterns)
    }

    /// Compiles the patterns with a builder's options, of which the unit is that of a whole text: a
    /// row.
    ///
    /// # Errors
    /// The first pattern that does not parse or is too large.
    pub fn with<P: AsRef<str>>(builder: &RegexBuilder, patterns: &[P]) -> Result<ColumnRegexSet, Error> {
        let compiled = patterns.iter().map(|pattern| ColumnRegex::with(builder, pattern.as_ref()));
        let each = compiled.collect::<Result<Vec<_>, _>>()?;
        let engine = each.first().map(|first| {
            let pattern = |one: &ColumnRegex| {
                set_pattern(&one.regex, has_program(one.regex.hir(), one.regex.options()))
            };
            let options = compile_options(first.regex.options());
            Arc::new(SetEngine::new(each.iter().map(pattern).collect(), options))
        });
        Ok(ColumnRegexSet { each, engine })
    }

    /// The number of patterns.
    pub fn len(&self) -> usize {
        self.each.len()
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// For each pattern the rows that match.
    pub fn scan(&self, column: &Column<'_>) -> Vec<Bitmap> {
        let Some(engine) = &self.engine else { return Vec::new() };
        let mut bits = SetBits::new(self.len());
        let mut odd = Vec::new();
        let mut window = Vec::with_capacity(WINDOW_BYTES.min(column.total_bytes() + column.len()));
        for row in 0..column.len() {
            let bytes = column.row(row).unwrap_or(&[]);
            let start = window.len();
            window.extend_from_slice(bytes);
            if memchr::memchr(SEPARATOR, bytes).is_some() {
                odd.push(row);
                let copy = window[start..].iter_mut().filter(|byte| **byte == SEPARATOR);
                copy.for_each(|byte| *byte = REPLACEMENT);
            }
            window.push(SEPARATOR);
            if window.len() >= WINDOW_BYTES {
                engine.scan(&window, &mut bits);
                window.clear();
            }
        }
        engine.scan(&window, &mut bits);
        let mut bitmaps = bits.into_bitmaps();
        for (bitmap, regex) in bitmaps.iter_mut().zip(&self.each) {
            odd.iter().for_each(|&row| bitmap.set(row, regex.matches(column.bytes(row))));
            if let Some(valid) = &column.valid {
                bitmap.keep_only(valid);
            }
        }
        bitmaps
    }

    /// How the patterns are shared out among engines, in words.
    pub fn explain(&self) -> String {
        self.engine.as_ref().map_or_else(|| "no pattern".to_owned(), |engine| engine.explain())
    }
}

impl fmt::Debug for ColumnRegexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ColumnRegexSet");
        shown.field("patterns", &self.len()).field("engine", &self.explain()).finish()
    }
}
