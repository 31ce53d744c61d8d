//! A native run: started, patched once while it is stopped, and let go.
//!
//! Children keep counting by what they inherited; nobody follows them until they execute another program.

use super::follow::{follow, Followed};
use super::image::{self, Image};
use super::install::{Counters, Probes};
use super::mailbox::{self, Knock};
use super::patch::{Increment, State};
use super::Plan;
use crate::error::{Error, ErrorKind};
use crate::interrupt::Guard;
use crate::memory::Shared;
use crate::ptrace::{self, Spawn, Wait};
use crate::run::{exec_failed, spawn, Command, Exit, Options};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const GLANCE: Duration = Duration::from_millis(50);
const IN_VAIN: &str =
    "the program waited for lightfoot in vain: what it has loaded or executed since is not probed";

/// All images of a run.
struct Native {
    images: Vec<Image>,
    shared: Arc<Shared>,
    warnings: Vec<String>,
    /// Ends that were seen while an exec was followed.
    ended: Vec<(i32, Exit)>,
}

/// A program that is stopped right behind its exec.
pub struct Held {
    pid: i32,
    native: Option<Native>,
    warnings: Vec<String>,
}

/// A program that runs.
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
    /// What became of each counter.
    pub states: Vec<State>,
    /// Why increments were locked in some program of the run, if they were.
    pub locked: Option<String>,
    /// Sentences that the user should see.
    pub warnings: Vec<String>,
}

/// Starts `command` and patches it. Everything else with the result happens on the same thread.
///
/// # Errors
/// When it cannot be started, or the system refuses to stop it once.
pub fn launch(command: &Command, options: &Options, plan: Option<Plan>) -> Result<Held, Error> {
    let path = crate::executable::locate(&command.program)?;
    let mut warnings = Vec::new();
    let pid = match spawn(&path, command, options)? {
        Spawn::ExecFailed(error) => return Err(exec_failed(&path, error)),
        Spawn::Started { pid, fixed_addresses } => {
            if !fixed_addresses {
                warnings.push("the system refuses to switch address randomisation off".to_string());
            }
            pid
        }
    };
    let held = Held { pid, native: None, warnings };
    held.reach_program()?;
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

    /// Waits until the exec is over.
    fn reach_program(&self) -> Result<(), Error> {
        let gone = || Error::new(ErrorKind::System, "the program ended before it began");
        loop {
            match ptrace::wait(self.pid) {
                Ok(Some((_, Wait::Event(libc::PTRACE_EVENT_EXEC, _)))) => break,
                Ok(Some((_, Wait::Event(..)))) => ptrace::resume(self.pid, 0),
                Ok(Some((_, Wait::Signal(signal)))) => ptrace::resume(self.pid, signal),
                Ok(None) => {}
                _ => return Err(gone()),
            }
        }
        while ptrace::step(self.pid, 0) {
            match ptrace::wait(self.pid) {
                Ok(Some((_, Wait::Signal(libc::SIGTRAP)))) => return Ok(()),
                Ok(Some((_, Wait::Signal(signal)))) => ptrace::kill(self.pid, signal),
                Ok(None) => {}
                _ => return Err(gone()),
            }
        }
        Err(gone())
    }

    /// Ends it before it has begun.
    pub fn kill(self) {
        ptrace::kill(self.pid, libc::SIGKILL);
        while let Ok(Some((_, Wait::Event(..) | Wait::Signal(_)))) = ptrace::wait(self.pid) {}
    }

    /// Counters, if there are probes.
    pub fn counters(&self) -> Option<Counters> {
        self.native.as_ref().map(|native| native.images[0].probes.counters())
    }

    /// Where a counter of the common block lies in the program.
    pub(super) fn address(&self, counter: usize) -> Option<u32> {
        let native = self.native.as_ref()?;
        let image = &native.images[0];
        u32::try_from(image.mailbox() + image.probes.counters().offset(counter)?).ok()
    }

    /// All increments go to the common block, locked.
    pub(super) fn count_together(&mut self) {
        if let Some(native) = &mut self.native {
            native.images[0].lock(self.pid, "a handler in the program reads the counters".into());
        }
    }

    /// Lets it run, without a tracer.
    pub fn release(self) -> Running {
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

    /// Whether the user wants an end.
    pub fn interrupted(&self) -> bool {
        self.guard.interrupted()
    }

    /// Waits for its end. Children that still run keep counting.
    ///
    /// # Errors
    /// When the program vanished.
    pub fn wait(mut self) -> Result<Ended, Error> {
        // Stops while an exec is followed are another thread's to see.
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
            // It ends by itself at its next glance.
            let _ = keeper.join();
        }
        let mut ended =
            Ended { exit: Exit::Code(0), states: Vec::new(), locked: None, warnings: self.warnings };
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
        let vanished = || Error::new(ErrorKind::System, "the program vanished");
        ended.exit = waited.or(seen).ok_or_else(vanished)?;
        Ok(ended)
    }
}

fn lock(native: &Mutex<Native>) -> MutexGuard<'_, Native> {
    native.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers the program's requests until it has ended.
fn keep(native: &Mutex<Native>, stop: &AtomicBool) {
    let shared = lock(native).shared.clone();
    while !stop.load(Ordering::SeqCst) {
        match shared.read32(mailbox::STATE) {
            mailbox::ASKED => lock(native).answer(),
            other => {
                shared.futex_wait(mailbox::STATE, other, GLANCE);
                if other == mailbox::ANSWERED {
                    release_for_the_dead(&shared);
                }
            }
        }
    }
}

/// Who asked and was killed before it took the answer frees the mailbox no more.
fn release_for_the_dead(shared: &Shared) {
    let tid = shared.read32(mailbox::TID);
    if !Path::new(&format!("/proc/{tid}")).exists() && shared.read32(mailbox::TID) == tid {
        shared.exchange32(mailbox::STATE, mailbox::ANSWERED, mailbox::FREE);
    }
}

fn answer(shared: &Shared) {
    if shared.exchange32(mailbox::STATE, mailbox::ASKED, mailbox::ANSWERED) {
        shared.futex_wake(mailbox::STATE);
    }
}

impl Native {
    fn new(plan: Plan, pid: i32) -> Result<Native, Error> {
        let probes = Probes::new(plan, Increment::Own)?;
        let shared = probes.shared.clone();
        let image = Image::new(probes, pid, 0)?;
        Ok(Native { images: vec![image], shared, warnings: Vec::new(), ended: Vec::new() })
    }

    /// Nobody answers from now on; whether somebody has waited in vain.
    fn close(&self) -> bool {
        let in_vain = !self.shared.exchange32(mailbox::CLOSED, 0, 1);
        answer(&self.shared);
        in_vain
    }

    /// Does what the program asks for.
    fn answer(&mut self) {
        let word = |offset| self.shared.read32(offset);
        let (pid, tid) = (word(mailbox::PID) as i32, word(mailbox::TID) as i32);
        let knock = Knock::numbered(word(mailbox::KIND));
        let number = (word(mailbox::IMAGE) as usize).min(self.images.len() - 1);
        let image = &mut self.images[number];
        match knock {
            Knock::Mapped => image.look(pid),
            Knock::Lock => image
                .lock(pid, "it makes threads, or sets the register gs, by system calls of its own".into()),
            Knock::Block => {
                let block = image.probes.take(tid);
                if block.is_none() {
                    image.lock(pid, "it has more threads at a time than there are blocks of counters".into());
                }
                self.shared.write32(mailbox::ANSWER, block.unwrap_or(0));
            }
            // Answered on the way: by now others may ask.
            Knock::Exec => return self.executes(tid),
        }
        answer(&self.shared);
    }

    /// The thread is about to execute a program.
    fn executes(&mut self, tid: i32) {
        let shared = self.shared.clone();
        match follow(tid, || answer(&shared)) {
            Followed::Remains => {}
            Followed::Ended(pid, exit) => self.ended.push((pid, exit)),
            Followed::Executed(pid) => {
                let probes = self.images[0].probes.of_another();
                match Image::new(probes, pid, self.images.len() as u32) {
                    Ok(image) => self.images.push(image),
                    Err(error) => self.warnings.push(image::unprobed(pid, &error)),
                }
                ptrace::detach(pid, 0);
            }
        }
    }

    /// By counter: what could not be counted somewhere is not known.
    fn states(&self) -> Vec<State> {
        let rank = |state: &State| match state {
            State::Absent => 0,
            State::Patched => 1,
            State::Refused(_) => 2,
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
