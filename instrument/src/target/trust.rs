//! How far the program's code is to be trusted, and who knows.

use crate::profile::Module;

/// Where code lies, as far as it matters for trusting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// File-backed, executable and not writable: does not change while mapped.
    Text,
    /// Anything else: compared with what was translated at every execution.
    Generated,
}

/// Knows which addresses are program text.
pub(crate) trait Modules {
    /// How far `pc` is to be trusted, and the number of its module; `None` where it cannot be
    /// executed.
    fn at(&mut self, pc: u64) -> Option<(Trust, u32)>;
    /// The module of that number.
    fn module(&self, number: u32) -> Option<&Module>;
    /// Whether the module of that number is text where the program has it now.
    fn is_text(&self, number: u32) -> bool;
    /// What the file of text holds at `pc`; `None` where the program has changed the mapping, or
    /// nobody knows.
    fn in_file(&self, _pc: u64, _module: u32) -> Option<u8> {
        None
    }
}
