//! `lightfoot count`: instructions, blocks, loads and stores (ATOM's first tool).

use super::measure::{self, Followed, Measured};
use super::thread::OfThread;
use crate::cli::Count;
use crate::course::{Course, Sums};
use crate::engine;
use crate::observe::{complete, Counter};
use crate::report::Kind;
use anyhow::Result;
use event::Stream;
use instrument::Outcome;
use machine::Machine;

pub(super) fn run(options: &Count) -> Result<u8> {
    let prepared = measure::prepare(Kind::Count, &options.run)?;
    let machine = serde_json::to_value(Machine::host())?;
    let (outcome, threads, followed) = match prepared.needs_course() {
        true => in_course(&prepared)?,
        false => plainly(&prepared)?,
    };
    prepared.finish(Measured { kind: Kind::Count, outcome, simulated: None, threads, machine, followed })
}

/// What a run gave.
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
    let sums = || Sums::Counted(Box::default());
    let course = prepared.course(Course::new(sums(), Stream::Counts), sums);
    let (mut outcome, found) = prepared.run_course(course)?;
    complete(&mut outcome.profile, &found.counts.complex);
    Ok((outcome, Vec::new(), Followed::new(found, |_| None)))
}
