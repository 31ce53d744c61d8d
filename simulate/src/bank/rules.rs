//! The rules of a sweep: how touches map to rows, and which misses enter lines.

use crate::row_map::RowMap;
use crate::StoreMiss;

/// The caches of a bank, without their contents.
#[derive(Clone, Copy)]
pub(super) struct SweepRules<'a> {
    /// How data and fetches map to rows (equal where there is one cache).
    pub(super) maps: &'a [RowMap; 2],
    pub(super) store_miss: StoreMiss,
    pub(super) fetches: FetchTouches,
}

/// How a sweep treats fetches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FetchTouches {
    /// They are looked up like other touches.
    LookedUp,
    /// They miss: all of them have already missed a first level that generated code simulates.
    Missed,
}
