//! Whether the program's code can change without notice, and the interface that says so.

use super::own_pages::FileState;
use crate::profile::Module;

/// Whether code may change without notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Code in a mapping that is file-backed, executable and not writable: it cannot change while
    /// it is mapped.
    Text,
    /// All other code: generated code compares it with the translated words at every execution.
    Generated,
}

/// Says which addresses are program text.
pub(crate) trait Modules {
    /// Whether the code at `pc` can change, and the number of its module; `None` if nothing
    /// executable is mapped there.
    fn at(&mut self, pc: u64) -> Option<(Trust, u32)>;
    /// The module with this number.
    fn module(&self, number: u32) -> Option<&Module>;
    /// The state of the file that this module is a part of; `None` if it is not known.
    fn file_state(&self, _number: u32) -> Option<FileState> {
        None
    }
    /// Whether the module with this number is mapped as text now.
    fn is_text(&self, number: u32) -> bool;
    /// The byte at `pc` in the file of a mapped module; `None` if the program has changed the
    /// mapping, or the file cannot be read.
    fn in_file(&self, _pc: u64, _module: u32) -> Option<u8> {
        None
    }
}
