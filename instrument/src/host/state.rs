//! The host of one run: all that it knows.
//!
//! What it does is in its neighbours, each by subject; they share this value.

use super::affinity::Binding;
use super::checkers::LeakChecks;
use super::ring::{Consumer, ObserverFindings, RingMessage, SegmentId};
use super::task::{ProcessState, ProgramThread};
use crate::error::{Error, ErrorKind};
use crate::evidence::Evidence;
use crate::image::Image;
use crate::instrumentation::instrumenter::SharedInstrumenter;
use crate::outcome::{self, Children, EngineStats, Exit, Process, Threads};
use crate::probe::SharedProbes;
use crate::profile::Profile;
use crate::target::interrupt::Echo;
use event::Stream;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::Arc;
use std::time::Instant;

/// What a user reads when the observer panics.
pub(crate) const OBSERVER_FAILED: &str = "the analysis of the program's events failed";

/// Files whose opening is looked at, a stop each: runtimes ask for processors when they start.
const OPENS_WATCHED: u32 = 500;

/// A process that was let go: its number, and what it ran.
pub(super) type Departed = (i32, String);

/// Processes that leave, or have left.
#[derive(Default)]
pub(crate) struct Departures {
    /// By process that leaves, the threads of others that wait until it has left.
    pub(super) leaving: HashMap<i32, Vec<i32>>,
    /// Those that other processes of the run trace.
    pub(super) traced: Vec<Departed>,
    /// Those that the program left behind.
    pub(super) left_behind: Vec<Departed>,
}

/// Where the observer is.
pub(crate) enum Observing<'o> {
    /// On a thread of its own.
    There(Sender<RingMessage>),
    /// With the host.
    Here(Box<Consumer<'o>>),
}

/// The host of one run.
pub(crate) struct Host<'o> {
    pub(crate) root: i32,
    pub(crate) stream: Stream,
    pub(crate) children: Children,
    /// Where translations are kept from run to run, if they are.
    pub(crate) translations: Option<PathBuf>,
    pub(crate) images: HashMap<u32, Image>,
    pub(crate) images_seen: u32,
    pub(crate) threads: HashMap<i32, ProgramThread>,
    pub(crate) threads_seen: u32,
    /// Tasks whose first stop came before the event of the one that made them.
    pub(crate) early: HashSet<i32>,
    /// Stops that were answered.
    pub(crate) stops: u64,
    /// Processes that are on their way out of the engine, or have gone it.
    pub(crate) departures: Departures,
    /// Tasks of the program that stop its threads, and the threads that stand still.
    pub(crate) leak_checks: LeakChecks,
    /// All processes, as they were born.
    pub(crate) processes: Vec<Process>,
    pub(crate) living: HashMap<i32, ProcessState>,
    pub(super) observing: Observing<'o>,
    pub(super) returned: Receiver<SegmentId>,
    /// Segments that the observer holds.
    pub(super) lent: HashSet<SegmentId>,
    pub(super) blocks: Arc<AtomicUsize>,
    pub(crate) profiles: BTreeMap<u32, Profile>,
    pub(super) exit: Option<Exit>,
    pub(crate) failure: Option<Error>,
    pub(crate) warnings: Vec<String>,
    pub(crate) effort: EngineStats,
    pub(crate) binding: Binding,
    pub(crate) echo: Echo,
    /// Whether some process has had an action for SIGTRAP.
    pub(crate) trap_actions: bool,
    /// How often the program may still open a file before nobody looks at it.
    pub(crate) opens_left: u32,
    /// Whether threads are told apart, and what those did that have ended.
    pub(crate) per_thread: Threads,
    pub(super) thread_counts: Vec<outcome::Thread>,
    /// The run's tool, if it has one.
    pub(crate) instrumenter: Option<SharedInstrumenter>,
    /// Functions that count their calls, if the program is to run with probes.
    pub(crate) probes: Option<SharedProbes>,
    /// What shows that the program changed memory that it shares with the host.
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
            // The rest is set by the run's options.
            root,
            stream,
            children: Children::Released,
            translations: None,
            images: HashMap::new(),
            images_seen: 0,
            threads: HashMap::new(),
            threads_seen: 0,
            early: HashSet::new(),
            stops: 0,
            departures: Departures::default(),
            leak_checks: LeakChecks::default(),
            processes: Vec::new(),
            living: HashMap::new(),
            observing,
            returned,
            lent: HashSet::new(),
            blocks,
            profiles: BTreeMap::new(),
            exit: None,
            failure: None,
            warnings: Vec::new(),
            effort: EngineStats::default(),
            binding,
            echo: Echo::default(),
            trap_actions: false,
            opens_left: OPENS_WATCHED,
            per_thread: Threads::Together,
            thread_counts: Vec::new(),
            instrumenter: None,
            probes: None,
            evidence,
            started: Instant::now(),
        };
        host.born(root, None);
        host
    }

    /// Hangs up on the observer's side; what it found, if it was here.
    pub(crate) fn close(self) -> Option<ObserverFindings> {
        match self.observing {
            Observing::There(_) => None,
            Observing::Here(watch) => Some(watch.seen()),
        }
    }

    /// Gives the observer's side what is for it; whether it keeps it for a while.
    pub(super) fn give(&mut self, given: RingMessage) -> bool {
        let watch = match &mut self.observing {
            Observing::There(give) => {
                let is_there = give.send(given).is_ok();
                if !is_there {
                    self.fail(Error::new(ErrorKind::System, OBSERVER_FAILED));
                }
                return is_there;
            }
            Observing::Here(watch) => watch,
        };
        let seen = catch_unwind(AssertUnwindSafe(|| watch.take(&given)));
        if seen.is_err() {
            self.fail(Error::new(ErrorKind::System, OBSERVER_FAILED));
        }
        false
    }

    /// Tells an observer that is here how far the run is.
    pub(super) fn tell_observer(&mut self) {
        let Observing::Here(watch) = &mut self.observing else { return };
        if catch_unwind(AssertUnwindSafe(|| watch.tell())).is_err() {
            self.fail(Error::new(ErrorKind::System, OBSERVER_FAILED));
        }
    }

    /// The image that thread `tid` runs in.
    pub(crate) fn image_mut(&mut self, tid: i32) -> &mut Image {
        let image = self.image_of(self.threads[&tid].image);
        // A leader that has ended before its threads has no memory any more; whoever has just
        // stopped has.
        image.looked_at_through(tid);
        image
    }

    pub(crate) fn image_of(&mut self, number: u32) -> &mut Image {
        self.images.get_mut(&number).expect("an image lives as long as its threads")
    }
}
