//! A row: the tags of a set.

/// The tag of an empty lane. No line has this number, because the smallest line has 4 bytes.
pub(crate) const EMPTY: u64 = u64::MAX;

/// A set's tags, most recent first.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Row<T, const LANES: usize>(pub(crate) [T; LANES]);
