//! Jumps of the program into the engine's own code, where natively nothing is mapped.
//!
//! Natively such a jump faults. Here it must not enter generated code in the middle, with registers
//! of the program. So the host sends the thread to an address that cannot be executed, and rewrites
//! the fault that follows: the program sees a fault at the address that it jumped to, with its own
//! registers. **Leaves out** reads and writes of the engine's memory by the program: they find the
//! engine's data.

use super::state::Host;
use crate::host::task::FAULT_ADDRESS;
use crate::target::layout;
use crate::target::ptrace;
use crate::target::ptrace::{Registers, SignalInfo};

/// The address to which the host sends such a thread: it is mapped in each program and never
/// executable.
pub(super) const NOWHERE: u64 = layout::CONTEXTS;
const SEGV_MAPERR: i32 = 1;
const CODE: usize = 8;

impl Host<'_> {
    /// The address where a thread continues when the program jumps to `target`, which cannot be
    /// translated: `target` itself, or [`NOWHERE`] if `target` lies in the engine's code.
    pub(crate) fn nothing_at(&mut self, tid: i32, target: u64) -> u64 {
        if !self.image_mut(tid).translator.cache.contains(target) {
            return target;
        }
        self.threads.get_mut(&tid).expect("a thread of ours").astray = Some(target);
        NOWHERE
    }

    /// Makes a thread continue in the translation of the address where it stands. The program chose
    /// that address, so it may lie in the engine's own code.
    pub(crate) fn redirect_program(&mut self, tid: i32) {
        let Some(registers) = ptrace::registers(tid) else { return };
        self.threads.get_mut(&tid).expect("a thread of ours").astray = None;
        match self.nothing_at(tid, registers.rip) {
            NOWHERE => ptrace::set_registers(tid, &Registers { rip: NOWHERE, ..registers }),
            _ => self.redirect(tid),
        }
    }

    /// If this is the fault of a thread that went astray, rewrites it into a fault at the address
    /// that the program jumped to.
    pub(crate) fn fault_where_it_went(&mut self, tid: i32, signal: i32, info: &mut SignalInfo) {
        let Some(target) = self.threads.get(&tid).and_then(|thread| thread.astray) else { return };
        let Some(registers) = ptrace::registers(tid) else { return };
        if signal != libc::SIGSEGV || registers.rip != NOWHERE {
            return;
        }
        ptrace::set_registers(tid, &Registers { rip: target, ..registers });
        info[CODE..CODE + 4].copy_from_slice(&SEGV_MAPERR.to_le_bytes());
        info[FAULT_ADDRESS..FAULT_ADDRESS + 8].copy_from_slice(&target.to_le_bytes());
        ptrace::set_signal_info(tid, info);
    }
}
