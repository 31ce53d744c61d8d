//! Code coverage: the numbers of bytes, instructions and blocks of each module that ran, and the
//! executions of its hottest block.
//!
//! The tool makes no requests: the profile already holds every translated block with its number of
//! executions. Code that two translations share counts once. **Leaves out** the share of code that
//! never ran; compare with the size of a module's text, for example as `size` prints it.

use crate::tool::{Report, Row, Summary, Tool};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Measures coverage.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coverage;

/// The code of one module that ran.
#[derive(Default)]
struct Covered {
    /// Addresses and lengths in bytes of the instructions that ran.
    instructions: BTreeSet<(u64, u8)>,
    /// Addresses of the blocks that ran.
    blocks: BTreeSet<u64>,
    /// Executions of the block that ran most often.
    hottest: u64,
}

impl Tool for Coverage {
    fn finish(&mut self, summary: &Summary<'_>) -> io::Result<Report> {
        let profile = &summary.outcome().profile;
        let mut modules: BTreeMap<String, Covered> = BTreeMap::new();
        for block in profile.blocks.iter().filter(|block| block.executions > 0) {
            let path = profile.modules[block.module as usize].path.display().to_string();
            let covered = modules.entry(path).or_default();
            covered.blocks.insert(block.ip);
            covered.hottest = covered.hottest.max(block.executions);
            let instructions = &profile.instructions[block.first as usize..][..block.count as usize];
            covered.instructions.extend(
                instructions
                    .iter()
                    .map(|instruction| (block.ip + u64::from(instruction.offset), instruction.len)),
            );
        }
        let row = |(name, covered): (String, Covered)| {
            let bytes = covered.instructions.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
            let (blocks, instructions) = (covered.blocks.len() as u64, covered.instructions.len() as u64);
            Row { name, values: vec![bytes, instructions, blocks, covered.hottest] }
        };
        let mut rows: Vec<Row> = modules.into_iter().map(row).collect();
        rows.sort_unstable_by(|one, other| {
            other.values[0].cmp(&one.values[0]).then_with(|| one.name.cmp(&other.name))
        });
        let sum = |column: usize| rows.iter().map(|row| row.values[column]).sum();
        let report =
            Report::totals([("bytes of code", sum(0)), ("instructions", sum(1)), ("blocks", sum(2))]);
        Ok(report.with_table(["bytes", "instructions", "blocks", "hottest block"], rows))
    }
}
