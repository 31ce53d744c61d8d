//! Files that tell machines apart, answered with others.
//!
//! A program opens such a file by its path. The host has a memory file with the declared machine's
//! text, and the program opens that one instead, by the path of the host's descriptor. The path
//! stands in the program's context for as long as the call takes. **Leaves out** systems without
//! `/proc`, where the program opens its own path.

use super::call::is_random_file;
use crate::host::state::Host;
use crate::host::system_call::NOP_BYTES;
use crate::image::number;
use crate::target::layout::{context, CONTEXTS};
use crate::target::memory;
use crate::target::ptrace::Registers;
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
        if self.shown.repeats() && is_random_file(&bytes[..end]) && !self.shown.reads_random {
            self.shown.reads_random = true;
            self.images.values().for_each(|image| image.stop_before(&number::READS));
        }
        let path_of_task = if self.shown.repeats() { self.real_path(&bytes[..end]) } else { None };
        let Some(shown) = path_of_task.or_else(|| self.shown_path(&bytes[..end])) else { return false };
        // This part of the context is free at stops; it has 64 bytes.
        let context = self.threads[&tid].context;
        let at = CONTEXTS + context as u64 * context::BYTES + u64::from(context::VECTOR);
        let mut shown = shown.into_bytes();
        shown.push(0);
        if shown.len() > PATH_BYTES || memory::write_target(tid, at, &shown) != shown.len() {
            return false;
        }
        let swapped = |word: u64| if word == path { at } else { word };
        let made = Registers {
            rip: registers.rip + NOP_BYTES,
            rdi: swapped(registers.rdi),
            rsi: swapped(registers.rsi),
            ..*registers
        };
        self.make_instead(tid, registers, &made);
        true
    }
}
