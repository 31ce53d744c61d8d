//! References by kind and by the first size in which they hit.

use super::sizes::SIZES_MAX;

/// Loads, stores, instruction lines.
pub(super) const KINDS: usize = 3;
pub(super) const INSTRUCTIONS: usize = 2;

/// References by kind and by the first size in which they hit; the last place is that of misses in
/// every size, the last kind of none.
pub(super) type Histogram = [[u64; SIZES_MAX + 1]; KINDS + 1];

pub(super) const NOTHING_FOUND: Histogram = [[0; SIZES_MAX + 1]; KINDS + 1];
