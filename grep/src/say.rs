//! Messages on standard error, and whether any of them was an error.
//!
//! A message is written at once, and never while a result is being written, so neither divides the
//! other.

use super::stdout;
use present::terminal::printable_lines;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

static SILENT: AtomicBool = AtomicBool::new(false);
static IGNORE_SILENT: AtomicBool = AtomicBool::new(false);
static ERRED: AtomicBool = AtomicBool::new(false);

/// The program's name, with which messages begin.
static PROGRAM: OnceLock<&str> = OnceLock::new();

/// Sets the name with which messages begin.
pub(super) fn name(program: &'static str) {
    // The first call sets the name: one process is one program.
    let _ = PROGRAM.set(program);
}

/// Sets which messages are written.
pub(super) fn configure(messages: bool, ignore_messages: bool) {
    SILENT.store(!messages, Ordering::Relaxed);
    IGNORE_SILENT.store(!ignore_messages, Ordering::Relaxed);
}

/// Reports an error after which the search continues; the exit status will be 2.
pub(super) fn error(sentence: impl std::fmt::Display) {
    ERRED.store(true, Ordering::Relaxed);
    warning(sentence);
}

/// Reports something that does not change the exit status.
pub(super) fn warning(sentence: impl std::fmt::Display) {
    if !SILENT.load(Ordering::Relaxed) {
        line(&sentence);
    }
}

/// Reports an error in an ignore file.
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
    // If standard error is closed, there is nowhere to report that.
    let _ = std::io::stderr().write_all(text.as_bytes());
    drop(turn);
}
