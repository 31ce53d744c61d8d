//! Groups of expressions that begin with a string, in one pass behind it.
//!
//! `took ([0-9]+) ms` matches where `took ` stands or nowhere. A search for that string leads to
//! the places where matches may begin, and a one-pass automaton goes on from each. The first place
//! of a row that it takes is the match, because matches that begin earlier are preferred; which of
//! several matches from there is preferred, it knows itself. A general engine goes through the row
//! once for the match's end, once back for its start, and again for its groups.
//!
//! Where strings of rows lie one behind the other, they are searched as one text, and rows without
//! the string cost nothing. Where the string stands at many places that lead to no match, a scan
//! says first which rows match.
//!
//! Matches of a row are counted in the same way, each behind the one before.
//!
//! **Leaves out** expressions that begin with alternatives, or that are not one-pass behind the
//! string, and rows in which the string stands at [`MOST_PLACES`] other places
//! before the match: each of them may cost a walk to the end of the row.

use super::one_pass::{Outcome, Rest, Room};
use super::rows::{parts, Column, Layout, Offset, INLINE_BYTES};
use super::string::{row_of, Stretch};
use crate::literal::finder::Finder;
use regex_syntax::hir::{Hir, HirKind};
use std::ops::Range;

/// So many places are tried before the general engine takes the row.
const MOST_PLACES: usize = 8;
/// With fewer bytes to a place without a match, a scan of all rows is faster.
const SPARSE_BYTES: usize = 512;
/// So many such places more than the bytes so far allow are let pass.
const SLACK_PLACES: usize = 64;

/// An expression whose matches begin with one string.
#[derive(Debug)]
pub(super) struct StringGroups {
    string: Finder,
    /// What follows, with the groups.
    rest: Rest,
}

/// What is asked of rows that hold the string, in order.
pub(super) trait Visitor {
    /// Takes a row's number, its bytes and the first place of the string in it; whether the row
    /// matches.
    fn visit(&mut self, row: usize, bytes: &[u8], place: usize) -> bool;
}

impl<F: FnMut(usize, &[u8], usize) -> bool> Visitor for F {
    fn visit(&mut self, row: usize, bytes: &[u8], place: usize) -> bool {
        self(row, bytes, place)
    }
}

/// Rows whose strings lie in one text in their order.
struct Rows<'t, S, E> {
    text: &'t [u8],
    /// The number of the first one in the column.
    first: usize,
    count: usize,
    start: S,
    /// Where the string of a row ends; 0 if it does not lie in the text.
    end: E,
}

impl StringGroups {
    /// The groups of an expression, where they are found in this way.
    pub(super) fn new(hir: &Hir) -> Option<StringGroups> {
        let parts = match hir.kind() {
            HirKind::Concat(parts) => &parts[..],
            _ => std::slice::from_ref(hir),
        };
        let (first, parts) = parts.split_first()?;
        let HirKind::Literal(string) = first.kind() else { return None };
        Some(StringGroups { string: Finder::new(&string.0), rest: Rest::new(parts)? })
    }

    /// Room for searches.
    pub(super) fn room(&self) -> Room {
        self.rest.room()
    }

    /// A group of the first match in a row that has a match, at `from` or behind; `None` where the
    /// general engine has to look.
    pub(super) fn group_of(
        &self,
        row: &[u8],
        mut from: usize,
        group: usize,
        room: &mut Room,
    ) -> Option<Option<Range<usize>>> {
        for _ in 0..MOST_PLACES {
            let start = self.string.find(row, from)?;
            match self.rest.search(row, start + self.string.string().len(), room) {
                Outcome::NoMatch => from = start + 1,
                Outcome::Match(end) if group == 0 => return Some(Some(start..end)),
                Outcome::Match(_) => return Some(room.group(group)),
                Outcome::Undecided => return None,
            }
        }
        None
    }

    /// The number of matches in a row that holds the string first at `from`; `None` where the
    /// general engine has to count.
    pub(super) fn count_in(&self, row: &[u8], from: usize, room: &mut Room) -> Option<u32> {
        let (mut count, mut others, mut next) = (0, 0, Some(from));
        while let Some(start) = next {
            let from = match self.rest.search(row, start + self.string.string().len(), room) {
                Outcome::Match(end) => {
                    count += 1;
                    end
                }
                Outcome::NoMatch if others < MOST_PLACES => {
                    others += 1;
                    start + 1
                }
                _ => return None,
            };
            next = self.string.find(row, from);
        }
        Some(count)
    }

    /// Visits rows that hold the string, the first ones of a column, up to where it leads to no
    /// match too often or rows lie apart; the number of rows that are done. Null rows are searched
    /// as they are in memory.
    pub(super) fn search(&self, column: &Column<'_>, visitor: &mut impl Visitor) -> usize {
        match column.layout {
            Layout::Offsets(values, offsets) => self.search_values(values, offsets, visitor),
            Layout::LargeOffsets(values, offsets) => self.search_values(values, offsets, visitor),
            Layout::Views(views, buffers) => self.search_views(views, buffers, visitor),
        }
    }

    fn search_values<O: Offset>(&self, values: &[u8], offsets: &[O], visitor: &mut impl Visitor) -> usize {
        let offset = |row: usize| offsets[row].into() as usize;
        let count = offsets.len() - 1;
        let (start, end) = (offset, |row| offset(row + 1));
        let rows = Rows { text: &values[..offset(count)], first: 0, count, start, end };
        self.search_rows(&rows, &mut |_: Range<usize>, _: &mut _| {}, visitor)
    }

    fn search_views<V: Visitor>(&self, views: &[[u8; 16]], buffers: &[&[u8]], visitor: &mut V) -> usize {
        let mut stretch = Stretch::default();
        let mut first = 0;
        while first < views.len() {
            stretch.fill(&views[first..]);
            let count = stretch.starts.len();
            if stretch.is_short() && first + count < views.len() {
                return first;
            }
            // Rows in which the string does not stand in the text may have it in their view.
            let may_be_inline = stretch.has_inline && self.string.string().len() <= INLINE_BYTES;
            let mut others = |rows: Range<usize>, visitor: &mut V| {
                for row in rows.filter(|_| may_be_inline) {
                    let bytes = parts(&views[row]).0;
                    let own = (bytes <= INLINE_BYTES).then(|| &views[row][4..4 + bytes]);
                    let place = own.and_then(|own| Some((own, self.string.find(own, 0)?)));
                    if let Some((own, place)) = place {
                        visitor.visit(row, own, place);
                    }
                }
            };
            let text = buffers.get(stretch.buffer).map_or(&[][..], |buffer| &buffer[..stretch.end]);
            let end = |row: usize| match parts(&views[first + row]).0 {
                ..=INLINE_BYTES => 0,
                bytes => stretch.starts[row] + bytes,
            };
            let rows = Rows { text, first, count, start: |row: usize| stretch.starts[row], end };
            let done = self.search_rows(&rows, &mut others, visitor);
            if done < first + count {
                return done;
            }
            first = done;
        }
        views.len()
    }

    /// Visits rows of a text that hold the string, and calls `others` for rows between them; the
    /// number of the column's first rows that are done.
    fn search_rows<V: Visitor>(
        &self,
        rows: &Rows<'_, impl Fn(usize) -> usize, impl Fn(usize) -> usize>,
        others: &mut impl FnMut(Range<usize>, &mut V),
        visitor: &mut V,
    ) -> usize {
        let begin = (rows.start)(0).min(rows.text.len());
        // Rows before `next` are done.
        let (mut at, mut next, mut row, mut failed) = (begin, 0, 0, 0);
        while let Some(place) = self.string.find(rows.text, at) {
            row = row_of(place, row, rows.count - 1, &rows.start);
            let (start, end) = ((rows.start)(row), (rows.end)(row));
            if place + self.string.string().len() > end {
                // The string stands across two rows, or between them.
                at = place + 1;
                continue;
            }
            others(rows.first + next..rows.first + row, visitor);
            let matches = visitor.visit(rows.first + row, &rows.text[start..end], place - start);
            failed += usize::from(!matches);
            (next, at) = (row + 1, end);
            if failed > SLACK_PLACES + (at - begin) / SPARSE_BYTES {
                return rows.first + next;
            }
        }
        others(rows.first + next..rows.first + rows.count, visitor);
        rows.first + rows.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::{Column, ColumnRegex};
    use proptest::prelude::*;

    fn groups(pattern: &str) -> Option<StringGroups> {
        StringGroups::new(ColumnRegex::new(pattern).unwrap().regex.hir())
    }

    #[test]
    fn the_first_place_that_matches_is_taken() {
        let groups = groups("took ([0-9]+) ms").unwrap();
        let mut room = groups.room();
        let row = b"took a while, took 17 ms, took 18 ms";
        assert_eq!(groups.group_of(row, 0, 0, &mut room), Some(Some(14..24)));
        assert_eq!(groups.group_of(row, 0, 1, &mut room), Some(Some(19..21)));
        assert_eq!(groups.group_of(row, 15, 1, &mut room), Some(Some(31..33)));
        assert_eq!(groups.group_of(&b"took ".repeat(MOST_PLACES + 1), 0, 0, &mut room), None);
        assert_eq!(groups.group_of(b"took ", 0, 0, &mut room), None);
    }

    #[test]
    fn other_expressions_are_left_to_the_general_engine() {
        // No string in front, alternatives, an end of the group that no byte decides.
        for pattern in ["([0-9]+) ms", "(?i)took ([0-9]+)", "(?:a|bc)(x)", "a(.*)b(.*)$"] {
            assert!(groups(pattern).is_none(), "{pattern}");
        }
    }

    /// Views of rows that lie side by side, with short ones in the views.
    fn views(rows: &[Vec<u8>], offsets: &[i32]) -> Vec<[u8; 16]> {
        let one = |(row, offset): (&Vec<u8>, &i32)| {
            let mut view = [0; 16];
            view[..4].copy_from_slice(&(row.len() as u32).to_le_bytes());
            match row.len() {
                ..=INLINE_BYTES => view[4..4 + row.len()].copy_from_slice(row),
                _ => view[12..].copy_from_slice(&offset.to_le_bytes()),
            }
            view
        };
        rows.iter().zip(offsets).map(one).collect()
    }

    #[test]
    fn a_string_that_leads_to_no_match_is_given_up() {
        let rows: Vec<Vec<u8>> =
            (0..1000).map(|row| format!("took {row} hours and more, took a while").into_bytes()).collect();
        let expression = ColumnRegex::new("took ([0-9]+) ms").unwrap();
        let groups = expression.string_groups().unwrap();
        let offsets: Vec<i32> =
            (0..=1000).map(|row| rows[..row].iter().map(Vec::len).sum::<usize>() as i32).collect();
        let values = rows.concat();
        let mut taken = 0;
        let mut take = |row: usize, bytes: &[u8], place: usize| {
            assert_eq!((row, bytes, place), (taken, &rows[row][..], 0));
            taken += 1;
            false
        };
        let done = groups.search(&Column::new(&values, &offsets).unwrap(), &mut take);
        assert!(done < 200 && done == taken, "{done} {taken}");
    }

    fn pattern() -> impl Strategy<Value = String> {
        let string = prop::sample::select(vec!["a", "ab", "aa", "é", "aba", "\n"]);
        let parts = prop::collection::vec(
            prop::sample::select(vec![
                "([^b]+)b",
                "(a*)",
                "(é|b)?",
                "b",
                "(?:x)?",
                "$",
                "([a-c]*?)x",
                r"(\w+)\b",
                "(a|(b))+x",
                "(.)",
                r"\b",
                "(?-u:\\b)",
                "(x{0,2})",
            ]),
            1..4,
        );
        let tail = prop::sample::select(vec!["", ".*$", "(?s:.*)$", ".*?$", "$", ".*"]);
        (string, parts, tail).prop_map(|(string, parts, tail)| format!("{string}{}{tail}", parts.concat()))
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 2000,
            rng_seed: proptest::test_runner::RngSeed::Fixed(2026),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn groups_are_those_of_regex(
            pattern in pattern(),
            rows in prop::collection::vec("[abcxé\n]{0,12}|(ab?){0,20}x?", 1..20),
        ) {
            let regex = regex::bytes::Regex::new(&pattern).unwrap();
            let mut rows: Vec<Vec<u8>> = rows.into_iter().map(String::into_bytes).collect();
            // A byte that is no UTF-8, and rows long enough for streams.
            rows.push(b"ab\xffx".to_vec());
            rows.push(b"-".repeat(5000));
            let offsets: Vec<i32> = std::iter::once(0)
                .chain(rows.iter().scan(0, |end, row| { *end += row.len() as i32; Some(*end) }))
                .collect();
            let values = rows.concat();
            let column = Column::new(&values, &offsets).unwrap();
            if let Some(groups) = groups(&pattern) {
                let mut room = groups.room();
                for row in &rows {
                    let Some(expected) = regex.captures(row) else { continue };
                    for group in 0..expected.len() {
                        let Some(found) = groups.group_of(row, 0, group, &mut room) else { continue };
                        let expected = expected.get(group).map(|group| group.range());
                        prop_assert_eq!(found, expected, "{} {:?}", pattern, row);
                    }
                }
            }
            let views = views(&rows, &offsets);
            let buffers = [&values[..]];
            let in_views = Column::from_views(&views, &buffers).unwrap();
            let expression = ColumnRegex::new(&pattern).unwrap();
            let counts: Vec<u32> = rows.iter().map(|row| regex.find_iter(row).count() as u32).collect();
            prop_assert_eq!(&expression.match_counts(&column), &counts, "{} {:?}", pattern, rows);
            prop_assert_eq!(&expression.match_counts(&in_views), &counts, "{} {:?}", pattern, rows);
            for group in 0..regex.captures_len() {
                for column in [&column, &in_views] {
                    let found = expression.group_spans(column, group).unwrap();
                    prop_assert_eq!(found.len(), rows.len());
                    for (found, row) in found.into_iter().zip(&rows) {
                        let expected = regex.captures(row).and_then(|all| Some(all.get(group)?.range()));
                        prop_assert_eq!(found, expected, "{} {:?}", pattern, row);
                    }
                }
            }
        }
    }
}
