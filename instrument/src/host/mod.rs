//! The control plane: waits for the program's stops and answers them.
//!
//! Generated code hands over to the host after it has written an exit number into the thread's
//! context. At an exit without code, and at an indirect target that is not in the lookup table, the
//! thread posts that number and sleeps until the host has written its answer into shared memory
//! (`posts`), and so it does at a full ring. Before a special system call it stops by an `int3`.
//! Signals, new tasks and execs are ptrace's own stops (`signal`, `process`).

pub(crate) mod affinity;
mod astray;
mod attach;
mod attachment;
mod checkers;
mod detach;
mod gathering;
mod leak_check;
mod marking;
mod open_calls;
mod own_places;
mod posts;
mod process;
mod release;
mod remainder;
pub(crate) mod ring;
pub(crate) mod shown;
mod signal;
mod state;
mod system_call;
mod task;
mod trap;
mod within;

pub(crate) use open_calls::Marking;
pub(crate) use state::{Host, Observing, OBSERVER_FAILED};

use crate::call::CallRecords;
use crate::code::fragment::{EXIT_INSTRUCTION, EXIT_LOOKUP, EXIT_PAGES, EXIT_RING, EXIT_SYSTEM_CALL};
use crate::error::{Error, ErrorKind};
use crate::evidence::Forgery;
use crate::image::{Image, ProfileTables};
use crate::outcome::{self, EngineStats, Exit, Process, Standstill, Threads};
use crate::profile::{Descent, Lineage};
use crate::target::interrupt;
use crate::target::layout::context;
use crate::target::ptrace::{self, Wait};
use crate::target::pulse::Pulse;
use event::Stream;
use gathering::Gathering;
use posts::Next;
use remainder::Remainder;
use ring::screen::Limits;
use ring::{MarkWithin, RingMessage, Segment, SegmentId};
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use task::ProcessState;
use task::ProgramThread;

/// How the run ended, and what was counted.
pub(crate) struct RunEnd {
    pub(crate) exit: Exit,
    pub(crate) interrupted: bool,
    pub(crate) warnings: Vec<String>,
    pub(crate) standstill: Option<Standstill>,
    pub(crate) stats: EngineStats,
    pub(crate) processes: Vec<Process>,
    pub(crate) threads: Vec<outcome::Thread>,
}

/// The time between two looks at the clock while a program is measured that ran before.
const ATTACHED_LOOK: Duration = Duration::from_millis(10);

/// An image that ends is kept for the next child of its parent only while fewer images than this
/// exist, because each kept image takes descriptors and memory.
const IMAGES_WITH_SPARES_MAX: usize = 32;

impl Host<'_> {
    /// Runs the program to its end.
    pub(crate) fn control(&mut self) -> Result<RunEnd, Error> {
        // The guard handles signals to the host, such as Ctrl-C, as long as the run lasts.
        let mut guard = self.guard.take().unwrap_or_else(|| interrupt::Guard::new(self.root));
        let _pulse = self.attachment.as_ref().and_then(|_| Pulse::start(ATTACHED_LOOK));
        let mut remainder = Remainder::default();
        loop {
            // The next request or stop of any task of the run.
            match self.next() {
                Next::Posted(tid) => self.answer_post(tid),
                Next::Stopped(tid, what) => self.stopped(tid, what),
                Next::Interrupted => {}
                Next::Nothing => break,
            }
            self.report_progress();
            debug_assert_eq!(self.inconsistency(), None);
            if self.evidence.exists() {
                self.failure = self.evidence.error().or(self.failure.take());
            }
            // A failed run ends by killing all processes; their ends still have to be waited for.
            if self.failure.is_some() {
                self.give_up(None);
            }
            self.leave_in_time(guard.asks_for_end());
            // The program has ended; other processes of the run may go on.
            if let Some(exit) = self.exit {
                if self.threads.is_empty() {
                    break;
                }
                if let Some(signal) = guard.end_of_children(exit) {
                    self.end_all(signal);
                }
                self.program_has_ended(&mut remainder);
            }
        }
        // An image that is left here lost its last thread without a stop.
        let mut left: Vec<u32> = self.images.keys().copied().collect();
        left.sort_unstable();
        left.into_iter().for_each(|image| self.finish_image(image));
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.name_released();
        self.name_open();
        let exit = self.exit.ok_or_else(|| {
            let why = "the program is gone, and the kernel has not reported how it ended";
            Error::new(ErrorKind::System, why)
        })?;
        let interrupted = guard.interrupted(exit);
        Ok(RunEnd {
            exit,
            interrupted,
            warnings: std::mem::take(&mut self.warnings),
            standstill: self.attachment.as_ref().map(|attachment| attachment.standstill),
            stats: self.stats,
            processes: std::mem::take(&mut self.processes),
            threads: std::mem::take(&mut self.thread_counts),
        })
    }

    /// The first inconsistency of the host's own state, as a sentence. Debug builds look for one
    /// after every stop.
    fn inconsistency(&self) -> Option<String> {
        let mut taken = HashSet::new();
        for (tid, thread) in &self.threads {
            let ProgramThread { context, image, process, .. } = thread;
            let Some(own) = self.images.get(image) else {
                return Some(format!("thread {tid} runs in no image"));
            };
            // No two threads share a context.
            if !taken.insert((*image, *context)) || !own.is_taken(*context) {
                return Some(format!("thread {tid}: context {context} of image {image} is not its own"));
            }
            if !self.living.contains_key(process) && !self.leak_checks.has(*tid) {
                return Some(format!("thread {tid} belongs to no process"));
            }
        }
        let threads_of = |number: u32| self.threads.values().filter(|thread| thread.image == number).count();
        let miscounted = self.images.values().find(|image| image.threads != threads_of(image.number));
        miscounted.map(|image| format!("image {} has not {} threads", image.number, image.threads))
    }

    pub(crate) fn stopped(&mut self, tid: i32, what: Wait) {
        self.stops += 1;
        self.gathering.iter().for_each(Gathering::count_stop);
        match self.is_leaving(tid) {
            true => self.stopped_leaving(tid, what),
            false if self.detaches() => self.stopped_detaching(tid, what),
            false => self.answer(tid, what),
        }
    }

    /// Answers a stop of thread `tid`.
    pub(crate) fn answer(&mut self, tid: i32, what: Wait) {
        if self.waited(tid, what) {
            return;
        }
        match what {
            Wait::Exited(code) => self.ended(tid, Exit::Code(code)),
            Wait::Signaled(signal) => self.ended(tid, Exit::Signal(signal)),
            Wait::Event(event, signal) => self.event(tid, event, signal),
            Wait::Signal(libc::SIGTRAP) if self.threads.contains_key(&tid) => self.trapped(tid),
            Wait::Signal(signal) if self.threads.contains_key(&tid) => self.signal(tid, signal),
            Wait::Signal(signal) => ptrace::resume(tid, signal),
        }
    }

    /// Answers a stop at an `int3` of generated code.
    pub(crate) fn left_cache(&mut self, tid: i32, context: usize, exit: u32) {
        self.image_mut(tid).write32(context, context::EXIT, 0);
        match exit {
            EXIT_RING => self.ring_full(tid),
            EXIT_PAGES => self.use_pages(tid, context),
            EXIT_SYSTEM_CALL => return self.system_call(tid),
            EXIT_INSTRUCTION => return self.answer_instruction(tid),
            exit => {
                let code = self.serve(tid, exit);
                self.image_mut(tid).write64(context, context::CONTINUE, code);
            }
        }
        if !self.check_refusal(tid) {
            self.go_on(tid);
        }
    }

    /// Kills the program if the translator met code that it does not support, or if a forged number
    /// was found; returns whether it did.
    pub(crate) fn check_refusal(&mut self, tid: i32) -> bool {
        if let Some(error) = self.evidence.error() {
            self.failure.get_or_insert(error);
            self.give_up(Some(tid));
            return true;
        }
        let Some(why) = self.image_mut(tid).translator.refusal.take() else { return false };
        self.failure =
            Some(Error::new(ErrorKind::Unsupported, format!("lightfoot cannot run this program: {why}")));
        self.give_up(Some(tid));
        true
    }

    /// Answers an exit; returns the address where the thread is to continue.
    pub(crate) fn serve(&mut self, tid: i32, exit: u32) -> u64 {
        let ProgramThread { context, image, .. } = self.threads[&tid];
        let image = self.images.get_mut(&image).expect("an image lives as long as its threads");
        // The thread has just stopped, so the target's memory can be read through it.
        image.looked_at_through(tid);
        let started = Instant::now();
        let (target, indirect) = if exit == EXIT_LOOKUP {
            self.stats.lookups += 1;
            (image.read64(context, context::TARGET), true)
        } else {
            let Some(&exit) = image.translator.cache.exits.get(exit as usize) else {
                // The number is forged. The run fails, and the thread is killed before it runs on.
                self.evidence.note(Forgery::Exit(exit));
                return 0;
            };
            self.stats.exits += 1;
            // A comparison of code that may change failed, or the fragment was retired.
            if exit.stale {
                return image.replace(exit.patch as usize).unwrap_or(exit.target);
            }
            // The stub of a waiting side exit does not count, so the host does.
            if let Some(counter) = exit.counter {
                image.count_exit(context, counter);
            }
            (exit.target, false)
        };
        let Some(fragment_index) = image.translator.fragment(target, &mut image.maps) else {
            return self.nothing_at(tid, target);
        };
        // The observer's thread reports this number as progress.
        self.blocks.store(image.translator.blocks.len(), Ordering::Relaxed);
        if image.translator.watch.has(target) {
            let body = image.translator.cache.fragments[fragment_index].body;
            return self.reaches(tid, exit, target, body);
        }
        // The next indirect transfer to this target finds it in the table.
        if indirect {
            image.translator.cache.publish(target, fragment_index);
        }
        image.follow_lookup_table();
        self.stats.translating += started.elapsed();
        image.translator.cache.fragments[fragment_index].body
    }

    /// Hands the full segment to the observer and gives the thread an empty one.
    pub(crate) fn ring_full(&mut self, tid: i32) {
        self.stats.segments += 1;
        self.pass_on(tid);
        let started = Instant::now();
        let ProgramThread { context, image: number, .. } = self.threads[&tid];
        let (segment, offset, count) = self.image_of(number).written(context);
        // On a single core the observer has just run, so this segment is free again and still in
        // that core's cache: the thread fills it once more, up to half its size.
        let (next, bytes) = match self.binding.is_single() {
            true => (segment, context::RING_SINGLE_BYTES),
            false => ((segment + 1) % context::RING_SEGMENTS, context::RING_SEGMENT_BYTES),
        };
        // The observer may still be reading the next segment.
        self.wait_for(|id| *id == (number, context, next));
        self.image_of(number).start_segment(context, next, bytes);
        self.stats.waiting += started.elapsed();
        let started = Instant::now();
        // Samples of the records show which checks mostly fail.
        self.stats.tuned += self.image_of(number).learn(offset, count);
        self.stats.translating += started.elapsed();
        self.piece_ends(tid, count);
    }

    /// Answers a stop after a complex reference whose extent generated code cannot compute: the
    /// host looks up the pages of that reference, which the thread recorded last.
    pub(crate) fn use_pages(&mut self, tid: i32, context: usize) {
        let misses = self.image_mut(tid).use_group_pages(context);
        self.append_misses(tid, context, &misses);
    }

    /// Appends records of pages that missed; each segment that becomes full goes to the observer.
    pub(crate) fn append_misses(&mut self, tid: i32, context: usize, misses: &[event::Record]) {
        for miss in misses {
            if self.image_mut(tid).is_full(context) {
                self.ring_full(tid);
            }
            self.image_mut(tid).append(context, miss);
        }
    }

    /// Hands the records that the thread has written to the observer.
    fn pass_on(&mut self, tid: i32) {
        self.take_back();
        self.tell_code(tid);
        let Some(mut segment) = self.filled(tid) else { return };
        if let Some(marking) = &mut self.marking {
            marking.within.complete(&mut segment);
        }
        self.lend(segment);
    }

    /// The records that the thread has written into its segment.
    pub(super) fn filled(&mut self, tid: i32) -> Option<Segment> {
        let thread = self.threads.get(&tid)?;
        let image = &self.images[&thread.image];
        let (segment, offset, count) = image.written(thread.context);
        // No record can name a site, a block or a request that does not exist yet.
        let requests =
            image.translator.instrumenter.as_ref().map_or(0, |instrumenter| instrumenter.requests());
        let (sites, blocks) = (image.translator.sites.len() as u32, image.translator.blocks.len() as u32);
        // Words of calls name blocks.
        let requests = if self.calls == CallRecords::None { requests } else { blocks };
        Some(Segment {
            limits: Limits { sites, blocks, requests, elapsed: self.started.elapsed() },
            shared: image.shared.clone(),
            thread: thread.number,
            image: image.number,
            offset,
            count,
            id: (thread.image, thread.context, segment),
            marks: Vec::new(),
        })
    }

    /// Hands a segment to the observer. Where it has no records, its marks are told alone: the
    /// thread goes on in it.
    pub(super) fn lend(&mut self, segment: Segment) {
        let Segment { id, image, thread, .. } = segment;
        if segment.count == 0 {
            for MarkWithin { ticks, deeds, .. } in segment.marks {
                ticks.map(|ticks| self.give(RingMessage::Ticks { image, thread, ticks }));
                self.give(RingMessage::Marked { image, thread, deeds });
            }
            return;
        }
        if self.give(RingMessage::Segment(segment)) {
            self.lent.insert(id);
        }
    }

    /// Notes the segments that the observer has returned.
    pub(super) fn take_back(&mut self) {
        while let Ok(id) = self.returned.try_recv() {
            self.lent.remove(&id);
        }
    }

    /// The image of process `pid`, which thread `parent` has just forked.
    pub(crate) fn child_image(&mut self, pid: i32, parent: i32) -> Result<Image, Error> {
        self.take_back();
        let ProgramThread { context, image, .. } = self.threads[&parent];
        let image = self.images.get_mut(&image).expect("an image lives as long as its threads");
        let is_idle = |number: u32| self.lent.iter().all(|id| id.0 != number);
        image.child(pid, self.images_seen, context, is_idle)
    }

    /// Waits until the observer has returned every segment that `is_wanted`.
    fn wait_for(&mut self, is_wanted: impl Fn(&SegmentId) -> bool) {
        while self.lent.iter().any(&is_wanted) {
            match self.returned.recv() {
                Ok(id) => {
                    self.lent.remove(&id);
                }
                Err(_) => return,
            }
        }
    }

    fn ended(&mut self, tid: i32, exit: Exit) {
        self.early.remove(&tid);
        self.shown.gone(tid);
        if let (Exit::Signal(signal), Some(thread)) = (exit, self.threads.get(&tid)) {
            let image = thread.image;
            self.image_of(image).kept.iter_mut().for_each(|kept| kept.ended_by(signal));
        }
        self.gone(tid);
        self.leaves_turns(tid);
        self.check_ended(tid);
        self.died(tid, exit);
        if tid == self.root {
            self.exit = Some(exit);
            interrupt::root_ended();
        }
    }

    /// Forgets a thread that will not run again; with its last thread the image ends.
    pub(crate) fn gone(&mut self, tid: i32) {
        self.pass_on(tid);
        self.tell_ticks(tid);
        let Some(thread) = self.threads.remove(&tid) else { return };
        let ProgramThread { context, image: number, .. } = thread;
        self.note_counts(tid, &thread);
        self.ends_marked(&thread);
        if self.image_of(number).threads == 1 {
            return self.finish_image(number);
        }
        self.give(RingMessage::ThreadEnded { image: number, thread: thread.number });
        // The observer may still read this context's ring, which the context's next thread will
        // write.
        self.wait_for(|id| (id.0, id.1) == (number, context));
        self.image_of(number).left(context);
    }

    /// Tells the observer what it does not know of the code of the thread's image: modules, and
    /// targets of direct calls and jumps if calls are recorded, sites if a tool's events are.
    fn tell_code(&mut self, tid: i32) {
        let Some(image) = self.threads.get(&tid).map(|thread| thread.image) else { return };
        let tells_sites = self.instrumenter.as_ref().is_some_and(|tool| tool.borrow().follows_children());
        if self.calls == CallRecords::None && !tells_sites {
            return;
        }
        let own = self.image_of(image);
        let sites = &own.translator.sites;
        let known = if tells_sites { own.sites_told } else { sites.len() };
        let sites: Vec<u64> = sites[known..].iter().map(|site| site.ip).collect();
        own.sites_told = known + sites.len();
        let known = std::mem::replace(&mut own.modules_told, own.maps.modules.len());
        let more = own.maps.modules.get(known..).unwrap_or_default().to_vec();
        let targets = &own.translator.direct_targets;
        let known = std::mem::replace(&mut own.targets_told, targets.len());
        let targets = targets[known..].to_vec();
        if !more.is_empty() {
            self.give(RingMessage::Modules(image, more));
        }
        if !sites.is_empty() {
            self.give(RingMessage::Sites(image, sites));
        }
        if !targets.is_empty() {
            self.give(RingMessage::Targets(image, targets));
        }
    }

    /// Tells the observer the running sums of a thread whose records it has, if calls are recorded.
    pub(super) fn tell_ticks(&mut self, tid: i32) {
        let Some(&ProgramThread { context, image, number: thread, .. }) = self.threads.get(&tid) else {
            return;
        };
        if let Some(ticks) = self.image_of(image).ticks(context) {
            self.give(RingMessage::Ticks { image, thread, ticks });
        }
    }

    /// Notes the counts of a thread that ended, if the run counts by thread.
    fn note_counts(&mut self, tid: i32, thread: &ProgramThread) {
        if self.per_thread == Threads::Together {
            return;
        }
        let Some(process) = self.living.get(&thread.process).map(ProcessState::index) else { return };
        let [instructions, blocks, loads, stores] = self.image_of(thread.image).thread_counts(thread.context);
        let number = thread.number;
        self.thread_counts.push(outcome::Thread {
            number,
            tid,
            process,
            instructions,
            blocks,
            loads,
            stores,
        });
    }

    fn finish_image(&mut self, number: u32) {
        let Some(mut image) = self.images.remove(&number) else { return };
        debug_assert_eq!(image.translator.cache.inconsistency(), None);
        let ((fragments, bytes), (former_fragments, former_bytes)) = (image.size(), image.taken_over);
        self.stats.fragments += (fragments - former_fragments - image.translator.unverified.fragments) as u64;
        self.stats.code_bytes += bytes - former_bytes;
        self.warnings.extend(image.keep());
        let parts = if self.marking.is_some() { image.parts() } else { Vec::new() };
        // With the last task of the run nobody is left who could execute the program again.
        let goes_on = !self.threads.is_empty() || !self.early.is_empty();
        let rests = self.children.are_counted() && goes_on && image.may_rest();
        // Nothing names the blocks of a run that counts executions alone.
        let counts_alone = self.stream == Stream::Counts
            && self.calls == CallRecords::None
            && self.instrumenter.is_none()
            && self.marking.is_none();
        let lineage = if rests { Lineage::Image(image.lineage) } else { Lineage::None };
        let tables = match counts_alone {
            true => ProfileTables::Ran,
            false if rests => ProfileTables::Copied,
            false => ProfileTables::Moved,
        };
        let (profile, blocks) = image.profile(tables);
        self.blocks_ended += profile.blocks.len();
        // The next child of the same parent may take the image over, with its translations.
        let parent = image.parent.filter(|_| self.images.len() < IMAGES_WITH_SPARES_MAX);
        if let Some(parent) = parent.and_then(|(parent, _)| self.images.get_mut(&parent)) {
            parent.keep_for_children(image);
        } else if rests {
            self.resting.put(image);
        }
        self.give(RingMessage::ImageEnded(number, Box::new((profile, parts, Descent { lineage, blocks }))));
    }

    fn event(&mut self, tid: i32, event: i32, signal: i32) {
        match event {
            libc::PTRACE_EVENT_EXEC => self.executed(tid),
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => self.cloned(tid),
            libc::PTRACE_EVENT_STOP => {
                // A new task's first stop came before its parent's event, which will adopt it.
                if !self.threads.contains_key(&tid) && tid != self.root {
                    self.early.insert(tid);
                    return;
                }
                // A group stop (SIGSTOP and its like) lasts until the process is continued.
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
        self.give_up(None);
    }

    /// Makes a thread that stands in the program's own code continue in the translation.
    pub(crate) fn redirect(&mut self, tid: i32) {
        let Some(mut registers) = ptrace::registers(tid) else { return };
        let image = self.image_mut(tid);
        if image.translator.cache.contains(registers.rip) {
            return;
        }
        if let Some(fragment_index) = image.translator.fragment(registers.rip, &mut image.maps) {
            registers.rip = image.translator.cache.fragments[fragment_index].body;
            ptrace::set_registers(tid, &registers);
        }
    }
}
