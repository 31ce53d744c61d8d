//! How much memory: what profiles of places and snapshots have in common.

/// Bytes, and the blocks in which they lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes, as the program asked for them; a block of no bytes counts one.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
}
