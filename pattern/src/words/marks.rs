//! The marks that kernels leave in a chunk, and the size of a chunk.

/// Positions that a kernel marks at a time.
pub(super) const CHUNK_BYTES: usize = 4096;
/// Bytes behind the last position that a kernel may read.
pub(super) const MARGIN_BYTES: usize = 128;

/// Offsets into a chunk, ascending. The array has room for a vector behind them.
pub(super) type Marks = [u16; CHUNK_BYTES + 64];
