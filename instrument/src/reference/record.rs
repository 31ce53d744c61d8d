//! A data reference as the slow twin says it.

use event::Access;

/// One data reference, in the words of [`event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// Direction.
    pub access: Access,
    /// Linear address of the first byte.
    pub address: u64,
    /// Bytes.
    pub size_bytes: u32,
}
