//! The processes of a run: how they are born, what they execute, when nothing of an image runs any more.
//!
//! A forked child has the parent's memory, and with it the parent's code cache; both would count into the same words. So it gets an
//! image of its own at the same addresses, which is empty or that of a former child (`image/again.rs`). A child that shares
//! the parent's memory until it executes a program (`vfork`, `posix_spawn`) runs in the parent's image as a thread does. Each exec starts a new image.
//! Without [`Children::Followed`], children are sent back to the program's own code and run natively.
//! Leaves out sharing translations between processes that live at the same time.

use crate::executable;
use crate::host::{Host, Thread};
use crate::image::{Image, Opens};
use crate::layout::{self, context};
use crate::memory;
use crate::ptrace::{self, Registers, Wait};
use crate::run::{Children, Exit, Process};
use crate::signal::{self, Step};
use crate::{Error, ErrorKind};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A process that has not ended.
pub(crate) struct Living {
    /// Its index in the run's processes.
    index: usize,
    /// Signals with handlers, as last read.
    pub(crate) caught: Option<u64>,
    /// Signals whose handlers are for one signal only.
    pub(crate) reset: u64,
}

impl Living {
    pub(crate) fn index(&self) -> usize {
        self.index
    }
}

/// What a new task shares with the one that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Birth {
    /// Everything.
    Thread,
    /// Memory; whether the parent waits meanwhile does not matter.
    SharedMemory,
    /// Memory, and the parent is suspended until the child leaves it.
    Suspending,
    /// A copy of everything.
    Copy,
}

/// How many processes may be busy before the run is spread over the processors: as measured, three on one core with the host are no
/// slower than three beside it.
const BUSY_MAX: usize = 3;

impl Host<'_> {
    /// Notes a process that was born.
    pub(crate) fn born(&mut self, pid: i32, parent: Option<i32>) {
        let parent = parent.and_then(|pid| self.living.get(&pid));
        let reset = parent.map_or(0, |living| living.reset);
        let parent = parent.map(|living| living.index);
        let command = parent.map_or_else(Vec::new, |n| self.processes[n].command.clone());
        let index = self.processes.len();
        self.processes.push(Process { pid, parent, command, exit: None, images: Vec::new() });
        self.living.insert(pid, Living { index, caught: None, reset });
    }

    /// Notes that a process ended.
    pub(crate) fn died(&mut self, pid: i32, exit: Exit) {
        if let Some(living) = self.living.remove(&pid) {
            self.processes[living.index].exit = Some(exit);
        }
    }

    /// A task was born: a thread is taken in; a process too, or it is let go to run natively.
    pub(crate) fn cloned(&mut self, tid: i32) {
        let new = ptrace::event_message(tid) as i32;
        let Some(parent) = self.threads.get(&tid).map(|thread| thread.process) else {
            return ptrace::resume(tid, 0);
        };
        let birth = birth(tid, new, parent);
        let followed = birth == Birth::Thread || self.children == Children::Followed;
        if followed && birth != Birth::Thread {
            self.born(new, Some(parent));
        }
        if !self.early.remove(&new) {
            match ptrace::wait(new) {
                Ok(Some((_, Wait::Event(..) | Wait::Signal(_)))) => {}
                Ok(Some((_, Wait::Signaled(signal)))) => {
                    self.died(new, Exit::Signal(signal));
                    return ptrace::resume(tid, 0);
                }
                _ => return ptrace::resume(tid, 0),
            }
        }
        match birth {
            _ if !followed => self.release(new, tid),
            Birth::Copy => self.forked(new, tid),
            _ => {
                let process = if birth == Birth::Thread { parent } else { new };
                let image = self.threads[&tid].image;
                self.adopt(new, process, image);
                if birth != Birth::Suspending {
                    self.spread();
                    self.image_of(image).translator.cache.parallel = true;
                }
            }
        }
        if birth == Birth::Copy && followed {
            self.spread_if_busy();
        }
        ptrace::resume(tid, 0);
    }

    /// Gives a forked child an image of its own.
    fn forked(&mut self, tid: i32, parent: i32) {
        self.to_own_code(tid, parent);
        let number = self.images_seen;
        match self.child_image(tid, parent) {
            Ok(new) => {
                self.begins(tid, new);
                self.adopt(tid, tid, number);
            }
            Err(error) => self.lose(tid, &error),
        }
    }

    /// An image starts.
    fn begins(&mut self, pid: i32, image: Image) {
        let number = image.number;
        let watched = self.binding.hidden().is_some() && self.opens_left > 0;
        image.watch(if watched { Opens::Watched } else { Opens::Ignored });
        self.images_seen = number + 1;
        self.images.insert(number, image);
        if let Some(living) = self.living.get(&pid) {
            self.processes[living.index].images.push(number);
        }
    }

    /// A child that cannot be followed runs natively; it stands at the program's own code.
    fn lose(&mut self, pid: i32, error: &Error) {
        let command = self.living.remove(&pid).map(|living| {
            let words = &self.processes[living.index].command;
            words.first().map_or_else(String::new, |word| word.to_string_lossy().into_owned())
        });
        let name = command.unwrap_or_default();
        self.warnings.push(format!("process {pid} ({name}) ran on without being counted: {error}"));
        self.binding.free(pid);
        ptrace::detach(pid, 0);
    }

    /// Lets a child of `parent` run natively.
    fn release(&mut self, tid: i32, parent: i32) {
        self.to_own_code(tid, parent);
        self.binding.free(tid);
        ptrace::detach(tid, 0);
    }

    /// Sends a newborn child, which stands behind its parent's system call in the code cache, to the program's own next instruction.
    fn to_own_code(&self, tid: i32, parent: i32) {
        let image = &self.images[&self.threads[&parent].image];
        let Some(mut r) = ptrace::registers(tid) else { return };
        if let Some((bound, _)) = image.translator.cache.bound(r.rip) {
            let block = &image.translator.blocks[bound.block as usize];
            r.rip = block.ip + u64::from(block.len);
            r.rcx = r.rip;
            r.gs_base = 0;
            ptrace::set_registers(tid, &r);
        }
    }

    /// A new program: all other threads of the process are gone, its old image's counts are final.
    pub(crate) fn executed(&mut self, tid: i32) {
        let former = ptrace::event_message(tid) as i32;
        let own = |(&other, thread): (&i32, &Thread)| (thread.process == tid).then_some(other);
        let gone: Vec<i32> = self.threads.iter().filter_map(own).chain([former]).collect();
        gone.into_iter().for_each(|other| self.gone(other));
        // The exec's system call must be over before calls can be made in the program's name.
        let mask = signal::block(tid);
        loop {
            match self.step(tid, 0) {
                Step::Done => break signal::unblock(tid, mask),
                Step::Other(Wait::Event(..)) => {}
                Step::Other(what) => return self.stopped(tid, what),
                Step::Signal(_) | Step::Gone => return,
            }
        }
        if let Some(living) = self.living.get_mut(&tid) {
            (living.caught, living.reset) = (None, 0);
            self.processes[living.index].command = arguments(tid);
        }
        match self.execute(tid) {
            Ok(image) => {
                let number = image.number;
                self.begins(tid, image);
                self.adopt(tid, tid, number);
            }
            Err(error) if tid == self.root => self.fail(error),
            Err(error) => self.lose(tid, &error),
        }
    }

    /// The image of the program that `pid` has just executed.
    fn execute(&mut self, pid: i32) -> Result<Image, Error> {
        let before = ptrace::registers(pid);
        if pid != self.root {
            let link = PathBuf::from(format!("/proc/{pid}/exe"));
            let named = std::fs::read_link(&link).ok().filter(|path| path.exists());
            executable::check_header(&named.unwrap_or(link))?;
        }
        let number = self.images_seen;
        let mut image = match Image::new(pid, number, self.stream) {
            Ok(image) => image,
            Err(error) => {
                if let Some(before) = before {
                    ptrace::set_registers(pid, &Registers { orig_rax: u64::MAX, ..before });
                }
                return Err(error);
            }
        };
        if let Some(folder) = &self.translations {
            image.remember(folder);
        }
        if let Some(asking) = &self.asking {
            let blocks = self.profiles.values().map(|p| p.blocks.len()).sum();
            asking.borrow_mut().starts(number, pid, blocks);
        }
        image.translator.asking = self.asking.clone();
        if let Some(probes) = &self.probes {
            probes.borrow_mut().install(pid)?;
            image.maps.probes = self.probes.clone();
        }
        Ok(image)
    }

    /// Takes the stopped task in: a context in `gs`, and on in the code cache.
    fn adopt(&mut self, tid: i32, process: i32, image: u32) {
        let Some(mut r) = ptrace::registers(tid) else { return };
        let number = self.threads_seen;
        let Some(context) = self.image_of(image).enter(r.fs_base) else {
            let why = format!("the program has more than {} threads at a time", layout::CONTEXTS_MAX);
            return self.fail(Error::new(ErrorKind::Unsupported, why));
        };
        self.threads_seen += 1;
        self.threads.insert(tid, Thread { context, number, process, image, held: VecDeque::new() });
        r.gs_base = layout::CONTEXTS + context as u64 * context::BYTES;
        ptrace::set_registers(tid, &r);
        self.redirect(tid);
        if !self.check_refusal(tid) {
            ptrace::resume(tid, 0);
        }
    }

    /// Nobody is bound to one processor any longer.
    pub(crate) fn spread(&mut self) {
        if self.binding.hidden().is_some() {
            self.binding.dissolve(self.threads.keys().copied());
            self.images.values().for_each(|image| image.watch(Opens::Ignored));
        }
    }

    fn spread_if_busy(&mut self) {
        let may_be = self.binding.hidden().is_some() && self.living.len() > BUSY_MAX;
        if may_be && self.living.keys().filter(|&&pid| is_busy(pid)).count() > BUSY_MAX {
            self.spread();
        }
    }

    /// Ends every process that is left.
    pub(crate) fn end_all(&self, signal: i32) {
        self.living.keys().for_each(|&pid| ptrace::kill(pid, signal));
    }
}

/// What task `new` shares with `tid`, a thread of process `parent` that stands in the call that made it.
fn birth(tid: i32, new: i32, parent: i32) -> Birth {
    if std::fs::metadata(format!("/proc/{parent}/task/{new}")).is_ok() {
        return Birth::Thread;
    }
    let Some(r) = ptrace::registers(tid) else { return Birth::Copy };
    let flags = match r.orig_rax as i64 {
        libc::SYS_vfork => (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
        libc::SYS_clone => r.rdi,
        libc::SYS_clone3 => {
            let mut flags = [0u8; 8];
            memory::read_target(tid, r.rdi, &mut flags);
            u64::from_le_bytes(flags)
        }
        _ => 0,
    };
    match (flags & libc::CLONE_VM as u64 != 0, flags & libc::CLONE_VFORK as u64 != 0) {
        (false, _) => Birth::Copy,
        (true, false) => Birth::SharedMemory,
        (true, true) => Birth::Suspending,
    }
}

/// The argument vector of a process.
fn arguments(pid: i32) -> Vec<OsString> {
    let mut bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes.split(|&byte| byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect()
}

/// Whether a process waits for nothing but a processor (or for the host).
fn is_busy(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('R' | 't'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_busy_and_has_arguments() {
        let pid = ptrace::own_pid();
        assert!(!is_busy(i32::MAX));
        assert_eq!(arguments(pid)[0], std::env::args_os().next().unwrap());
        assert!(arguments(i32::MAX).iter().all(|word| word.is_empty()));
    }
}
