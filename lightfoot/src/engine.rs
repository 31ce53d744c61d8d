//! The one place that calls `instrument`: runs a program, and gives a failure its exit status.

use crate::exit::{Failure, FAILURE};
use anyhow::Result;
use instrument::{Command, Observer, Options, Outcome};

/// Runs `command` under instrumentation.
///
/// # Errors
/// A [`Failure`] with the status that goes with it: 127 where there is no such program, 126 where it cannot be run, else 125.
pub fn run(command: &Command, options: &Options, observer: &mut dyn Observer) -> Result<Outcome> {
    instrument::run(command, options, observer).map_err(|error| {
        let status = u8::try_from(error.exit_status()).unwrap_or(FAILURE);
        Failure { status, sentence: error.to_string() }.into()
    })
}

/// What trials of the engine show on this machine: rows beside `machine`'s own, which only read files.
pub fn abilities() -> Vec<machine::Ability> {
    Vec::new()
}
