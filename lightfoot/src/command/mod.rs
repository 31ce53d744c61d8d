//! The commands: each a function from its options to an exit status.

mod cache;
mod count;
mod doctor;
mod grep;
mod index;
mod measure;
mod study;
mod tile;
mod tool;

pub use grep::main as grep;

use crate::cli::Command;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;

/// Commands whose exit status is the program's own.
const PROGRAM_RUNNERS: &[&str] = &["count", "cache", "tool"];

/// Runs a command; `all` is the whole command line.
///
/// # Errors
/// One sentence, and the exit status that [`crate::exit::of_error`] finds in it.
pub fn run(command: &Command, all: &[OsString]) -> Result<u8> {
    match command {
        Command::Count(options) => count::run(options, all),
        Command::Cache(options) => cache::run(options, all),
        Command::Tool(options) => tool::run(options, all),
        Command::Grep(options) => Ok(grep::main(&options.words)),
        Command::Index(options) => index::run(options),
        Command::Lookups(options) => crate::study::lookups(options),
        Command::Study(options) => study::run(options),
        Command::Doctor(options) => doctor::run(options),
        Command::Tile(options) => tile::run(options),
        Command::TileLoop(options) => tile::run_loop(options),
    }
}

/// Whether `name` is a command whose exit status is the program's own.
pub fn runs_a_program(name: Option<&OsString>) -> bool {
    name.is_some_and(|name| PROGRAM_RUNNERS.iter().any(|command| name == command))
}

/// Says what went wrong, on standard error, in one line.
pub fn complain(error: &anyhow::Error) {
    // Where even this cannot be written, the exit status still tells.
    let _ = writeln!(std::io::stderr(), "lightfoot: {error:#}");
}
