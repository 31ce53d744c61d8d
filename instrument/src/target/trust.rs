//! How far the program's code may be trusted, and the interface that says so.

use crate::profile::Module;

/// Whether code may change without notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// File-backed, executable and not writable: does not change while mapped.
    Text,
    /// Anything else: compared with what was translated at every execution.
    Generated,
}

/// Says which addresses are program text.
pub(crate) trait Modules {
    /// How far `pc` is to be trusted, and the number of its module; `None` where it cannot be
    /// executed.
    fn at(&mut self, pc: u64) -> Option<(Trust, u32)>;
    /// The module of that number.
    fn module(&self, number: u32) -> Option<&Module>;
    /// Whether the module of that number is text where the program has it now.
    fn is_text(&self, number: u32) -> bool;
    /// The byte at `pc` in the file that text was mapped from; `None` if the program has changed
    /// the mapping, or the file cannot be read.
    fn in_file(&self, _pc: u64, _module: u32) -> Option<u8> {
        None
    }
}
