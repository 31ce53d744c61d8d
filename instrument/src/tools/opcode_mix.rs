//! Counts retired instructions by opcode, with a counter for each; most frequent first.

use crate::tool::{opcode_name, Counter, Instrumenter, Report, Row, Summary, Tool};
use std::cmp::Reverse;
use std::io;

/// Counts instructions by opcode.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpcodeMix;

impl Tool for OpcodeMix {
    fn instrumenter(&mut self) -> Instrumenter {
        Box::new(|block, ask| {
            for instruction in block.instructions() {
                ask.count(&instruction, Counter { what: 0, of: u64::from(instruction.opcode()) });
            }
        })
    }

    fn finish(&mut self, summary: &Summary<'_>) -> io::Result<Report> {
        let mut counted: Vec<(Counter, u64)> = summary.counters().filter(|counted| counted.1 > 0).collect();
        counted.sort_unstable_by_key(|&(counter, times)| (Reverse(times), counter.of));
        let row = |&(counter, times): &(Counter, u64)| Row {
            name: opcode_name(counter.of as u16),
            values: vec![times],
        };
        let rows: Vec<Row> = counted.iter().map(row).collect();
        let instructions = counted.iter().map(|counted| counted.1).sum();
        Ok(Report::totals([("instructions", instructions), ("opcodes", rows.len() as u64)])
            .with_table(["times"], rows))
    }
}
