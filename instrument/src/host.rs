//! The control plane: waits for the program's stops and answers them.
//!
//! An exit without code, an indirect target that the table misses, a full ring, a special system call: each is an `int3` behind an exit
//! number in the thread's context, answered through shared memory and continued without touching registers. Signals, new
//! tasks and execs are ptrace's own stops (`process.rs`).

use crate::affinity::Binding;
use crate::cache::{count_address, EXIT_LOOKUP, EXIT_RING, EXIT_SYSTEM_CALL};
use crate::error::{Error, ErrorKind};
use crate::image::Image;
use crate::interrupt::{self, Echo};
use crate::layout::context;
use crate::probe::SharedProbes;
use crate::process::Living;
use crate::profile::{self, Profile};
use crate::ptrace::{self, Wait};
use crate::ring::{Given, Segment, Tally, Token, Watch};
use crate::run::{self, Children, Effort, Exit, Process, Threads};
use crate::signal::Signal;
use crate::tool::SharedAsking;
use event::Stream;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::Arc;
use std::time::Instant;

/// A thread of the program.
pub(crate) struct Thread {
    pub(crate) context: usize,
    /// Running number over the whole run.
    pub(crate) number: u32,
    /// Process that it belongs to.
    pub(crate) process: i32,
    /// Image that it runs in, which may be its process' parent's.
    pub(crate) image: u32,
    /// Signals that it takes as soon as it can.
    pub(crate) held: VecDeque<Signal>,
}

/// How everything ended.
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    pub(crate) interrupted: bool,
    pub(crate) warnings: Vec<String>,
    pub(crate) effort: Effort,
    pub(crate) processes: Vec<Process>,
    pub(crate) threads: Vec<run::Thread>,
    profiles: BTreeMap<u32, Profile>,
}

impl Ended {
    /// One profile of all images, with what the observer's side tallied.
    pub(crate) fn profile(&mut self, tally: &Tally) -> Profile {
        let mut all = Profile::default();
        for (image, p) in std::mem::take(&mut self.profiles) {
            profile::append(&mut all, p, image, tally);
        }
        all
    }
}

/// What a user reads when the observer panics.
pub(crate) const OBSERVER_FAILED: &str = "the analysis of the program's events failed";

/// Files whose opening is looked at, a stop each: runtimes ask for processors when they start.
const OPENS_WATCHED: u32 = 500;

/// While more images live than this, none is kept for the next child: each takes a descriptor and memory.
const IMAGES_WITH_SPARES_MAX: usize = 32;

/// Where the observer is.
pub(crate) enum Observing<'o> {
    /// On a thread of its own.
    There(Sender<Given>),
    /// With the host.
    Here(Box<Watch<'o>>),
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
    pub(crate) threads: HashMap<i32, Thread>,
    pub(crate) threads_seen: u32,
    /// Tasks whose first stop came before the event of the one that made them.
    pub(crate) early: HashSet<i32>,
    /// All processes, as they were born.
    pub(crate) processes: Vec<Process>,
    pub(crate) living: HashMap<i32, Living>,
    observing: Observing<'o>,
    returned: Receiver<Token>,
    /// Segments that the observer holds.
    lent: HashSet<Token>,
    blocks: Arc<AtomicUsize>,
    pub(crate) profiles: BTreeMap<u32, Profile>,
    exit: Option<Exit>,
    pub(crate) failure: Option<Error>,
    pub(crate) warnings: Vec<String>,
    pub(crate) effort: Effort,
    pub(crate) binding: Binding,
    pub(crate) echo: Echo,
    /// How often the program may still open a file before nobody looks at it.
    pub(crate) opens_left: u32,
    /// Whether threads are told apart, and what those did that have ended.
    pub(crate) told: Threads,
    thread_counts: Vec<run::Thread>,
    /// The run's tool, if it has one.
    pub(crate) asking: Option<SharedAsking>,
    /// Functions that count their calls, if the program is to run with probes.
    pub(crate) probes: Option<SharedProbes>,
}

impl<'o> Host<'o> {
    pub(crate) fn new(
        root: i32,
        stream: Stream,
        observing: Observing<'o>,
        returned: Receiver<Token>,
        blocks: Arc<AtomicUsize>,
        binding: Binding,
    ) -> Host<'o> {
        let mut host = Host {
            root,
            stream,
            children: Children::Released,
            translations: None,
            images: HashMap::new(),
            images_seen: 0,
            threads: HashMap::new(),
            threads_seen: 0,
            early: HashSet::new(),
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
            effort: Effort::default(),
            binding,
            echo: Echo::default(),
            opens_left: OPENS_WATCHED,
            told: Threads::Together,
            thread_counts: Vec::new(),
            asking: None,
            probes: None,
        };
        host.born(root, None);
        host
    }

    /// Hangs up on the observer's side; its tally, if it was here.
    pub(crate) fn close(self) -> Option<Tally> {
        match self.observing {
            Observing::There(_) => None,
            Observing::Here(watch) => Some(watch.tally()),
        }
    }

    /// Gives the observer's side what is for it; whether it keeps it for a while.
    fn give(&mut self, given: Given) -> bool {
        let watch = match &mut self.observing {
            Observing::There(give) => return give.send(given).is_ok(),
            Observing::Here(watch) => watch,
        };
        let seen = catch_unwind(AssertUnwindSafe(|| watch.take(&given)));
        if seen.is_err() {
            self.fail(Error::new(ErrorKind::System, OBSERVER_FAILED));
        }
        false
    }

    /// Runs the program to its end.
    pub(crate) fn control(&mut self) -> Result<Ended, Error> {
        let mut guard = interrupt::Guard::new(self.root);
        loop {
            match ptrace::wait(-1) {
                Ok(Some((tid, what))) => self.stopped(tid, what),
                Ok(None) => {}
                Err(()) => break,
            }
            if let Observing::Here(watch) = &mut self.observing {
                watch.tell();
            }
            debug_assert_eq!(self.inconsistency(), None);
            if self.failure.is_some() {
                self.end_all(libc::SIGKILL);
            }
            if self.exit.is_some() {
                if self.threads.is_empty() {
                    break;
                }
                // Children that outlive the program are followed to their ends, unless somebody asks for an end.
                if let Some(signal) = guard.end_of_children() {
                    self.end_all(signal);
                }
            }
        }
        for image in self.images.keys().copied().collect::<Vec<_>>() {
            self.finish_image(image);
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let exit = self.exit.ok_or_else(|| Error::new(ErrorKind::System, "the program vanished"))?;
        let interrupted = guard.interrupted();
        Ok(Ended {
            exit,
            interrupted,
            warnings: std::mem::take(&mut self.warnings),
            effort: self.effort,
            processes: std::mem::take(&mut self.processes),
            threads: std::mem::take(&mut self.thread_counts),
            profiles: std::mem::take(&mut self.profiles),
        })
    }

    /// What of the host's own state does not hold together, in debug builds after every stop.
    fn inconsistency(&self) -> Option<String> {
        let mut taken = HashSet::new();
        for (tid, thread) in &self.threads {
            let Thread { context, image, process, .. } = thread;
            let Some(own) = self.images.get(image) else {
                return Some(format!("thread {tid} runs in no image"));
            };
            if !taken.insert((*image, *context)) || !own.is_taken(*context) {
                return Some(format!("thread {tid}: context {context} of image {image} is not its own"));
            }
            if !self.living.contains_key(process) {
                return Some(format!("thread {tid} belongs to no process"));
            }
        }
        let threads_of = |number: u32| self.threads.values().filter(|thread| thread.image == number).count();
        let miscounted = self.images.values().find(|image| image.threads != threads_of(image.number));
        miscounted.map(|image| format!("image {} has not {} threads", image.number, image.threads))
    }

    pub(crate) fn stopped(&mut self, tid: i32, what: Wait) {
        match what {
            Wait::Exited(code) => self.ended(tid, Exit::Code(code)),
            Wait::Signaled(signal) => self.ended(tid, Exit::Signal(signal)),
            Wait::Event(event, signal) => self.event(tid, event, signal),
            Wait::Signal(libc::SIGTRAP) if self.threads.contains_key(&tid) => {
                let context = self.threads[&tid].context;
                match self.image_mut(tid).read32(context, context::EXIT) {
                    0 => self.signal(tid, libc::SIGTRAP),
                    exit => self.left_cache(tid, context, exit),
                }
            }
            Wait::Signal(signal) if self.threads.contains_key(&tid) => self.signal(tid, signal),
            Wait::Signal(signal) => ptrace::resume(tid, signal),
        }
    }

    /// The thread stands behind an `int3` of ours.
    fn left_cache(&mut self, tid: i32, context: usize, exit: u32) {
        self.image_mut(tid).write32(context, context::EXIT, 0);
        match exit {
            EXIT_RING => self.ring_full(tid),
            EXIT_SYSTEM_CALL => return self.system_call(tid),
            exit => {
                let code = self.serve(tid, exit);
                self.image_mut(tid).write64(context, context::CONTINUE, code);
            }
        }
        if self.check_refusal(tid) {
            return;
        }
        ptrace::resume(tid, 0);
    }

    /// The image that thread `tid` runs in.
    pub(crate) fn image_mut(&mut self, tid: i32) -> &mut Image {
        let image = self.image_of(self.threads[&tid].image);
        // A leader that has ended before its threads has no memory any more; whoever has just stopped has.
        image.looked_at_through(tid);
        image
    }

    pub(crate) fn image_of(&mut self, number: u32) -> &mut Image {
        self.images.get_mut(&number).expect("an image lives as long as its threads")
    }

    /// Kills the program where the translator met what it cannot do.
    pub(crate) fn check_refusal(&mut self, tid: i32) -> bool {
        let Some(why) = self.image_mut(tid).translator.refusal.take() else { return false };
        self.failure =
            Some(Error::new(ErrorKind::Unsupported, format!("lightfoot cannot run this program: {why}")));
        self.end_all(libc::SIGKILL);
        true
    }

    /// Answers an exit: where the thread is to continue.
    pub(crate) fn serve(&mut self, tid: i32, exit: u32) -> u64 {
        let Thread { context, image, .. } = self.threads[&tid];
        let image = self.images.get_mut(&image).expect("an image lives as long as its threads");
        image.looked_at_through(tid);
        let started = Instant::now();
        let (target, indirect) = if exit == EXIT_LOOKUP {
            self.effort.lookups += 1;
            (image.read64(context, context::TARGET), true)
        } else {
            let exit = image.translator.cache.exits[exit as usize];
            self.effort.exits += 1;
            if exit.stale {
                return image.replace(exit.patch as usize).unwrap_or(exit.target);
            }
            if let Some(counter) = exit.counter {
                let at = count_address(counter);
                let value = image.read64(context, at);
                image.write64(context, at, value + 1);
            }
            (exit.target, false)
        };
        let Some(f) = image.translator.fragment(target, &mut image.maps) else { return target };
        self.blocks.store(image.translator.blocks.len(), Ordering::Relaxed);
        if indirect {
            image.translator.cache.publish(target, f);
        }
        self.effort.translating += started.elapsed();
        image.translator.cache.fragments[f].body
    }

    /// Passes the full segment on and finds an empty one.
    pub(crate) fn ring_full(&mut self, tid: i32) {
        self.effort.segments += 1;
        self.pass_on(tid);
        let started = Instant::now();
        let Thread { context, image: number, .. } = self.threads[&tid];
        let (segment, offset, count) = self.image_of(number).written(context);
        // On a single core the observer's turn comes only now, while the segment is in that core's cache, and the next records go there too.
        let (next, bytes) = match self.binding.is_single() {
            true => (segment, context::RING_SINGLE_BYTES),
            false => ((segment + 1) % context::RING_SEGMENTS, context::RING_SEGMENT_BYTES),
        };
        self.wait_for(|token| *token == (number, context, next));
        self.image_of(number).start_segment(context, next, bytes);
        self.effort.waiting += started.elapsed();
        let started = Instant::now();
        self.effort.tuned += self.image_of(number).learn(offset, count);
        self.effort.translating += started.elapsed();
    }

    /// Gives what the thread has written to the observer.
    fn pass_on(&mut self, tid: i32) {
        self.take_back();
        let Some(thread) = self.threads.get(&tid) else { return };
        let image = &self.images[&thread.image];
        let (segment, offset, count) = image.written(thread.context);
        let token = (thread.image, thread.context, segment);
        if count == 0 {
            return;
        }
        let segment = Segment {
            shared: image.shared.clone(),
            thread: thread.number,
            image: image.number,
            offset,
            count,
            token,
        };
        if self.give(Given::Segment(segment)) {
            self.lent.insert(token);
        }
    }

    /// Notes what the observer has returned.
    fn take_back(&mut self) {
        while let Ok(token) = self.returned.try_recv() {
            self.lent.remove(&token);
        }
    }

    /// The image of process `pid`, which thread `parent` has just forked.
    pub(crate) fn child_image(&mut self, pid: i32, parent: i32) -> Result<Image, Error> {
        self.take_back();
        let Thread { context, image, .. } = self.threads[&parent];
        let image = self.images.get_mut(&image).expect("an image lives as long as its threads");
        let is_idle = |number: u32| self.lent.iter().all(|token| token.0 != number);
        image.child(pid, self.images_seen, context, is_idle)
    }

    /// Waits until the observer has returned every segment that `is_wanted`.
    fn wait_for(&mut self, is_wanted: impl Fn(&Token) -> bool) {
        while self.lent.iter().any(&is_wanted) {
            match self.returned.recv() {
                Ok(token) => {
                    self.lent.remove(&token);
                }
                Err(_) => return,
            }
        }
    }

    fn ended(&mut self, tid: i32, exit: Exit) {
        self.early.remove(&tid);
        self.gone(tid);
        self.died(tid, exit);
        if tid == self.root {
            self.exit = Some(exit);
            interrupt::root_ended();
        }
    }

    /// The thread will not run again; with the last one its image ends.
    pub(crate) fn gone(&mut self, tid: i32) {
        self.pass_on(tid);
        let Some(thread) = self.threads.remove(&tid) else { return };
        let Thread { context, image: number, .. } = thread;
        self.tell(tid, &thread);
        if self.image_of(number).threads == 1 {
            return self.finish_image(number);
        }
        // The next thread of this context writes where the observer may still read.
        self.wait_for(|token| (token.0, token.1) == (number, context));
        self.image_of(number).left(context);
    }

    /// Notes what a thread did, where threads are told apart.
    fn tell(&mut self, tid: i32, thread: &Thread) {
        if self.told == Threads::Together {
            return;
        }
        let Some(process) = self.living.get(&thread.process).map(Living::index) else { return };
        let [instructions, blocks, loads, stores] = self.image_of(thread.image).thread_counts(thread.context);
        let number = thread.number;
        self.thread_counts.push(run::Thread { number, tid, process, instructions, blocks, loads, stores });
    }

    fn finish_image(&mut self, number: u32) {
        let Some(mut image) = self.images.remove(&number) else { return };
        debug_assert_eq!(image.translator.cache.inconsistency(), None);
        let ((fragments, bytes), (former_fragments, former_bytes)) = (image.size(), image.taken_over);
        self.effort.fragments += (fragments - former_fragments - image.translator.dormant.fragments) as u64;
        self.effort.code_bytes += bytes - former_bytes;
        image.keep();
        self.profiles.insert(number, image.profile());
        let parent = image.parent.filter(|_| self.images.len() < IMAGES_WITH_SPARES_MAX);
        if let Some(parent) = parent.and_then(|(parent, _)| self.images.get_mut(&parent)) {
            parent.keep_for_children(image);
        }
        self.give(Given::Ended(number));
    }

    fn event(&mut self, tid: i32, event: i32, signal: i32) {
        match event {
            libc::PTRACE_EVENT_EXEC => self.executed(tid),
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => self.cloned(tid),
            libc::PTRACE_EVENT_STOP => {
                if !self.threads.contains_key(&tid) && tid != self.root {
                    self.early.insert(tid);
                    return;
                }
                let group = matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU);
                if group {
                    ptrace::listen(tid);
                } else if self.threads.contains_key(&tid) {
                    self.go_on(tid);
                } else {
                    ptrace::resume(tid, 0);
                }
            }
            _ => ptrace::resume(tid, 0),
        }
    }

    pub(crate) fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
        self.end_all(libc::SIGKILL);
    }

    /// Sends a thread that stands at an address of the program to its translation.
    pub(crate) fn redirect(&mut self, tid: i32) {
        let Some(mut r) = ptrace::registers(tid) else { return };
        let image = self.image_mut(tid);
        if image.translator.cache.contains(r.rip) {
            return;
        }
        if let Some(f) = image.translator.fragment(r.rip, &mut image.maps) {
            r.rip = image.translator.cache.fragments[f].body;
            ptrace::set_registers(tid, &r);
        }
    }
}
