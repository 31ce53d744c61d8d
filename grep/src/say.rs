//! Messages on standard error, and whether any of them was an error.
//!
//! A line is written at once and never while a result is being written, so that neither is torn.

use super::stdout;
use present::terminal::printable_lines;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

static SILENT: AtomicBool = AtomicBool::new(false);
static IGNORE_SILENT: AtomicBool = AtomicBool::new(false);
static ERRED: AtomicBool = AtomicBool::new(false);

/// How messages begin: the program's name.
static PROGRAM: OnceLock<&str> = OnceLock::new();

/// Whose messages they are.
pub(super) fn name(program: &'static str) {
    // Whoever called first has the name: one process is one program.
    let _ = PROGRAM.set(program);
}

/// Which messages are wanted.
pub(super) fn configure(messages: bool, ignore_messages: bool) {
    SILENT.store(!messages, Ordering::Relaxed);
    IGNORE_SILENT.store(!ignore_messages, Ordering::Relaxed);
}

/// Something went wrong and the search goes on; the exit status will be 2.
pub(super) fn error(sentence: impl std::fmt::Display) {
    ERRED.store(true, Ordering::Relaxed);
    warning(sentence);
}

/// Something that does not change the exit status.
pub(super) fn warning(sentence: impl std::fmt::Display) {
    if !SILENT.load(Ordering::Relaxed) {
        line(&sentence);
    }
}

/// Something is wrong with an ignore file.
pub(super) fn ignore(sentence: impl std::fmt::Display) {
    if !IGNORE_SILENT.load(Ordering::Relaxed) {
        warning(sentence);
    }
}

/// Whether [`error`] was called.
pub(super) fn erred() -> bool {
    ERRED.load(Ordering::Relaxed)
}

fn line(sentence: &dyn std::fmt::Display) {
    let program = PROGRAM.get().unwrap_or(&"grep");
    let text = printable_lines(&format!("{program}: {sentence}\n"));
    let turn = stdout::turn();
    // Nobody is left to be told that standard error is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
    drop(turn);
}
