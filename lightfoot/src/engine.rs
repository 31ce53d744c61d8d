//! The one place that calls `instrument`: runs a program, and says what went wrong in words a user can act on.

use crate::exit::{Failure, FAILURE};
use anyhow::Result;
use instrument::{Command, Observer, Options, Outcome};

/// Runs `command` under instrumentation.
///
/// # Errors
/// A [`Failure`] with the status that goes with it: 127 where there is no such program, 126 where it cannot be run, else 125.
pub fn run(command: &Command, options: &Options, observer: &mut dyn Observer) -> Result<Outcome> {
    let _ = (options, observer);
    let sentence = format!("cannot run {}: this build has no engine", command.program.display());
    Err(Failure { status: FAILURE, sentence }.into())
}

/// What trials of the engine show on this machine: rows beside `machine`'s own, which only read files.
pub fn abilities() -> Vec<machine::Ability> {
    Vec::new()
}
