//! Groups of expressions that begin with a string, in one pass behind it.
//!
//! `took ([0-9]+) ms` matches where `took ` stands or nowhere: in a row that is known to match, a
//! search for that string leads to the places where matches may begin, and a one-pass automaton
//! goes on from each. The first place that it takes is the match, because matches that begin
//! earlier are preferred; which of several matches from there is preferred, it knows itself. A
//! general engine goes through the row once for the match's end, once back for its start, and again
//! for its groups.
//!
//! **Leaves out** expressions without groups, that begin with alternatives, or that are not
//! one-pass behind the string, and rows in which the string stands at [`MOST_PLACES`] other places
//! before the match: each of them may cost a walk to the end of the row.

use super::one_pass::{Outcome, Rest, Room};
use memchr::memmem::Finder;
use regex_syntax::hir::{Hir, HirKind};
use std::ops::Range;

/// So many places are tried before the general engine takes the row.
const MOST_PLACES: usize = 8;

/// An expression whose matches begin with one string.
#[derive(Debug)]
pub(super) struct StringGroups {
    string: Finder<'static>,
    /// What follows, with the groups.
    rest: Rest,
}

impl StringGroups {
    /// The groups of an expression, where they are found in this way.
    pub(super) fn new(hir: &Hir) -> Option<StringGroups> {
        let HirKind::Concat(parts) = hir.kind() else { return None };
        let (first, parts) = parts.split_first()?;
        let HirKind::Literal(string) = first.kind() else { return None };
        if hir.properties().explicit_captures_len() == 0 {
            return None;
        }
        Some(StringGroups { string: Finder::new(&string.0).into_owned(), rest: Rest::new(parts)? })
    }

    /// Room for searches.
    pub(super) fn room(&self) -> Room {
        self.rest.room()
    }

    /// The first match in a row that has one; its groups lie in the room afterwards. `None` where
    /// the general engine has to look.
    pub(super) fn first(&self, row: &[u8], room: &mut Room) -> Option<Range<usize>> {
        let mut from = 0;
        for _ in 0..MOST_PLACES {
            let start = from + self.string.find(&row[from..])?;
            match self.at(row, start, room) {
                Outcome::NoMatch => from = start + 1,
                Outcome::Match(end) => return Some(start..end),
                Outcome::Undecided => return None,
            }
        }
        None
    }

    /// The match that begins at a place where the string stands.
    fn at(&self, row: &[u8], start: usize, room: &mut Room) -> Outcome {
        self.rest.search(row, start + self.string.needle().len(), room)
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
        assert_eq!(groups.first(b"took a while, took 17 ms, took 18 ms", &mut room), Some(14..24));
        assert_eq!(room.group(1), Some(19..21));
        assert_eq!(groups.first(&b"took ".repeat(MOST_PLACES + 1), &mut room), None);
        assert_eq!(groups.first(b"took ", &mut room), None);
    }

    #[test]
    fn other_expressions_are_left_to_the_general_engine() {
        // No group, no string in front, alternatives, an end of the group that no byte decides.
        for pattern in ["took [0-9]+ ms", "([0-9]+) ms", "(?i)took ([0-9]+)", "(?:a|bc)(x)", "a(.*)b(.*)$"] {
            assert!(groups(pattern).is_none(), "{pattern}");
        }
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
                    let (found, expected) = (groups.first(row, &mut room), regex.captures(row));
                    let Some(found) = found else { continue };
                    let expected = expected.unwrap();
                    prop_assert_eq!(expected.get(0).unwrap().range(), found, "{} {:?}", pattern, row);
                    for group in 1..expected.len() {
                        let expected = expected.get(group).map(|group| group.range());
                        prop_assert_eq!(room.group(group), expected, "{} {:?}", pattern, row);
                    }
                }
            }
            let expression = ColumnRegex::new(&pattern).unwrap();
            for group in 0..regex.captures_len() {
                let found = expression.group_spans(&column, group).unwrap();
                for (found, row) in found.into_iter().zip(&rows) {
                    let expected = regex.captures(row).and_then(|all| Some(all.get(group)?.range()));
                    prop_assert_eq!(found, expected, "{} {:?}", pattern, row);
                }
            }
        }
    }
}
