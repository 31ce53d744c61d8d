//! The memory of translated code: vectors of carries and values. And the direction in which a text
//! is read.

use crate::transpose::Basis;

/// The direction in which a text is read. With AVX2 and SSE2 only forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// First byte first.
    Forwards,
    /// Last byte first, as if the text were reversed.
    Backwards,
}

/// One vector in memory.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct FrameVector(pub(super) [u64; 8]);

/// The memory of one pass over a text: carries in two banks, and slots for values that lack a
/// register.
pub(crate) struct Frame {
    pub(super) carries: Vec<FrameVector>,
    pub(super) values: Vec<FrameVector>,
    /// Basis streams that the code reads, if it does not compute them itself.
    pub(super) basis: Option<Box<Basis>>,
    /// Blocks so far.
    pub(super) blocks: u64,
}
