//! What matching rows hold: how many matches, where the first one is, a group of it, and rows with
//! matches replaced.
//!
//! A scan says which rows match, and only these are searched for spans. Spans are found by tables,
//! groups by one pass behind the string with which an expression begins
//! ([`super::behind_string`]), or else by an anchored search from the start of a known match, so
//! that rows without a match cost the scan alone. Expressions whose matches begin where rows begin
//! need no scan ([`super::anchored`]).

use super::anchored::AnchoredGroups;
use super::error::ColumnError;
use super::expression::ColumnRegex;
use super::one_pass::Outcome;
use super::output::StringColumn;
use super::replacement::Replacement;
use super::rows::Column;
use regex_automata::util::captures::Captures;
use regex_automata::util::primitives::PatternID;
use regex_automata::{Anchored, Input};
use std::ops::Range;

/// Which matches of a row are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Occurrences {
    /// The first one.
    First,
    /// All of them, none overlapping.
    #[default]
    All,
}

/// What a row without a match becomes, where matches are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unmatched {
    Copied,
    Null,
}

impl Unmatched {
    /// The bytes to make room for.
    fn bytes(self, column: &Column<'_>) -> usize {
        match self {
            Unmatched::Copied => column.total_bytes(),
            Unmatched::Null => 0,
        }
    }

    /// Appends a row without a match.
    fn end_row(self, bytes: &[u8], out: &mut StringColumn) {
        if self == Unmatched::Copied {
            out.values_mut().extend_from_slice(bytes);
        }
        out.end_row(self == Unmatched::Copied);
    }
}

impl ColumnRegex {
    /// The number of matches in each row, none overlapping; 0 for null rows.
    ///
    /// ```
    /// use lightfoot_pattern::column::{Column, ColumnRegex};
    /// let column = Column::new(b"7 of 12none", &[0, 7, 11])?;
    /// assert_eq!(ColumnRegex::new("[0-9]+")?.match_counts(&column), [2, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn match_counts(&self, column: &Column<'_>) -> Vec<u32> {
        let mut counts = vec![0; column.len()];
        let mut done = 0;
        if let Some(behind) = self.string_groups() {
            let mut room = behind.room();
            done = behind.search(column, &mut |row, bytes: &[u8], place| {
                let known = behind.count_in(bytes, place, &mut room);
                counts[row] = known.unwrap_or_else(|| self.regex.count_matches(bytes) as u32);
                counts[row] > 0
            });
            if let Some(valid) = &column.valid {
                (0..done).filter(|&row| !valid.get(row)).for_each(|row| counts[row] = 0);
            }
        }
        self.each_matching_behind(column, done, |row, bytes| {
            counts[row] = self.regex.count_matches(bytes) as u32;
        });
        counts
    }

    /// Calls `found` for each row from `first` on that matches and is not null.
    fn each_matching_behind(&self, column: &Column<'_>, first: usize, mut found: impl FnMut(usize, &[u8])) {
        if first == column.len() {
            return;
        }
        for row in self.scan(&column.rows_behind(first)).ones().map(|row| first + row) {
            if let Some(bytes) = column.row(row) {
                found(row, bytes);
            }
        }
    }

    /// The first match of each row, in bytes from the row's start; `None` where there is none.
    ///
    /// ```
    /// use lightfoot_pattern::column::{Column, ColumnRegex};
    /// let column = Column::new(b"7 of 12none", &[0, 7, 11])?;
    /// assert_eq!(ColumnRegex::new("[0-9]{2}")?.first_spans(&column), [Some(5..7), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn first_spans(&self, column: &Column<'_>) -> Vec<Option<Range<usize>>> {
        let mut spans = vec![None; column.len()];
        for row in self.scan(column).ones() {
            spans[row] = self.regex.find_at(column.bytes(row), 0);
        }
        spans
    }

    /// The number of groups, the whole match (group 0) included.
    pub fn groups(&self) -> usize {
        self.regex.spans().captures_len()
    }

    /// The number of a named group.
    pub fn group_index(&self, name: &str) -> Option<usize> {
        self.regex.spans().group_info().to_index(PatternID::ZERO, name)
    }

    /// What a group holds in the first match of each row; group 0 is the match. A row is null where
    /// the column's is, where nothing matches, and where the group takes no part in the match.
    ///
    /// ```
    /// use lightfoot_pattern::column::{Column, ColumnRegex};
    /// let column = Column::new(b"user=ann uid=7no user", &[0, 14, 21])?;
    /// let regex = ColumnRegex::new(r"user=(?<name>\w+)")?;
    /// let names = regex.extract(&column, regex.group_index("name").unwrap())?;
    /// assert_eq!((names.row(0), names.row(1)), (Some(&b"ann"[..]), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The expression has no such group.
    pub fn extract(&self, column: &Column<'_>, group: usize) -> Result<StringColumn, ColumnError> {
        let mut out = StringColumn::with_rows(column.len(), 0);
        self.each_group(column, group, |row, span| {
            out.end_null_rows(row);
            out.values_mut().extend_from_slice(&column.bytes(row)[span]);
            out.end_row(true);
        })?;
        out.end_null_rows(column.len());
        Ok(out)
    }

    /// Where a group lies in the first match of each row, in bytes from the row's start; group 0 is
    /// the match. `None` where the row is null, where nothing matches, and where the group takes no
    /// part in the match. For columns of views, whose results can point to the same memory.
    ///
    /// ```
    /// use lightfoot_pattern::column::{Column, ColumnRegex};
    /// let column = Column::new(b"user=ann uid=7no user", &[0, 14, 21])?;
    /// assert_eq!(ColumnRegex::new(r"user=(\w+)")?.group_spans(&column, 1)?, [Some(5..8), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The expression has no such group.
    pub fn group_spans(
        &self,
        column: &Column<'_>,
        group: usize,
    ) -> Result<Vec<Option<Range<usize>>>, ColumnError> {
        let mut spans = vec![None; column.len()];
        self.each_group(column, group, |row, span| spans[row] = Some(span))?;
        Ok(spans)
    }

    /// Calls `found` with each row that has a span in [`ColumnRegex::group_spans`] and with that
    /// span, in the order of rows: for rows of which few match.
    ///
    /// ```
    /// use lightfoot_pattern::column::{Column, ColumnRegex};
    /// let column = Column::new(b"user=ann uid=7no user", &[0, 14, 21])?;
    /// let mut found = Vec::new();
    /// let regex = ColumnRegex::new(r"user=(\w+)")?;
    /// regex.each_group(&column, 1, |row, span| found.push((row, span)))?;
    /// assert_eq!(found, [(0, 5..8)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The expression has no such group.
    pub fn each_group(
        &self,
        column: &Column<'_>,
        group: usize,
        mut found: impl FnMut(usize, Range<usize>),
    ) -> Result<(), ColumnError> {
        let groups = self.groups();
        if group >= groups {
            return Err(ColumnError::NoSuchGroup { group, groups });
        }
        let mut captures = self.regex.spans().create_captures();
        let mut found = |row: usize, span: Option<Range<usize>>| {
            if let Some(span) = span {
                found(row, span);
            }
        };
        if let Some(groups) = self.anchored_groups() {
            let mut room = groups.room();
            for row in 0..column.len() {
                let span = column.row(row).and_then(|bytes| match groups.search(bytes, &mut room) {
                    Outcome::NoMatch => None,
                    Outcome::Match(end) if group == 0 => Some(0..end),
                    Outcome::Match(_) => room.group(group),
                    Outcome::Undecided => self.group(bytes, group, &mut captures),
                });
                found(row, span);
            }
            return Ok(());
        }
        let mut done = 0;
        if let Some(groups) = self.string_groups() {
            let mut room = groups.room();
            done = groups.search(column, &mut |row, bytes: &[u8], place| {
                let known = groups.group_of(bytes, place, group, &mut room);
                let span = known.unwrap_or_else(|| self.group(bytes, group, &mut captures));
                let matches = span.is_some();
                let is_valid = column.valid.as_ref().is_none_or(|valid| valid.get(row));
                found(row, span.filter(|_| is_valid));
                matches
            });
        }
        self.each_matching_behind(column, done, |row, bytes| {
            found(row, self.group(bytes, group, &mut captures));
        });
        Ok(())
    }

    /// The rows with matches replaced; rows without a match are as they were, null rows stay null.
    /// In the replacement `$1` and `${name}` stand for groups and `$$` for a dollar sign, as in the
    /// `regex` crate.
    ///
    /// ```
    /// use lightfoot_pattern::column::{Column, ColumnRegex, Occurrences};
    /// let column = Column::new(b"a=1, b=2c", &[0, 8, 9])?;
    /// let swapped = ColumnRegex::new(r"(\w)=(\d)")?.replace(&column, b"$2=$1", Occurrences::All);
    /// assert_eq!((swapped.row(0), swapped.row(1)), (Some(&b"1=a, 2=b"[..]), Some(&b"c"[..])));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace(&self, column: &Column<'_>, replacement: &[u8], occurrences: Occurrences) -> StringColumn {
        self.replace_or(Unmatched::Copied, column, replacement, occurrences)
    }

    /// The rows that match, with matches replaced; rows without a match are null. For columns of
    /// views, whose other rows can stay in the memory where they are.
    ///
    /// ```
    /// use lightfoot_pattern::column::{Column, ColumnRegex, Occurrences};
    /// let column = Column::new(b"a=1, b=2c", &[0, 8, 9])?;
    /// let replaced = ColumnRegex::new(r"\d")?.replace_matching(&column, b"#", Occurrences::First);
    /// assert_eq!((replaced.row(0), replaced.row(1)), (Some(&b"a=#, b=2"[..]), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace_matching(
        &self,
        column: &Column<'_>,
        replacement: &[u8],
        occurrences: Occurrences,
    ) -> StringColumn {
        self.replace_or(Unmatched::Null, column, replacement, occurrences)
    }

    fn replace_or(
        &self,
        unmatched: Unmatched,
        column: &Column<'_>,
        replacement: &[u8],
        occurrences: Occurrences,
    ) -> StringColumn {
        let by = Replacement::new(replacement, |name| self.group_index(name));
        match self.anchored_groups() {
            Some(groups) => self.replace_anchored(groups, column, &by, occurrences, unmatched),
            None => self.replace_scanned(column, &by, occurrences, unmatched),
        }
    }

    /// The rows with matches replaced that begin where rows begin.
    fn replace_anchored(
        &self,
        groups: &AnchoredGroups,
        column: &Column<'_>,
        by: &Replacement,
        occurrences: Occurrences,
        unmatched: Unmatched,
    ) -> StringColumn {
        let mut room = groups.room();
        let mut captures = self.regex.spans().create_captures();
        let mut out = StringColumn::with_rows(column.len(), unmatched.bytes(column));
        for row in 0..column.len() {
            let Some(bytes) = column.row(row) else {
                out.end_row(false);
                continue;
            };
            let values = out.values_mut();
            match groups.search(bytes, &mut room) {
                Outcome::NoMatch => {
                    unmatched.end_row(bytes, &mut out);
                    continue;
                }
                Outcome::Match(end) => {
                    by.append(values, |group| match group {
                        0 => Some(&bytes[..end]),
                        _ => room.group(group).map(|span| &bytes[span]),
                    });
                    values.extend_from_slice(&bytes[end..]);
                }
                Outcome::Undecided => self.replace_in(bytes, by, occurrences, &mut captures, values),
            }
            out.end_row(true);
        }
        out
    }

    /// The rows with matches replaced, of which a scan says where they are.
    fn replace_scanned(
        &self,
        column: &Column<'_>,
        by: &Replacement,
        occurrences: Occurrences,
        unmatched: Unmatched,
    ) -> StringColumn {
        let matching = self.scan(column);
        let mut captures = self.regex.spans().create_captures();
        let mut out = StringColumn::with_rows(column.len(), unmatched.bytes(column));
        for row in 0..column.len() {
            let Some(bytes) = column.row(row) else {
                out.end_row(false);
                continue;
            };
            if !matching.get(row) {
                unmatched.end_row(bytes, &mut out);
                continue;
            }
            self.replace_in(bytes, by, occurrences, &mut captures, out.values_mut());
            out.end_row(true);
        }
        out
    }

    /// Appends a row with its matches replaced.
    fn replace_in(
        &self,
        bytes: &[u8],
        by: &Replacement,
        occurrences: Occurrences,
        captures: &mut Captures,
        out: &mut Vec<u8>,
    ) {
        let most = match occurrences {
            Occurrences::First => 1,
            Occurrences::All => usize::MAX,
        };
        let has_groups = by.has_groups();
        let mut at = 0;
        for span in self.regex.find_iter(bytes).take(most) {
            out.extend_from_slice(&bytes[at..span.start]);
            at = span.end;
            if has_groups {
                self.groups_at(bytes, span.start, captures);
            }
            by.append(out, |group| Some(&bytes[captures.get_group(group)?.range()]));
        }
        out.extend_from_slice(&bytes[at..]);
    }

    /// A group's span in the first match of a row.
    fn group(&self, bytes: &[u8], group: usize, captures: &mut Captures) -> Option<Range<usize>> {
        let span = self.regex.find_at(bytes, 0)?;
        if group == 0 {
            return Some(span);
        }
        self.groups_at(bytes, span.start, captures);
        Some(captures.get_group(group)?.range())
    }

    /// The groups of the match that starts at `start`: the preferred one there is the match that an
    /// unanchored search found.
    fn groups_at(&self, bytes: &[u8], start: usize, captures: &mut Captures) {
        let input = Input::new(bytes).range(start..).anchored(Anchored::Yes);
        self.regex.spans().search_captures(&input, captures);
    }
}
