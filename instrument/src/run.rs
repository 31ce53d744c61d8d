//! The entry point: takes a command, options and an observer, and returns an outcome.

use crate::call::CallRecords;
use crate::code::resident_pages::ResidentPages;
use crate::error::{Error, ErrorKind};
use crate::evidence::Evidence;
use crate::host::affinity::{self, Binding};
use crate::host::ring::{self, Consumer, Received};
use crate::host::shown::state::Shown;
use crate::host::{Host, Marking, Observing, OBSERVER_FAILED};
use crate::instrumentation::instrumenter::SharedInstrumenter;
use crate::mark::SharedMarker;
use crate::outcome::{Aslr, Command, Observer, Options, Outcome};
use crate::plan::block::records_references;
use crate::probe::SharedProbes;
use crate::profile::BlocksOfImages;
use crate::store::kept::KeptIn;
use crate::target::attach::{self, Stopped};
use crate::target::executable;
use crate::target::interrupt::Guard;
use crate::target::layout::{context, CONTEXTS_MAX};
use crate::target::memory;
use crate::target::ptrace::{Handle, Spawn};
use crate::target::start::{exec_failed, spawn};
use event::{FetchFilter, SetFilter, Stream, FETCH_LINES_MAX, FETCH_SETS_MAX};
use private_folder::PrivateFolder;
use std::sync::atomic::AtomicUsize;
use std::sync::{mpsc, Arc};
use std::time::Instant;

/// Runs `command` under the engine until it ends. With [`Options::running`] it measures a program
/// that runs already, and `command` only says what that is.
///
/// The program inherits the caller's descriptors. While it runs, Ctrl-C reaches it as natively, and
/// the host only notes it. The calling process handles SIGCHLD until the run ends, and must not
/// replace that action meanwhile. Cost: about 10 ms to start; see `results/` for the slowdown.
///
/// # Errors
/// If the program cannot be started or traced, or does something that the engine does not support;
/// then it is killed.
pub fn run(command: &Command, options: &Options, observer: &mut dyn Observer) -> Result<Outcome, Error> {
    run_instrumented(command, options, observer, Additions::default())
}

/// [`run`] with a marker, which divides what is counted.
///
/// # Errors
/// The errors of [`run`].
pub fn run_marked(
    command: &Command,
    options: &Options,
    observer: &mut dyn Observer,
    marker: SharedMarker,
) -> Result<Outcome, Error> {
    run_instrumented(command, options, observer, Additions { marker: Some(marker), ..Additions::default() })
}

/// What takes part in a run besides its observer.
#[derive(Default)]
pub(crate) struct Additions {
    /// A tool's instrumentation code.
    pub(crate) instrumenter: Option<SharedInstrumenter>,
    /// The functions that count their calls.
    pub(crate) probes: Option<SharedProbes>,
    /// Decides what happens at marks.
    pub(crate) marker: Option<SharedMarker>,
}

/// [`run`] with a tool's instrumentation code, probes or a marker.
pub(crate) fn run_instrumented(
    command: &Command,
    options: &Options,
    observer: &mut dyn Observer,
    additions: Additions,
) -> Result<Outcome, Error> {
    let Additions { instrumenter, probes, marker } = additions;
    check_address_space()?;
    let mut warnings: Vec<String> = options.machine.warning().into_iter().collect();
    let started = Instant::now();
    // The process must not be left by a signal to the host while it is entered.
    let guard = options.running.map(|_| Guard::that_notes());
    let Begun { pid, addresses_repeat, mut stopped } = match options.running {
        Some(running) => {
            let stopped = Some(attach::stop(running.pid)?);
            Begun { pid: running.pid, addresses_repeat: false, stopped }
        }
        None => start(command, options, &mut warnings)?,
    };
    // Channels to the observer and back, and the values that the two sides share.
    let (give, incoming) = mpsc::channel();
    let (done, returned) = mpsc::channel();
    let blocks = Arc::new(AtomicUsize::new(0));
    let evidence = Evidence::default();
    let stream = bounded(options.stream);
    // A tool knows its blocks by numbers that they got while the program ran.
    let follows = instrumenter.as_ref().is_none_or(|tool| tool.borrow().follows_children());
    let of_images = if follows { BlocksOfImages::Merged } else { BlocksOfImages::Apart };
    let consumer = Consumer::new(
        observer,
        (&stream, options.calls, of_images),
        blocks.clone(),
        started,
        evidence.clone(),
    );
    let binding = if stopped.is_some() { Binding::none() } else { Binding::new(pid) };
    let elsewhere = binding.observer();
    let is_own = stopped.is_none();
    let ends = || EndOfProgram(Handle::open(pid).filter(|_| is_own));
    let _end = ends();
    // The observer has a thread of its own, unless one core must serve both.
    let (ended, received) = std::thread::scope(|scope| {
        let calls = options.calls != CallRecords::None;
        let records = calls || records_references(&stream);
        let (observing, watcher) = if binding.is_single() && records {
            (Observing::Here(Box::new(consumer)), None)
        } else {
            let end = ends();
            let watcher = scope.spawn(move || {
                let _end = end;
                elsewhere.iter().for_each(affinity::move_here);
                ring::observe(consumer, &incoming, &done)
            });
            (Observing::There(give), Some(watcher))
        };
        let threads = options.threads;
        let mut host = Host::new(pid, stream, observing, returned, blocks, binding, evidence.clone());
        // The children of a program that ran already run natively.
        if follows && is_own {
            host.children = options.children;
        }
        if instrumenter.is_none() && is_own {
            host.translations = kept_in(options).filter(|_| addresses_repeat);
        }
        host.guard = guard;
        host.instrumenter = instrumenter;
        host.per_thread = threads;
        host.shown = Shown::new(options.machine, pid);
        host.probes = probes;
        host.marking = marker.map(Marking::new);
        host.calls = options.calls;
        let entered = match options.running.zip(stopped.take()) {
            Some((running, stopped)) => host.attach(stopped, running),
            None => Ok(()),
        };
        let ended = entered.and_then(|()| host.control());
        let received = host.close();
        (ended, watcher.map_or(Ok(received), |watcher| watcher.join().map(Some)))
    });
    evidence.error().map_or(Ok(()), Err)?;
    let mut ended = ended?;
    let received = received.map_err(|_| Error::new(ErrorKind::System, OBSERVER_FAILED))?;
    let Received { profile, records } = received.unwrap_or_default();
    warnings.append(&mut ended.warnings);
    let (exit, interrupted, stats) = (ended.exit, ended.interrupted, ended.stats);
    let wall = started.elapsed();
    let (processes, mut threads, standstill) = (ended.processes, ended.threads, ended.standstill);
    threads.sort_unstable_by_key(|thread| thread.number);
    Ok(Outcome { exit, interrupted, wall, profile, records, processes, threads, standstill, stats, warnings })
}

/// The program at the beginning of its measurement.
struct Begun {
    pid: i32,
    addresses_repeat: bool,
    /// Its threads, if it ran already.
    stopped: Option<Stopped>,
}

/// Starts the program.
fn start(command: &Command, options: &Options, warnings: &mut Vec<String>) -> Result<Begun, Error> {
    let path = executable::locate(&command.program)?;
    let mut addresses_repeat = options.aslr == Aslr::Off;
    match spawn(&path, command, options)? {
        Spawn::Started { pid, fixed_addresses } => {
            if !fixed_addresses {
                let why = "the system refuses personality(ADDR_NO_RANDOMIZE) (a container's seccomp profile?), so addresses are \
                           randomised and runs do not repeat exactly";
                warnings.push(why.to_string());
                addresses_repeat = false;
                // No translations are kept, since they hold addresses. The folder is made for
                // lines and symbols, which are of files: whoever reports keeps them there.
                options.translations.as_deref().and_then(PrivateFolder::make);
            }
            Ok(Begun { pid, addresses_repeat, stopped: None })
        }
        Spawn::ExecFailed(error) => Err(exec_failed(&path, error)),
    }
}

/// Where the run keeps translations. Without a folder, memory serves the processes of the run; a
/// run that counts the program alone has no use for it.
fn kept_in(options: &Options) -> Option<KeptIn> {
    if !matches!(options.stream, Stream::Counts | Stream::Filtered(_)) {
        return None;
    }
    match &options.translations {
        Some(folder) => Some(KeptIn::Folder(folder.clone())),
        None if options.children.are_counted() => Some(KeptIn::Memory),
        None => None,
    }
}

/// Refuses a run if the limit of address space leaves no room for it, in the program or in the
/// host. Contexts take most of the room.
fn check_address_space() -> Result<(), Error> {
    const GB: u64 = 1 << 30;
    let needed = context::BYTES * CONTEXTS_MAX as u64;
    let Some(limit) = memory::address_space_limit().filter(|&limit| limit < needed) else { return Ok(()) };
    Err(Error::new(
        ErrorKind::System,
        format!(
            "measuring reserves {} GB of address space, and 'ulimit -v' allows {} KB: raise it, or 'ulimit -v unlimited'",
            needed / GB + 1,
            limit >> 10
        ),
    ))
}

/// Ends the program if a thread of the host panics: without the host its stops are not answered,
/// and it may never end.
struct EndOfProgram(Option<Handle>);

impl Drop for EndOfProgram {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.iter().for_each(|program| program.kill(libc::SIGKILL));
        }
    }
}

/// The stream with filters for which a context has room. A filter with fewer sets drops fewer
/// references and is just as exact. The inline filter selects its sets by `pext`, so without BMI2
/// every reference is recorded.
fn bounded(stream: Stream) -> Stream {
    let Stream::Filtered(mut filter) = stream else { return stream };
    if !std::arch::is_x86_feature_detected!("bmi2") {
        return Stream::Full;
    }
    let at_most = |filter: SetFilter, sets: u32| SetFilter { sets: filter.sets.min(sets), ..filter };
    filter.data = at_most(filter.data, context::LINE_SETS_MAX);
    match ResidentPages::of(&filter) {
        // If the data TLB is too large to be simulated inline, every reference is recorded.
        Some(pages) if !pages.fits() => return Stream::Full,
        Some(_) => {}
        None => filter.data_page = filter.data_page.map(|page| at_most(page, context::PAGE_SETS_MAX)),
    }
    if let FetchFilter::FirstLevel { line_ways, page_ways } = filter.fetches {
        let fits = |shape: SetFilter, ways: u32| {
            ways > 1 && shape.sets <= FETCH_SETS_MAX && shape.sets * ways <= FETCH_LINES_MAX
        };
        let pages_fit = filter.instruction_page.is_none_or(|shape| fits(shape, page_ways));
        // If a cache is too large to be simulated inline, every reference is recorded.
        return if fits(filter.instruction, line_ways) && pages_fit {
            Stream::Filtered(filter)
        } else {
            Stream::Full
        };
    }
    filter.instruction = at_most(filter.instruction, context::LINE_SETS_MAX);
    filter.instruction_page = filter.instruction_page.map(|page| at_most(page, context::PAGE_SETS_MAX));
    Stream::Filtered(filter)
}
