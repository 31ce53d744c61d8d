//! `lightfoot-grep`: the search of `lightfoot grep` as a program of its own, without the rest of
//! lightfoot.

#![forbid(unsafe_code)]

use lightfoot_grep::{command_help, Program};
use std::ffi::OsString;
use std::process::ExitCode;

const NAME: &str = "lightfoot-grep";

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let program = Program { name: NAME, root: || command_help(&[NAME]) };
    ExitCode::from(lightfoot_grep::main(program, &words))
}
