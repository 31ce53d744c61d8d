//! How a command says that it failed.

use present::terminal::{printable_lines, Page};
use std::io::Write;

/// Says what went wrong, on standard error: in one line, unless that is a terminal.
pub fn complain(error: &anyhow::Error) {
    let sentence = Page::of_stderr().sentence("lightfoot: ", &printable_lines(&format!("{error:#}")));
    // Where even this cannot be written, the exit status still tells.
    let _ = std::io::stderr().write_all(sentence.as_bytes());
}
