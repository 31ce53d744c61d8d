//! The host's state during one run.
//!
//! The neighbouring modules implement what the host does, one subject each; all of them work on
//! this value.

use super::affinity::Binding;
use super::attachment::Attachment;
use super::checkers::LeakChecks;
use super::gathering::Gathering;
use super::open_calls::Marking;
use super::ring::{Consumer, Received, RingMessage, SegmentId};
use super::shown::state::Shown;
use super::task::{ProcessState, ProgramThread};
use crate::call::CallRecords;
use crate::error::{Error, ErrorKind};
use crate::evidence::Evidence;
use crate::image::{Image, RestingImages, RunParts};
use crate::instrumentation::instrumenter::SharedInstrumenter;
use crate::outcome::{self, Children, EngineStats, Exit, Process, Threads};
use crate::probe::SharedProbes;
use crate::store::kept::KeptIn;
use crate::target::bell::Bell;
use crate::target::interrupt::{Echo, Guard};
use event::Stream;
use std::collections::{HashMap, HashSet};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::Arc;
use std::time::Instant;

/// The message to the user when the observer panics.
pub(crate) const OBSERVER_FAILED: &str = "the analysis of the program's events failed";

/// The host watches this many of the first opened files, at the cost of a stop each: runtimes read
/// the number of processors from a file when they start.
const OPENS_WATCHED: u32 = 500;

/// A process that was released: its number and the name of its program.
pub(super) type Departed = (i32, String);

/// Processes that leave the engine alive, or have left it.
#[derive(Default)]
pub(crate) struct Departures {
    /// For each process that is leaving, the threads of other processes that wait until it has
    /// left.
    pub(super) leaving: HashMap<i32, Vec<i32>>,
    /// Processes that left because another process of the run traces them.
    pub(super) traced: Vec<Departed>,
    /// Processes that left because they outlived the program.
    pub(super) left_behind: Vec<Departed>,
}

/// The thread on which the observer runs.
pub(crate) enum Observing<'o> {
    /// On a thread of its own.
    There(Sender<RingMessage>),
    /// On the host's own thread: there is only one core.
    Here(Box<Consumer<'o>>),
}

/// The host of one run.
pub(crate) struct Host<'o> {
    pub(crate) root: i32,
    pub(crate) stream: Stream,
    pub(crate) children: Children,
    /// Where translations are kept for later images of a program, if they are kept.
    pub(crate) translations: Option<KeptIn>,
    pub(crate) images: HashMap<u32, Image>,
    pub(crate) images_seen: u32,
    /// Images of programs that have ended, for the next processes that execute them.
    pub(super) resting: RestingImages,
    pub(crate) threads: HashMap<i32, ProgramThread>,
    pub(crate) threads_seen: u32,
    /// New tasks whose first stop arrived before their parent's event.
    pub(crate) early: HashSet<i32>,
    /// Stops that were answered.
    pub(crate) stops: u64,
    /// Processes that leave the engine alive, or have left it.
    pub(crate) departures: Departures,
    /// The program that the host has entered, if it did not start one.
    pub(crate) attachment: Option<Attachment>,
    /// Handles signals to the host, if it must do so before the run begins.
    pub(crate) guard: Option<Guard>,
    /// Leak checkers, and the threads that they have stopped.
    pub(crate) leak_checks: LeakChecks,
    /// All processes, in the order of their births.
    pub(crate) processes: Vec<Process>,
    pub(crate) living: HashMap<i32, ProcessState>,
    pub(super) observing: Observing<'o>,
    pub(super) returned: Receiver<SegmentId>,
    /// Segments that the observer holds.
    pub(super) lent: HashSet<SegmentId>,
    pub(super) blocks: Arc<AtomicUsize>,
    /// Blocks of all images that have ended.
    pub(super) blocks_ended: usize,
    pub(super) exit: Option<Exit>,
    pub(crate) failure: Option<Error>,
    pub(crate) warnings: Vec<String>,
    pub(crate) stats: EngineStats,
    /// Moves threads between one core and all, if the program has threads and is bound.
    pub(super) gathering: Option<Gathering>,
    pub(crate) binding: Binding,
    /// The bell that wakes the host, if it has one.
    pub(super) bell: Option<Bell>,
    /// Threads that were found to have posted requests, the first to be answered at the end.
    pub(super) posted: Vec<i32>,
    pub(crate) echo: Echo,
    /// Whether some process has had an action for SIGTRAP.
    pub(crate) trap_actions: bool,
    /// How many more opened files are looked at.
    pub(crate) opens_left: u32,
    /// Whether the run counts each thread separately.
    pub(crate) per_thread: Threads,
    /// Counts of the threads that have ended, if threads are counted separately.
    pub(super) thread_counts: Vec<outcome::Thread>,
    /// The run's tool, if it has one.
    pub(crate) instrumenter: Option<SharedInstrumenter>,
    /// The functions that count their calls, if the program runs with probes.
    pub(crate) probes: Option<SharedProbes>,
    /// The marks at which the program divides what is counted, if the run has a marker.
    pub(crate) marking: Option<Marking>,
    /// The machine that the program is shown.
    pub(crate) shown: Shown,
    /// Whether calls are recorded.
    pub(crate) calls: CallRecords,
    /// The first proof that the program changed memory that it shares with the host, if any.
    pub(crate) evidence: Evidence,
    pub(super) started: Instant,
}

impl<'o> Host<'o> {
    pub(crate) fn new(
        root: i32,
        stream: Stream,
        observing: Observing<'o>,
        returned: Receiver<SegmentId>,
        blocks: Arc<AtomicUsize>,
        binding: Binding,
        evidence: Evidence,
    ) -> Host<'o> {
        let mut host = Host {
            // Defaults; the run's options replace them.
            root,
            stream,
            children: Children::Released,
            translations: None,
            images: HashMap::new(),
            images_seen: 0,
            resting: RestingImages::default(),
            threads: HashMap::new(),
            threads_seen: 0,
            early: HashSet::new(),
            stops: 0,
            departures: Departures::default(),
            attachment: None,
            guard: None,
            leak_checks: LeakChecks::default(),
            processes: Vec::new(),
            living: HashMap::new(),
            observing,
            returned,
            lent: HashSet::new(),
            blocks,
            blocks_ended: 0,
            exit: None,
            failure: None,
            warnings: Vec::new(),
            stats: EngineStats::default(),
            gathering: None,
            binding,
            bell: Bell::new(),
            posted: Vec::new(),
            echo: Echo::default(),
            trap_actions: false,
            opens_left: OPENS_WATCHED,
            per_thread: Threads::Together,
            thread_counts: Vec::new(),
            instrumenter: None,
            probes: None,
            marking: None,
            shown: Shown::default(),
            calls: CallRecords::None,
            evidence,
            started: Instant::now(),
        };
        host.born(root, None);
        host
    }

    /// Closes the channel to the observer. Returns what the observer's side has received, if it ran
    /// on this thread.
    pub(crate) fn close(self) -> Option<Received> {
        match self.observing {
            Observing::There(_) => None,
            Observing::Here(consumer) => Some(consumer.finish()),
        }
    }

    /// Delivers a message to the observer; returns whether the observer will return a segment
    /// later.
    pub(super) fn give(&mut self, message: RingMessage) -> bool {
        let consumer = match &mut self.observing {
            Observing::There(give) => {
                let is_there = give.send(message).is_ok();
                if !is_there {
                    self.fail(Error::new(ErrorKind::System, OBSERVER_FAILED));
                }
                return is_there;
            }
            Observing::Here(consumer) => consumer,
        };
        let taken = catch_unwind(AssertUnwindSafe(|| consumer.take(message)));
        if taken.is_err() {
            self.fail(Error::new(ErrorKind::System, OBSERVER_FAILED));
        }
        false
    }

    /// Reports the run's progress to an observer on this thread.
    pub(super) fn report_progress(&mut self) {
        let Observing::Here(consumer) = &mut self.observing else { return };
        if catch_unwind(AssertUnwindSafe(|| consumer.report_progress())).is_err() {
            self.fail(Error::new(ErrorKind::System, OBSERVER_FAILED));
        }
    }

    /// What the images of the run have in common.
    pub(super) fn parts(&self) -> RunParts {
        let bell = self.bell.as_ref().map(Bell::memory);
        RunParts { stream: self.stream, evidence: self.evidence.clone(), bell }
    }

    /// The image that thread `tid` runs in.
    pub(crate) fn image_mut(&mut self, tid: i32) -> &mut Image {
        let image = self.image_of(self.threads[&tid].image);
        // A process's first thread may have ended before the others, and then its `/proc` entry
        // shows no memory. The thread that has just stopped shows it.
        image.looked_at_through(tid);
        image
    }

    pub(crate) fn image_of(&mut self, number: u32) -> &mut Image {
        self.images.get_mut(&number).expect("an image lives as long as its threads")
    }
}
