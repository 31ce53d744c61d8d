//! Copies: what a core has of a line, or had.

use crate::associative::{Members, Standing};

/// The number of no copy, line, pair or site.
pub(crate) const NONE: u32 = u32::MAX;

/// What a line must not lack for a touch to be without consequences: the fully associative level
/// has it, and for a write the core has changed it.
pub(crate) const NEEDS_TO_READ: u8 = 1;
pub(crate) const NEEDS_TO_WRITE: u8 = NEEDS_TO_READ | MAY_NOT_WRITE;

const MAY_NOT_WRITE: u8 = 2;

/// The states of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Invalid,
    Shared,
    Exclusive,
    Modified,
}

/// A core's copy of a line, present or lost. A hit changes nothing else.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct CoreCopy {
    /// Bytes that others have written since the last true sharing.
    pub(crate) stale: u64,
    /// Bytes that the core has written and that are not stale for others yet.
    pub(crate) fresh: u64,
    /// All bytes that the core has read.
    pub(crate) read: u64,
    /// All bytes that the core has written, but for those in `fresh`.
    pub(crate) written: u64,
    /// When the core used the line last; 0 if never.
    pub(crate) time: u64,
    pub(crate) line: u32,
    /// The next copy of the line, of another core; that of the last one is the first.
    pub(crate) next: u32,
    /// The pair of the miss that is neither true nor false yet.
    pub(crate) pending: u32,
    /// The site of the write that took the line.
    pub(crate) taker: u32,
    pub(crate) core: u16,
    /// Where in the line that write began.
    pub(crate) taker_at: u8,
    state: State,
    /// 0 of a line that the core has changed, else [`MAY_NOT_WRITE`].
    may_not_write: u8,
    /// Another core's write has taken the line.
    pub(crate) is_taken: bool,
    /// In the fully associative level.
    pub(crate) twin: Standing,
}

impl CoreCopy {
    /// A copy that no level has and that nobody has touched.
    pub(crate) fn new(core: usize, line: u32, next: u32) -> CoreCopy {
        CoreCopy {
            stale: 0,
            fresh: 0,
            read: 0,
            written: 0,
            time: 0,
            line,
            next,
            pending: NONE,
            taker: NONE,
            core: core as u16,
            taker_at: 0,
            state: State::Invalid,
            may_not_write: MAY_NOT_WRITE,
            is_taken: false,
            twin: Standing::NONE,
        }
    }

    /// The state.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Changes the state; returns the former one.
    pub(crate) fn set_state(&mut self, state: State) -> State {
        self.may_not_write = if state == State::Modified { 0 } else { MAY_NOT_WRITE };
        std::mem::replace(&mut self.state, state)
    }

    /// Not 0 if a touch of these bytes changes more than times and bytes, which hardly any does.
    /// `needs` is [`NEEDS_TO_READ`] or [`NEEDS_TO_WRITE`].
    #[inline(always)]
    pub(crate) fn changes(&self, bytes: u64, needs: u8) -> u64 {
        (self.stale & bytes) | u64::from((self.twin.outside | self.may_not_write) & needs)
    }

    /// Notes a touch that reads and writes these bytes.
    #[inline(always)]
    pub(crate) fn touch(&mut self, read: u64, written: u64, time: u64) {
        self.time = time;
        self.read |= read;
        self.fresh |= written;
    }

    /// The bytes that become stale for others now.
    pub(crate) fn publish(&mut self) -> u64 {
        self.written |= self.fresh;
        std::mem::take(&mut self.fresh)
    }
}

impl Members for Vec<CoreCopy> {
    #[inline(always)]
    fn member(&mut self, member: u32) -> (u64, &mut Standing) {
        let copy = &mut self[member as usize];
        (copy.time, &mut copy.twin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_fills_a_line_of_the_host() {
        assert_eq!(size_of::<CoreCopy>(), 64);
    }
}
