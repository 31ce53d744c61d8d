//! Regular expressions over columns of strings in Polars at the speed of memory.
//!
//! A [`Pattern`] searches a [`StringChunked`], chunk by chunk, where its strings lie: whether a row
//! matches, how often, what a group holds, and rows with matches replaced. Results are those of
//! `contains`, `count_matches`, `extract`, `replace` and `replace_all` of Polars' own namespace
//! `str`; null rows stay null.
//!
//! ```
//! use lightfoot_polars::Pattern;
//! use polars_core::prelude::*;
//!
//! let urls = Series::new("url".into(), [Some("/a?id=17"), None, Some("/b")]);
//! let pattern = Pattern::new("id=([0-9]+)")?;
//! let ids = pattern.extract(urls.str()?, 1)?;
//! assert_eq!(ids.iter().collect::<Vec<_>>(), [Some("17"), None, None]);
//! assert_eq!(pattern.is_match(urls.str()?)?.iter().collect::<Vec<_>>(), [Some(true), None, Some(false)]);
//! # Ok::<(), PolarsError>(())
//! ```
//!
//! In lazy queries `Expr::map` takes a pattern's function ([`Pattern::match_function`] and others).
//! A [`SortedIndex`] is `search_sorted` for many look-ups in a sorted column.
//!
//! A pattern that the engine refuses is searched by Polars' own functions, which answer or say what
//! is wrong with it. Results share the memory of what was searched.
//!
//! **Leaves out** patterns that differ by row, and categories, whose strings are searched once as a
//! column.

mod chunks;
mod expression;
mod sorted;

pub use lightfoot_pattern::column::Occurrences;
pub use polars_core::chunked_array::ops::search_sorted::SearchSortedSide;
pub use sorted::SortedIndex;

use chunks::{booleans, merged, with_column, Parts};
use lightfoot_pattern::column::ColumnRegex;
use polars_arrow::array::{Array, PrimitiveArray};
use polars_core::prelude::{
    polars_bail, polars_err, BooleanChunked, ChunkFullNull, NewChunkedArray, PolarsResult, StringChunked,
    UInt32Chunked,
};
use polars_ops::chunked_array::StringNameSpaceImpl;

/// A regular expression for columns of strings, by `regex-syntax`: compiled once, for any number of
/// columns and threads.
#[derive(Clone, Debug)]
pub struct Pattern {
    pattern: String,
    /// `None` for a pattern that is left to Polars.
    rows: Option<ColumnRegex>,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The `regex` crate, which Polars searches with, refuses it as well.
    pub fn new(pattern: &str) -> PolarsResult<Pattern> {
        let rows = ColumnRegex::for_strings(pattern);
        if rows.is_none() {
            // Polars says what is wrong, or takes it.
            StringChunked::full_null("".into(), 0).contains(pattern, true)?;
        }
        Ok(Pattern { pattern: pattern.to_owned(), rows })
    }

    /// Whether each row matches: `str.contains(pattern)`.
    ///
    /// # Errors
    /// A chunk is not what Arrow's format says.
    pub fn is_match(&self, strings: &StringChunked) -> PolarsResult<BooleanChunked> {
        let Some(rows) = &self.rows else { return strings.contains(&self.pattern, true) };
        let chunks = strings.downcast_iter().map(|chunk| {
            let found = with_column(chunk, |column| rows.scan(column))?;
            Ok(booleans(&found, chunk.validity()))
        });
        let chunks: Vec<_> = chunks.collect::<PolarsResult<_>>()?;
        Ok(BooleanChunked::from_chunk_iter(strings.name().clone(), chunks))
    }

    /// The number of matches in each row, none overlapping: `str.count_matches(pattern)`.
    ///
    /// # Errors
    /// A chunk is not what Arrow's format says.
    pub fn count_matches(&self, strings: &StringChunked) -> PolarsResult<UInt32Chunked> {
        let Some(rows) = &self.rows else { return strings.count_matches(&self.pattern, false) };
        let chunks = strings.downcast_iter().map(|chunk| {
            let counts = with_column(chunk, |column| rows.match_counts(column))?;
            Ok(PrimitiveArray::from_vec(counts).with_validity(chunk.validity().cloned()))
        });
        let chunks: Vec<_> = chunks.collect::<PolarsResult<_>>()?;
        Ok(UInt32Chunked::from_chunk_iter(strings.name().clone(), chunks))
    }

    /// What a group holds in the first match of each row, or null: `str.extract(pattern, group)`.
    ///
    /// # Errors
    /// There is no such group: Polars would answer nulls, for a number that is probably a mistake.
    pub fn extract(&self, column: &StringChunked, group: usize) -> PolarsResult<StringChunked> {
        let Some(rows) = &self.rows else {
            let pattern = StringChunked::from_slice("".into(), &[self.pattern.as_str()]);
            return column.extract(&pattern, group);
        };
        if group >= rows.groups() {
            polars_bail!(ComputeError: "there is no group {group}; the pattern has groups 0 to {}", rows.groups() - 1);
        }
        let chunks = column.downcast_iter().map(|chunk| {
            let mut parts = Parts::of(chunk);
            let set = |row, part| parts.set(row, part);
            let found = with_column(chunk, |column| rows.each_group(column, group, set))?;
            found.map_err(|error| polars_err!(ComputeError: "{error}"))?;
            parts.finish()
        });
        let chunks: Vec<_> = chunks.collect::<PolarsResult<_>>()?;
        Ok(StringChunked::from_chunk_iter(column.name().clone(), chunks))
    }

    /// Rows with their first match or all matches replaced: `str.replace(pattern, by)` and
    /// `str.replace_all(pattern, by)`. In the replacement `$1` and `${name}` stand for groups.
    ///
    /// # Errors
    /// A chunk is not what Arrow's format says.
    pub fn replace(
        &self,
        column: &StringChunked,
        by: &str,
        occurrences: Occurrences,
    ) -> PolarsResult<StringChunked> {
        let Some(rows) = &self.rows else {
            return match occurrences {
                Occurrences::First => column.replace(&self.pattern, by),
                Occurrences::All => column.replace_all(&self.pattern, by),
            };
        };
        let chunks = column.downcast_iter().map(|chunk| {
            let replaced =
                with_column(chunk, |column| rows.replace_matching(column, by.as_bytes(), occurrences))?;
            merged(chunk, replaced)
        });
        let chunks: Vec<_> = chunks.collect::<PolarsResult<_>>()?;
        Ok(StringChunked::from_chunk_iter(column.name().clone(), chunks))
    }
}
