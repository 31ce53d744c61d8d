//! What a sweep needs to know of the caches that it sweeps.

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

/// What becomes of fetches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FetchTouches {
    /// They are looked up as others are.
    LookedUp,
    /// They miss: all of them have missed a first level that is kept where the program runs.
    Missed,
}
