//! The one entry point: a command, options, an observer; out comes an outcome.

use crate::Profile;
use event::{Record, Stream};
use std::ffi::OsString;
use std::time::Duration;

/// A program and its arguments. Environment and working directory are inherited, as natively.
#[derive(Clone, Debug)]
pub struct Command {
    /// Program, searched in `PATH` as `execvp` does.
    pub program: OsString,
    /// Arguments after the program's name.
    pub arguments: Vec<OsString>,
}

/// Whether the kernel may randomise addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aslr {
    /// Off, so that runs repeat; falls back to on, with a warning, where `personality` is refused.
    Off,
    /// As natively.
    On,
}

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address randomisation.
    pub aslr: Aslr,
    /// What is recorded.
    pub stream: Stream,
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What happened.
#[derive(Debug)]
pub struct Outcome {
    /// How the program ended.
    pub exit: Exit,
    /// Ended because the user interrupted the measurement: numbers are true up to there.
    pub interrupted: bool,
    /// Wall time from exec to end.
    pub wall: Duration,
    /// Counts.
    pub profile: Profile,
    /// Sentences that the user should see (fallbacks, refused features).
    pub warnings: Vec<String>,
}

/// A look at a run in progress.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Since exec.
    pub wall: Duration,
    /// Blocks translated so far.
    pub blocks: usize,
}

/// Receives what the program emits, on a thread of the host, while the program runs on.
pub trait Observer: Send {
    /// Records of one thread, in program order.
    fn records(&mut self, thread: u32, records: &[Record]);
    /// Called about ten times a second.
    fn progress(&mut self, _progress: &Progress) {}
}
