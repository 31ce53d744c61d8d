//! `lightfoot-grep`: the search of `lightfoot grep` as a program of its own, without the rest of
//! lightfoot.
//!
//! Through a link that is called `rg` it answers to that name: messages, help, manual page and
//! completions then have it, so that scripts and editors that start ripgrep start this search.

#![forbid(unsafe_code)]

use lightfoot_grep::{command_help, Program};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

const NAME: &str = "lightfoot-grep";

/// The name of the program whose flags these are.
const COMPATIBLE_NAME: &str = "rg";

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let called = words.next();
    let words: Vec<OsString> = words.collect();
    let is_compatible =
        called.as_deref().map(Path::new).and_then(Path::file_name) == Some(OsStr::new(COMPATIBLE_NAME));
    let program = match is_compatible {
        true => Program { name: COMPATIBLE_NAME, root: || command_help(&[COMPATIBLE_NAME]) },
        false => Program { name: NAME, root: || command_help(&[NAME]) },
    };
    ExitCode::from(lightfoot_grep::main(program, &words))
}
