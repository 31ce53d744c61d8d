//! `lightfoot count`: instructions, blocks, loads and stores (ATOM's first tool).

use super::measure::{self, Measured};
use crate::cli::Count;
use crate::engine;
use crate::progress::Watch;
use crate::report::Kind;
use anyhow::Result;
use event::Stream;
use std::ffi::OsString;

pub(super) fn run(options: &Count, all: &[OsString]) -> Result<u8> {
    let prepared = measure::prepare(&options.run, all)?;
    let mut watch = Watch::default();
    let outcome = engine::run(&prepared.command, &prepared.options(Stream::Counts), &mut watch);
    drop(watch);
    let machine = measure::host();
    prepared.finish(&Measured { kind: Kind::Count, outcome: outcome?, misses: None, machine })
}
