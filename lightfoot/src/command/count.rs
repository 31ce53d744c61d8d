//! `lightfoot count`: instructions, blocks, loads and stores (ATOM's first tool).

use super::measure::{self, Followed, Measured};
use super::thread::OfThread;
use crate::cli::Count;
use crate::report::Kind;
use crate::run::block_order::{Accumulator, BlockOrderAnalysis};
use crate::run::engine;
use crate::run::observe::{complete, Counter};
use anyhow::Result;
use event::Stream;
use instrument::Outcome;
use machine::Machine;

pub(super) fn run(options: &Count) -> Result<u8> {
    let prepared = measure::prepare(Kind::Count, &options.run)?;
    // Only the report needs the machine, so it is read while the program runs.
    let (machine, ran) = std::thread::scope(|scope| {
        let machine = std::thread::Builder::new().spawn_scoped(scope, Machine::host);
        let ran = if prepared.needs_course() { in_course(&prepared) } else { plainly(&prepared) };
        let read = machine.ok().and_then(|thread| thread.join().ok());
        (read.unwrap_or_else(Machine::host), ran)
    });
    let (outcome, threads, followed) = ran?;
    let machine = serde_json::to_value(machine)?;
    prepared.finish(Measured { kind: Kind::Count, outcome, simulated: None, threads, machine, followed })
}

/// The results of a run.
type Ran = (Outcome, Vec<OfThread>, Followed);

fn plainly(prepared: &measure::Prepared<'_>) -> Result<Ran> {
    let mut counter = Counter::default();
    let outcome = engine::run(&prepared.command, &prepared.options(Stream::Counts), &mut counter);
    let threads = counter.threads();
    let threads = threads.iter().map(|(number, complex)| OfThread::new(*number, &[*complex], None)).collect();
    let observed = counter.finish();
    let mut outcome = outcome?;
    complete(&mut outcome.profile, &observed);
    Ok((outcome, threads, Followed::default()))
}

fn in_course(prepared: &measure::Prepared<'_>) -> Result<Ran> {
    let sums = || Accumulator::Counted(Box::default());
    let course = prepared.course(BlockOrderAnalysis::new(sums(), Stream::Counts), sums);
    let (mut outcome, found) = prepared.run_course(course)?;
    complete(&mut outcome.profile, &found.counts.complex);
    Ok((outcome, Vec::new(), Followed::new(found, |_| None, prepared.run.rep)))
}
