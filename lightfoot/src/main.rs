//! Parses the command line, runs the command, and ends with its exit status.

#![forbid(unsafe_code)]

use lightfoot::cli::{self, Cli};
use lightfoot::command;
use present::exit;
use rustix::process::{getrlimit, Resource};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;

/// With less address space, nothing can be allocated beside this executable and its libraries.
const LEAST_ADDRESS_SPACE_BYTES: u64 = 24 << 20;

fn main() -> ExitCode {
    if let Some(status) = too_little_address_space() {
        return status;
    }
    let all: Vec<OsString> = std::env::args_os().collect();
    // An instrumented program is this executable with an additional section.
    match command::carried() {
        Ok(None) => {}
        Ok(Some(carried)) => return status(command::run_carried(&carried, &all[1..])),
        Err(error) => return status(Err(error)),
    }
    // `grep` parses its own flags, and a search of a small file should not wait for the other
    // commands' parser.
    if all.get(1).is_some_and(|command| command == "grep") {
        return ExitCode::from(command::grep(&all[2..]));
    }
    // So does `valgrind`, whose options are Valgrind's, and a link of that name.
    if command::is_valgrind(all.first()) {
        return ExitCode::from(command::valgrind(&all[1..]));
    }
    if all.get(1).is_some_and(|command| command == "valgrind") {
        return ExitCode::from(command::valgrind(&all[2..]));
    }
    let cli = match Cli::read(&all) {
        Ok(cli) => cli,
        Err(error) => return status(explain(&error, &all)),
    };
    status(command::run(&cli.command))
}

/// Reports that the address space is too small to start in, and returns the exit status: the first
/// allocation would end the process without a message. Allocates nothing.
fn too_little_address_space() -> Option<ExitCode> {
    let limit = getrlimit(Resource::As).current?;
    if limit >= LEAST_ADDRESS_SPACE_BYTES {
        return None;
    }
    let sentence = b"lightfoot: 'ulimit -v' allows less than the 24576 KB that it takes to start: raise it\n";
    // If this fails, there is nowhere to report it.
    let _ = rustix::io::write(rustix::stdio::stderr(), sentence);
    Some(ExitCode::from(exit::FAILURE))
}

/// The exit status of a command, or that of its error.
fn status(result: anyhow::Result<u8>) -> ExitCode {
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            command::complain(&error);
            ExitCode::from(exit::of_error(&error))
        }
    }
}

/// Prints help or the version, or returns an error in the command line.
fn explain(error: &clap::Error, all: &[OsString]) -> anyhow::Result<u8> {
    let wrong = match error.exit_code() {
        0 => 0,
        _ if command::runs_a_program(all.get(1)) => exit::FAILURE,
        _ => exit::USAGE,
    };
    if let Some(sentence) = cli::refusal(error) {
        return Err(exit::Failure { status: wrong, sentence }.into());
    }
    match error.print() {
        // A reader that closes the pipe is no failure; other errors while help is written are.
        Err(error) if wrong == 0 && error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("cannot write to standard output"))
        }
        _ => Ok(wrong),
    }
}
