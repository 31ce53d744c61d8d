//! The general automaton of an expression, which is built when it is first needed.
//!
//! Counting lines by bit streams never needs it, and building an automaton with Unicode classes
//! takes milliseconds. So only the automaton of an expression that might exceed the size limit is
//! built at once, so that the error is reported when the expression is made. The size of an
//! automaton is estimated from the expression ([`most_bytes`]), generously.

use regex_automata::meta;
use regex_syntax::hir::{Class, Hir, HirKind};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// Expressions that need at most one part in this many of the size limit are built late.
const LATE_PART: usize = 4;
/// The most bytes of a state, including its transitions.
const STATE_BYTES: usize = 96;
/// The most byte sequences into which a range of characters is split.
const MOST_SEQUENCES: usize = 16;

/// A general automaton, built or to be built. A clone has its own scratch memory.
#[derive(Clone)]
pub(crate) struct Automaton {
    own: OnceLock<meta::Regex>,
    /// Clones build it once.
    shared: Arc<Shared>,
}

struct Shared {
    hir: Arc<Hir>,
    config: meta::Config,
    built: OnceLock<meta::Regex>,
}

impl Automaton {
    /// The automaton of an expression; it is built at once if `limit_bytes` may not suffice.
    ///
    /// # Errors
    /// The automaton takes more than `limit_bytes`.
    pub(crate) fn new(
        hir: Arc<Hir>,
        config: meta::Config,
        limit_bytes: usize,
    ) -> Result<Automaton, Box<meta::BuildError>> {
        let own = OnceLock::new();
        if most_bytes(&hir) > limit_bytes / LATE_PART {
            let limited = config.clone().nfa_size_limit(Some(limit_bytes));
            let built = meta::Regex::builder().configure(limited).build_from_hir(&hir)?;
            own.get_or_init(|| built);
        }
        let config = config.nfa_size_limit(None);
        Ok(Automaton { own, shared: Arc::new(Shared { hir, config, built: OnceLock::new() }) })
    }

    /// Whether a search need not wait until it is built.
    pub(crate) fn is_built(&self) -> bool {
        self.own.get().is_some() || self.shared.built.get().is_some()
    }
}

impl Shared {
    fn build(&self) -> meta::Regex {
        meta::Regex::builder()
            .configure(self.config.clone())
            .build_from_hir(&self.hir)
            .expect("an expression of bounded size has an automaton")
    }
}

impl Deref for Automaton {
    type Target = meta::Regex;

    #[inline]
    fn deref(&self) -> &meta::Regex {
        self.own.get_or_init(|| self.shared.built.get_or_init(|| self.shared.build()).clone())
    }
}

#[cfg(test)]
impl From<meta::Regex> for Automaton {
    fn from(regex: meta::Regex) -> Automaton {
        let shared =
            Shared { hir: Arc::new(Hir::empty()), config: meta::Config::new(), built: OnceLock::new() };
        Automaton { own: OnceLock::from(regex), shared: Arc::new(shared) }
    }
}

/// More bytes than the automaton takes.
fn most_bytes(hir: &Hir) -> usize {
    STATE_BYTES.saturating_mul(most_states(hir))
}

fn most_states(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() + 1,
        HirKind::Class(Class::Unicode(class)) => {
            let states = |(first, last)| 4 * if near(first, last) { 1 } else { MOST_SEQUENCES };
            class.iter().map(|range| states((range.start(), range.end()))).sum::<usize>() + 1
        }
        HirKind::Capture(capture) => most_states(&capture.sub).saturating_add(2),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
            most_states(&repetition.sub).saturating_add(2).saturating_mul(times as usize)
        }
        HirKind::Concat(subs) | HirKind::Alternation(subs) => subs
            .iter()
            .map(most_states)
            .fold(2, |sum: usize, states| sum.saturating_add(states).saturating_add(1)),
    }
}

/// Whether all but the last byte of the two characters are the same.
fn near(first: char, last: char) -> bool {
    first.len_utf8() == last.len_utf8() && (u32::from(first) >> 6 == u32::from(last) >> 6 || last.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pattern: &str) -> Hir {
        regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).unwrap()
    }

    #[test]
    fn the_estimate_is_above_what_automata_take() {
        for pattern in [
            "",
            "a",
            "abc|abd",
            r"\w",
            r"\W{5}",
            "[^é]*",
            r"(\p{Han}{5,}|.)?x{3,70}",
            r"(?i)straße",
            r"(?:a{0,9}){0,9}",
            r"\w{5}\s+\w{5}",
            r"\P{L}\b",
            "(?-u:[^a])+",
            "[\u{0}-\u{10ffff}]",
            r"((a?b?)?c?)?",
        ] {
            let hir = parse(pattern);
            // The general engine builds a forward automaton with captures and a reverse one
            // without.
            for reverse in [false, true] {
                let config = regex_automata::nfa::thompson::Config::new()
                    .utf8(false)
                    .reverse(reverse)
                    .which_captures(match reverse {
                        true => regex_automata::nfa::thompson::WhichCaptures::None,
                        false => regex_automata::nfa::thompson::WhichCaptures::All,
                    })
                    // A build that needs more than this limit fails. `LATE_PART` leaves room for
                    // four estimates.
                    .nfa_size_limit(Some(2 * most_bytes(&hir) + 4096));
                let built =
                    regex_automata::nfa::thompson::Compiler::new().configure(config).build_from_hir(&hir);
                assert!(built.is_ok(), "{pattern}, {} bytes", most_bytes(&hir));
            }
        }
    }

    #[test]
    fn only_a_large_expression_is_built_at_once() {
        let automaton =
            |pattern: &str, limit| Automaton::new(Arc::new(parse(pattern)), meta::Config::new(), limit);
        let late = automaton("ab", 1 << 20).unwrap();
        assert!(late.own.get().is_none() && late.is_match("xab") && late.clone().is_match("ab"));
        assert!(automaton(r"\w{9}", 1 << 20).unwrap().own.get().is_some());
        assert!(automaton(r"\w{9}", 1000).is_err());
    }
}
