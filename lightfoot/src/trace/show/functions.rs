//! Which functions ran in a part of a trace.

use measure::trace::{Functions, Trace};
use serde::Serialize;
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
    let sums = summed(functions, records);
    let whole: u64 = sums.iter().map(|(_, instructions)| instructions).sum();
    let top = |(function, instructions): (u32, u64)| Top {
        name: functions.names[function as usize].clone(),
        instructions,
        share: instructions as f64 / whole.max(1) as f64,
    };
    most(sums, LISTED).into_iter().map(top).collect()
}

/// The `count` functions with the most instructions, the most first; of equal ones the first.
pub(super) fn most(mut sums: Vec<(u32, u64)>, count: usize) -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    while found.len() < count && !sums.is_empty() {
        let mut at = 0;
        for (index, sum) in sums.iter().enumerate() {
            at = if sum.1 > sums[at].1 { index } else { at };
        }
        found.push(sums.remove(at));
    }
    found
}

/// Instructions by function in these records, by number.
pub(super) fn summed(functions: &Functions, records: Range<usize>) -> Vec<(u32, u64)> {
    let mut sums = vec![0_u64; functions.names.len()];
    let end = records.end.min(functions.instructions.len());
    for (function, instructions) in functions.instructions[records.start.min(end)..end].iter().flatten() {
        sums[*function as usize] = sums[*function as usize].saturating_add(*instructions);
    }
    let mut ran = Vec::new();
    for (function, sum) in sums.into_iter().enumerate().filter(|(_, sum)| *sum > 0) {
        ran.push((function as u32, sum));
    }
    ran
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_come_first() {
        let sums = vec![(0, 5), (3, 9), (4, 9), (7, 1)];
        assert_eq!(most(sums.clone(), 3), [(3, 9), (4, 9), (0, 5)]);
        assert_eq!(most(sums, 9).len(), 4);
    }
}
