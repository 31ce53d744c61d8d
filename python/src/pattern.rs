//! The class `Pattern` of the native module: one regular expression over texts and columns.
//!
//! A text is searched line by line, a column row by row. The two differ in what they compile, so
//! that the one for texts is made when the first text comes.

use crate::arrow::{ChunkError, Lent};
use crate::buffer::{Buffer, Words};
use crate::column;
use crate::export::Column;
use crate::guard::released;
use lightfoot_pattern::column::{Column as Rows, ColumnRegex, Occurrences};
use lightfoot_pattern::regex::{Case, Options, RegexBuilder};
use lightfoot_pattern::Regex;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

/// A compiled regular expression.
#[pyclass(frozen, module = "lightfoot._native")]
pub(crate) struct Pattern {
    pattern: String,
    builder: RegexBuilder,
    rows: ColumnRegex,
    text: OnceLock<Result<Regex, String>>,
    /// Whether all matches in UTF-8 are UTF-8.
    is_utf8: bool,
}

/// A builder with the named options on.
fn builder_with(names: &[String]) -> PyResult<RegexBuilder> {
    let mut builder = RegexBuilder::new().with(|options| options.unicode = false);
    for name in names {
        let change: fn(&mut Options) = match name.as_str() {
            "ignore_case" => |options| options.case = Case::Insensitive,
            "unicode" => |options| options.unicode = true,
            "dot_all" => |options| options.dot_matches_new_line = true,
            "multi_line" => |options| options.multi_line = true,
            "verbose" => |options| options.ignore_whitespace = true,
            "literal" => |options| options.fixed_strings = true,
            _ => return Err(PyValueError::new_err(format!("options: there is no option {name:?}"))),
        };
        builder = builder.with(change);
    }
    Ok(builder)
}

/// What a method is asked to search.
enum Subject {
    Text(Buffer),
    Column(Lent),
}

impl Subject {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Subject> {
        if object.is_instance_of::<PyString>() {
            let message = "text: expected bytes, got str; pass text.encode(), as places are counted in bytes";
            return Err(PyTypeError::new_err(message));
        }
        if let Some(lent) = Lent::of(object)? {
            return Ok(Subject::Column(lent));
        }
        let kind = object.get_type().name()?;
        let buffer = Buffer::of("text", object).map_err(|error| {
            if !error.is_instance_of::<PyTypeError>(object.py()) {
                return error;
            }
            PyTypeError::new_err(format!(
                "expected bytes, or a column of pyarrow, polars or another library with Arrow's capsules, got {kind}"
            ))
        })?;
        buffer.bytes()?;
        Ok(Subject::Text(buffer))
    }
}

#[pymethods]
impl Pattern {
    /// Compiles a pattern; `options` are the names of those that are on.
    #[new]
    fn new(py: Python<'_>, pattern: String, options: Vec<String>) -> PyResult<Pattern> {
        let builder = builder_with(&options)?;
        let built = released(py, || {
            let with_utf8 = |utf8| builder.clone().with(|options| options.utf8 = utf8);
            // What can match halves of characters is compiled for any bytes.
            match ColumnRegex::with(&with_utf8(true), &pattern) {
                Ok(rows) => Ok((rows, true)),
                Err(_) => ColumnRegex::with(&with_utf8(false), &pattern).map(|rows| (rows, false)),
            }
        })?;
        let (rows, is_utf8) = built
            .map_err(|error: lightfoot_pattern::regex::Error| PyValueError::new_err(error.to_string()))?;
        Ok(Pattern { pattern, builder, rows, text: OnceLock::new(), is_utf8 })
    }

    /// The number of groups, the match itself not counted.
    #[getter]
    fn groups(&self) -> usize {
        self.rows.groups().saturating_sub(1)
    }

    /// The number of a named group.
    fn group_index(&self, name: &str) -> PyResult<usize> {
        let missing = || PyIndexError::new_err(format!("group: the pattern has no group named {name:?}"));
        self.rows.group_index(name).ok_or_else(missing)
    }

    /// How texts and columns are searched.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        let text = released(py, || self.text().map(|regex| regex.explain()))?;
        let text = text.unwrap_or_else(|error| format!("refused for texts: {error}"));
        let rows = released(py, || self.rows.engine())?;
        Ok(format!("texts: {}\ncolumns: {rows}", text.trim_end()))
    }

    /// Whether a text matches, or which rows of a column do.
    fn contains(&self, py: Python<'_>, subject: &Bound<'_, PyAny>) -> PyResult<Found> {
        Ok(match Subject::of(subject)? {
            Subject::Text(text) => {
                Found::Whether(self.on_text(py, &text, |regex, text| regex.is_match(text))?)
            }
            Subject::Column(lent) => Found::Rows(released(py, || column::contains(&self.rows, &lent))??),
        })
    }

    /// The number of matches in a text, or in each row of a column.
    fn count(&self, py: Python<'_>, subject: &Bound<'_, PyAny>) -> PyResult<Found> {
        Ok(match Subject::of(subject)? {
            Subject::Text(text) => {
                Found::Number(self.on_text(py, &text, |regex, text| regex.find_iter(text).count())?)
            }
            Subject::Column(lent) => Found::Rows(released(py, || column::count(&self.rows, &lent))??),
        })
    }

    /// The number of lines of a text, or of rows of a column, that match.
    fn count_matching(&self, py: Python<'_>, subject: &Bound<'_, PyAny>) -> PyResult<usize> {
        Ok(match Subject::of(subject)? {
            Subject::Text(text) => self.on_text(py, &text, |regex, text| regex.count_lines(text))? as usize,
            Subject::Column(lent) => released(py, || column::count_rows(&self.rows, &lent))??,
        })
    }

    /// The span of the first match in a text, or where the first match of each row starts.
    fn find(&self, py: Python<'_>, subject: &Bound<'_, PyAny>) -> PyResult<Found> {
        Ok(match Subject::of(subject)? {
            Subject::Text(text) => {
                let first = self.on_text(py, &text, |regex, text| regex.find_iter(text).next())?;
                Found::Span(first.map(|span| (span.start, span.end)))
            }
            Subject::Column(lent) => Found::Rows(released(py, || column::find(&self.rows, &lent))??),
        })
    }

    /// Beginning and end of all matches in a text, or of all lines that match, one after the other.
    fn spans(&self, py: Python<'_>, subject: &Bound<'_, PyAny>, of: &str) -> PyResult<Words> {
        let Subject::Text(text) = Subject::of(subject)? else {
            return Err(PyTypeError::new_err(
                "expected a text, got a column; find() has the place in each row",
            ));
        };
        let of_lines = of == "lines";
        let words = self.on_text(py, &text, |regex, text| {
            let mut words = Vec::new();
            let mut push = |span: Range<usize>| words.extend([span.start as i64, span.end as i64]);
            match of_lines {
                false => regex.find_iter(text).for_each(&mut push),
                true => {
                    let _ = regex.matching_lines(text, |line| {
                        push(line);
                        ControlFlow::Continue(())
                    });
                }
            }
            words
        })?;
        Ok(Words::new(words))
    }

    /// What a group holds in the first match of each line that matches, or of each row of a column.
    fn extract(&self, py: Python<'_>, subject: &Bound<'_, PyAny>, group: usize) -> PyResult<Column> {
        if group >= self.rows.groups() {
            let message = format!("group: the pattern has groups 0 to {}, got {group}", self.groups());
            return Err(PyIndexError::new_err(message));
        }
        Ok(match Subject::of(subject)? {
            Subject::Text(text) => {
                self.on_text(py, &text, |regex, text| self.extract_from_lines(regex, text, group))??
            }
            Subject::Column(lent) => {
                let is_text = lent.kind.is_text && self.is_utf8;
                released(py, || column::extract(&self.rows, group, &lent, is_text))??
            }
        })
    }

    /// The rows of a column with matches replaced.
    fn replace(
        &self,
        py: Python<'_>,
        subject: &Bound<'_, PyAny>,
        replacement: &[u8],
        first_only: bool,
    ) -> PyResult<Column> {
        let Subject::Column(lent) = Subject::of(subject)? else {
            return Err(PyTypeError::new_err("expected a column, got a text; columns alone are replaced in"));
        };
        let is_text = lent.kind.is_text && self.is_utf8 && std::str::from_utf8(replacement).is_ok();
        let occurrences = if first_only { Occurrences::First } else { Occurrences::All };
        Ok(released(py, || column::replace(&self.rows, replacement, occurrences, &lent, is_text))??)
    }
}

/// What a method answers: one answer for a text, a column for a column.
#[derive(IntoPyObject)]
enum Found {
    Whether(bool),
    Number(usize),
    Span(Option<(usize, usize)>),
    Rows(Column),
}

impl Pattern {
    fn text(&self) -> Result<&Regex, &str> {
        let build = || self.builder.build(&self.pattern).map_err(|error| error.to_string());
        self.text.get_or_init(build).as_ref().map_err(String::as_str)
    }

    /// Calls `work` with the expression for texts, while other Python threads run.
    fn on_text<T: Send>(
        &self,
        py: Python<'_>,
        text: &Buffer,
        work: impl FnOnce(&Regex, &[u8]) -> T + Send,
    ) -> PyResult<T> {
        let bytes = text.bytes()?;
        let found = released(py, || self.text().map(|regex| work(regex, bytes)))?;
        found.map_err(|error| PyValueError::new_err(error.to_owned()))
    }

    /// Lines that match become the rows of a column, from which the group is taken.
    fn extract_from_lines(&self, regex: &Regex, text: &[u8], group: usize) -> Result<Column, ChunkError> {
        let (mut values, mut offsets) = (Vec::new(), vec![0i64]);
        let _ = regex.matching_lines(text, |line| {
            let bytes = &text[line];
            values.extend_from_slice(bytes.strip_suffix(b"\n").unwrap_or(bytes));
            offsets.push(values.len() as i64);
            ControlFlow::Continue(())
        });
        let found = Rows::with_large_offsets(&values, &offsets)
            .and_then(|rows| self.rows.extract(&rows, group))
            .map_err(ChunkError::Column)?;
        column::binaries(found)
    }
}
