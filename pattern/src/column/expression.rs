//! An expression for columns: which rows match, and what follows from their matches.
//!
//! Rows are searched side by side in blocks by a bit-stream program ([`super::gather`]), or where
//! values lie one behind the other by a string that every match holds. Rows that those cannot
//! decide are searched one by one with the automaton, whose answers are the definition.

use super::anchored::AnchoredGroups;
use super::behind_string::StringGroups;
use super::gather::{Gatherer, BLOCK_BYTES};
use super::in_place;
use super::program::RowProgram;
use super::rows::{Column, Layout, Offset};
use super::string::RowString;
use crate::bits::{BitKernel, BitWriter, Bitmap};
use crate::regex::{Error, Regex, RegexBuilder, Unit};
use crate::transpose::CHUNK_BYTES;
use regex_automata::Input;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

/// Columns of fewer bytes are searched row by row: setting up streams costs more.
const STREAM_BYTES: usize = 4 << 10;

/// An expression that is searched for in the rows of columns.
///
/// A row matches exactly if the bytes API of the `regex` crate finds a match in it: each row is a
/// haystack by itself, `^` and `$` are its two ends, and it may hold line feeds, NUL and what is
/// not UTF-8. Rows may be searched by several threads at once; a clone is cheap and does not share
/// scratch memory.
///
/// ```
/// use lightfoot_pattern::column::{Column, ColumnRegex};
/// let column = Column::new(b"GET /POST /aGET /b\n", &[0, 5, 12, 19])?;
/// let regex = ColumnRegex::new(r"^GET /\w")?;
/// assert_eq!(regex.scan(&column).ones().collect::<Vec<_>>(), [2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ColumnRegex {
    pub(super) regex: Regex,
    /// A string that every match holds, where looking for it is worth it.
    string: Option<Arc<RowString>>,
    /// Programs for rows where they lie, and for copies of rows.
    in_place: Arc<OnceLock<Option<RowProgram>>>,
    program: Arc<OnceLock<Option<RowProgram>>>,
    anchored_groups: Arc<OnceLock<Option<AnchoredGroups>>>,
    string_groups: Arc<OnceLock<Option<StringGroups>>>,
}

impl ColumnRegex {
    /// Compiles a pattern with the default options of [`RegexBuilder`].
    ///
    /// # Errors
    /// The pattern does not parse or is too large.
    pub fn new(pattern: &str) -> Result<ColumnRegex, Error> {
        ColumnRegex::with(&RegexBuilder::new(), pattern)
    }

    /// Compiles a pattern with a builder's options, of which [`Unit`] is that of a whole text:
    /// a row.
    ///
    /// ```
    /// use lightfoot_pattern::column::{Column, ColumnRegex};
    /// use lightfoot_pattern::regex::{Case, RegexBuilder};
    /// let builder = RegexBuilder::new().with(|options| options.case = Case::Insensitive);
    /// let column = Column::new(b"errorWARN", &[0, 5, 9])?;
    /// assert_eq!(ColumnRegex::with(&builder, "warn")?.count(&column), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The pattern does not parse or is too large.
    pub fn with(builder: &RegexBuilder, pattern: &str) -> Result<ColumnRegex, Error> {
        let builder = builder.clone().with(|options| options.unit = Unit::Text);
        let regex = builder.build(pattern)?;
        let string = RowString::new(regex.hir()).map(Arc::new);
        let (in_place, program, anchored_groups, string_groups) = Default::default();
        Ok(ColumnRegex { regex, string, in_place, program, anchored_groups, string_groups })
    }

    /// An expression that gives each row of UTF-8 the answer of the `regex` crate's API of strings,
    /// within that crate's limit of size; `None` for a pattern that it or this crate refuses.
    ///
    /// ```
    /// use lightfoot_pattern::column::{Column, ColumnRegex};
    /// let column = Column::new("é".as_bytes(), &[0, 2])?;
    /// let counts = |regex: &ColumnRegex| regex.match_counts(&column);
    /// // An empty match stands before and behind a character, and not between its bytes.
    /// assert_eq!(ColumnRegex::for_strings("").map(|regex| counts(&regex)), Some(vec![2]));
    /// assert_eq!(counts(&ColumnRegex::new("")?), [3]);
    /// assert!(ColumnRegex::for_strings(r"(?-u:\xff)").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_strings(pattern: &str) -> Option<ColumnRegex> {
        const SIZE_LIMIT_BYTES: usize = 10 << 20;
        // That crate refuses what may match bytes that are no UTF-8.
        let parsed = regex_syntax::ParserBuilder::new().utf8(true).build().parse(pattern).ok()?;
        let builder = RegexBuilder::new().with(|options| {
            // Only empty matches may stand between the bytes of a character. The engine that looks
            // out for them is slower.
            options.utf8 = parsed.properties().minimum_len() == Some(0);
            options.size_limit = SIZE_LIMIT_BYTES;
        });
        ColumnRegex::with(&builder, pattern).ok()
    }

    /// The rows that match. Cost: one pass over the bytes of the rows, whatever they hold, where
    /// the expression has a program.
    pub fn scan(&self, column: &Column<'_>) -> Bitmap {
        if column.total_bytes() < STREAM_BYTES {
            return self.scan_row_by_row(column);
        }
        let mut rows = Bitmap::zeros(column.len());
        let confirm = |bytes: &[u8]| self.matches(bytes);
        let searched = match (&self.string, column.layout) {
            (Some(string), Layout::Offsets(values, offsets)) => {
                string.run(values, offsets, &confirm, &mut rows)
            }
            (Some(string), Layout::LargeOffsets(values, offsets)) => {
                string.run(values, offsets, &confirm, &mut rows)
            }
            (Some(string), Layout::Views(views, buffers)) => {
                string.run_views(views, buffers, &confirm, &mut rows)
            }
            (None, _) => 0,
        };
        match searched {
            0 => rows = self.scan_streams(column),
            _ if searched < column.len() => {
                // The string is dense: streams go on with the other rows.
                let rest = self.scan_streams(&column.rows_behind(searched));
                rest.ones().for_each(|row| rows.set(searched + row, true));
            }
            _ => {}
        }
        if let Some(valid) = &column.valid {
            rows.keep_only(valid);
        }
        rows
    }

    /// The rows that match, null rows as they are in memory: by a program, where there is one.
    fn scan_streams(&self, column: &Column<'_>) -> Bitmap {
        match column.layout {
            Layout::Offsets(values, offsets) => self.scan_in_place(column, values, offsets),
            Layout::LargeOffsets(values, offsets) => self.scan_in_place(column, values, offsets),
            Layout::Views(..) => self.scan_blocks(column),
        }
    }

    fn scan_in_place<O: Offset>(&self, column: &Column<'_>, values: &[u8], offsets: &[O]) -> Bitmap {
        let compile = || RowProgram::in_place(self.regex.hir(), self.regex.options());
        match self.in_place.get_or_init(compile) {
            Some(program) => {
                let rows = in_place::run(program, values, offsets, self.matches(b""));
                self.confirmed(program, column, rows)
            }
            None => self.scan_row_by_row(column),
        }
    }

    /// The rows that match, by copies of them side by side.
    fn scan_blocks(&self, column: &Column<'_>) -> Bitmap {
        let Some(program) = self.program() else { return self.scan_row_by_row(column) };
        let (mut rows, odd) = run(program, column);
        odd.into_iter().for_each(|row| rows.set(row, self.matches(column.bytes(row))));
        self.confirmed(program, column, rows)
    }

    /// The rows that a program marks, without those that it marks besides.
    fn confirmed(&self, program: &RowProgram, column: &Column<'_>, mut rows: Bitmap) -> Bitmap {
        if !program.is_exact {
            let others: Vec<usize> = rows.ones().filter(|&row| !self.matches(column.bytes(row))).collect();
            others.into_iter().for_each(|row| rows.set(row, false));
        }
        rows
    }

    /// The number of rows that match.
    pub fn count(&self, column: &Column<'_>) -> usize {
        self.scan(column).count_ones()
    }

    /// What finds matching rows: `string`, where a string that every match holds is looked for in
    /// values that lie one behind the other; else `streams`, or `automaton` where the expression
    /// has no program. Compiles the program.
    pub fn engine(&self) -> &'static str {
        match (&self.string, self.program()) {
            (Some(_), _) => "string",
            (None, Some(_)) => "streams",
            (None, None) => "automaton",
        }
    }

    fn program(&self) -> Option<&RowProgram> {
        let compile = || RowProgram::with_separators(self.regex.hir(), self.regex.options());
        self.program.get_or_init(compile).as_ref()
    }

    /// What finds groups where matches begin at the beginnings of rows.
    pub(super) fn anchored_groups(&self) -> Option<&AnchoredGroups> {
        let groups = || AnchoredGroups::new(self.regex.hir()).filter(|_| self.ends_lines_usually());
        self.anchored_groups.get_or_init(groups).as_ref()
    }

    /// What finds groups where matches begin with a string.
    pub(super) fn string_groups(&self) -> Option<&StringGroups> {
        let groups = || StringGroups::new(self.regex.hir()).filter(|_| self.ends_lines_usually());
        self.string_groups.get_or_init(groups).as_ref()
    }

    /// Whether `(?m)$` is in front of a line feed, as one-pass automata have it.
    fn ends_lines_usually(&self) -> bool {
        self.regex.options().text_line_end == b'\n'
    }

    /// The definition: each row by itself.
    fn scan_row_by_row(&self, column: &Column<'_>) -> Bitmap {
        let mut rows = Bitmap::zeros(column.len());
        for row in 0..column.len() {
            if column.row(row).is_some_and(|bytes| self.matches(bytes)) {
                rows.set(row, true);
            }
        }
        rows
    }

    /// Whether a row of these bytes matches.
    pub(super) fn matches(&self, bytes: &[u8]) -> bool {
        // Where the earliest end of a match is asked for, the fastest engine for Unicode's `\b` is
        // left out: hence not `is_match`.
        self.regex.spans().search_half(&Input::new(bytes)).is_some()
    }
}

/// Runs a program over all rows: those that it marks, and those that it could not see.
fn run(program: &RowProgram, column: &Column<'_>) -> (Bitmap, Vec<usize>) {
    let bits = BitKernel::detect();
    let mut gatherer = Gatherer::new(column);
    let mut marked = BitWriter::with_room_for(column.len());
    let mut scan = program.scanner.scan_for(column.total_bytes());
    loop {
        let block = gatherer.next();
        let mut visit = |offset: usize, found: &[u64]| {
            let ends = &block.ends[offset / 64..];
            let words = found.len().min(ends.len());
            (bits.append)(&found[..words], &ends[..words], &mut marked);
            ControlFlow::Continue(())
        };
        if block.is_last {
            let _ = scan.finish(block.text, &mut visit);
            break;
        }
        let _ = scan.feed(block.text, &mut visit);
    }
    (Bitmap::from_words(marked.finish(), column.len()), gatherer.odd)
}

const _: () = assert!(BLOCK_BYTES.is_multiple_of(CHUNK_BYTES));

impl fmt::Debug for ColumnRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnRegex").field("options", &self.regex.options()).finish()
    }
}
