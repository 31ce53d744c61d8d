//! `lightfoot count`: instructions, blocks, loads and stores (ATOM's first tool).

use super::measure::{self, Followed, InRegion, Measured};
use super::thread::OfThread;
use crate::cli::Count;
use crate::report::Kind;
use crate::run::block_order::{Accumulator, BlockOrderAnalysis};
use crate::run::complex::complete;
use crate::run::engine;
use crate::run::images::Images;
use crate::run::observe::Counted;
use crate::run::sections::Recorded;
use anyhow::{bail, Result};
use event::Stream;
use instrument::virtual_machine::ThreadOrder;
use instrument::{CallRecords, Outcome};
use machine::Machine;

pub(super) fn run(options: &Count) -> Result<u8> {
    let prepared = measure::prepare(Kind::Count, &options.run)?;
    if let Some(quantum) = options.run.shown.quantum {
        if !options.run.shown.turns {
            bail!("--quantum {quantum} ends turns of threads: add --repeatable --turns");
        }
        if options.run.region.is_some() || prepared.needs_course() {
            bail!("--quantum counts the whole run: leave out --region and formats with calls");
        }
    }
    prepared.finish_layouts(|| measured(options, &prepared))
}

fn measured(options: &Count, prepared: &measure::Prepared<'_>) -> Result<Measured<'static>> {
    // Only the report needs the machine, so it is read while the program runs.
    let (machine, ran) = std::thread::scope(|scope| {
        let machine = std::thread::Builder::new().spawn_scoped(scope, Machine::host);
        let ran = match &options.run.region {
            _ if prepared.needs_course() => in_course(prepared),
            Some(name) => in_region(prepared, name),
            None => plainly(prepared),
        };
        let read = machine.ok().and_then(|thread| thread.join().ok());
        (read.unwrap_or_else(Machine::host), ran)
    });
    let Ran { outcome, images, threads, followed } = ran?;
    let machine = serde_json::to_value(machine)?;
    let kind = Kind::Count;
    Ok(Measured { kind, outcome, simulated: None, images, threads, machine, followed, objects: None })
}

/// The results of a run.
struct Ran {
    outcome: Outcome,
    images: Option<Images<'static>>,
    threads: Vec<OfThread>,
    followed: Followed,
}

fn plainly(prepared: &measure::Prepared<'_>) -> Result<Ran> {
    let mut options = prepared.options(Stream::Counts);
    if let Some(quantum) = prepared.run.shown.quantum {
        // A turn ends behind some records, by the thread's running sum of instructions.
        (options.stream, options.calls) = (Stream::References, CallRecords::Instructions);
        options.machine.threads = ThreadOrder::InTurnsOf(quantum);
    }
    let mut counted = Counted::new(prepared.images(None), options.threads);
    let outcome = engine::run(&prepared.command, &options, &mut counted);
    let (images, threads) = counted.finish();
    let threads = threads.iter().map(|(number, complex)| OfThread::new(*number, &[*complex], None)).collect();
    Ok(Ran { outcome: outcome?, images, threads, followed: Followed::default() })
}

fn in_region(prepared: &measure::Prepared<'_>, name: &str) -> Result<Ran> {
    let InRegion { outcome, images, followed, .. } =
        prepared.run_region(name, (Stream::Counts, Recorded::Counted), None)?;
    Ok(Ran { outcome, images, threads: Vec::new(), followed })
}

fn in_course(prepared: &measure::Prepared<'_>) -> Result<Ran> {
    let sums = || Accumulator::Counted(Box::default());
    let course = prepared.course(BlockOrderAnalysis::new(sums(), Stream::Counts), sums);
    let (mut outcome, found) = prepared.run_course(course)?;
    complete(&mut outcome.profile, &found.counts.complex);
    let followed = Followed::new(found, |_| None, prepared.run.rep);
    Ok(Ran { outcome, images: None, threads: Vec::new(), followed })
}
