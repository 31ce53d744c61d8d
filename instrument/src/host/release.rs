//! Release: a process leaves the engine alive and runs on natively.
//!
//! **Why.** Another process of the run wants to trace the process (a debugger, `strace`), and the
//! kernel allows one tracer only; or the process outlives the program (`remainder`).
//!
//! **How.** The host takes four steps for each thread of the process:
//!
//! ```text
//! stop ──▶ bring to a boundary between ──▶ set the program's own ──▶ detach
//!          two instructions                address and registers
//! ```
//!
//! The engine's memory stays mapped in the process, but no address of the process leads there any
//! more. The kernel repeats an interrupted system call by setting the thread back by two bytes;
//! there it finds the program's own `syscall`. **Leaves out** a thread that waits for its `vfork`ed
//! child: the thread leaves when the child has left its memory.

use super::state::Host;
use super::state::{Departed, Departures};
use super::system_call::FRAME_RIP;
use crate::error::{Error, ErrorKind};
use crate::host::task::Boundary;
use crate::target::memory;
use crate::target::ptrace;
use crate::target::ptrace::{Registers, Wait};

const TRACEME: u64 = 0;
const ATTACH: u64 = 16;
const SEIZE: u64 = 0x4206;
const SIGRETURN: u64 = 15;

impl Host<'_> {
    /// Whether the thread's process is being released.
    pub(crate) fn is_leaving(&self, tid: i32) -> bool {
        let leaving = &self.departures.leaving;
        !leaving.is_empty()
            && self.threads.get(&tid).is_some_and(|thread| leaving.contains_key(&thread.process))
    }

    /// Whether the process is being released.
    pub(crate) fn process_leaves(&self, pid: i32) -> bool {
        self.departures.leaving.contains_key(&pid)
    }

    /// Answers a thread that stands before a `ptrace` call. The process that it wants to trace is
    /// released first.
    pub(crate) fn traces(&mut self, tid: i32, registers: &Registers) {
        let own = self.threads[&tid].process;
        let target = match registers.rdi {
            TRACEME => Some(own),
            ATTACH | SEIZE => self.process_named(tid, registers.rsi as i32).filter(|&target| target != own),
            _ => None,
        };
        match target {
            // The program itself stays in the engine. The kernel refuses the call, because the host
            // already traces the program.
            Some(pid) if pid == self.root => {
                if registers.rdi != TRACEME {
                    let why = "a process of the run tried to trace the program itself (ptrace), and the kernel refused it, because lightfoot traces the program";
                    self.warnings.push(why.into());
                }
                ptrace::resume(tid, 0);
            }
            Some(pid) => {
                if !self.process_leaves(pid) {
                    self.departures.traced.push((pid, self.name(pid)));
                }
                // A process that asks to be traced is released from where it stands. Any other
                // caller waits before its call until the named process has been released.
                let (standing, waiting) = if pid == own { (Some(tid), None) } else { (None, Some(tid)) };
                self.send_away(pid, standing, waiting);
            }
            None => ptrace::resume(tid, 0),
        }
    }

    /// The process that has the thread with this `number` in the namespace of `caller`.
    fn process_named(&self, caller: i32, number: i32) -> Option<i32> {
        let depth = ptrace::numbers(caller).len();
        // The number at the caller's own depth of namespaces is the one that it knows.
        let is_it = |&&tid: &&i32| match depth {
            0 | 1 => tid == number,
            _ => ptrace::numbers(tid).get(depth - 1) == Some(&number),
        };
        self.threads.keys().find(is_it).map(|tid| self.threads[tid].process)
    }

    /// Begins the release of a process. `standing` is a thread of that process that stands before a
    /// system call; `waiting`, a thread of another process, goes on when the release is complete.
    pub(crate) fn send_away(&mut self, pid: i32, standing: Option<i32>, waiting: Option<i32>) {
        self.departures.leaving.entry(pid).or_default().extend(waiting);
        for (&tid, _) in self.threads.iter().filter(|(_, thread)| thread.process == pid) {
            if Some(tid) != standing {
                ptrace::interrupt(tid);
            }
        }
        match standing {
            // This thread is stopped already. All others follow when they stop.
            Some(tid) => self.send_home(tid),
            None => self.has_left(pid),
        }
    }

    /// Answers a stop in a process that is being released.
    pub(crate) fn stopped_leaving(&mut self, tid: i32, what: Wait) {
        let process = self.threads[&tid].process;
        if let Wait::Event(libc::PTRACE_EVENT_STOP, _) = what {
            return self.send_home(tid);
        }
        self.answer(tid, what);
        // This stop came before the requested one, so the host requests another.
        if self.threads.contains_key(&tid) {
            ptrace::interrupt(tid);
        } else {
            self.has_left(process);
        }
    }

    /// Brings a stopped thread to a boundary and releases it there.
    fn send_home(&mut self, tid: i32) {
        match self.bring_to_boundary(tid, false) {
            Boundary::Reached => self.depart(tid),
            Boundary::Fault(fault) => {
                self.deliver(tid, fault);
                if self.threads.contains_key(&tid) {
                    ptrace::interrupt(tid);
                }
            }
            Boundary::Other(what) => self.stopped(tid, what),
            Boundary::Lost => {
                let why = format!(
                    "lightfoot cannot release process {tid}: its place in the program's own code is unknown; this is a defect of \
                     lightfoot, which you can report"
                );
                self.fail(Error::new(ErrorKind::System, why));
            }
            Boundary::Gone => {}
        }
    }

    /// Detaches a thread that stands at a boundary with the program's own registers.
    fn depart(&mut self, tid: i32) {
        let Some(registers) = ptrace::registers(tid) else { return };
        // The thread may stand before the return from a handler, and the host may have changed the
        // frame of that handler.
        if registers.rax == SIGRETURN {
            self.restore_frame(tid, registers.rsp);
        }
        // After the detach the host can correct nothing, so it sets the program's own registers,
        // signal mask and action of SIGTRAP now.
        ptrace::set_registers(tid, &Registers { gs_base: 0, ..registers });
        self.show_trap_mask(tid);
        self.put_back_trap_action(tid);
        self.binding.free(tid);
        let thread = self.threads.get_mut(&tid).expect("a thread of ours");
        let (process, held) = (thread.process, std::mem::take(&mut thread.held));
        self.image_mut(tid).stays_mapped = true;
        self.gone(tid);
        // Signals that were held back are sent again; the kernel queues them.
        held.into_iter().for_each(|(signal, _)| ptrace::kill_thread(process, tid, signal));
        ptrace::detach(tid, 0);
        self.has_left(process);
    }

    /// Undoes the host's change of a signal's frame: if the frame returns to a translation, it
    /// returns to the program's own address again.
    pub(super) fn restore_frame(&mut self, tid: i32, frame: u64) {
        let (mut word, at) = ([0u8; 8], frame.wrapping_add(FRAME_RIP));
        if memory::read_target(tid, at, &mut word) != word.len() {
            return;
        }
        let body = u64::from_le_bytes(word);
        let fragments = &self.image_mut(tid).translator.cache.fragments;
        if let Some(fragment) = fragments.iter().find(|fragment| fragment.body == body) {
            memory::write_target(tid, at, &fragment.pc.to_le_bytes());
        }
    }

    /// If no thread of the process is left in the engine, resumes the threads that waited for it.
    fn has_left(&mut self, pid: i32) {
        if self.threads.values().any(|thread| thread.process == pid) {
            return;
        }
        if let Some(waiting) = self.departures.leaving.remove(&pid) {
            self.living.remove(&pid);
            waiting.into_iter().for_each(|tid| ptrace::resume(tid, 0));
        }
    }

    /// Warns about processes that ran on without being counted.
    pub(crate) fn name_released(&mut self) {
        let Departures { traced, left_behind, .. } = std::mem::take(&mut self.departures);
        if !traced.is_empty() {
            let why = "other processes of the run trace them (ptrace)";
            self.warnings.push(format!("{} ran on without being counted: {why}", list(&traced)));
        }
        if !left_behind.is_empty() {
            let what = "still ran after the program had ended; what they do from then on is not counted";
            self.warnings.push(format!("{} {what}", list(&left_behind)));
        }
    }
}

/// Lists processes by number and name; a long list names the first few only.
fn list(all: &[Departed]) -> String {
    const NAMED_MAX: usize = 8;
    let named: Vec<String> =
        all.iter().take(NAMED_MAX).map(|(pid, name)| format!("{pid} ({name})")).collect();
    let more = all.len().saturating_sub(NAMED_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let noun = if all.len() == 1 { "process" } else { "processes" };
    format!("{noun} {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_many_names_the_first() {
        let all: Vec<Departed> = (1..=10).map(|pid| (pid, "sleep".to_owned())).collect();
        assert_eq!(list(&all[..1]), "process 1 (sleep)");
        assert_eq!(list(&all[..2]), "processes 1 (sleep), 2 (sleep)");
        assert!(list(&all).ends_with("8 (sleep) and 2 more"));
    }
}
