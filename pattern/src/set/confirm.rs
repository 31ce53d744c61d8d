//! Confirms that a pattern matches a line that holds one of its strings.
//!
//! A table decides a line at a step a byte and without any preparation. It is made after some
//! confirmations, given up where it would be large, and asks the automaton where it cannot decide
//! (a Unicode `\b` beside a character beyond ASCII). A pattern whose matches begin with the string
//! is asked from there on only.

use crate::regex::automaton::Automaton;
use regex_automata::dfa::{dense, Automaton as _, StartKind};
use regex_automata::nfa::thompson;
use regex_automata::util::look::LookMatcher;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::Hir;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::OnceLock;

/// A table is made after this many confirmations.
const PATIENCE: u32 = 64;
/// Larger tables would drive each other out of the caches.
const TABLE_BYTES: usize = 64 << 10;
/// Longer lines are searched by the automaton, which skips to rare literals.
const LONG_BYTES: usize = 16 << 10;

/// A pattern's table, made when it is worth it.
#[derive(Debug, Default)]
pub(super) struct Confirmation {
    asked: AtomicU32,
    table: OnceLock<Option<dense::DFA<Vec<u32>>>>,
}

impl Confirmation {
    /// Whether the pattern matches in `line`, or with `start` whether a match begins there.
    pub(super) fn matches(&self, pattern: &Pattern<'_>, line: &[u8], start: Option<usize>) -> bool {
        let input = match start {
            None => Input::new(line),
            Some(start) => Input::new(line).range(start..).anchored(Anchored::Yes),
        };
        if line.len() <= LONG_BYTES {
            if let Some(table) = self.table(pattern) {
                if let Ok(found) = table.try_search_fwd(&input.clone().earliest(true)) {
                    return found.is_some();
                }
            }
        }
        pattern.automaton.search_half(&input).is_some()
    }

    fn table(&self, pattern: &Pattern<'_>) -> Option<&dense::DFA<Vec<u32>>> {
        match self.table.get() {
            Some(table) => table.as_ref(),
            None if self.asked.fetch_add(1, Relaxed) < PATIENCE => None,
            None => self.table.get_or_init(|| pattern.table()).as_ref(),
        }
    }
}

/// A pattern as it is confirmed.
pub(super) struct Pattern<'p> {
    pub(super) hir: &'p Hir,
    pub(super) automaton: &'p Automaton,
    /// The byte for `(?m)^` and `(?m)$`.
    pub(super) line_end: u8,
}

impl Pattern<'_> {
    fn table(&self) -> Option<dense::DFA<Vec<u32>>> {
        let mut look = LookMatcher::new();
        look.set_line_terminator(self.line_end);
        let config = thompson::Config::new()
            .utf8(false)
            .which_captures(thompson::WhichCaptures::None)
            .look_matcher(look)
            .nfa_size_limit(Some(TABLE_BYTES));
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(self.hir).ok()?;
        let config = dense::Config::new()
            .start_kind(StartKind::Both)
            .unicode_word_boundary(true)
            .dfa_size_limit(Some(TABLE_BYTES))
            .determinize_size_limit(Some(4 * TABLE_BYTES));
        dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()
    }
}
