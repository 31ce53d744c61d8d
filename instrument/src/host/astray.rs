//! Jumps of the program to where natively nothing is mapped, but the engine's code lies.
//!
//! A wild pointer may lead anywhere. Natively it faults; here it must not run generated code from
//! the middle, with registers that are not its own. So the thread is sent to an address that cannot
//! be executed, with all registers the program's own, and the fault that follows is told as one at
//! the address that the program meant.
//! **Leaves out** reads and writes of the program in the engine's memory, which find what is there.

use super::state::Host;
use crate::host::task::FAULT_ADDRESS;
use crate::target::layout;
use crate::target::ptrace;
use crate::target::ptrace::{Registers, SignalInfo};

/// Mapped in each program, and never executable.
const NOWHERE: u64 = layout::CONTEXTS;
const SEGV_MAPERR: i32 = 1;
const CODE: usize = 8;

impl Host<'_> {
    /// Where a thread goes on that the program sends to `target`, which has no translation.
    pub(crate) fn nothing_at(&mut self, tid: i32, target: u64) -> u64 {
        if !self.image_mut(tid).translator.cache.contains(target) {
            return target;
        }
        self.threads.get_mut(&tid).expect("a thread of ours").astray = Some(target);
        NOWHERE
    }

    /// Sends a thread to the translation of its address, which is one of the program.
    pub(crate) fn redirect_program(&mut self, tid: i32) {
        let Some(r) = ptrace::registers(tid) else { return };
        self.threads.get_mut(&tid).expect("a thread of ours").astray = None;
        match self.nothing_at(tid, r.rip) {
            NOWHERE => ptrace::set_registers(tid, &Registers { rip: NOWHERE, ..r }),
            _ => self.redirect(tid),
        }
    }

    /// If this is the fault of a thread that went astray, makes it one at the address that the
    /// program meant.
    pub(crate) fn fault_where_it_went(&mut self, tid: i32, signal: i32, info: &mut SignalInfo) {
        let Some(target) = self.threads.get(&tid).and_then(|thread| thread.astray) else { return };
        let Some(r) = ptrace::registers(tid) else { return };
        if signal != libc::SIGSEGV || r.rip != NOWHERE {
            return;
        }
        ptrace::set_registers(tid, &Registers { rip: target, ..r });
        info[CODE..CODE + 4].copy_from_slice(&SEGV_MAPERR.to_le_bytes());
        info[FAULT_ADDRESS..FAULT_ADDRESS + 8].copy_from_slice(&target.to_le_bytes());
        ptrace::set_signal_info(tid, info);
    }
}
