//! A native run: the program is started, patched while it is stopped once, and detached.
//!
//! ```text
//!   launch ──▶ Held: stopped behind its exec, patched ──▶ release ──▶ Running ──▶ wait ──▶ Ended
//!                                                                        │
//!                                   a thread of the host answers requests from the mailbox
//! ```
//!
//! Children inherit patches and counters and keep counting. The host attaches to a process again
//! only when it executes another program.

use super::caller::CallingThread;
use super::follow::{follow, Followed};
use super::image::{self, NativeImage};
use super::install::{ProbeCounters, Probes};
use super::mailbox::{self, HostRequest};
use super::patch::{Increment, ProbeState};
use super::plan::ProbePlan;
use crate::error::{Error, ErrorKind};
use crate::outcome::{Command, Exit, Options};
use crate::target::interrupt::Guard;
use crate::target::memory::Shared;
use crate::target::ptrace::{self, Spawn, Wait};
use crate::target::start::{exec_failed, spawn};
use crate::target::trap::Inherited;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const CHECK_INTERVAL: Duration = Duration::from_millis(50);
const IN_VAIN: &str =
    "the program waited for lightfoot in vain, so libraries and programs that it has loaded since are not probed";
/// After this time no thread of the run still waits for an answer.
const UNKNOWN_CALLER_WAIT: Duration = Duration::from_secs(60);
const UNKNOWN_CALLER: &str =
    "a request for probes named no process of the run and was refused, so the code that it was for is not probed";

/// All images of a run.
struct Native {
    images: Vec<NativeImage>,
    shared: Arc<Shared>,
    warnings: Vec<String>,
    /// Ends of processes that the host received while it followed an exec.
    ended: Vec<(i32, Exit)>,
    /// The last request that was answered.
    answered: Option<AnsweredRequest>,
}

/// A request that was answered.
#[derive(Clone, Copy)]
struct AnsweredRequest {
    /// The thread that made the request; `None` if no thread of the run was found.
    by: Option<i32>,
    /// When the request was answered.
    at: Instant,
}

/// A program that is stopped behind its exec, before its first instruction.
pub struct Held {
    pid: i32,
    /// The state of SIGTRAP that the program must inherit, because the host's stops have changed
    /// it.
    traps: Option<Inherited>,
    native: Option<Native>,
    warnings: Vec<String>,
}

/// A program that runs natively.
pub struct Running {
    pid: i32,
    native: Option<Arc<Mutex<Native>>>,
    guard: Guard,
    stop: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
    warnings: Vec<String>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// The program's end.
    pub exit: Exit,
    /// Whether the user ended it.
    pub interrupted: bool,
    /// The state of each counter.
    pub states: Vec<ProbeState>,
    /// Why increments were locked in some program of the run, if they were.
    pub locked: Option<String>,
    /// Sentences that the user should see.
    pub warnings: Vec<String>,
}

/// Starts `command` and patches it. The result must be used on the calling thread.
///
/// # Errors
/// If the program cannot be started, or the system refuses to trace it until it is patched.
pub fn launch(command: &Command, options: &Options, plan: Option<ProbePlan>) -> Result<Held, Error> {
    let path = crate::target::executable::locate(&command.program)?;
    let mut warnings = Vec::new();
    let pid = match spawn(&path, command, options)? {
        Spawn::ExecFailed(error) => return Err(exec_failed(&path, error)),
        Spawn::Started { pid, fixed_addresses } => {
            if !fixed_addresses {
                let why =
                    "the system refuses to switch off address randomisation, so runs do not repeat exactly";
                warnings.push(why.to_string());
            }
            pid
        }
    };
    let mut held = Held { pid, traps: None, native: None, warnings };
    held.traps = Some(held.reach_program()?);
    let native = plan.map(|plan| Native::new(plan, pid)).transpose();
    match native {
        Ok(native) => Ok(Held { native, ..held }),
        Err(error) => {
            ptrace::kill(pid, libc::SIGKILL);
            let _ = ptrace::wait(pid);
            Err(error)
        }
    }
}

impl Held {
    /// The process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits until the exec is over; returns the state of SIGTRAP that the program inherits.
    fn reach_program(&self) -> Result<Inherited, Error> {
        let gone = || Error::new(ErrorKind::System, "the program ended before its first instruction");
        loop {
            match ptrace::wait(self.pid) {
                Ok(Some((_, Wait::Event(libc::PTRACE_EVENT_EXEC, _)))) => break,
                Ok(Some((_, Wait::Event(..)))) => ptrace::resume(self.pid, 0),
                Ok(Some((_, Wait::Signal(signal)))) => ptrace::resume(self.pid, signal),
                Ok(None) => {}
                _ => return Err(gone()),
            }
        }
        let traps = Inherited::of(self.pid);
        // The exec's system call must be over before the program can make calls for the host.
        while ptrace::step(self.pid, 0) {
            match ptrace::wait_for(self.pid) {
                Some((_, Wait::Signal(libc::SIGTRAP))) => return Ok(traps),
                Some((_, Wait::Signal(signal))) => ptrace::kill(self.pid, signal),
                _ => return Err(gone()),
            }
        }
        Err(gone())
    }

    /// Kills the program before its first instruction.
    pub fn kill(self) {
        ptrace::kill(self.pid, libc::SIGKILL);
        while let Ok(Some((_, Wait::Event(..) | Wait::Signal(_)))) = ptrace::wait(self.pid) {}
    }

    /// The counters, if there are probes.
    pub fn counters(&self) -> Option<ProbeCounters> {
        self.native.as_ref().map(|native| native.images[0].probes.counters())
    }

    /// The address in the program of a counter of the common block.
    pub(super) fn address(&self, counter: usize) -> Option<u32> {
        let native = self.native.as_ref()?;
        let image = &native.images[0];
        u32::try_from(image.mailbox() + image.probes.counters().offset(counter)?).ok()
    }

    /// Makes all increments locked ones of the common block.
    pub(super) fn count_together(&mut self) {
        if let Some(native) = &mut self.native {
            native.images[0].lock(self.pid, "a signal handler in the program reads the counters".into());
        }
    }

    /// Detaches from the program, which runs without a tracer from now on.
    pub fn release(mut self) -> Running {
        if let Some(Err(error)) = self.traps.map(|traps| traps.give_back(self.pid)) {
            let why = format!("the program does not inherit its caller's handling of SIGTRAP: {error}");
            self.warnings.push(why);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let guard = Guard::new(self.pid);
        let native = self.native.map(|native| Arc::new(Mutex::new(native)));
        let keeper = native.clone().map(|native| {
            let stop = stop.clone();
            std::thread::spawn(move || keep(&native, &stop))
        });
        ptrace::detach(self.pid, 0);
        Running { pid: self.pid, native, guard, stop, keeper, warnings: self.warnings }
    }
}

impl Running {
    /// The process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits for the program's end. Children that still run keep counting.
    ///
    /// # Errors
    /// If the system does not report how the program ended.
    pub fn wait(mut self) -> Result<Ended, Error> {
        // While an exec is followed, another thread waits for the stops of this process.
        ptrace::until_ended(self.pid);
        let waited = loop {
            match ptrace::wait(self.pid) {
                Ok(Some((_, Wait::Exited(code)))) => break Some(Exit::Code(code)),
                Ok(Some((_, Wait::Signaled(signal)))) => break Some(Exit::Signal(signal)),
                Ok(_) => {}
                Err(()) => break None,
            }
        };
        self.stop.store(true, Ordering::SeqCst);
        if let Some(keeper) = self.keeper.take() {
            // The thread ends by itself when it next reads the flag.
            let _ = keeper.join();
        }
        let mut ended = Ended {
            exit: Exit::Code(0),
            interrupted: false,
            states: Vec::new(),
            locked: None,
            warnings: self.warnings,
        };
        let mut seen = None;
        if let Some(native) = self.native.take() {
            let native = lock(&native);
            if native.close() {
                ended.warnings.push(IN_VAIN.into());
            }
            seen = native.ended.iter().find(|(pid, _)| *pid == self.pid).map(|(_, exit)| *exit);
            ended.states = native.states();
            ended.locked = native.images.iter().find_map(|image| image.locked.clone());
            ended.warnings.extend(native.warnings.iter().cloned());
        }
        let gone = || {
            let why = "the program is gone, and the kernel has not reported how it ended";
            Error::new(ErrorKind::System, why)
        };
        ended.exit = waited.or(seen).ok_or_else(gone)?;
        ended.interrupted = self.guard.interrupted(ended.exit);
        Ok(ended)
    }
}

fn lock(native: &Mutex<Native>) -> MutexGuard<'_, Native> {
    native.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers the program's requests until the program has ended.
fn keep(native: &Mutex<Native>, stop: &AtomicBool) {
    let shared = lock(native).shared.clone();
    // If this thread panics, no request must wait for it.
    let _closing = Closing(&shared);
    while !stop.load(Ordering::SeqCst) {
        match shared.read32(mailbox::STATE) {
            mailbox::ASKED => lock(native).answer(stop),
            other => {
                shared.futex_wait(mailbox::STATE, other, CHECK_INTERVAL);
                if other == mailbox::ANSWERED {
                    release_for_the_dead(&shared, lock(native).answered);
                }
            }
        }
    }
}

/// Closes the mailbox if the thread that answers panics.
struct Closing<'s>(&'s Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.write32(mailbox::CLOSED, 1);
            answer(self.0);
        }
    }
}

/// Frees the mailbox if the thread that made the last request was killed before it read the answer.
fn release_for_the_dead(shared: &Shared, answered: Option<AnsweredRequest>) {
    let is_gone = answered.is_some_and(|answered| match answered.by {
        Some(tid) => !Path::new(&format!("/proc/{tid}")).exists(),
        None => answered.at.elapsed() > UNKNOWN_CALLER_WAIT,
    });
    if is_gone {
        shared.exchange32(mailbox::STATE, mailbox::ANSWERED, mailbox::FREE);
    }
}

fn answer(shared: &Shared) {
    if shared.exchange32(mailbox::STATE, mailbox::ASKED, mailbox::ANSWERED) {
        shared.futex_wake(mailbox::STATE);
    }
}

impl Native {
    fn new(plan: ProbePlan, pid: i32) -> Result<Native, Error> {
        let probes = Probes::new(plan, Increment::Own)?;
        let shared = probes.shared.clone();
        let image = NativeImage::new(probes, pid, 0)?;
        Ok(Native { images: vec![image], shared, warnings: Vec::new(), ended: Vec::new(), answered: None })
    }

    /// Closes the mailbox; returns whether a thread has waited in vain.
    fn close(&self) -> bool {
        let in_vain = !self.shared.exchange32(mailbox::CLOSED, 0, 1);
        answer(&self.shared);
        in_vain
    }

    /// Answers a request, if the thread that made it can be found and belongs to the run.
    fn answer(&mut self, over: &AtomicBool) {
        let word = |offset| self.shared.read32(offset);
        let (pid, tid) = (word(mailbox::PID) as i32, word(mailbox::TID) as i32);
        let request = HostRequest::numbered(word(mailbox::KIND));
        // The program may have written any numbers. So the image's number is limited, and the
        // thread is searched for.
        let number = (word(mailbox::IMAGE) as usize).min(self.images.len() - 1);
        let caller = self.images[number].mark().find(pid, tid);
        self.answered = Some(AnsweredRequest { by: caller.map(|caller| caller.tid), at: Instant::now() });
        match caller {
            Some(caller) => self.answer_to(caller, request, number, over),
            None => self.refuse(request),
        }
    }

    /// Refuses a request that no process of the run has made: the host neither attaches to a
    /// process nor patches one.
    fn refuse(&mut self, request: HostRequest) {
        if !self.warnings.iter().any(|said| said == UNKNOWN_CALLER) {
            self.warnings.push(UNKNOWN_CALLER.into());
        }
        if request == HostRequest::Block {
            // The block gets no owner, so the host never finds that its owner has ended, and never
            // gives the block out again.
            let block = self.images[0].probes.take(0).unwrap_or(0);
            self.shared.write32(mailbox::ANSWER, block);
        }
        answer(&self.shared);
    }

    fn answer_to(&mut self, caller: CallingThread, request: HostRequest, number: usize, over: &AtomicBool) {
        let image = &mut self.images[number];
        let CallingThread { pid, tid } = caller;
        match request {
            HostRequest::Mapped => image.look(pid),
            HostRequest::Lock => {
                image.lock(pid, "it makes threads, or sets the base of gs, by system calls of its own".into())
            }
            HostRequest::Block => {
                let block = image.probes.take(ptrace::numbers(tid).last().copied().unwrap_or(tid));
                if block.is_none() {
                    image.lock(pid, "it has more threads at a time than there are blocks of counters".into());
                }
                self.shared.write32(mailbox::ANSWER, block.unwrap_or(0));
            }
            // `follow` answers this request itself, at the right moment.
            HostRequest::Exec => return self.executes(caller, number, over),
        }
        answer(&self.shared);
    }

    /// Follows a thread that is about to execute a program, and patches that program.
    fn executes(&mut self, caller: CallingThread, number: usize, over: &AtomicBool) {
        let shared = self.shared.clone();
        let image = &self.images[number];
        // The thread may have ended, and the kernel may have given its number to another thread.
        let asks = |rip| image.is_trampoline(rip) && image.mark().is_on(caller.pid);
        match follow(caller.tid, asks, || over.load(Ordering::SeqCst), || answer(&shared)) {
            Followed::Remains => {}
            Followed::Ended(pid, exit) => self.ended.push((pid, exit)),
            Followed::Executed(pid, traps) => {
                let probes = self.images[0].probes.of_another();
                match NativeImage::new(probes, pid, self.images.len() as u32) {
                    Ok(image) => self.images.push(image),
                    Err(error) => self.warnings.push(image::unprobed(pid, &error)),
                }
                // This fails only if the process is about to end.
                let _ = traps.give_back(pid);
                ptrace::detach(pid, 0);
            }
        }
    }

    /// The state of each counter over all images: a function that could not be patched in one image
    /// is refused as a whole.
    fn states(&self) -> Vec<ProbeState> {
        let rank = |state: &ProbeState| match state {
            ProbeState::Absent => 0,
            ProbeState::Patched => 1,
            ProbeState::Refused(_) => 2,
        };
        let mut all = self.images[0].probes.states().to_vec();
        for image in &self.images[1..] {
            for (known, other) in all.iter_mut().zip(image.probes.states()) {
                if rank(other) > rank(known) {
                    *known = other.clone();
                }
            }
        }
        all
    }
}
