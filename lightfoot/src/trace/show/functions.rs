//! Which functions ran in a part of a trace.

use measure::trace::{Functions, Trace};
use serde::Serialize;
use std::cmp::Reverse;
use std::ops::Range;

/// Functions that a phase lists.
const LISTED: usize = 5;

/// A function of a part of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Top {
    /// Its name and library.
    pub name: String,
    /// Its instructions there.
    pub instructions: u64,
    /// Their share of all instructions there.
    pub share: f64,
}

/// The functions with the most instructions in these records, the most first; none if functions
/// were not counted.
pub(super) fn top(trace: &Trace, records: Range<usize>) -> Vec<Top> {
    let Some(functions) = &trace.functions else { return Vec::new() };
    let mut sums = summed(functions, records);
    let whole: u64 = sums.iter().map(|(_, instructions)| instructions).sum();
    sums.truncate(LISTED);
    let top = |(function, instructions): (u32, u64)| Top {
        name: functions.names[function as usize].clone(),
        instructions,
        share: instructions as f64 / whole.max(1) as f64,
    };
    sums.into_iter().map(top).collect()
}

/// Instructions by function in these records, the most first.
pub(super) fn summed(functions: &Functions, records: Range<usize>) -> Vec<(u32, u64)> {
    let mut sums = vec![0_u64; functions.names.len()];
    let end = records.end.min(functions.instructions.len());
    for (function, instructions) in functions.instructions[records.start.min(end)..end].iter().flatten() {
        sums[*function as usize] = sums[*function as usize].saturating_add(*instructions);
    }
    let ran = sums.into_iter().enumerate().filter(|(_, sum)| *sum > 0);
    let mut sums: Vec<(u32, u64)> = ran.map(|(function, sum)| (function as u32, sum)).collect();
    sums.sort_by_key(|(function, sum)| (Reverse(*sum), *function));
    sums
}
