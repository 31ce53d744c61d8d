//! Detach: the engine leaves a program that it has entered, and the program runs on natively.
//!
//! ```text
//!   interrupt each thread ──▶ bring it to a boundary ──▶ park it there with its own registers
//!   all are parked ──▶ register restartable sequences ──▶ unmap the engine's memory ──▶ detach
//! ```
//!
//! A thread that reports another stop first is answered as always and interrupted again; so are
//! threads that are born meanwhile. The kernel repeats an interrupted system call by setting the
//! thread back by two bytes, onto the program's own `syscall`. **Why not `release`.** That leaves
//! the engine's memory mapped, because its threads leave one by one. **Leaves out** a thread that
//! waits for its `vfork`ed child: it is parked when the child has left its memory.

use super::astray::NOWHERE;
use super::state::Host;
use crate::error::{Error, ErrorKind};
use crate::host::task::Boundary;
use crate::outcome::Exit;
use crate::target::in_flight;
use crate::target::layout::context;
use crate::target::memory;
use crate::target::ptrace::{self, Registers, Wait};
use std::time::Instant;

const SIGRETURN: u64 = 15;
const INT3: u8 = 0xcc;

impl Host<'_> {
    /// Whether the host is leaving the program that it has entered.
    pub(crate) fn detaches(&self) -> bool {
        self.attachment.as_ref().is_some_and(|attachment| attachment.leaves_since.is_some())
    }

    /// Begins to leave the program if its time is over or `asked` says so.
    pub(crate) fn leave_in_time(&mut self, asked: bool) {
        let Some(attachment) = &self.attachment else { return };
        let is_over = attachment.until.is_some_and(|until| Instant::now() >= until);
        if is_over || asked {
            self.begin_detach();
        }
    }

    /// Begins to leave the program.
    pub(super) fn begin_detach(&mut self) {
        let Some(attachment) = &mut self.attachment else { return };
        if attachment.leaves_since.is_none() {
            attachment.leaves_since = Some(Instant::now());
            self.interrupt_all();
        }
    }

    /// Leaves a program that the host has entered, or ends one that it has started: the run has
    /// failed. `tid` is a thread that stands where it can be taken out, if there is one.
    pub(crate) fn give_up(&mut self, tid: Option<i32>) {
        if self.attachment.is_none() {
            return self.end_all(libc::SIGKILL);
        }
        self.begin_detach();
        if let Some(tid) = tid {
            self.park(tid);
        }
    }

    /// Goes on with a detach that began while threads still waited for their entry.
    pub(super) fn enters_and_leaves(&mut self) {
        if self.detaches() {
            self.interrupt_all();
            self.depart_together();
        }
    }

    /// Interrupts each thread that is not parked.
    fn interrupt_all(&self) {
        let Some(attachment) = &self.attachment else { return };
        let open = self.threads.keys().filter(|tid| !attachment.parked.contains(tid));
        open.for_each(|&tid| ptrace::interrupt(tid));
    }

    /// Answers a stop while the host leaves the program.
    pub(super) fn stopped_detaching(&mut self, tid: i32, what: Wait) {
        let is_requested = matches!(what, Wait::Event(libc::PTRACE_EVENT_STOP, _));
        if !is_requested || !self.threads.contains_key(&tid) {
            self.answer(tid, what);
            // This stop came before the requested one, and may have brought new threads.
            self.interrupt_all();
            return self.depart_together();
        }
        // The thread has executed an `int3` of generated code. Its SIGTRAP waits in the kernel, and
        // must be answered first.
        if self.has_trapped(tid) {
            return ptrace::resume(tid, 0);
        }
        self.park(tid);
    }

    /// Whether a thread stands behind an `int3` of generated code that was not answered.
    fn has_trapped(&mut self, tid: i32) -> bool {
        let context = self.threads[&tid].context;
        let Some(registers) = ptrace::registers(tid) else { return false };
        let image = self.image_mut(tid);
        let (mut byte, before) = ([0u8], registers.rip.wrapping_sub(1));
        image.read32(context, context::EXIT) != 0
            && image.translator.cache.contains(before)
            && memory::read_target(tid, before, &mut byte) == 1
            && byte[0] == INT3
    }

    /// Brings a stopped thread to a boundary and keeps it there.
    fn park(&mut self, tid: i32) {
        in_flight::repeat(tid);
        match self.bring_to_boundary(tid, false) {
            Boundary::Reached => {
                self.make_own(tid);
                self.attachment.iter_mut().for_each(|attachment| {
                    attachment.parked.insert(tid);
                });
                self.depart_together();
            }
            Boundary::Fault(fault) => {
                self.deliver(tid, fault);
                self.interrupt_all();
            }
            Boundary::Other(what) => self.stopped(tid, what),
            Boundary::Lost => self.lost_on_leaving(tid),
            Boundary::Gone => {}
        }
    }

    fn lost_on_leaving(&mut self, tid: i32) {
        // Generated code needs the host, so the program cannot run on alone.
        self.attachment = None;
        let why = format!(
            "lightfoot cannot leave process {}: the place of its thread {tid} in the program's own code is unknown, and the \
             process was ended; this is a defect of lightfoot, which you can report",
            self.root
        );
        self.fail(Error::new(ErrorKind::System, why));
    }

    /// Makes the state of a thread at a boundary the program's own.
    fn make_own(&mut self, tid: i32) {
        let Some(mut registers) = ptrace::registers(tid) else { return };
        // The thread may stand before the return from a handler, and the host may have changed the
        // frame of that handler.
        if registers.rax == SIGRETURN {
            self.restore_frame(tid, registers.rsp);
        }
        // A jump of the program into the engine's memory faults at its target.
        if let Some(target) = self.threads[&tid].astray.filter(|_| registers.rip == NOWHERE) {
            registers.rip = target;
        }
        ptrace::set_registers(tid, &Registers { gs_base: 0, ..registers });
        self.show_trap_mask(tid);
        if self.trap_action(tid).must_be_put_back() {
            self.put_back_trap_action(tid);
            ptrace::stop_in_kernel(tid);
        }
        self.binding.free(tid);
    }

    /// If each thread is parked, unmaps the engine's memory and lets all threads run on natively.
    fn depart_together(&mut self) {
        let Some(attachment) = &self.attachment else { return };
        let is_parked = |tid: &i32| attachment.parked.contains(tid);
        if attachment.enters || self.threads.is_empty() || !self.threads.keys().all(is_parked) {
            return;
        }
        let tids: Vec<i32> = self.threads.keys().copied().collect();
        let image = &self.images[&self.threads[&tids[0]].image];
        for (index, &tid) in tids.iter().enumerate() {
            let area = attachment.areas.get(&tid);
            if area.is_none() && index > 0 {
                continue;
            }
            image.call_for_host(tid, |injector| {
                area.iter().for_each(|area| area.register(injector));
                if index == 0 {
                    image.unmap(injector);
                }
            });
        }
        for &tid in &tids {
            let thread = self.threads.get_mut(&tid).expect("a thread of ours");
            let (process, held) = (thread.process, std::mem::take(&mut thread.held));
            // Signals that were held back are sent again; the kernel queues them.
            held.into_iter().for_each(|(signal, _)| ptrace::kill_thread(process, tid, signal));
            ptrace::detach(tid, 0);
        }
        if let Some(attachment) = &mut self.attachment {
            attachment.standstill.at_end =
                attachment.leaves_since.map_or_else(Default::default, |since| since.elapsed());
        }
        tids.iter().for_each(|&tid| self.gone(tid));
        self.living.remove(&self.root);
        self.exit.get_or_insert(Exit::RunsOn);
    }
}
