//! The behaviour of branches: for each conditional branch the numbers of times that it was taken
//! and not taken, and the numbers of all other control transfers.
//!
//! All numbers are counters, which cost nothing: the engine counts the exits of superblocks in any
//! case, and each outcome of a branch is an exit.

use crate::tool::{Counter, Instrumenter, Report, Row, Summary, Tool, Transfer};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

const TAKEN: u32 = 0;
const NOT_TAKEN: u32 = 1;
const JUMPS: Counter = Counter { what: 2, of: 0 };
const INDIRECT_JUMPS: Counter = Counter { what: 3, of: 0 };
const CALLS: Counter = Counter { what: 4, of: 0 };
const INDIRECT_CALLS: Counter = Counter { what: 5, of: 0 };
const RETURNS: Counter = Counter { what: 6, of: 0 };

/// Counts control transfers by kind and outcome.
#[derive(Clone, Copy, Debug, Default)]
pub struct BranchMix;

impl Tool for BranchMix {
    fn instrumenter(&mut self) -> Instrumenter {
        Box::new(|block, ask| {
            let Some(last) = block.last() else { return };
            match last.transfer() {
                Transfer::Conditional(_) => {
                    ask.count_taken(Counter { what: TAKEN, of: last.address() });
                    ask.count_not_taken(Counter { what: NOT_TAKEN, of: last.address() });
                }
                Transfer::Jump(_) => ask.count(&last, JUMPS),
                Transfer::IndirectJump => ask.count(&last, INDIRECT_JUMPS),
                Transfer::Call(_) => ask.count(&last, CALLS),
                Transfer::IndirectCall => ask.count(&last, INDIRECT_CALLS),
                Transfer::Return => ask.count(&last, RETURNS),
                Transfer::None | Transfer::SystemCall | Transfer::Other => {}
            }
        })
    }

    fn finish(&mut self, summary: &Summary<'_>) -> io::Result<Report> {
        let mut branches: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
        for (counter, times) in summary.counters().filter(|counter| counter.0.what <= NOT_TAKEN) {
            branches.entry(counter.of).or_default()[counter.what as usize] += times;
        }
        branches.retain(|_, outcomes| *outcomes != [0, 0]);
        let sum = |outcome: u32| branches.values().map(|counts| counts[outcome as usize]).sum();
        let report = Report::totals([
            ("conditional branches taken", sum(TAKEN)),
            ("conditional branches not taken", sum(NOT_TAKEN)),
            ("jumps", summary.counter(JUMPS)),
            ("indirect jumps", summary.counter(INDIRECT_JUMPS)),
            ("calls", summary.counter(CALLS)),
            ("indirect calls", summary.counter(INDIRECT_CALLS)),
            ("returns", summary.counter(RETURNS)),
        ]);
        let mut sorted: Vec<(u64, [u64; 2])> = branches.into_iter().collect();
        sorted.sort_unstable_by_key(|&(ip, [taken, not_taken])| (Reverse(taken + not_taken), ip));
        let row =
            |(ip, outcomes): (u64, [u64; 2])| Row { name: format!("{ip:#x}"), values: outcomes.to_vec() };
        let rows: Vec<Row> = sorted.into_iter().map(row).collect();
        Ok(report.with_table(["taken", "not taken"], rows))
    }
}
