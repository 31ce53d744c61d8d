//! `lightfoot count`: instructions, blocks, loads and stores (ATOM's first tool).

use super::measure::{self, Measured};
use crate::cli::Count;
use crate::engine;
use crate::observe::{complete, Counter};
use crate::report::Kind;
use anyhow::Result;
use event::Stream;
use machine::Machine;
use std::ffi::OsString;

pub(super) fn run(options: &Count, all: &[OsString]) -> Result<u8> {
    let prepared = measure::prepare(&options.run, all)?;
    let mut counter = Counter::default();
    let outcome = engine::run(&prepared.command, &prepared.options(Stream::Counts), &mut counter);
    let observed = counter.finish();
    let mut outcome = outcome?;
    complete(&mut outcome.profile, &observed);
    let machine = serde_json::to_value(Machine::host())?;
    prepared.finish(&Measured { kind: Kind::Count, outcome, simulated: None, machine })
}
