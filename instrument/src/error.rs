//! Errors: why a program could not be run, with the value that failed and a remedy.

use std::fmt;
use std::path::Path;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such program (exit status 127).
    NotFound,
    /// The file exists but the kernel would not run it (126).
    NotExecutable,
    /// The file is no ELF executable and names no interpreter (126).
    NotElf,
    /// An executable for another architecture or word size (126).
    WrongArchitecture,
    /// A program whose file gives rights, which the kernel withholds from traced processes (126).
    SetUser,
    /// The system refuses `ptrace` (125).
    PtraceRefused,
    /// The program does something that the engine does not support (125).
    Unsupported,
    /// A tool made a request that cannot be fulfilled, or its analysis failed (125).
    Tool,
    /// A system call of the host failed (125).
    System,
    /// The program changed memory of the engine, so its counts cannot be trusted (1).
    MemoryChanged,
}

/// An error: its kind, and a sentence for the user.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }

    pub(crate) fn system(what: &str) -> Error {
        Error::new(ErrorKind::System, format!("{what}: {}", std::io::Error::last_os_error()))
    }

    pub(crate) fn program(kind: ErrorKind, path: &Path, why: &str) -> Error {
        Error::new(kind, format!("cannot run '{}': {why}", path.display()))
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The exit status that a shell user expects for it.
    pub fn exit_status(&self) -> i32 {
        match self.kind {
            ErrorKind::NotFound => 127,
            ErrorKind::NotExecutable
            | ErrorKind::NotElf
            | ErrorKind::WrongArchitecture
            | ErrorKind::SetUser => 126,
            ErrorKind::MemoryChanged => 1,
            _ => 125,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
