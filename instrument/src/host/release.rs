//! Release: a process leaves the engine alive and runs on natively.
//!
//! Each of its threads is stopped, brought to a boundary between two instructions of the program,
//! and gets the program's own address and registers; then it is detached. The engine's memory stays
//! mapped in it, and nothing leads there any more. A call that was interrupted is made again by the
//! kernel, which finds the program's own `syscall` before the address.
//!
//! There are two reasons. Another process of the run traces the process (a debugger, `strace`), and
//! the kernel allows one tracer only; or the process outlives the program (`remainder`). **Leaves
//! out** a thread that waits for its `vfork`ed child: it leaves when the child has left its memory.

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
        !leaving.is_empty() && self.threads.get(&tid).is_some_and(|t| leaving.contains_key(&t.process))
    }

    /// Whether the process is being released.
    pub(crate) fn process_leaves(&self, pid: i32) -> bool {
        self.departures.leaving.contains_key(&pid)
    }

    /// The program stands before a `ptrace` call: the process that it wants to trace is released
    /// first.
    pub(crate) fn traces(&mut self, tid: i32, r: &Registers) {
        let own = self.threads[&tid].process;
        let target = match r.rdi {
            TRACEME => Some(own),
            ATTACH | SEIZE => self.process_named(tid, r.rsi as i32).filter(|&target| target != own),
            _ => None,
        };
        match target {
            // The program itself stays with the engine; the kernel refuses the call, because it is
            // traced.
            Some(pid) if pid == self.root => {
                if r.rdi != TRACEME {
                    let why = "a process of the run asks to trace the program itself (ptrace), which lightfoot traces: it is refused";
                    self.warnings.push(why.into());
                }
                ptrace::resume(tid, 0);
            }
            Some(pid) => {
                if !self.process_leaves(pid) {
                    self.departures.traced.push((pid, self.name(pid)));
                }
                // A process that asks to be traced releases itself and needs no one to wait;
                // otherwise the caller waits before its call.
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
        // This stop came instead of the requested one, so ask again.
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
                    "process {tid} cannot be brought back to its own code, so that it could run on natively"
                );
                self.fail(Error::new(ErrorKind::System, why));
            }
            Boundary::Gone => {}
        }
    }

    /// Detaches a thread that stands at a boundary with the program's own registers.
    fn depart(&mut self, tid: i32) {
        let Some(r) = ptrace::registers(tid) else { return };
        // The thread may stand before a return from a handler whose frame was already changed.
        if r.rax == SIGRETURN {
            self.restore_frame(tid, r.rsp);
        }
        // The host cannot correct anything later: registers, the signal mask and the action of
        // SIGTRAP become the program's own now.
        ptrace::set_registers(tid, &Registers { gs_base: 0, ..r });
        self.show_trap_mask(tid);
        self.put_back_trap_action(tid);
        self.binding.free(tid);
        let thread = self.threads.get_mut(&tid).expect("a thread of ours");
        let (process, held) = (thread.process, std::mem::take(&mut thread.held));
        self.gone(tid);
        // Signals that were held back are sent again; the kernel queues them.
        held.into_iter().for_each(|(signal, _)| ptrace::kill_thread(process, tid, signal));
        ptrace::detach(tid, 0);
        self.has_left(process);
    }

    /// Undoes the change of a signal's frame: a frame that would return to a translation returns to
    /// the program's own address again.
    fn restore_frame(&mut self, tid: i32, frame: u64) {
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

/// A list of processes by number and name; of many, the first few.
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
