//! Files that tell machines apart, answered with others.
//!
//! A program opens such a file by its path. The host has a memory file with the declared machine's
//! text, and the program opens that one instead, by the path of the host's descriptor. The path
//! stands in the program's context for as long as the call takes. **Leaves out** systems without
//! `/proc`, where the program opens its own path.

use crate::host::state::Host;
use crate::host::system_call::NOP_BYTES;
use crate::host::task::StepOutcome;
use crate::target::layout::{context, CONTEXTS};
use crate::target::memory;
use crate::target::ptrace;
use crate::target::ptrace::Registers;
use crate::target::signal_mask;
use crate::virtual_machine::files::{self, Shown};
use std::fs::File;

/// Files that were made, by what they show.
pub(super) type Files = Vec<(Shown, File)>;

/// The longest path that is looked at.
const PATH_BYTES: usize = 64;

impl Host<'_> {
    /// The path under which the program finds the shown file in place of the one at `path`.
    fn shown_path(&mut self, path: &[u8]) -> Option<String> {
        let leaves = self.shown.leaves.as_ref()?;
        let what = files::shown(path, self.shown.machine.repeats)?;
        if !self.shown.files.iter().any(|(shown, _)| *shown == what) {
            let file = memory::constant_file(files::text(what, leaves).as_bytes()).ok()?;
            self.shown.files.push((what, file));
        }
        let (_, file) = self.shown.files.iter().find(|(shown, _)| *shown == what)?;
        Some(memory::path_of(file))
    }

    /// Opens the shown file in place of the one whose path is at `path`; returns whether there is
    /// one.
    pub(crate) fn opens_shown(&mut self, tid: i32, registers: &Registers, path: u64) -> bool {
        let mut bytes = [0u8; PATH_BYTES];
        let got = memory::read_target(tid, path, &mut bytes);
        let Some(end) = bytes[..got].iter().position(|&byte| byte == 0) else { return false };
        let Some(shown) = self.shown_path(&bytes[..end]) else { return false };
        // This part of the context is free at stops; it has 64 bytes.
        let context = self.threads[&tid].context;
        let at = CONTEXTS + context as u64 * context::BYTES + u64::from(context::VECTOR);
        let mut shown = shown.into_bytes();
        shown.push(0);
        if shown.len() > PATH_BYTES || memory::write_target(tid, at, &shown) != shown.len() {
            return false;
        }
        self.call_with_path(tid, registers, path, at);
        true
    }

    /// Makes the system call with the path at `at` in place of the one at `path`.
    fn call_with_path(&mut self, tid: i32, registers: &Registers, path: u64, at: u64) {
        let swapped = |from, to, all: Registers| Registers {
            rdi: if all.rdi == from { to } else { all.rdi },
            rsi: if all.rsi == from { to } else { all.rsi },
            ..all
        };
        let before = Registers { rip: registers.rip + NOP_BYTES, ..swapped(path, at, *registers) };
        ptrace::set_registers(tid, &before);
        let mask = signal_mask::block(tid);
        let stepped = self.step(tid, 0);
        if let Some(now) = ptrace::registers(tid) {
            ptrace::set_registers(tid, &swapped(at, path, now));
        }
        signal_mask::unblock(tid, mask);
        match stepped {
            StepOutcome::Done => self.go_on(tid),
            other => self.not_made(tid, *registers, other),
        }
    }
}
