//! The memory that translated code works in: vectors of carries and values, and how a text is read.

use crate::transpose::Basis;

/// How a text is read. AVX2 and SSE2 read it forwards only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// First byte first.
    Forwards,
    /// Last byte first: the same as for a reversed copy of the text.
    Backwards,
}

/// One vector in memory.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct FrameVector(pub(super) [u64; 8]);

/// What one pass over a text needs: carries in two banks, and memory for values that lack a
/// register.
pub(crate) struct Frame {
    pub(super) carries: Vec<FrameVector>,
    pub(super) values: Vec<FrameVector>,
    /// Streams that the code reads, where it does not make them itself.
    pub(super) basis: Option<Box<Basis>>,
}
