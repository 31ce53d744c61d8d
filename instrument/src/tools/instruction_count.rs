//! Counts retired instructions, like ATOM's first example. There it takes a counter after every
//! instruction; here it costs no more than counting blocks.

use crate::tool::{Counter, Instrumenter, Report, Summary, Tool};
use std::io;

const INSTRUCTIONS: Counter = Counter { what: 0, of: 0 };
const BLOCKS: Counter = Counter { what: 1, of: 0 };

/// Counts instructions and blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct InstructionCount;

impl Tool for InstructionCount {
    fn instrumenter(&mut self) -> Instrumenter {
        Box::new(|_, ask| {
            ask.count_all(INSTRUCTIONS);
            ask.count_block(BLOCKS);
        })
    }

    fn finish(&mut self, summary: &Summary<'_>) -> io::Result<Report> {
        let (instructions, blocks) = (summary.counter(INSTRUCTIONS), summary.counter(BLOCKS));
        Ok(Report::totals([("instructions", instructions), ("blocks entered", blocks)]))
    }
}
