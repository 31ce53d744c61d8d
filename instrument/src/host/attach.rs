//! Attach: the engine enters a program that runs already.
//!
//! ```text
//!   each thread is stopped ──▶ map the engine's memory ──▶ ask for actions of signals
//!   ──▶ end restartable sequences ──▶ a context for each thread, which runs on in the code cache
//! ```
//!
//! **A thread in a system call** must stay in it: where the kernel will set it back onto its
//! `syscall`, it gets an address behind the copy of that instruction, so the kernel sets it back
//! onto the copy. The kernel thus decides as natively whether a signal ends the call.
//!
//! **Invariant.** Until the first thread runs in the code cache, the program can be left as it was.
//! **Leaves out** how the threads were stopped (`target::attach`), and the way back (`detach`).

use super::attachment::Attachment;
use super::state::Host;
use crate::error::Error;
use crate::image::Image;
use crate::outcome::{Running, Standstill};
use crate::target::attach::Stopped;
use crate::target::in_flight;
use crate::target::inject::Injector;
use crate::target::memory;
use crate::target::ptrace::{self, Registers};
use crate::target::restartable::Area;
use crate::target::running;
use crate::target::trap::{TrapAction, MASK_BYTES};
use std::collections::{BTreeSet, HashMap};

/// The number of signals.
const SIGNALS: i32 = 64;
const SA_RESETHAND: u64 = 0x8000_0000;
/// The instruction `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

impl Host<'_> {
    /// Enters a stopped process and lets its threads run on in the code cache.
    ///
    /// # Errors
    /// If that is impossible; the process runs on natively.
    pub(crate) fn attach(&mut self, mut stopped: Stopped, running: Running) -> Result<(), Error> {
        let pid = stopped.pid;
        let number = self.images_seen;
        // A process whose host dies while it makes calls for it must not run on with the registers
        // of such a call. If the entry fails, the detach takes the options back.
        stopped.tids.iter().for_each(|&tid| ptrace::set_options(tid));
        let image = Image::of_running(pid, number, self.parts())?;
        let actions = read_actions(pid, &image);
        // From here on nothing fails, so the threads belong to the host.
        let tids = std::mem::take(&mut stopped.tids);
        let areas = self.end_sequences(&tids, &image);
        self.attachment = Some(Attachment {
            until: running.window.map(|window| stopped.since + window),
            areas,
            enters: true,
            parked: BTreeSet::new(),
            leaves_since: None,
            standstill: Standstill::default(),
        });
        self.name_process(pid);
        self.note_actions(pid, &actions);
        self.begins_in(pid, image);
        for &tid in &tids {
            self.in_flight(tid, number);
            self.adopt(tid, pid, number);
            if tid == pid && tids.len() > 1 {
                self.threads_are_open();
                self.image_of(number).translator.cache.parallel = true;
            }
        }
        if let Some(attachment) = &mut self.attachment {
            attachment.standstill.at_begin = stopped.since.elapsed();
            attachment.enters = false;
        }
        self.enters_and_leaves();
        Ok(())
    }

    /// Ends the registrations for restartable sequences; returns those that there were.
    fn end_sequences(&self, tids: &[i32], image: &Image) -> HashMap<i32, Area> {
        let areas = tids.iter().filter_map(|&tid| Some((tid, Area::of(tid)?)));
        let areas: HashMap<i32, Area> = areas.collect();
        for (&tid, area) in &areas {
            area.abort(tid);
            image.call_for_host(tid, |injector| area.unregister(injector));
        }
        areas
    }

    /// Notes what the process has set for its signals.
    fn note_actions(&mut self, pid: i32, actions: &[(i32, [u64; 4])]) {
        let resets = actions.iter().filter(|(_, words)| words[1] & SA_RESETHAND != 0);
        let reset = resets.fold(0, |all, (signal, _)| all | 1 << (signal - 1));
        if let Some(living) = self.living.get_mut(&pid) {
            living.reset = reset;
        }
        if let Some((_, words)) = actions.iter().find(|(signal, _)| *signal == libc::SIGTRAP) {
            self.set_trap_action(pid, TrapAction { words: *words, lost: false });
        }
    }

    /// If a stopped thread will be set back onto its `syscall`, gives it an address behind the copy
    /// of that instruction.
    fn in_flight(&mut self, tid: i32, image: u32) {
        in_flight::repeat(tid);
        let Some(registers) = ptrace::registers(tid).filter(in_flight::repeats) else { return };
        let call = registers.rip.wrapping_sub(SYSCALL.len() as u64);
        let mut bytes = [0u8; SYSCALL.len()];
        let is_call = memory::read_target(tid, call, &mut bytes) == bytes.len() && bytes == SYSCALL;
        let image = self.image_of(image);
        image.looked_at_through(tid);
        let copy = image
            .translator
            .fragment(call, &mut image.maps)
            .filter(|_| is_call)
            .and_then(|fragment_index| image.translator.cache.in_call(fragment_index));
        if let Some(rip) = copy {
            ptrace::set_registers(tid, &Registers { rip, ..registers });
        }
    }

    /// Notes the registration of an area for restartable sequences, which takes effect when the
    /// host leaves the program; returns the call's result. `None` in a program that the host
    /// started.
    pub(crate) fn registers_area(&mut self, tid: i32, registers: &Registers) -> Option<i64> {
        let attachment = self.attachment.as_mut()?;
        if registers.rdx == 0 {
            let (bytes, signature) = (registers.rsi as u32, registers.r10 as u32);
            attachment.areas.insert(tid, Area { address: registers.rdi, bytes, signature });
        } else {
            attachment.areas.remove(&tid);
        }
        Some(0)
    }
}

/// The actions of a process for its signals that are not the defaults: the kernel's
/// `struct sigaction`, by signal.
fn read_actions(pid: i32, image: &Image) -> Vec<(i32, [u64; 4])> {
    let Some(registers) = ptrace::registers(pid) else { return Vec::new() };
    let Some(at) = running::scratch(pid, registers.rsp) else { return Vec::new() };
    let ask = |injector: &mut Injector| {
        let mut before = [0u8; 32];
        memory::read_target(pid, at, &mut before);
        let actions = running::signals_with_actions(pid, SIGNALS).into_iter().filter_map(|signal| {
            let got = injector.call(libc::SYS_rt_sigaction, [signal as u64, 0, at, MASK_BYTES, 0, 0]);
            let mut bytes = [0u8; 32];
            (got == 0 && memory::read_target(pid, at, &mut bytes) == bytes.len()).then(|| {
                let word =
                    |index: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * index + byte]));
                (signal, std::array::from_fn(word))
            })
        });
        let actions = actions.collect();
        memory::write_target(pid, at, &before);
        actions
    };
    image.call_for_host(pid, ask).unwrap_or_default()
}
