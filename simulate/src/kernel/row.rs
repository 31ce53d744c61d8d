//! A row: the tags of a set.
//!
//! Rows of narrow tags are empty where all bytes are zero. The system hands out memory of zeros
//! page by page, when it is first used, so a last level of hundreds of megabytes costs a program
//! nothing but the rows that it touches.

use bytemuck::Zeroable;

/// The tag of an empty lane. No line has this number, because the smallest line has 4 bytes.
pub(crate) const EMPTY: u64 = u64::MAX;

/// A set's tags, most recent first.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Row<T, const LANES: usize>(pub(crate) [T; LANES]);

// SAFETY: a row is its array of tags, and its alignment adds no bytes that a value would need.
#[allow(unsafe_code, reason = "the trait has no other implementation")]
unsafe impl<T, const LANES: usize> Zeroable for Row<T, LANES> where [T; LANES]: Zeroable {}
