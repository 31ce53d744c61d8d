//! The commands: each a function from its options to an exit status.

mod align;
mod cache;
mod complete;
mod count;
mod diff;
mod doctor;
mod grep;
mod index;
mod instrument;
mod man;
mod measure;
mod new_tool;
mod perturb;
mod plan;
mod study;
mod thread;
mod tile;
mod tool;
mod trace;
mod trace_file;

pub use grep::main as grep;
pub use instrument::carried;

use crate::cli::Command;
use crate::report::terminal::Page;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;

/// Commands whose exit status is the program's own.
const PROGRAM_RUNNERS: &[&str] = &["count", "cache", "tool", "trace", "plan"];

/// Runs a command.
///
/// # Errors
/// One sentence, and the exit status that [`crate::exit::of_error`] finds in it.
pub fn run(command: &Command) -> Result<u8> {
    match command {
        Command::Count(options) => count::run(options),
        Command::Cache(options) => cache::run(options),
        Command::Instrument(options) => instrument::run(options),
        Command::NewTool(options) => new_tool::run(options),
        Command::Diff(options) => diff::run(options),
        Command::Tool(options) => tool::run(options),
        Command::Trace(options) => trace::run(options),
        Command::Align(options) => align::run(options),
        Command::Perturb(options) => perturb::run(options),
        Command::Plan(options) => plan::run(options),
        Command::Grep(options) => Ok(grep::main(&options.words)),
        Command::Index(options) => index::run(options),
        Command::Lookups(options) => crate::study::lookups(options),
        Command::Study(options) => study::run(options),
        Command::Doctor(options) => doctor::run(options),
        Command::Completions(options) => complete::run(options),
        Command::Man(options) => man::run(options),
        Command::Tile(options) => tile::run(options),
        Command::TileLoop(options) => tile::run_loop(options),
    }
}

/// Whether `name` is a command whose exit status is the program's own.
pub fn runs_a_program(name: Option<&OsString>) -> bool {
    name.is_some_and(|name| PROGRAM_RUNNERS.iter().any(|command| name == command))
}

/// Says what went wrong, on standard error: in one line, unless that is a terminal.
pub fn complain(error: &anyhow::Error) {
    let said = Page::of_stderr().sentence("lightfoot: ", &format!("{error:#}"));
    // Where even this cannot be written, the exit status still tells.
    let _ = std::io::stderr().write_all(said.as_bytes());
}
