//! What follows a known place of an expression, with its groups, in one pass.
//!
//! Strings and runs of characters are compared as such ([`super::steps`]). A one-pass automaton
//! takes each byte once and notes groups on the way. A `.*$` at the end is a look for a line feed.
//! **Leaves out** parts of expressions of which a byte does not decide how to go on.

use super::steps::{Ended, Steps};
use memchr::memchr;
use regex_automata::dfa::onepass::{Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::look::LookMatcher;
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use std::ops::Range;

/// Larger automata would not stay in the first-level cache.
const AUTOMATON_BYTES: usize = 256 << 10;

/// The last parts of an expression.
#[derive(Debug)]
pub(super) struct Rest {
    /// What needs no automaton, in most rows.
    steps: Option<Steps>,
    automaton: DFA,
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
    /// It matches up to this place.
    Match(usize),
    /// The general engine has to look.
    Undecided,
}

impl Rest {
    /// The last parts of an expression, where they are one-pass.
    pub(super) fn new(parts: &[Hir]) -> Option<Rest> {
        let (parts, tail) = match parts {
            [rest @ .., dots, end] if is_any_text(dots) && matches!(end.kind(), HirKind::Look(Look::End)) => {
                (rest, Tail::NoLineFeed)
            }
            rest => (rest, Tail::Free),
        };
        let nfa = thompson::Compiler::new()
            .configure(thompson::Config::new().utf8(false).look_matcher(LookMatcher::new()))
            .build_from_hir(&Hir::concat(parts.to_vec()))
            .ok()?;
        Some(Rest { steps: Steps::new(parts), automaton: automaton(nfa)?, tail })
    }

    /// Room for searches.
    pub(super) fn room(&self) -> Room {
        let slots = vec![None; self.automaton.get_nfa().group_info().slot_len()];
        Room { cache: self.automaton.create_cache(), slots }
    }

    /// Searches a row from a place on; its groups lie in the room afterwards.
    pub(super) fn search(&self, row: &[u8], from: usize, room: &mut Room) -> Outcome {
        let steps =
            self.steps.as_ref().map_or(Ended::Unknown, |steps| steps.search(row, from, &mut room.slots));
        let end = match steps {
            Ended::NoMatch => return Outcome::NoMatch,
            Ended::Match(end) => end,
            Ended::Unknown => {
                let input = Input::new(row).range(from..).anchored(Anchored::Yes);
                match self.automaton.try_search_slots(&mut room.cache, &input, &mut room.slots) {
                    Ok(None) => return Outcome::NoMatch,
                    Err(_) => return Outcome::Undecided,
                    Ok(Some(_)) => room.slots[1].map_or(from, |end| end.get()),
                }
            }
        };
        match self.tail {
            Tail::Free => Outcome::Match(end),
            // A dot matches no line feed, and only whole characters: what is not UTF-8 is rare.
            Tail::NoLineFeed if is_one_line(&row[end..]) => Outcome::Match(row.len()),
            Tail::NoLineFeed => Outcome::Undecided,
        }
    }
}

impl Room {
    /// A group of the row that was searched, but not group 0.
    pub(super) fn group(&self, group: usize) -> Option<Range<usize>> {
        Some(self.slots.get(2 * group).copied()??.get()..self.slots.get(2 * group + 1).copied()??.get())
    }
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
