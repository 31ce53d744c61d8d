//! A data reference as the slow twin reports it.

use event::Access;

/// One data reference, as [`event`] defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// Whether the reference loads, stores or prefetches.
    pub access: Access,
    /// Linear address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub size_bytes: u32,
}
