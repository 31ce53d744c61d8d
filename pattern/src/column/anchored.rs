//! Groups of expressions that begin where a row begins, in one pass without a search.
//!
//! `^https?://(?:www\.)?([^/]+)/.*$` matches at a row's first byte or nowhere, and what is asked is
//! a group. A general engine finds the match, then searches it again for groups, by backtracking
//! where a byte does not decide how to go on: `w` may begin `www.` or the group. Here the
//! alternatives in front of the first group are written out as strings, in order of preference
//! (`http://www.`, `http://`, …), and what follows them is a one-pass automaton, which takes each
//! byte once and notes groups on the way. A `.*$` at the end is a look for a line feed.
//!
//! **Leaves out** expressions that begin elsewhere, have more alternatives, or are not one-pass
//! behind them.

use memchr::memchr;
use regex_automata::dfa::onepass::{Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::look::LookMatcher;
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored as Anchor, Input};
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use std::ops::Range;

/// More strings in front of the first group are not tried one after the other.
const MOST_STRINGS: usize = 16;
/// Larger automata would not stay in the first-level cache.
const AUTOMATON_BYTES: usize = 256 << 10;

/// An expression whose matches begin where a row begins.
#[derive(Debug)]
pub(super) struct AnchoredGroups {
    /// What a match may begin with, in order of preference.
    strings: Vec<Vec<u8>>,
    /// What follows, with the groups.
    rest: DFA,
    tail: Tail,
}

/// What follows the automaton's match up to the end of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// Nothing is asked of it: the match ends where the automaton's does.
    Free,
    /// `.*$`: the match goes on to the end of the row, if the row's rest holds no line feed.
    NoLineFeed,
}

/// Room for one thread's searches.
pub(super) struct Room {
    cache: Cache,
    slots: Vec<Option<NonMaxUsize>>,
}

/// What is known of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It does not match.
    NoMatch,
    /// It matches, from its first byte up to this place.
    Match(usize),
    /// The general engine has to look.
    Undecided,
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
        let (rest, tail) = match &parts[count..] {
            [rest @ .., dots, end] if is_any_text(dots) && matches!(end.kind(), HirKind::Look(Look::End)) => {
                (rest, Tail::NoLineFeed)
            }
            rest => (rest, Tail::Free),
        };
        let nfa = thompson::Compiler::new()
            .configure(thompson::Config::new().utf8(false).look_matcher(LookMatcher::new()))
            .build_from_hir(&Hir::concat(rest.to_vec()))
            .ok()?;
        Some(AnchoredGroups { strings, rest: automaton(nfa)?, tail })
    }

    /// Room for searches.
    pub(super) fn room(&self) -> Room {
        let slots = vec![None; self.rest.get_nfa().group_info().slot_len()];
        Room { cache: self.rest.create_cache(), slots }
    }

    /// Searches a row; its groups lie in the room afterwards.
    pub(super) fn search(&self, row: &[u8], room: &mut Room) -> Outcome {
        for string in &self.strings {
            if !row.starts_with(string) {
                continue;
            }
            let input = Input::new(row).range(string.len()..).anchored(Anchor::Yes);
            match self.rest.try_search_slots(&mut room.cache, &input, &mut room.slots) {
                Ok(None) => continue,
                Err(_) => return Outcome::Undecided,
                Ok(Some(_)) => {}
            }
            let end = room.slots[1].map_or(string.len(), |end| end.get());
            return match self.tail {
                Tail::Free => Outcome::Match(end),
                // A dot matches no line feed, and only whole characters: what is not UTF-8 is rare.
                Tail::NoLineFeed if is_one_line(&row[end..]) => Outcome::Match(row.len()),
                Tail::NoLineFeed => Outcome::Undecided,
            };
        }
        Outcome::NoMatch
    }

    /// A group of the row that was searched, but not group 0.
    pub(super) fn group(room: &Room, group: usize) -> Option<Range<usize>> {
        Some(room.slots.get(2 * group).copied()??.get()..room.slots.get(2 * group + 1).copied()??.get())
    }
}

/// The strings that a sequence of parts may be, in order of preference, where they are few.
fn strings(parts: &[Hir]) -> Option<Vec<Vec<u8>>> {
    let sequence = Extractor::new().extract(&Hir::concat(parts.to_vec()));
    let literals = sequence.literals().filter(|literals| literals.len() <= MOST_STRINGS)?;
    literals.iter().map(|literal| literal.is_exact().then(|| literal.as_bytes().to_vec())).collect()
}

/// Whether a part is `.*`, preferring more: any characters but line feeds.
fn is_any_text(part: &Hir) -> bool {
    let HirKind::Repetition(repetition) = part.kind() else { return false };
    let HirKind::Class(Class::Unicode(class)) = repetition.sub.kind() else { return false };
    let ranges: Vec<(char, char)> = class.iter().map(|range| (range.start(), range.end())).collect();
    repetition.min == 0
        && repetition.max.is_none()
        && repetition.greedy
        && ranges == [('\0', '\x09'), ('\x0b', char::MAX)]
}

fn automaton(nfa: NFA) -> Option<DFA> {
    DFA::builder().configure(Config::new().size_limit(Some(AUTOMATON_BYTES))).build_from_nfa(nfa).ok()
}

fn is_one_line(text: &[u8]) -> bool {
    memchr(b'\n', text).is_none() && (text.is_ascii() || std::str::from_utf8(text).is_ok())
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
        assert_eq!(host.tail, Tail::NoLineFeed);
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
                                prop_assert_eq!(AnchoredGroups::group(&room, group), expected, "{} {:?}", pattern, row);
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
