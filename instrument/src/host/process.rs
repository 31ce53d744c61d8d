//! The processes of a run: births, execs, and the images that they run in.
//!
//! **The problem.** A forked child inherits the mappings of the parent's shared memory, and both
//! would count into the same words. **The idea.** What a new task shares with its maker decides
//! where it runs:
//!
//! ```text
//!  clone ──▶ shares everything   a thread: a context in the maker's image
//!        ──▶ shares memory       `vfork`, `posix_spawn`: a context in the maker's image, until
//!        │                       the child executes a program
//!        ──▶ copies everything   `fork`: an image of its own at the same addresses, which is
//!                                empty or was used by a former child (`image/again.rs`)
//!  exec  ──▶ a new image, or that of a former process of the program (`image/resting.rs`)
//! ```
//!
//! Where children are not counted ([`Children::Released`](crate::outcome::Children::Released)), the
//! host sends them back to the program's own code and they run natively. **Invariants.** Each
//! thread has a context of its own; an image lives as long as its threads. **Leaves out** sharing
//! translations between processes that live at the same time.

use super::attachment::Attachment;
use super::gathering::Gathering;
use super::ring::RingMessage;
use super::state::Host;
use super::task::ProcessState;
use super::task::ProgramThread;
use super::task::StepOutcome;
use crate::image::{number, Image, Place};
use crate::instrumentation::instrumenter::ImageInstrumenter;
use crate::outcome::{Exit, Fork, Process};
use crate::store::kept::{KeptTranslations, Origin};
use crate::target::credentials;
use crate::target::executable;
use crate::target::layout::{self, context};
use crate::target::memory;
use crate::target::ptrace;
use crate::target::ptrace::{Registers, Wait};
use crate::target::rights;
use crate::target::signal_mask;
use crate::target::trap;
use crate::translate::watch::Watch;
use crate::{Error, ErrorKind};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What a new task shares with its maker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CloneKind {
    /// The new task is a thread and shares everything.
    ProgramThread,
    /// The new task is a process that shares memory with its parent, and the parent runs on.
    SharedMemory,
    /// The new task is a process that shares memory with its parent, and the parent is suspended
    /// until the child leaves that memory.
    Suspending,
    /// The new task has a copy of everything.
    Copy,
}

/// The most busy processes that stay on one core with the host. In measurements, three processes on
/// one core were no slower than three on different cores.
const BUSY_MAX: usize = 3;

impl Host<'_> {
    /// Registers a new process.
    pub(crate) fn born(&mut self, pid: i32, parent: Option<i32>) {
        let parent = parent.and_then(|pid| self.living.get(&pid));
        let (reset, trap, filters_calls) =
            parent.map_or_else(Default::default, |living| (living.reset, living.trap, living.filters_calls));
        let parent = parent.map(|living| living.index);
        let command = parent.map_or_else(Vec::new, |index| self.processes[index].command.clone());
        let index = self.processes.len();
        self.processes.push(Process { pid, parent, command, exit: None, images: Vec::new() });
        self.living.insert(pid, ProcessState { index, caught: None, ignored: 0, reset, filters_calls, trap });
    }

    /// Notes that a process ended.
    pub(crate) fn died(&mut self, pid: i32, exit: Exit) {
        if let Some(living) = self.living.remove(&pid) {
            self.processes[living.index].exit = Some(exit);
            self.departures.left_behind.retain(|(left, _)| *left != pid);
        }
    }

    /// Answers thread `tid`'s creation of a task. A new thread runs in its process's image; a new
    /// process is followed, or runs natively if children are not counted.
    pub(crate) fn cloned(&mut self, tid: i32) {
        let new = ptrace::event_message(tid) as i32;
        let Some(parent) = self.threads.get(&tid).map(|thread| thread.process) else {
            return ptrace::resume(tid, 0);
        };
        // 1. What the two tasks share decides in which image the new one runs.
        let birth = birth(tid, new, parent);
        let hides_trap = self.hides_trap(tid);
        let untraced = self.leak_checks.asked(tid);
        let checks = untraced.is_some() && birth == CloneKind::SharedMemory;
        let followed = birth == CloneKind::ProgramThread || checks || self.children.are_counted();
        if followed && birth != CloneKind::ProgramThread && !checks {
            self.born(new, Some(parent));
        }
        // 2. Wait for the new task's first stop, unless it came before its maker's event.
        if !self.early.remove(&new) {
            match ptrace::wait_for(new) {
                Some((_, Wait::Event(..) | Wait::Signal(_))) => {}
                Some((_, Wait::Signaled(signal))) => {
                    self.died(new, Exit::Signal(signal));
                    return ptrace::resume(tid, 0);
                }
                _ => return ptrace::resume(tid, 0),
            }
        }
        // 3. Undo what the host changed for the call: both tasks have copies of the clone's flags
        // and of the signal mask.
        if let Some(asked) = untraced {
            asked.put_back(tid);
            asked.put_back(new);
        }
        // The kernel copied the parent's mask, which lacks the bit that the host hides.
        if hides_trap {
            ptrace::set_signal_mask(new, ptrace::signal_mask(new) | trap::TRAP);
        }
        let own = if birth == CloneKind::ProgramThread { parent } else { new };
        self.shown.born((new, own), (tid, parent));
        if birth != CloneKind::ProgramThread && !checks {
            self.processes_are_open();
        }
        // 4. A child that is not followed runs natively. A child with a copy of the memory gets an
        // image of its own. A child that shares memory gets a context in its parent's image.
        match birth {
            _ if !followed => self.release(new, tid, birth),
            CloneKind::Copy => self.forked(new, tid),
            _ => {
                let process = if birth == CloneKind::ProgramThread || checks { parent } else { new };
                let image = self.threads[&tid].image;
                if checks {
                    self.begins_check(new, image);
                }
                if birth == CloneKind::ProgramThread {
                    self.begin_turns(tid);
                }
                self.adopt(new, process, image);
                self.hide_trap_mask(tid);
                // From now on two threads of one image run at the same time.
                if birth != CloneKind::Suspending {
                    self.gather(process);
                    self.threads_are_open();
                    self.image_of(image).translator.cache.parallel = true;
                }
            }
        }
        if birth == CloneKind::Copy && followed {
            self.spread_if_busy();
        }
        ptrace::resume(tid, 0);
    }

    /// Gives a forked child an image of its own.
    fn forked(&mut self, tid: i32, parent: i32) {
        self.send_to_own_code(tid, parent);
        let number = self.images_seen;
        match self.child_image(tid, parent) {
            Ok(new) => {
                self.begins(tid, new);
                self.marking.iter_mut().for_each(|marking| marking.maker = Some(parent));
                self.adopt(tid, tid, number);
                self.tell_fork((parent, tid));
                self.gathering.iter().for_each(|gathering| gathering.add(tid));
            }
            Err(error) => {
                // The child has a copy of its parent's mappings.
                self.image_mut(parent).stays_mapped = true;
                self.lose(tid, &error);
            }
        }
    }

    /// Tells the observer of a fork by `maker`, behind the records that it has made, if a tool's
    /// events are recorded.
    fn tell_fork(&mut self, (maker, made): (i32, i32)) {
        if self.instrumenter.is_none() {
            return;
        }
        // A child that cannot be adopted ends the run.
        let Some(&ProgramThread { image, number, .. }) = self.threads.get(&made) else { return };
        self.hand_over_records(maker);
        let made = (image, number);
        let ProgramThread { context, image, number, .. } = self.threads[&maker];
        let instructions = self.image_of(image).instructions(context);
        let maker = (image, number);
        self.give(RingMessage::Forked(Fork { maker, made, instructions }));
    }

    /// Notes the arguments of a process that runs already.
    pub(super) fn name_process(&mut self, pid: i32) {
        if let Some(living) = self.living.get(&pid) {
            self.processes[living.index].command = arguments(pid);
        }
    }

    /// Registers the image of a process that runs already, whose threads enter it next.
    pub(super) fn begins_in(&mut self, pid: i32, mut image: Image) {
        image.translator.watch = Watch::new(self.marking.as_ref().map(|marking| marking.marker.clone()));
        image.translator.calls = self.calls;
        image.translator.instrumenter = self.instrumenter_of(pid, image.number);
        self.begins(pid, image);
    }

    /// The tool's instrumenter for image `number` of process `pid`.
    fn instrumenter_of(&self, pid: i32, number: u32) -> Option<ImageInstrumenter> {
        let tool = self.instrumenter.as_ref()?;
        Some(ImageInstrumenter::starts(tool, number, pid, self.blocks_ended))
    }

    /// Registers a new image with the host and with its process.
    fn begins(&mut self, pid: i32, mut image: Image) {
        let number = image.number;
        let filters_calls = self.living.get(&pid).is_some_and(|living| living.filters_calls);
        image.set_posting(!filters_calls && !self.shown.repeats() && !self.shown.takes_turns());
        image.watch(self.opens_now());
        self.show_machine(&image);
        if self.children.are_counted() {
            image.stop_before(&number::OF_TRACERS);
        }
        self.images_seen = number + 1;
        self.images.insert(number, image);
        if let Some(living) = self.living.get(&pid) {
            self.processes[living.index].images.push(number);
        }
    }

    /// The name of the program that a process runs, as in its argument vector.
    pub(crate) fn name(&self, pid: i32) -> String {
        let words = self.living.get(&pid).map(|living| &self.processes[living.index].command);
        let first = words.and_then(|words| words.first());
        first.map_or_else(String::new, |word| word.to_string_lossy().into_owned())
    }

    /// Detaches a child that cannot be followed, with a warning. The child stands in the program's
    /// own code and runs on natively.
    fn lose(&mut self, pid: i32, error: &Error) {
        let name = self.name(pid);
        self.living.remove(&pid);
        self.warnings.push(format!("process {pid} ({name}) ran on without being counted: {error}"));
        self.binding.free(pid);
        ptrace::detach(pid, 0);
    }

    /// Detaches a child of `parent`, so that it runs natively.
    fn release(&mut self, tid: i32, parent: i32, birth: CloneKind) {
        self.send_to_own_code(tid, parent);
        self.hand_trap_action_down(tid, parent);
        if let Some(attachment) = self.attachment.as_ref().filter(|_| birth == CloneKind::Copy) {
            let image = &self.images[&self.threads[&parent].image];
            image.leave_copy(tid, attachment.areas.get(&parent).copied());
        }
        self.binding.free(tid);
        ptrace::detach(tid, 0);
    }

    /// Sends a new child to the program's own next instruction. The child stands behind its
    /// parent's system call in the code cache.
    fn send_to_own_code(&mut self, tid: i32, parent: i32) {
        let image = &self.images[&self.threads[&parent].image];
        let Some(mut registers) = ptrace::registers(tid) else { return };
        // The `syscall` is the last instruction of its block, so the program's next instruction
        // follows the block.
        if let Some((entry, _)) = image.translator.cache.state_at(registers.rip) {
            let block = &image.translator.blocks[entry.block as usize];
            registers.rip = block.ip + u64::from(block.len);
            registers.rcx = registers.rip;
        } else if image.translator.cache.contains(registers.rip) {
            // Generated code needs the host, so a child that cannot be moved out of it must not
            // run.
            ptrace::kill(tid, libc::SIGKILL);
            let why = format!(
                "lightfoot cannot release child process {tid}: its place in the program's own code is unknown; this is a defect \
                 of lightfoot, which you can report"
            );
            return self.fail(Error::new(ErrorKind::System, why));
        }
        // The child gets its own `gs` back.
        registers.gs_base = 0;
        ptrace::set_registers(tid, &registers);
    }

    /// Answers the exec of a program by process `tid`. The process's other threads are gone, and
    /// the counts of its old image are final.
    pub(crate) fn executed(&mut self, tid: i32) {
        let former = ptrace::event_message(tid) as i32;
        if tid == self.root {
            self.end_turns();
        }
        // A blocked signal stays blocked across an exec, and the kernel may not know of the bit
        // that the host hides.
        if self.hides_trap(former) {
            ptrace::set_signal_mask(tid, ptrace::signal_mask(tid) | trap::TRAP);
        }
        // The kernel ended the other threads without a stop, and gave the calling thread a new
        // number.
        let own = |(&other, thread): (&i32, &ProgramThread)| (thread.process == tid).then_some(other);
        let gone: Vec<i32> = self.threads.iter().filter_map(own).chain([former]).collect();
        gone.into_iter().for_each(|other| self.gone(other));
        self.attachment.iter_mut().for_each(Attachment::executed);
        if self.images_seen == 0 {
            self.set_trap_action(tid, trap::Inherited::of(tid).action());
        }
        // The exec's system call must be over before calls can be made in the program's name.
        let mask = signal_mask::block(tid);
        let mut waited = None;
        loop {
            match self.step(tid, 0) {
                StepOutcome::Done => break signal_mask::unblock(tid, mask),
                StepOutcome::Other(Wait::Event(..)) => {}
                StepOutcome::Other(what) => return self.stopped(tid, what),
                // The program blocks this signal; only the host's step has let it through.
                StepOutcome::Signal((libc::SIGTRAP, _)) if mask & trap::TRAP != 0 => {
                    waited = Some(libc::SIGTRAP)
                }
                StepOutcome::Signal(_) | StepOutcome::Gone => return,
            }
        }
        waited.into_iter().for_each(|signal| ptrace::kill(tid, signal));
        if let Some(living) = self.living.get_mut(&tid) {
            (living.caught, living.reset, living.trap) = (None, 0, living.trap.behind_exec());
            self.processes[living.index].command = arguments(tid);
        }
        // The new program's image, and its first thread in it.
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
        self.note_rights(pid);
        let number = self.images_seen;
        // Kept translations, the tool and probes must be in place before the first instruction.
        let watch = Watch::new(self.marking.as_ref().map(|marking| marking.marker.clone()));
        // Mapping the engine's memory changes registers. If it fails, they are restored.
        let mut image = match self.image_at_start(pid, number, watch) {
            Ok(image) => image,
            Err(error) => {
                if let Some(before) = before {
                    ptrace::set_registers(pid, &Registers { orig_rax: u64::MAX, ..before });
                }
                return Err(error);
            }
        };
        self.prepare_shown(pid);
        image.translator.instrumenter = self.instrumenter_of(pid, number);
        if let Some(probes) = &self.probes {
            probes.borrow_mut().install(pid)?;
            image.maps.watcher = Some(probes.clone());
        }
        Ok(image)
    }

    /// An image for process `pid`, which has just executed a program: that of a former process of
    /// the program, or a new one, to which kept translations are restored.
    fn image_at_start(&mut self, pid: i32, number: u32, watch: Watch) -> Result<Image, Error> {
        let place = Place::of(pid)?;
        let origin = Origin {
            pid,
            headers: place.headers,
            stream: &self.stream,
            layout: &place.layout,
            marks: watch.setting(),
            answered: self.answered().setting(),
            calls: self.calls,
        };
        let kept = self.translations.as_ref().and_then(|kept_in| KeptTranslations::of(kept_in, &origin));
        self.take_back();
        let is_idle = |number: u32| self.lent.iter().all(|id| id.0 != number);
        let resting = kept.as_ref().and_then(|kept| self.resting.take(kept, is_idle));
        let image = match (resting, kept) {
            (Some(mut image), Some(kept)) => {
                image.wake(pid, number, &place, kept)?;
                image.translator.watch = watch;
                image
            }
            (_, kept) => {
                let mut image = Image::new(pid, number, &place, self.parts())?;
                image.translator.watch = watch;
                image.translator.calls = self.calls;
                image.translator.set_answered(self.answered());
                kept.into_iter().for_each(|kept| image.remember(kept));
                image
            }
        };
        if image.kept.is_some() {
            image.stop_before(&credentials::CALLS);
        }
        Ok(image)
    }

    /// Warns if the program's file would give it rights, which the kernel withholds from traced
    /// programs.
    fn note_rights(&mut self, pid: i32) {
        let path = PathBuf::from(format!("/proc/{pid}/exe"));
        let about = path.metadata().ok();
        if let Some(given) = about.and_then(|about| rights::given(&path, &about)) {
            let name = std::fs::read_link(&path).unwrap_or(path);
            let (name, what) = (name.display(), given.name());
            self.warnings
                .push(format!("{name} is {what} and ran without those rights, as traced programs do"));
        }
    }

    /// Makes the stopped task a thread of the engine: its `gs` gets a context's address, and the
    /// task continues in the code cache.
    pub(super) fn adopt(&mut self, tid: i32, process: i32, image: u32) {
        let Some(mut registers) = ptrace::registers(tid) else { return };
        let number = self.threads_seen;
        let Some(context) = self.image_of(image).enter(registers.fs_base) else {
            let most = layout::CONTEXTS_MAX;
            let why =
                format!("the program has more than {most} threads at a time, the most that lightfoot runs");
            return self.fail(Error::new(ErrorKind::Unsupported, why));
        };
        self.threads_seen += 1;
        // A new task inherits its maker's mask.
        let blocks_trap = ptrace::signal_mask(tid) & trap::TRAP != 0;
        let (held, astray) = (VecDeque::new(), None);
        let thread =
            ProgramThread { context, number, process, image, blocks_trap, hides_trap: false, held, astray };
        self.threads.insert(tid, thread);
        self.starts_marked(tid);
        self.hide_trap_mask(tid);
        // From here on `gs` addresses the thread's context.
        registers.gs_base = layout::CONTEXTS + context as u64 * context::BYTES;
        ptrace::set_registers(tid, &registers);
        self.redirect(tid);
        if !self.check_refusal(tid) && !self.waits_for_turn(tid) {
            ptrace::resume(tid, 0);
        }
    }

    /// Lets a watcher decide where the threads of a process run, if the run is bound to one
    /// processor.
    fn gather(&mut self, process: i32) {
        if let Some(gathering) = &self.gathering {
            return gathering.add(process);
        }
        let Some(cores) = self.binding.cores() else { return };
        self.gathering = Some(Gathering::begin(process, cores)).filter(Gathering::is_watched);
        // Without a watcher, threads that compute at the same time would stay on one core.
        if self.gathering.is_none() {
            self.spread();
        }
    }

    /// Ends the binding of host and program to one processor.
    pub(crate) fn spread(&mut self) {
        self.gathering = None;
        if self.binding.hidden().is_some() {
            self.binding.dissolve(self.threads.keys().copied());
            self.watch_opens();
        }
    }

    fn spread_if_busy(&mut self) {
        let may_be = self.binding.hidden().is_some() && self.living.len() > BUSY_MAX;
        let is_busy = |pid: &&i32| is_busy(**pid) || self.has_posted(**pid);
        if may_be && self.living.keys().filter(is_busy).count() > BUSY_MAX {
            self.spread();
        }
    }

    /// Sends `signal` to every remaining process.
    pub(crate) fn end_all(&self, signal: i32) {
        self.living.keys().for_each(|&pid| ptrace::kill(pid, signal));
    }
}

/// What task `new` shares with its maker `tid`. The maker is a thread of process `parent` and
/// stands in the system call.
fn birth(tid: i32, new: i32, parent: i32) -> CloneKind {
    if std::fs::metadata(format!("/proc/{parent}/task/{new}")).is_ok() {
        return CloneKind::ProgramThread;
    }
    let Some(registers) = ptrace::registers(tid) else { return CloneKind::Copy };
    // The system call's flags say what is shared.
    let flags = match registers.orig_rax as i64 {
        libc::SYS_vfork => (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
        libc::SYS_clone => registers.rdi,
        libc::SYS_clone3 => {
            let mut flags = [0u8; 8];
            memory::read_target(tid, registers.rdi, &mut flags);
            u64::from_le_bytes(flags)
        }
        _ => 0,
    };
    match (flags & libc::CLONE_VM as u64 != 0, flags & libc::CLONE_VFORK as u64 != 0) {
        (false, _) => CloneKind::Copy,
        (true, false) => CloneKind::SharedMemory,
        (true, true) => CloneKind::Suspending,
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

/// Whether a process is runnable, or waits for nothing but the host.
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
