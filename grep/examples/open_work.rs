//! Lists what a source tree marks as open, with line numbers:
//! `cargo run -p lightfoot-grep --example open_work -- [PATH...]`.
//!
//! The search runs inside this program, with the words that a command line would have. Its status
//! is that of a check for continuous integration: success where nothing is open.

use lightfoot_grep::{command_help, main as grep, Program};
use std::ffi::OsString;
use std::process::ExitCode;

const NAME: &str = "open_work";

/// The exit status of a search without a match.
const NO_MATCH: u8 = 1;

fn main() -> ExitCode {
    let options = ["--line-number", "--word-regexp", "--sort=path", "-e", "TODO|FIXME|XXX", "--"];
    let paths = std::env::args_os().skip(1);
    let words: Vec<OsString> = options.map(OsString::from).into_iter().chain(paths).collect();
    let program = Program { name: NAME, root: || command_help(&[NAME]) };
    match grep(program, &words) {
        NO_MATCH => ExitCode::SUCCESS,
        0 => ExitCode::FAILURE,
        error => ExitCode::from(error),
    }
}
