//! The types of a run: its options, its outcome, and the observer.
//!
//! They do nothing by themselves; [`run`](crate::run()) uses them.

use crate::call::{CallRecords, DirectTarget, Ticks};
use crate::mark::{Deed, PartCounts};
use crate::profile::{Module, Numbering, Profile};
use crate::virtual_machine::VirtualMachine;
use event::{Counter, Record, Stream, Upcoming};
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
    /// On, as in a native run.
    On,
}

/// What the engine does with processes that the program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// Children run natively and are not counted.
    Released,
    /// Children are counted, and so are their own children. Processes that outlive the program are
    /// counted until all of them have been idle for a second, but at most for ten seconds. Then
    /// they run on natively, and a warning names them.
    Followed,
    /// Children are counted, and so are their own children. The run ends when the last of them has
    /// ended.
    Awaited,
}

impl Children {
    /// Whether children are counted.
    pub(crate) fn are_counted(self) -> bool {
        self != Children::Released
    }
}

/// Whether threads are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// All threads are counted together.
    Together,
    /// Each thread is also counted by itself. Cost: a pass over all counters when a thread ends.
    Apart,
}

/// A program that runs already, and how long it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// The number of its process.
    pub pid: i32,
    /// How long it is measured; `None`: until Ctrl-C, or until it ends.
    pub window: Option<Duration>,
}

/// How long a program that ran already stood still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standstill {
    /// From the stop of its first thread until all threads ran under the engine.
    pub at_begin: Duration,
    /// From the request to leave until all threads ran natively.
    pub at_end: Duration,
}

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address randomisation.
    pub aslr: Aslr,
    /// The references that are recorded.
    pub stream: Stream,
    /// What to do with child processes. With a [`Tool`](crate::tool::Tool), children always run
    /// natively.
    pub children: Children,
    /// Folder in which translations are kept from run to run, of at most a gigabyte, so that a
    /// program that ran before starts faster; `None`: they are not kept from run to run, but
    /// processes that are counted share them in memory. The folder is made when it is needed, and a
    /// run does not depend on whether it can be used. Runs with tools, full streams or random
    /// addresses keep nothing.
    pub translations: Option<PathBuf>,
    /// Whether threads are counted separately.
    pub threads: Threads,
    /// The machine that the program is shown.
    pub machine: VirtualMachine,
    /// Whether calls are recorded.
    pub calls: CallRecords,
    /// The running program to measure instead of starting one. It is entered and left without a
    /// change of its state; its children run natively, and nothing is kept for later runs.
    pub running: Option<Running>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            aslr: Aslr::Off,
            stream: Stream::Counts,
            children: Children::Released,
            translations: None,
            threads: Threads::Together,
            machine: VirtualMachine::default(),
            calls: CallRecords::None,
            running: None,
        }
    }
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
    /// It ran before the measurement, and runs on after it.
    RunsOn,
}

impl Exit {
    /// The exit status that a shell would report: 128 and the number of a signal that ended the
    /// program; 0 if it runs on.
    pub fn status(self) -> u8 {
        match self {
            Exit::Code(code) => code as u8,
            Exit::Signal(signal) => (128 + signal) as u8,
            Exit::RunsOn => 0,
        }
    }
}

/// Statistics of the engine, which explain how long a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Stops for code that was not translated yet, by a direct exit.
    pub exits: u64,
    /// Stops for indirect targets that the lookup table did not hold.
    pub lookups: u64,
    /// Stops at the end of a ring's segment.
    pub segments: u64,
    /// Stops before system calls that the engine must see.
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
    /// How it ended; `None` if it ran on without being counted.
    pub exit: Option<Exit>,
    /// Its images, by the numbers that observers are told: one more after each exec. Empty for a
    /// child that shared its parent's memory all its life, whose counts are the parent's.
    pub images: Vec<u32>,
}

/// The counts of one thread, from its birth or its exec on. A child that shares its parent's memory
/// counts as a thread.
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
    /// Loads, except those of complex references.
    pub loads: u64,
    /// Stores, except those of complex references.
    pub stores: u64,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// How the program ended.
    pub exit: Exit,
    /// Whether the user interrupted the measurement; the numbers are true up to that point.
    pub interrupted: bool,
    /// Wall time from exec to end.
    pub wall: Duration,
    /// The counts of all processes.
    pub profile: Profile,
    /// Records that the observer received, by kind.
    pub records: Counter,
    /// The program, and the processes that were followed, in the order of their births.
    pub processes: Vec<Process>,
    /// The threads in the order of their births, if the run counted by thread.
    pub threads: Vec<Thread>,
    /// How long the program stood still, if it ran already.
    pub standstill: Option<Standstill>,
    /// Statistics of the engine.
    pub stats: EngineStats,
    /// Sentences that the user should see (fallbacks, refused features).
    pub warnings: Vec<String>,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since the exec.
    pub wall: Duration,
    /// Blocks translated so far.
    pub blocks: usize,
}

/// Which side counts the loads and stores of complex references, which block counts do not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComplexCounts {
    /// The engine, which fills in [`Profile::complex`] and [`Profile::repeats`] by a pass over all
    /// records before the observer's.
    ByEngine,
    /// The observer, in its own pass; the profile has no such counts.
    ByObserver,
}

/// A process image that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedImage<'a> {
    /// Its number.
    pub number: u32,
    /// Its own counts. They are part of [`Outcome::profile`], where blocks and sites have other
    /// numbers.
    pub profile: &'a Profile,
    /// The numbers of its blocks and sites in [`Outcome::profile`].
    pub numbering: &'a Numbering,
    /// What its threads counted between marks, under the image's own numbers, in the order of the
    /// cuts; empty unless the run has a marker.
    pub parts: &'a [PartCounts],
}

/// How a turn of a thread begins, where threads run in turns that have a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnStart {
    /// The thread goes on where its last turn ended because it was long enough: nothing has held it
    /// up.
    GoesOn,
    /// The thread begins, or has waited in a system call: it may depend on all that came before.
    Waited,
}

/// Receives the program's records on a thread of the host, while the program runs on. If there is
/// only one core for both, the program waits meanwhile.
pub trait Observer: Send {
    /// Records of one thread, in program order.
    fn records(&mut self, thread: u32, records: &[Record]);
    /// Records of one thread, and where the records lie that follow them. An observer that works on
    /// records for a while may prefetch the next ones meanwhile.
    fn records_before(&mut self, thread: u32, records: &[Record], _next: Upcoming) {
        self.records(thread, records);
    }
    /// Which side counts complex references. Called once, before the first record.
    fn complex_counts(&self) -> ComplexCounts {
        ComplexCounts::ByEngine
    }
    /// Called before records of another process image than the last ones. The first image has
    /// number 0, and each exec starts a new one. Images of several processes may take turns;
    /// threads are numbered over all of them.
    fn image(&mut self, _number: u32) {}
    /// This thread of an image has ended, and others of the image have not: it will have no more
    /// records. A child that shared the image's memory ends so when it executes a program.
    fn thread_ended(&mut self, _image: u32, _thread: u32) {}
    /// Modules of this image that were met since the last call. Told where calls are recorded, or
    /// a tool's events under [`run_observed`](crate::tool::run_observed), before records of their
    /// code.
    fn modules(&mut self, _image: u32, _more: &[Module]) {}
    /// Addresses of the instructions of this image's sites, of those that were added since the last
    /// call. Told under [`run_observed`](crate::tool::run_observed), before records of these sites.
    fn sites(&mut self, _image: u32, _more: &[u64]) {}
    /// Targets of this image's direct calls and jumps that were met since the last call. Told where
    /// calls are recorded, before records of these blocks.
    fn targets(&mut self, _image: u32, _more: &[DirectTarget]) {}
    /// The running sums of this thread of an image, which has recorded everything before them. Told
    /// where calls are recorded, before each mark and before the thread's end.
    fn ticks(&mut self, _image: u32, _thread: u32, _ticks: Ticks) {}
    /// This thread of an image has reached a mark, behind all records that it was told of.
    fn marked(&mut self, _image: u32, _thread: u32, _deed: Deed) {}
    /// A thread has forked a child, behind all records of it that were told; the child has none
    /// yet. Told where a tool's events are recorded and children are followed.
    fn forked(&mut self, _fork: &Fork) {}
    /// The turn of this thread of an image begins, behind all records that were told. Told where
    /// turns have a length, from the second thread on.
    fn turn(&mut self, _image: u32, _thread: u32, _start: TurnStart) {}
    /// This image has ended: it will have no more records. Each image of a run ends.
    fn image_ended(&mut self, _image: &EndedImage<'_>) {}
    /// Called about ten times a second. If there is only one core, it is called after stops only,
    /// so it may be called less often.
    fn progress(&mut self, _progress: &Progress) {}
}

/// A process that was forked: its memory begins as a copy of its maker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The image and the thread that have forked it.
    pub maker: (u32, u32),
    /// Its image and its thread.
    pub made: (u32, u32),
    /// Instructions of the maker's thread so far, if threads keep a running sum of them.
    pub instructions: u64,
}

/// An observer that ignores everything.
pub struct Unobserved;

impl Observer for Unobserved {
    fn records(&mut self, _thread: u32, _records: &[Record]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_end_as_a_shell_says() {
        assert_eq!(Exit::Code(3).status(), 3);
        assert_eq!(Exit::Code(255).status(), 255);
        assert_eq!(Exit::Signal(11).status(), 139);
        assert_eq!(Exit::RunsOn.status(), 0);
    }
}
