//! Exit statuses, and errors that carry one.
//!
//! A command that runs a program ends as the program did; its own failures use the statuses that
//! shells, `env` and `timeout` use, so that a script can tell them apart. Any other command ends
//! with 0, 1 for a negative answer, 2 for a usage error, 125 for a failure.

use std::fmt;

/// Our own failure.
pub const FAILURE: u8 = 125;
/// The program cannot be run.
pub const CANNOT_RUN: u8 = 126;
/// There is no such program.
pub const NOT_FOUND: u8 = 127;
/// The user interrupted the measurement.
pub const INTERRUPTED: u8 = 130;
/// A usage error of a command that runs no program.
pub const USAGE: u8 = 2;
/// A negative answer of a command that runs no program.
pub const NEGATIVE: u8 = 1;

/// A sentence for the user, and the exit status that goes with it.
#[derive(Debug)]
pub struct Failure {
    /// Exit status.
    pub status: u8,
    /// One sentence that names the value and the remedy.
    pub sentence: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Failure {}

/// An error for what the command line, or what it names, cannot be used for: [`USAGE`] and its
/// sentence.
pub fn refused(sentence: String) -> anyhow::Error {
    Failure { status: USAGE, sentence }.into()
}

/// The status of an error that ended a command.
pub fn of_error(error: &anyhow::Error) -> u8 {
    error.downcast_ref::<Failure>().map_or(FAILURE, |failure| failure.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_status() {
        let error = anyhow::Error::new(Failure { status: CANNOT_RUN, sentence: "no".into() });
        assert_eq!(of_error(&error.context("while running")), CANNOT_RUN);
        assert_eq!(of_error(&anyhow::anyhow!("other")), FAILURE);
    }
}
