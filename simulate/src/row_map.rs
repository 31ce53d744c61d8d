//! From an address to a row: how one cache lies among the rows of a bank.

use crate::Geometry;

/// Maps the addresses of one cache to the bank's rows from `base` on.
#[derive(Clone, Copy)]
pub(crate) struct RowMap {
    /// Logarithm of the line size.
    pub(crate) line_shift: u32,
    /// First row of the cache.
    pub(crate) base: u32,
    /// Number of sets, and its logarithm where it is a power of two.
    pub(crate) sets: u64,
    pub(crate) set_shift: u32,
    /// The last way's bit.
    pub(crate) last: u32,
    pub(crate) ways: u32,
}

impl RowMap {
    /// The map of a cache whose first row is `base`.
    pub(crate) fn new(geometry: Geometry, base: u32) -> RowMap {
        let Geometry { sets, ways, line_bytes, .. } = geometry;
        let (line_shift, set_shift) = (line_bytes.trailing_zeros(), sets.trailing_zeros());
        RowMap { line_shift, base, sets, set_shift, last: 1 << (ways - 1).min(31), ways }
    }
}
