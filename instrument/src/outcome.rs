//! The words of a run: what is asked for, what comes out, who watches.
//!
//! Types only, below everything that runs a program; [`run`](crate::run()) uses them.

use crate::profile::Profile;
use event::{Record, Stream};
use std::ffi::OsString;
use std::path::PathBuf;
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

/// What becomes of the processes that the program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// They run natively, uncounted.
    Released,
    /// They are counted, and so are theirs. Those that the program leaves behind are counted while
    /// they work, for ten seconds at most, and until all of them have waited for a second; then
    /// they run on natively, and a warning names them.
    Followed,
    /// They are counted, and so are theirs; the run ends when the last of them has ended.
    Awaited,
}

impl Children {
    /// Whether they are counted.
    pub(crate) fn are_counted(self) -> bool {
        self != Children::Released
    }
}

/// Whether threads are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// They are counted together.
    Together,
    /// Each is counted by itself too. Costs a look at all counters when a thread ends.
    Apart,
}

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address randomisation.
    pub aslr: Aslr,
    /// What is recorded.
    pub stream: Stream,
    /// What becomes of child processes. Tools see the program alone, whatever this says.
    pub children: Children,
    /// Folder in which translations are kept from run to run, of at most a gigabyte, so that a
    /// program that ran before starts faster; `None`: they are not kept. It is made when it is
    /// needed; whatever happens to it, runs are right. Not used for tools, full streams and random
    /// addresses.
    pub translations: Option<PathBuf>,
    /// Whether threads are told apart.
    pub threads: Threads,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            aslr: Aslr::Off,
            stream: Stream::Counts,
            children: Children::Released,
            translations: None,
            threads: Threads::Together,
        }
    }
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What the measurement itself did: why a run took as long as it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Stops for code that was not translated yet, by a direct exit.
    pub exits: u64,
    /// Stops for indirect targets that the lookup table did not hold.
    pub lookups: u64,
    /// Stops at the end of a ring's segment.
    pub segments: u64,
    /// Stops before system calls that the engine must know of.
    pub system_calls: u64,
    /// Signals that were delivered to handlers.
    pub signals: u64,
    /// Fragments translated.
    pub fragments: u64,
    /// Of these, fragments translated again because they run often.
    pub tuned: u64,
    /// Bytes of generated code.
    pub code_bytes: u64,
    /// Time spent translating.
    pub translating: Duration,
    /// Time spent waiting for the observer.
    pub waiting: Duration,
}

/// A process of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number in the system while it lived.
    pub pid: i32,
    /// Index of the process that started it; `None` for the program itself.
    pub parent: Option<usize>,
    /// Arguments of its last exec, or of its parent's.
    pub command: Vec<OsString>,
    /// How it ended; `None` where it ran on without being counted.
    pub exit: Option<Exit>,
    /// Its images, by index into [`Profile::images`]: one more after each exec. None for a child
    /// that shared its parent's memory all its life: what it did is the parent's.
    pub images: Vec<u32>,
}

/// What a thread did by itself, from the exec or the birth that it began with. A child that shares
/// its parent's memory is one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number in records.
    pub number: u32,
    /// Its number in the system.
    pub tid: i32,
    /// Index of its process.
    pub process: usize,
    /// Instructions retired; a repeated string instruction counts once.
    pub instructions: u64,
    /// Blocks entered.
    pub blocks: u64,
    /// Loads, but for those of complex references.
    pub loads: u64,
    /// Stores, but for those of complex references.
    pub stores: u64,
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
    /// Counts, of all processes.
    pub profile: Profile,
    /// The program, and what it started if that was followed, as they were born.
    pub processes: Vec<Process>,
    /// The threads as they were born, where they were told apart.
    pub threads: Vec<Thread>,
    /// What the engine did.
    pub effort: EngineStats,
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

/// Who counts what complex references touched, which block counts cannot know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComplexCounts {
    /// The engine, for [`Profile::complex`] and [`Profile::repeats`]: a pass over all records
    /// before the observer's.
    ByEngine,
    /// The observer, on its own pass: the profile has none.
    ByObserver,
}

/// Receives what the program emits, on a thread of the host, while the program runs on; where there
/// is one core for both, while it waits.
pub trait Observer: Send {
    /// Records of one thread, in program order.
    fn records(&mut self, thread: u32, records: &[Record]);
    /// Asked once, before the first record.
    fn complex_counts(&self) -> ComplexCounts {
        ComplexCounts::ByEngine
    }
    /// The records that follow are those of this process image: 0 at first, a new number after each
    /// exec. Images of several processes take turns; threads are numbered over all of them.
    fn image(&mut self, _number: u32) {}
    /// This image has ended: it will have no more records.
    fn image_ended(&mut self, _number: u32) {}
    /// Called about ten times a second; where there is one core, as often as the program stops, if
    /// that is less.
    fn progress(&mut self, _progress: &Progress) {}
}

/// An observer that looks away.
pub struct Unobserved;

impl Observer for Unobserved {
    fn records(&mut self, _thread: u32, _records: &[Record]) {}
}
