//! Reports the failure of a command.

use present::terminal::{printable_lines, Page};
use std::io::Write;

/// Prints an error to standard error: in one line, or wrapped if that is a terminal.
pub fn complain(error: &anyhow::Error) {
    let sentence = Page::of_stderr().sentence("lightfoot: ", &printable_lines(&format!("{error:#}")));
    // If this cannot be written either, the exit status still reports the failure.
    let _ = std::io::stderr().write_all(sentence.as_bytes());
}
