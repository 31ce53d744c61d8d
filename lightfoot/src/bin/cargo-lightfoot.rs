//! Lets cargo run `lightfoot …` as `cargo lightfoot …`, for those who look for it there.
//!
//! Cargo runs this program with its own name as the first word. It becomes the `lightfoot` beside
//! it, which is installed with it.

#![forbid(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    words.next_if(|word| word == "lightfoot");
    let beside = std::env::current_exe().ok().map(|this| this.with_file_name("lightfoot"));
    let program = beside.filter(|file| file.is_file()).unwrap_or_else(|| "lightfoot".into());
    let error = Command::new(&program).args(words).exec();
    eprintln!(
        "cargo-lightfoot: cannot run {}: {error}; install it with cargo install lightfoot",
        program.display()
    );
    ExitCode::from(127)
}
