//! The commands. Each is a function from the options of its command line to an exit status.

mod align;
mod alone;
mod bench;
mod cache;
mod carrier;
mod coherence;
mod complaint;
mod complete;
mod count;
mod diff;
mod doctor;
mod heap;
mod index;
mod instrument;
mod machines;
mod man;
mod measure;
mod measured;
mod merge;
mod nameless;
mod new_tool;
mod perturb;
mod plan;
mod running;
mod show;
mod simulated;
mod study;
mod thread;
mod tile;
mod tool;
mod trace;
mod trace_file;
mod valgrind;

pub use complaint::complain;
pub use instrument::{carried, Carried};
pub use valgrind::{is_valgrind, valgrind};

use crate::cli::Command;
use anyhow::Result;
use std::ffi::OsString;

/// Commands whose exit status is the program's own.
const PROGRAM_RUNNERS: &[&str] = &["count", "cache", "heap", "tool", "trace", "plan"];

/// Runs a command.
///
/// # Errors
/// An error of one sentence, in which [`present::exit::of_error`] finds the exit status.
pub fn run(command: &Command) -> Result<u8> {
    match command {
        Command::Count(options) => count::run(options),
        Command::Cache(options) => cache::run(options),
        Command::Instrument(options) => instrument::run(options),
        Command::Bench(options) => bench::run(options),
        Command::BenchWorker(options) => bench::worker(options),
        Command::NewTool(options) => new_tool::run(options),
        Command::Diff(options) => diff::run(options),
        Command::Merge(options) => merge::run(options),
        Command::Heap(options) => heap::run(options),
        Command::Tool(options) => tool::run(options),
        Command::Trace(options) => trace::run(options),
        Command::Show(options) => show::run(options),
        Command::Align(options) => align::run(options),
        Command::Perturb(options) => perturb::run(options),
        Command::Plan(options) => plan::run(options),
        Command::Grep(options) => Ok(grep(&options.words)),
        Command::Valgrind(options) => Ok(valgrind(&options.words)),
        Command::Index(options) => index::run(options),
        Command::Lookups(options) => study::lookups(options),
        Command::Matches(options) => study::matches(options),
        Command::Kernel(options) => study::kernel(options),
        Command::Study(options) => study::run(options),
        Command::Doctor(options) => doctor::run(options),
        Command::Machines(options) => machines::run(options),
        Command::Completions(options) => complete::run(options),
        Command::Man(options) => man::run(options),
        Command::Tile(options) => tile::run(options),
        Command::TileLoop(options) => tile::run_loop(options),
    }
}

/// Runs a program that this executable carries, as the command line would.
///
/// # Errors
/// The errors of [`run`]; also if the program can neither be found nor written.
pub fn run_carried(carried: &Carried, arguments: &[OsString]) -> Result<u8> {
    let (line, _copy) = carried.command_line(arguments)?;
    run(&line.command)
}

/// Runs `grep`, which parses its flags itself.
pub fn grep(words: &[OsString]) -> u8 {
    grep::main(grep::Program { name: "lightfoot grep", root: complete::root }, words)
}

/// Whether `name` is a command whose exit status is the program's own.
pub fn runs_a_program(name: Option<&OsString>) -> bool {
    name.is_some_and(|name| PROGRAM_RUNNERS.iter().any(|command| name == command))
}
