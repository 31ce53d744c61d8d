//! Groups of expressions that begin where a row begins, in one pass without a search.
//!
//! `^https?://(?:www\.)?([^/]+)/.*$` matches at a row's first byte or nowhere, and what is asked is
//! a group. A general engine finds the match, then searches it again for groups, by backtracking
//! where a byte does not decide how to go on: `w` may begin `www.` or the group. Here the
//! alternatives in front of the first group are written out as strings, in order of preference
//! (`http://www.`, `http://`, …), and what follows them is a one-pass automaton, which takes each
//! byte once and notes groups on the way. A `.*$` at the end is a look for a line feed.
//!
//! **Leaves out** expressions that begin elsewhere ([`super::behind_string`] takes some), have more
//! alternatives, or are not one-pass behind them.

use super::one_pass::{Outcome, Rest, Room};
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Hir, HirKind, Look};

/// More strings in front of the first group are not tried one after the other.
const MOST_STRINGS: usize = 16;

/// An expression whose matches begin where a row begins.
#[derive(Debug)]
pub(super) struct AnchoredGroups {
    /// What a match may begin with, in order of preference.
    strings: Vec<Vec<u8>>,
    /// What follows, with the groups.
    rest: Rest,
}

impl AnchoredGroups {
    /// The groups of an expression, where they are found in this way.
    pub(super) fn new(hir: &Hir) -> Option<AnchoredGroups> {
        let HirKind::Concat(parts) = hir.kind() else { return None };
        let (first, parts) = parts.split_first()?;
        if !matches!(first.kind(), HirKind::Look(Look::Start)) {
            return None;
        }
        let is_plain = |part: &&Hir| {
            part.properties().explicit_captures_len() == 0 && part.properties().look_set().is_empty()
        };
        let plain = parts.iter().take_while(is_plain).count();
        // The longest beginning that is a few strings.
        let (count, strings) =
            (0..=plain).rev().find_map(|count| Some((count, strings(&parts[..count])?)))?;
        Some(AnchoredGroups { strings, rest: Rest::new(&parts[count..])? })
    }

    /// Room for searches.
    pub(super) fn room(&self) -> Room {
        self.rest.room()
    }

    /// Searches a row; its groups lie in the room afterwards.
    pub(super) fn search(&self, row: &[u8], room: &mut Room) -> Outcome {
        for string in self.strings.iter().filter(|string| row.starts_with(string)) {
            let outcome = self.rest.search(row, string.len(), room);
            if outcome != Outcome::NoMatch {
                return outcome;
            }
        }
        Outcome::NoMatch
    }
}

/// The strings that a sequence of parts may be, in order of preference, where they are few.
fn strings(parts: &[Hir]) -> Option<Vec<Vec<u8>>> {
    let sequence = Extractor::new().extract(&Hir::concat(parts.to_vec()));
    let literals = sequence.literals().filter(|literals| literals.len() <= MOST_STRINGS)?;
    literals.iter().map(|literal| literal.is_exact().then(|| literal.as_bytes().to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::{Column, ColumnRegex, Occurrences};
    use proptest::prelude::*;

    fn groups(pattern: &str) -> Option<AnchoredGroups> {
        AnchoredGroups::new(ColumnRegex::new(pattern).unwrap().regex.hir())
    }

    #[test]
    fn alternatives_are_written_out_in_order() {
        let host = groups(r"^https?://(?:www\.)?([^/]+)/.*$").unwrap();
        let strings: Vec<&[u8]> = host.strings.iter().map(Vec::as_slice).collect();
        assert_eq!(strings, [&b"https://www."[..], b"https://", b"http://www.", b"http://"]);
        assert!(groups(r"^(\d+) (\d+)").is_some());
        assert!(groups("^").is_none() && groups("a(b)").is_none() && groups("(?m)^a(b)").is_none());
        // The end of the group is not decided by a byte.
        assert!(groups(r"^x(.*)y(.*)$").is_none());
    }

    fn pattern() -> impl Strategy<Value = String> {
        let front = prop::collection::vec(
            prop::sample::select(vec![
                "a", "b?", "(?:ab)?", "(?:ab|a)", "(?:a|)", "[ab]", "(?:a??)", "é?", "\n?",
            ]),
            0..4,
        );
        let rest = prop::collection::vec(
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
            ]),
            0..4,
        );
        let tail = prop::sample::select(vec!["", ".*$", "(?s:.*)$", ".*?$", "$", ".*"]);
        (front, rest, tail)
            .prop_map(|(front, rest, tail)| format!("^{}{}{tail}", front.concat(), rest.concat()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn rows_are_those_of_regex(
            pattern in pattern(),
            rows in prop::collection::vec("[abcxé\n]{0,9}", 1..20),
            by in prop::sample::select(vec!["$1", "<${0}>", "${2}-$1", "$$", "", "é$x"]),
        ) {
            let regex = regex::bytes::Regex::new(&pattern).unwrap();
            let mut rows: Vec<Vec<u8>> = rows.into_iter().map(String::into_bytes).collect();
            // A byte that is no UTF-8.
            rows.push(b"ab\xffx".to_vec());
            let offsets: Vec<i32> =
                std::iter::once(0).chain(rows.iter().scan(0, |end, row| { *end += row.len() as i32; Some(*end) })).collect();
            let values = rows.concat();
            let column = Column::new(&values, &offsets).unwrap();
            let expression = ColumnRegex::new(&pattern).unwrap();
            if let Some(groups) = groups(&pattern) {
                let mut room = groups.room();
                for row in &rows {
                    let found = regex.captures(row);
                    match groups.search(row, &mut room) {
                        Outcome::NoMatch => prop_assert!(found.is_none(), "{} {:?}", pattern, row),
                        Outcome::Match(end) => {
                            let found = found.unwrap();
                            prop_assert_eq!(found.get(0).unwrap().range(), 0..end, "{} {:?}", pattern, row);
                            for group in 1..found.len() {
                                let expected = found.get(group).map(|found| found.range());
                                prop_assert_eq!(room.group(group), expected, "{} {:?}", pattern, row);
                            }
                        }
                        Outcome::Undecided => {}
                    }
                }
            }
            for group in 0..regex.captures_len() {
                let found = expression.extract(&column, group).unwrap();
                for (at, row) in rows.iter().enumerate() {
                    let expected = regex.captures(row).and_then(|found| Some(found.get(group)?.as_bytes()));
                    prop_assert_eq!(found.row(at), expected, "{} {:?}", pattern, row);
                }
            }
            for occurrences in [Occurrences::First, Occurrences::All] {
                let found = expression.replace(&column, by.as_bytes(), occurrences);
                for (at, row) in rows.iter().enumerate() {
                    let most = if occurrences == Occurrences::First { 1 } else { 0 };
                    prop_assert_eq!(found.row(at), Some(&regex.replacen(row, most, by.as_bytes())[..]), "{} {:?}", pattern, row);
                }
            }
        }
    }
}
