//! The one entry point: a command, options, an observer; out comes an outcome.

use crate::affinity::{self, Binding};
use crate::error::{Error, ErrorKind};
use crate::executable;
use crate::host::{Host, Observing, OBSERVER_FAILED};
use crate::layout::context;
use crate::probe::SharedProbes;
use crate::profile::Profile;
use crate::ptrace::{self, Spawn};
use crate::ring::{self, Watch};
use crate::tool::SharedAsking;
use event::{FetchFilter, Record, SetFilter, Stream, KEPT_LINES_MAX, KEPT_SETS_MAX};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

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
    /// They are counted, and so are theirs; the run ends when the last of them has ended.
    Followed,
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
    /// Folder in which translations are kept from run to run, of at most a gigabyte, so that a program that ran before starts faster; `None`: they
    /// are not kept. It is made when it is needed; whatever happens to it, runs are right. Not used for tools, full streams and random addresses.
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
pub struct Effort {
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
    /// Its images, by index into [`Profile::images`]: one more after each exec. None for a child that shared its parent's memory all
    /// its life: what it did is the parent's.
    pub images: Vec<u32>,
}

/// What a thread did by itself, from the exec or the birth that it began with. A child that shares its parent's memory is one too.
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
    /// Stores likewise.
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
    pub effort: Effort,
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
    /// The engine, for [`Profile::complex`] and [`Profile::repeats`]: a pass over all records before the observer's.
    ByEngine,
    /// The observer, on its own pass: the profile has none.
    ByObserver,
}

/// Receives what the program emits, on a thread of the host, while the program runs on; where there is one core for both, while it waits.
pub trait Observer: Send {
    /// Records of one thread, in program order.
    fn records(&mut self, thread: u32, records: &[Record]);
    /// Asked once, before the first record.
    fn complex_counts(&self) -> ComplexCounts {
        ComplexCounts::ByEngine
    }
    /// The records that follow are those of this process image: 0 at first, a new number after each exec. Images of several processes take
    /// turns; threads are numbered over all of them.
    fn image(&mut self, _number: u32) {}
    /// This image has ended: it will have no more records.
    fn image_ended(&mut self, _number: u32) {}
    /// Called about ten times a second; where there is one core, as often as the program stops, if that is less.
    fn progress(&mut self, _progress: &Progress) {}
}

/// An observer that looks away.
pub struct Unobserved;

impl Observer for Unobserved {
    fn records(&mut self, _thread: u32, _records: &[Record]) {}
}

/// Runs `command` under the engine until it ends.
///
/// The program's descriptors are the caller's own. While it runs, Ctrl-C reaches it as natively; the host only notes it.
/// Cost: about 10 ms to start; see `results/` for the slowdown.
///
/// # Errors
/// When the program cannot be started or traced, or does what the engine does not support; the program is then killed.
pub fn run(command: &Command, options: &Options, observer: &mut dyn Observer) -> Result<Outcome, Error> {
    run_asking(command, options, observer, None, None)
}

/// [`run`] with a tool's instrumentation code, and with probes.
pub(crate) fn run_asking(
    command: &Command,
    options: &Options,
    observer: &mut dyn Observer,
    asking: Option<SharedAsking>,
    probes: Option<SharedProbes>,
) -> Result<Outcome, Error> {
    let path = executable::locate(&command.program)?;
    let mut translations = options.translations.clone();
    let started = Instant::now();
    let mut warnings = Vec::new();
    let pid = match spawn(&path, command, options)? {
        Spawn::Started { pid, fixed_addresses } => {
            if !fixed_addresses {
                let why = "the system refuses personality(ADDR_NO_RANDOMIZE) (a container's seccomp profile?), so addresses are \
                           randomised and runs do not repeat exactly";
                warnings.push(why.to_string());
                translations = None;
            }
            pid
        }
        Spawn::ExecFailed(error) => return Err(exec_failed(&path, error)),
    };
    let (give, incoming) = mpsc::channel();
    let (done, returned) = mpsc::channel();
    let blocks = Arc::new(AtomicUsize::new(0));
    let watch = Watch::new(observer, blocks.clone(), started);
    let binding = Binding::new(pid);
    let elsewhere = binding.observer();
    let stream = bounded(options.stream);
    let (ended, tally) = std::thread::scope(|scope| {
        let records = matches!(stream, Stream::Filtered(_) | Stream::Full);
        let (observing, watcher) = if binding.is_single() && records {
            (Observing::Here(Box::new(watch)), None)
        } else {
            let watcher = scope.spawn(move || {
                elsewhere.iter().for_each(affinity::move_here);
                ring::observe(watch, &incoming, &done)
            });
            (Observing::There(give), Some(watcher))
        };
        let threads = options.threads;
        let mut host = Host::new(pid, stream, observing, returned, blocks, binding);
        if asking.is_none() {
            host.children = options.children;
            let kept =
                matches!(options.stream, Stream::Counts | Stream::Filtered(_)) && options.aslr == Aslr::Off;
            host.translations = translations.filter(|_| kept);
        }
        host.asking = asking;
        host.told = threads;
        host.probes = probes;
        let ended = host.control();
        let tally = host.close();
        (ended, watcher.map_or(Ok(tally), |watcher| watcher.join().map(Some)))
    });
    let mut ended = ended?;
    let tally = tally.map_err(|_| Error::new(ErrorKind::System, OBSERVER_FAILED))?.unwrap_or_default();
    warnings.append(&mut ended.warnings);
    let (exit, interrupted, effort) = (ended.exit, ended.interrupted, ended.effort);
    let wall = started.elapsed();
    let profile = ended.profile(&tally);
    let (processes, mut threads) = (ended.processes, ended.threads);
    threads.sort_unstable_by_key(|thread| thread.number);
    Ok(Outcome { exit, interrupted, wall, profile, processes, threads, effort, warnings })
}

/// The stream with filters that a context has room for. Fewer sets drop fewer references, which is as exact. The in-line
/// filter selects its sets with `pext`: without BMI2 everything is recorded.
fn bounded(stream: Stream) -> Stream {
    let Stream::Filtered(mut filter) = stream else { return stream };
    if !std::arch::is_x86_feature_detected!("bmi2") {
        return Stream::Full;
    }
    let at_most = |f: SetFilter, sets: u32| SetFilter { sets: f.sets.min(sets), ..f };
    filter.data = at_most(filter.data, context::LINE_SETS_MAX);
    filter.data_page = filter.data_page.map(|f| at_most(f, context::PAGE_SETS_MAX));
    if let FetchFilter::FirstLevel { line_ways, page_ways } = filter.fetches {
        let fits = |shape: SetFilter, ways: u32| {
            ways > 1 && shape.sets <= KEPT_SETS_MAX && shape.sets * ways <= KEPT_LINES_MAX
        };
        let pages_fit = filter.instruction_page.is_none_or(|shape| fits(shape, page_ways));
        // What cannot be kept whole is recorded whole.
        return if fits(filter.instruction, line_ways) && pages_fit {
            Stream::Filtered(filter)
        } else {
            Stream::Full
        };
    }
    filter.instruction = at_most(filter.instruction, context::LINE_SETS_MAX);
    filter.instruction_page = filter.instruction_page.map(|f| at_most(f, context::PAGE_SETS_MAX));
    Stream::Filtered(filter)
}

pub(crate) fn spawn(path: &Path, command: &Command, options: &Options) -> Result<Spawn, Error> {
    let text = |s: &OsStr| {
        let nul = "arguments cannot contain a NUL byte";
        CString::new(s.as_bytes()).map_err(|_| Error::new(ErrorKind::NotExecutable, nul))
    };
    let mut argv = vec![text(&command.program)?];
    for argument in &command.arguments {
        argv.push(text(argument)?);
    }
    ptrace::spawn(&text(path.as_os_str())?, &argv, options.aslr == Aslr::On)
}

pub(crate) fn exec_failed(path: &Path, error: i32) -> Error {
    let why = std::io::Error::from_raw_os_error(error);
    let kind = if error == libc::ENOENT { ErrorKind::NotFound } else { ErrorKind::NotExecutable };
    Error::program(kind, path, &format!("the system refuses to execute it ({why})"))
}
