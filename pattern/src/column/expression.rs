//! An expression for columns: which rows match, and what follows from their matches.
//!
//! Rows are searched side by side in blocks by a bit-stream program ([`super::gather`]), or where
//! values lie one behind the other by a string that every match holds. Rows that those cannot
//! decide are searched one by one with the automaton, whose answers are the definition.

use super::anchored::AnchoredGroups;
use super::behind_string::StringGroups;
use super::gather::{Gatherer, BLOCK_BYTES};
use super::in_place;
use super::in_views::Strings;
use super::program::{counts_characters, Marks, RowEnd, RowProgram};
use super::rows::{Column, Layout};
use super::string::RowString;
use crate::bits::{BitKernel, BitWriter, Bitmap};
use crate::kernel::ascii::is_ascii;
use crate::regex::{Error, Regex, RegexBuilder, Unit};
use crate::transpose::CHUNK_BYTES;
use regex_automata::Input;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
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
    in_place: Arc<Programs>,
    copied: Arc<Programs>,
    anchored_groups: Arc<OnceLock<Option<AnchoredGroups>>>,
    string_groups: Arc<OnceLock<Option<StringGroups>>>,
}

/// The programs for one way of rows to end, compiled when they are first needed.
#[derive(Debug, Default)]
struct Programs {
    any: OnceLock<Option<RowProgram>>,
    near: OnceLock<Option<RowProgram>>,
    /// Columns whose candidates are still taken to be many.
    dense_columns: AtomicU32,
}

/// Candidates of a column that are decided one by one, whatever its length, and the part of rows
/// that may be: deciding a row costs what the program for any row costs for some.
const SLACK_CANDIDATES: usize = 16;
const CANDIDATES_PART: usize = 16;

/// This many columns after one with many candidates get the program for any row at once.
const DENSE_COLUMNS: u32 = 31;

/// Rows of views that are copied before strings are looked at for lying together again.
const COPIED_ROWS: usize = 4 << 10;

/// Bytes at the beginning and in the middle of a column that are looked at for other characters
/// than ASCII.
const SAMPLE_BYTES: usize = 8 << 10;

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
        let (in_place, copied, anchored_groups, string_groups) = Default::default();
        Ok(ColumnRegex { regex, string, in_place, copied, anchored_groups, string_groups })
    }

    /// An expression that gives each row of UTF-8 the answer of the `regex` crate's API of strings,
    /// within that crate's limit of size; `None` for a pattern that it or this crate refuses.
    /// Matches and groups begin and end between characters of such a row, so that what is
    /// extracted, and what is replaced by UTF-8, is UTF-8.
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
        if !column.has_bytes(STREAM_BYTES) {
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
            Layout::Views(views, buffers) => self.scan_views(views, buffers),
            Layout::Offsets(..) | Layout::LargeOffsets(..) => self.scan_programs(column),
        }
    }

    /// The rows of views that match: where their strings lie, as long as they lie together.
    fn scan_views(&self, views: &[[u8; 16]], buffers: &[&[u8]]) -> Bitmap {
        let copied = |views: &[[u8; 16]]| self.scan_programs(&Column::of_views(views, buffers));
        let mut strings = Strings::default();
        let mut marked = BitWriter::with_room_for(views.len());
        let mut left = views;
        while !left.is_empty() {
            let mut rows = strings.fill(left);
            if strings.are_worth_it() {
                let long = self.scan_programs(&Column::of_offsets(buffers[strings.buffer], &strings.offsets));
                let inline = match strings.inline.is_empty() {
                    true => Bitmap::zeros(0),
                    false => copied(&strings.inline),
                };
                strings.join(&long, &inline, &mut marked);
            } else {
                rows = left.len().min(COPIED_ROWS);
                let found = copied(&left[..rows]);
                marked.push_rows(found.words(), rows);
            }
            left = &left[rows..];
        }
        Bitmap::from_words(marked.finish(), views.len())
    }

    /// The rows that match, each layout by its programs.
    fn scan_programs(&self, column: &Column<'_>) -> Bitmap {
        let (programs, end) = match column.layout {
            Layout::Offsets(..) | Layout::LargeOffsets(..) => (&self.in_place, RowEnd::Marked),
            Layout::Views(..) => (&self.copied, RowEnd::Separator),
        };
        if let Some(rows) = self.scan_near(programs, end, column) {
            return rows;
        }
        let Some(program) = self.program(programs, end) else { return self.scan_row_by_row(column) };
        let (rows, odd) = self.marked(program, column);
        let most = usize::MAX;
        self.confirmed(program, column, rows, odd, most).expect("any number of rows is decided")
    }

    /// The rows that match, by the program of bytes: `None` where there is none, where it gains
    /// nothing on a column of ASCII, and where too many rows would have to be decided one by one.
    fn scan_near(&self, programs: &Programs, end: RowEnd, column: &Column<'_>) -> Option<Bitmap> {
        if matches!(programs.near.get(), Some(None)) {
            return None;
        }
        // Several threads may count one column twice or not at all: that changes speed only.
        let dense = &programs.dense_columns;
        if dense.fetch_update(Relaxed, Relaxed, |columns| columns.checked_sub(1)).is_ok() {
            return None;
        }
        if !counts_characters(self.regex.hir()) && seems_ascii(column) {
            return None;
        }
        let compile = || RowProgram::near(self.regex.hir(), self.regex.options(), end);
        let program = programs.near.get_or_init(compile).as_ref()?;
        let (rows, odd) = self.marked(program, column);
        let most = SLACK_CANDIDATES + column.len() / CANDIDATES_PART;
        let rows = self.confirmed(program, column, rows, odd, most);
        if rows.is_none() {
            dense.store(DENSE_COLUMNS, Relaxed);
        }
        rows
    }

    /// The rows that a program marks, and those that it could not see or says nothing about.
    fn marked(&self, program: &RowProgram, column: &Column<'_>) -> (Bitmap, Vec<usize>) {
        let mut others = Vec::new();
        let noted = (program.marks == Marks::OnlyOnAscii).then_some(&mut others);
        let (rows, mut odd) = match column.layout {
            Layout::Offsets(values, offsets) => {
                (in_place::run(program, values, offsets, self.matches(b""), noted), Vec::new())
            }
            Layout::LargeOffsets(values, offsets) => {
                (in_place::run(program, values, offsets, self.matches(b""), noted), Vec::new())
            }
            Layout::Views(..) => run(program, column, noted),
        };
        odd.extend(others.into_iter().flatten().filter(|&row| !is_ascii(column.bytes(row))));
        (rows, odd)
    }

    /// The rows that a program marks, without those that it marks besides; `None` where more than
    /// `most` rows would have to be decided.
    fn confirmed(
        &self,
        program: &RowProgram,
        column: &Column<'_>,
        mut rows: Bitmap,
        odd: Vec<usize>,
        most: usize,
    ) -> Option<Bitmap> {
        if program.marks == Marks::OnlyOnAscii && odd.len() > most {
            return None;
        }
        odd.into_iter().for_each(|row| rows.set(row, self.matches(column.bytes(row))));
        if matches!(program.marks, Marks::Exact | Marks::OnlyOnAscii) {
            return Some(rows);
        }
        let (mut others, mut decided) = (Vec::new(), 0);
        for row in rows.ones() {
            let bytes = column.bytes(row);
            if program.marks == Marks::ExactOnAscii && is_ascii(bytes) {
                continue;
            }
            decided += 1;
            if decided > most {
                return None;
            }
            if !self.matches(bytes) {
                others.push(row);
            }
        }
        others.into_iter().for_each(|row| rows.set(row, false));
        Some(rows)
    }

    /// The number of rows that match.
    pub fn count(&self, column: &Column<'_>) -> usize {
        self.scan(column).count_ones()
    }

    /// What finds matching rows: `string`, where a string that every match holds is looked for in
    /// values that lie one behind the other; else `streams`, or `automaton` where the expression
    /// has no program. Compiles the program.
    pub fn engine(&self) -> &'static str {
        match (&self.string, self.program(&self.copied, RowEnd::Separator)) {
            (Some(_), _) => "string",
            (None, Some(_)) => "streams",
            (None, None) => "automaton",
        }
    }

    /// The program for any rows.
    fn program<'p>(&self, programs: &'p Programs, end: RowEnd) -> Option<&'p RowProgram> {
        let compile = || RowProgram::any(self.regex.hir(), self.regex.options(), end);
        programs.any.get_or_init(compile).as_ref()
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

/// Whether samples of a column's bytes are ASCII.
fn seems_ascii(column: &Column<'_>) -> bool {
    let rows = column.len();
    for first in [0, rows / 2] {
        let mut left = SAMPLE_BYTES;
        for row in first..rows {
            let bytes = column.bytes(row);
            if !is_ascii(bytes) {
                return false;
            }
            left = left.saturating_sub(bytes.len() + 1);
            if left == 0 {
                break;
            }
        }
    }
    true
}

/// Runs a program over copies of all rows: those that it marks, and those that it could not see.
/// Rows in blocks that hold characters beyond ASCII are noted in `others`, where that is wanted.
fn run(
    program: &RowProgram,
    column: &Column<'_>,
    mut others: Option<&mut Vec<Range<usize>>>,
) -> (Bitmap, Vec<usize>) {
    let bits = BitKernel::detect();
    let mut gatherer = Gatherer::new(column);
    let mut marked = BitWriter::with_room_for(column.len());
    let mut scan = program.scanner.scan_for(column.total_bytes());
    loop {
        let block = gatherer.next();
        if let Some(others) = others.as_deref_mut().filter(|_| !is_ascii(block.text)) {
            in_place::note(others, block.rows.clone());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with characters of one to four bytes, and bytes that are none.
    fn rows(count: usize) -> Vec<Vec<u8>> {
        let pieces: [&[u8]; 14] = [
            b"10.0.",
            b"7.12",
            b" sing",
            "ing\u{e9}".as_bytes(),
            "новость".as_bytes(),
            b"deadbeef-00aa",
            b"ERROR",
            "漢字".as_bytes(),
            b"_",
            b"\xd0",
            "\u{1f600}".as_bytes(),
            b"\n",
            b"x",
            b"",
        ];
        let mut seed = 22u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let row = |_| (0..random(9)).flat_map(|_| pieces[random(pieces.len())].to_vec()).collect();
        (0..count).map(row).collect()
    }

    /// The program of bytes and the look at other rows decide what the `regex` crate does, for rows
    /// where they lie and for copies.
    #[test]
    fn rows_with_other_characters_are_decided_one_by_one() {
        let rows = rows(3000);
        let offsets: Vec<i32> = std::iter::once(0)
            .chain(rows.iter().scan(0, |end, row| {
                *end += row.len() as i32;
                Some(*end)
            }))
            .collect();
        let values = rows.concat();
        let mut views = Vec::new();
        for (row, start) in rows.iter().zip(&offsets) {
            let mut view = [0; 16];
            view[..4].copy_from_slice(&(row.len() as u32).to_le_bytes());
            match row.len() > super::super::rows::INLINE_BYTES {
                true => view[12..].copy_from_slice(&start.to_le_bytes()),
                false => view[4..4 + row.len()].copy_from_slice(row),
            }
            views.push(view);
        }
        let buffers = [&values[..]];
        let columns =
            [Column::new(&values, &offsets).unwrap(), Column::from_views(&views, &buffers).unwrap()];
        let mut decided = 0;
        for pattern in [
            r"\b[0-9]{1,3}(\.[0-9]{1,3}){3}\b",
            r"\b[0-9a-f]{8}-[0-9a-f]{4}\b",
            r"\w+ing\b",
            r"\Bing",
            r"^\w+$",
            r"^.*ERROR$",
            r"(?i)\bk\S*g",
            r"\W\d",
            r"x\b{end}|^$",
            r"ость\b",
            r"[0-9a-f].{4}[0-9f]",
            r"\b\w{5,7}\b",
            r"(?:.{2,3}x){2}",
            r".{20,}$",
        ] {
            let (ours, regex) =
                (ColumnRegex::new(pattern).unwrap(), regex::bytes::Regex::new(pattern).unwrap());
            for column in &columns {
                let (programs, end) = match column.layout {
                    Layout::Views(..) => (&ours.copied, RowEnd::Separator),
                    _ => (&ours.in_place, RowEnd::Marked),
                };
                let check = |found: &Bitmap, way: &str| {
                    for (at, row) in rows.iter().enumerate() {
                        let row_text = String::from_utf8_lossy(row);
                        assert_eq!(
                            found.get(at),
                            regex.is_match(row),
                            "{pattern} {way} row {at} {row_text:?}"
                        );
                    }
                };
                let program = RowProgram::near(ours.regex.hir(), ours.regex.options(), end)
                    .unwrap_or_else(|| panic!("{pattern} has a program of bytes"));
                let (marked, odd) = ours.marked(&program, column);
                check(&ours.confirmed(&program, column, marked, odd, usize::MAX).unwrap(), "near");
                match ours.scan_near(programs, end, column) {
                    Some(found) => {
                        decided += 1;
                        check(&found, "few");
                    }
                    None => assert_eq!(programs.dense_columns.load(Relaxed), DENSE_COLUMNS),
                }
                check(&ours.scan_streams(column), "streams");
                check(&ours.scan_programs(column), "copies");
                check(&ours.scan(column), "scan");
            }
        }
        assert!(decided >= 4, "{decided}");
    }

    #[test]
    fn columns_of_ascii_keep_their_program() {
        let values = b"10.0.0.1 and some text behind it".repeat(1000);
        let offsets: Vec<i32> = (0..=1000).map(|row| 32 * row).collect();
        let ours = ColumnRegex::new(r"\b[0-9]+\b").unwrap();
        let column = Column::new(&values, &offsets).unwrap();
        assert!(seems_ascii(&column) && ours.scan(&column).count_ones() == 1000);
        assert!(ours.in_place.near.get().is_none() && ours.in_place.any.get().is_some());
        let other = "é".repeat(16_000);
        let column = Column::new(other.as_bytes(), &offsets).unwrap();
        assert!(!seems_ascii(&column) && ours.scan(&column).count_ones() == 0);
        assert!(ours.in_place.near.get().is_some());
    }
}
