//! Code coverage: which code of each module ran, in bytes and instructions, and how often its
//! hottest block did.
//!
//! Nothing is asked for: the profile holds every block that was translated with how often it ran.
//! Code that two translations share counts once. What never ran is known by whoever knows how much
//! there is, such as `size`.

use crate::tool::{Report, Row, Summary, Tool};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Measures coverage.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coverage;

/// What ran of a module.
#[derive(Default)]
struct Covered {
    /// Addresses of instructions, and their bytes.
    instructions: BTreeSet<(u64, u8)>,
    blocks: BTreeSet<u64>,
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
            covered.instructions.extend(instructions.iter().map(|i| (block.ip + u64::from(i.offset), i.len)));
        }
        let row = |(name, covered): (String, Covered)| {
            let bytes = covered.instructions.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
            let (blocks, instructions) = (covered.blocks.len() as u64, covered.instructions.len() as u64);
            Row { name, values: vec![bytes, instructions, blocks, covered.hottest] }
        };
        let mut rows: Vec<Row> = modules.into_iter().map(row).collect();
        rows.sort_by_key(|row| Reverse(row.values[0]));
        let sum = |column: usize| rows.iter().map(|row| row.values[column]).sum();
        let report =
            Report::totals([("bytes of code", sum(0)), ("instructions", sum(1)), ("blocks", sum(2))]);
        Ok(report.with_table(["bytes", "instructions", "blocks", "hottest block"], rows))
    }
}
