//! Parse, run, end with the right status.

#![forbid(unsafe_code)]

use clap::Parser;
use lightfoot::cli::Cli;
use lightfoot::{command, exit};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let all: Vec<OsString> = std::env::args_os().collect();
    // `grep` parses its own flags, and a search of a small file should not wait for the other commands' parser.
    if all.get(1).is_some_and(|command| command == "grep") {
        return ExitCode::from(command::grep(&all[2..]));
    }
    let cli = match Cli::try_parse_from(&all) {
        Ok(cli) => cli,
        Err(said) => return ExitCode::from(explain(&said, &all)),
    };
    match command::run(&cli.command, &all) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            command::complain(&error);
            ExitCode::from(exit::of_error(&error))
        }
    }
}

/// Help, the version, or what is wrong with the command line.
fn explain(said: &clap::Error, all: &[OsString]) -> u8 {
    // A closed pipe is no reason to fail.
    let _ = said.print();
    match said.exit_code() {
        0 => 0,
        _ if command::runs_a_program(all.get(1)) => exit::FAILURE,
        _ => exit::USAGE,
    }
}
