//! The control plane: waits for the program's stops and answers them.
//!
//! An exit without code, an indirect target that the table misses, a full ring, a special system call: each is an `int3` behind an exit
//! number in the thread's context, answered through shared memory and continued without touching registers. Signals, new
//! tasks and execs are ptrace's own stops. Forked children run natively (they leave the code cache where they were born).

use crate::affinity::Binding;
use crate::cache::{count_address, EXIT_LOOKUP, EXIT_RING, EXIT_SYSTEM_CALL};
use crate::error::{Error, ErrorKind};
use crate::image::Image;
use crate::interrupt::{self, Echo};
use crate::layout::context;
use crate::profile::Profile;
use crate::ptrace::{self, SignalInfo, Wait};
use crate::ring::{Segment, Tally};
use crate::run::{Effort, Exit};
use crate::tool::SharedAsking;
use crate::{layout, profile};
use event::Stream;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::Arc;
use std::time::Instant;

/// A thread of the program.
pub(crate) struct Thread {
    pub(crate) context: usize,
    /// Running number over the whole run.
    pub(crate) number: u32,
    /// Signals that arrived while it was being stepped.
    pub(crate) held: Vec<(i32, SignalInfo)>,
}

/// How everything ended.
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    pub(crate) interrupted: bool,
    pub(crate) warnings: Vec<String>,
    pub(crate) effort: Effort,
    profiles: Vec<Profile>,
}

impl Ended {
    /// One profile of all images, with what the observer's side tallied.
    pub(crate) fn profile(self, tally: &Tally) -> Profile {
        let mut all = Profile::default();
        for (image, p) in self.profiles.into_iter().enumerate() {
            profile::append(&mut all, p, image as u32, tally);
        }
        all
    }
}

/// The host of one run.
pub(crate) struct Host {
    root: i32,
    stream: Stream,
    pub(crate) image: Option<Image>,
    images: u32,
    pub(crate) threads: HashMap<i32, Thread>,
    threads_seen: u32,
    early: HashSet<i32>,
    give: Option<Sender<Segment>>,
    returned: Receiver<(usize, u32)>,
    /// Segments that the observer holds, by (context, segment).
    lent: HashSet<(usize, u32)>,
    blocks: Arc<AtomicUsize>,
    profiles: Vec<Profile>,
    exit: Option<Exit>,
    pub(crate) failure: Option<Error>,
    pub(crate) effort: Effort,
    pub(crate) binding: Binding,
    pub(crate) echo: Echo,
    /// The run's tool, if it has one.
    pub(crate) asking: Option<SharedAsking>,
}

impl Host {
    pub(crate) fn new(
        root: i32,
        stream: Stream,
        give: Sender<Segment>,
        returned: Receiver<(usize, u32)>,
        blocks: Arc<AtomicUsize>,
        binding: Binding,
    ) -> Host {
        Host {
            root,
            stream,
            image: None,
            images: 0,
            threads: HashMap::new(),
            threads_seen: 0,
            early: HashSet::new(),
            give: Some(give),
            returned,
            lent: HashSet::new(),
            blocks,
            profiles: Vec::new(),
            exit: None,
            failure: None,
            effort: Effort::default(),
            binding,
            echo: Echo::default(),
            asking: None,
        }
    }

    /// Hangs up on the observer's side.
    pub(crate) fn close(mut self) {
        self.give = None;
    }

    /// Runs the program to its end.
    pub(crate) fn control(&mut self) -> Result<Ended, Error> {
        let guard = interrupt::Guard::new(self.root);
        loop {
            match ptrace::wait(-1) {
                Ok(Some((tid, what))) => self.stopped(tid, what),
                Ok(None) => {}
                Err(()) => break,
            }
            if self.failure.is_some() {
                ptrace::kill(self.root, libc::SIGKILL);
            }
            if self.exit.is_some() && self.threads.is_empty() {
                break;
            }
        }
        self.finish_image();
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let exit = self.exit.ok_or_else(|| Error::new(ErrorKind::System, "the program vanished"))?;
        let interrupted = guard.interrupted();
        Ok(Ended {
            exit,
            interrupted,
            warnings: Vec::new(),
            effort: self.effort,
            profiles: std::mem::take(&mut self.profiles),
        })
    }

    pub(crate) fn stopped(&mut self, tid: i32, what: Wait) {
        match what {
            Wait::Exited(code) => self.ended(tid, Exit::Code(code)),
            Wait::Signaled(signal) => self.ended(tid, Exit::Signal(signal)),
            Wait::Event(event, signal) => self.event(tid, event, signal),
            Wait::Signal(libc::SIGTRAP) if self.threads.contains_key(&tid) => {
                let context = self.threads[&tid].context;
                let image = self.image.as_ref().expect("a thread has an image");
                match image.read32(context, context::EXIT) {
                    0 => self.signal(tid, libc::SIGTRAP, None),
                    exit => self.left_cache(tid, context, exit),
                }
            }
            Wait::Signal(signal) if self.threads.contains_key(&tid) => self.signal(tid, signal, None),
            Wait::Signal(signal) => ptrace::resume(tid, signal),
        }
    }

    /// The thread stands behind an `int3` of ours.
    fn left_cache(&mut self, tid: i32, context: usize, exit: u32) {
        self.image_mut().write32(context, context::EXIT, 0);
        match exit {
            EXIT_RING => self.ring_full(tid),
            EXIT_SYSTEM_CALL => return self.system_call(tid),
            exit => {
                let code = self.serve(context, exit);
                self.image_mut().write64(context, context::CONTINUE, code);
            }
        }
        if self.check_refusal() {
            return;
        }
        ptrace::resume(tid, 0);
    }

    pub(crate) fn image_mut(&mut self) -> &mut Image {
        self.image.as_mut().expect("a thread has an image")
    }

    /// Kills the program where the translator met what it cannot do.
    pub(crate) fn check_refusal(&mut self) -> bool {
        let Some(why) = self.image_mut().translator.refusal.take() else { return false };
        self.failure =
            Some(Error::new(ErrorKind::Unsupported, format!("lightfoot cannot run this program: {why}")));
        ptrace::kill(self.root, libc::SIGKILL);
        true
    }

    /// Answers an exit: where the thread is to continue.
    pub(crate) fn serve(&mut self, context: usize, exit: u32) -> u64 {
        let image = self.image.as_mut().expect("a thread has an image");
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
        let thread = &self.threads[&tid];
        let context = thread.context;
        let image = self.image.as_ref().expect("a thread has an image");
        let (segment, offset, count) = image.written(context);
        let next = (segment + 1) % context::RING_SEGMENTS;
        while self.lent.contains(&(context, next)) {
            match self.returned.recv() {
                Ok(token) => {
                    self.lent.remove(&token);
                }
                Err(_) => break,
            }
        }
        image.start_segment(context, next);
        self.effort.waiting += started.elapsed();
        let started = Instant::now();
        self.effort.tuned += self.image_mut().learn(offset, count);
        self.effort.translating += started.elapsed();
    }

    /// Gives what the thread has written to the observer.
    fn pass_on(&mut self, tid: i32) {
        while let Ok(token) = self.returned.try_recv() {
            self.lent.remove(&token);
        }
        let (Some(thread), Some(image)) = (self.threads.get(&tid), self.image.as_ref()) else { return };
        let (segment, offset, count) = image.written(thread.context);
        let token = (thread.context, segment);
        if count == 0 {
            return;
        }
        self.lent.insert(token);
        let segment = Segment {
            shared: image.shared.clone(),
            thread: thread.number,
            image: image.number,
            offset,
            count,
            token,
        };
        if let Some(give) = &self.give {
            let _ = give.send(segment);
        }
    }

    /// Waits until the observer has returned everything of a context that is about to be used again.
    fn settle(&mut self, context: usize) {
        while (0..layout::context::RING_SEGMENTS).any(|s| self.lent.contains(&(context, s))) {
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
        if tid == self.root {
            self.exit = Some(exit);
        }
    }

    /// The thread will not run again.
    fn gone(&mut self, tid: i32) {
        if !self.threads.contains_key(&tid) {
            return;
        }
        self.pass_on(tid);
        if let Some(thread) = self.threads.remove(&tid) {
            self.settle(thread.context);
            self.image_mut().left(thread.context);
        }
    }

    fn finish_image(&mut self) {
        if let Some(mut image) = self.image.take() {
            let cache = &image.translator.cache;
            self.effort.fragments += cache.fragments.len() as u64;
            self.effort.code_bytes += cache.zones.iter().map(|z| z.hot_used + z.cold_used).sum::<u64>();
            self.profiles.push(image.profile());
        }
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
                } else {
                    ptrace::resume(tid, 0);
                }
            }
            _ => ptrace::resume(tid, 0),
        }
    }

    /// A new program image: all other threads are gone, the old image's counts are final.
    fn executed(&mut self, tid: i32) {
        let former = ptrace::event_message(tid) as i32;
        self.gone(former);
        self.gone(tid);
        for other in self.threads.keys().copied().collect::<Vec<_>>() {
            self.gone(other);
        }
        self.finish_image();
        // The exec's system call must be over before calls can be made in the program's name. A signal that arrives meanwhile is sent again.
        let mut missed = Vec::new();
        loop {
            if !ptrace::step(tid, 0) {
                return;
            }
            match ptrace::wait(tid) {
                Ok(Some((_, Wait::Signal(libc::SIGTRAP)))) => break,
                Ok(Some((_, Wait::Signal(signal)))) => missed.push(signal),
                Ok(Some((_, what))) => return self.stopped(tid, what),
                _ => return,
            }
        }
        missed.into_iter().for_each(|signal| ptrace::kill(tid, signal));
        match Image::new(tid, self.images, self.stream) {
            Ok(mut image) => {
                if let Some(asking) = &self.asking {
                    let blocks = self.profiles.iter().map(|p| p.blocks.len()).sum();
                    asking.borrow_mut().starts(self.images, tid, blocks);
                }
                image.translator.asking = self.asking.clone();
                self.images += 1;
                self.image = Some(image);
                self.adopt(tid);
            }
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
        ptrace::kill(self.root, libc::SIGKILL);
    }

    /// Takes the stopped task in: a context in `gs`, and on in the code cache.
    fn adopt(&mut self, tid: i32) {
        let Some(mut r) = ptrace::registers(tid) else { return };
        let number = self.threads_seen;
        let Some(context) = self.image_mut().enter(r.fs_base) else {
            let why = format!("the program has more than {} threads at a time", layout::CONTEXTS_MAX);
            return self.fail(Error::new(ErrorKind::Unsupported, why));
        };
        self.threads_seen += 1;
        self.threads.insert(tid, Thread { context, number, held: Vec::new() });
        r.gs_base = layout::CONTEXTS + context as u64 * context::BYTES;
        let parallel = self.threads.len() > 1;
        if parallel {
            self.binding.dissolve(self.threads.keys().copied());
        }
        self.image_mut().translator.cache.parallel |= parallel;
        ptrace::set_registers(tid, &r);
        self.redirect(tid);
        if !self.check_refusal() {
            ptrace::resume(tid, 0);
        }
    }

    /// Sends a thread that stands at an address of the program to its translation.
    pub(crate) fn redirect(&mut self, tid: i32) {
        let Some(mut r) = ptrace::registers(tid) else { return };
        let image = self.image_mut();
        if image.translator.cache.contains(r.rip) {
            return;
        }
        if let Some(f) = image.translator.fragment(r.rip, &mut image.maps) {
            r.rip = image.translator.cache.fragments[f].body;
            ptrace::set_registers(tid, &r);
        }
    }

    /// A task was born: a thread is taken in, a process is let go to run natively.
    fn cloned(&mut self, tid: i32) {
        let new = ptrace::event_message(tid) as i32;
        if !self.early.remove(&new) {
            match ptrace::wait(new) {
                Ok(Some((_, Wait::Event(..) | Wait::Signal(_)))) => {}
                _ => return ptrace::resume(tid, 0),
            }
        }
        if is_thread_of(new, self.root) {
            self.adopt(new);
        } else {
            self.release(new);
        }
        ptrace::resume(tid, 0);
    }

    /// Lets a forked child run natively from the program's own next instruction.
    fn release(&mut self, tid: i32) {
        if let (Some(mut r), Some(image)) = (ptrace::registers(tid), self.image.as_ref()) {
            if let Some((bound, _)) = image.translator.cache.bound(r.rip) {
                let block = &image.translator.blocks[bound.block as usize];
                r.rip = block.ip + u64::from(block.len);
                r.rcx = r.rip;
                r.gs_base = 0;
                ptrace::set_registers(tid, &r);
            }
        }
        self.binding.free(tid);
        ptrace::detach(tid, 0);
    }
}

/// Whether `tid` is a thread of process `pid` (and not a process of its own).
fn is_thread_of(tid: i32, pid: i32) -> bool {
    std::fs::metadata(format!("/proc/{pid}/task/{tid}")).is_ok()
}
