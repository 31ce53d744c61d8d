//! `--by thread`: the counts of each thread.
//!
//! The engine counts how often a thread ran which blocks. Complex references and misses come from
//! its records, which observers add up for each thread. A child that shares its parent's memory
//! counts as a thread of its own process.

use crate::cli::Rep;
use crate::report::Row;
use crate::run::tally::{Counts, Misses};
use instrument::{Outcome, Thread};
use simulate::References;

/// The counts from a thread's records: its complex references, and its misses if they were
/// simulated.
pub(super) struct OfThread {
    number: u32,
    complex: References,
    misses: Option<Misses>,
}

impl OfThread {
    /// The counts of thread `number`; `complex` has its complex references by site.
    pub(super) fn new(number: u32, complex: &[References], misses: Option<Misses>) -> OfThread {
        let mut sum = References::default();
        for counts in complex {
            sum.add(counts);
        }
        OfThread { number, complex: sum, misses }
    }
}

/// The rows of all threads; `none` has a 0 for every level that exists.
pub(super) fn rows(outcome: &Outcome, records: &[OfThread], none: Counts, rep: Rep) -> Vec<Row> {
    let row = |(index, thread): (usize, &Thread)| {
        let of = records.iter().find(|of| of.number == thread.number);
        let command = outcome.processes[thread.process].command.first();
        let path = command.map_or_else(String::new, |word| word.to_string_lossy().into_owned());
        let program = path.rsplit('/').next().unwrap_or_default();
        let name = format!("#{} of {program} ({})", index + 1, thread.tid);
        Row { name, counts: counts(thread, of, none, rep), ..Row::default() }
    };
    outcome.threads.iter().enumerate().map(row).collect()
}

fn counts(thread: &Thread, of: Option<&OfThread>, none: Counts, rep: Rep) -> Counts {
    let Thread { instructions, blocks, loads, stores, .. } = *thread;
    let mut counts = Counts { instructions, blocks, loads, stores, ..none };
    let Some(OfThread { complex, misses, .. }) = of else { return counts };
    counts.loads += complex.loads;
    counts.stores += complex.stores;
    counts.instructions += rep.more(complex);
    counts.misses = misses.or(counts.misses);
    counts
}
