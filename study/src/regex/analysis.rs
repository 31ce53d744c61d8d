//! Section 4 of the paper, which has only its headings, computed: operations and memory for each
//! byte by bit streams, by a DFA and by an NFA.
//!
//! A program of bit streams executes each of its operations once for a block of text, whatever the
//! text holds (bodies that are skipped count in full, so that this is a bound; loops count once). A
//! DFA reads one table entry a byte, from a table whose size is what determinization gives; an NFA
//! simulation visits its active states, of which there are at most as many as it has.

use super::matches::automaton;
use pattern::program::{Instruction, Op};
use pattern::RegexBuilder;
use regex_automata::dfa::dense;
use serde::{Deserialize, Serialize};

/// A table larger than this is given up.
const TABLE_BYTES_MAX: usize = 64 << 20;

/// What one pattern comes to.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Analysis {
    /// Operations of the program: logic, and what carries from block to block.
    pub(super) logic: usize,
    pub(super) carrying: usize,
    /// States of the NFA.
    pub(super) nfa_states: usize,
    /// Bytes of the DFA's table; none where it grows beyond 64 MB.
    pub(super) dfa_bytes: Option<usize>,
}

impl Analysis {
    /// Of one pattern; nothing where it has no program.
    pub(super) fn of(pattern: &str) -> Option<Analysis> {
        let regex = RegexBuilder::new().engine("streams").build(pattern).ok()?;
        let (logic, carrying) = operations(&regex.program()?.body);
        let nfa = automaton(pattern).ok()?;
        let config = dense::Config::new()
            .dfa_size_limit(Some(TABLE_BYTES_MAX))
            .determinize_size_limit(Some(TABLE_BYTES_MAX));
        let dfa = dense::Builder::new().configure(config).build_from_nfa(&nfa).ok();
        Some(Analysis {
            logic,
            carrying,
            nfa_states: nfa.states().len(),
            dfa_bytes: dfa.map(|dfa| dfa.memory_usage()),
        })
    }

    /// Operations for a byte with vectors of so many bits, transposition and character classes
    /// included: each is one instruction at the least.
    pub(super) fn operations_per_byte(&self, vector_bits: usize) -> f64 {
        (self.logic + self.carrying) as f64 / vector_bits as f64
    }
}

/// Operations on streams in a body and in those within: logic, and what carries.
fn operations(body: &[Instruction]) -> (usize, usize) {
    let (mut logic, mut carrying) = (0, 0);
    for one in body {
        match &one.op {
            Op::Basis { delay: 0, .. } | Op::Zero | Op::Ones => (),
            Op::IfAny { body, .. } | Op::WhileAny { body, .. } => {
                let (inner_logic, inner_carrying) = operations(body);
                logic += inner_logic + 1;
                carrying += inner_carrying;
            }
            op if op.carry().is_some() => carrying += 1,
            _ => logic += 1,
        }
    }
    (logic, carrying)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_analysis_tells_patterns_apart() {
        let simple = Analysis::of("@").unwrap();
        let date = Analysis::of("([0-9][0-9]?)/([0-9][0-9]?)/([0-9][0-9]([0-9][0-9])?)").unwrap();
        assert!(simple.logic > 0 && date.logic > simple.logic && date.carrying > simple.carrying);
        assert!(date.nfa_states > simple.nfa_states && date.dfa_bytes > simple.dfa_bytes);
        assert!(date.operations_per_byte(512) * 4.0 == date.operations_per_byte(128));
        // Which of 22 characters back was a or b: two to the twenty-second states.
        assert_eq!(Analysis::of("[ab].{20}[cd].{20}[ef]").unwrap().dfa_bytes, None);
    }
}
