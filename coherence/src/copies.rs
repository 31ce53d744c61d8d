//! Copies: what a core has of a line, or had.

use crate::associative::Standing;

/// The number of no copy, line, pair or site.
pub(crate) const NONE: u32 = u32::MAX;

/// Where a core has a line, and how it lost it.
pub(crate) const IN_FIRST: u8 = 1;
pub(crate) const IN_SECOND: u8 = 2;
pub(crate) const TAKEN: u8 = 4;

/// The states of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Invalid,
    Shared,
    Exclusive,
    Modified,
}

/// The part of a copy that hits change. It is in the slot of the first level while the line is
/// there, else in the copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Bytes that others have written since the last true sharing.
    pub(crate) stale: u64,
    /// Bytes that the core has written and that are not stale for others yet.
    pub(crate) fresh: u64,
    /// All bytes that the core has read, and written.
    pub(crate) read: u64,
    pub(crate) written: u64,
    /// When the core used it last.
    pub(crate) time: u64,
    pub(crate) core: u16,
    /// Where in the line the write began that took it.
    pub(crate) taker_at: u8,
    pub(crate) state: State,
    /// `IN_FIRST` of a copy tells where its part is; of a slot it is always set.
    pub(crate) place: u8,
    /// In the fully associative level.
    pub(crate) twin: Standing,
}

impl Held {
    /// The part of a copy that no level has and that nobody has touched.
    pub(crate) const LOST: Held = Held {
        stale: 0,
        fresh: 0,
        read: 0,
        written: 0,
        time: 0,
        core: 0,
        taker_at: 0,
        state: State::Invalid,
        place: 0,
        twin: Standing::NONE,
    };

    /// Whether a touch that reads and writes these bytes changes nothing but times and bytes, as
    /// nearly all do.
    #[inline(always)]
    pub(crate) fn is_calm(&self, read: u64, written: u64) -> bool {
        let may_write = (written == 0) | (self.state == State::Modified);
        (self.stale & (read | written) == 0) & self.twin.in_level & may_write
    }

    /// Notes a touch that reads and writes these bytes.
    #[inline(always)]
    pub(crate) fn touch(&mut self, read: u64, written: u64, time: u64) {
        self.time = time;
        self.read |= read;
        self.written |= written;
        self.fresh |= written;
    }
}

/// A core's copy of a line, present or lost.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct CoreCopy {
    /// What hits change, unless it is in a slot.
    pub(crate) held: Held,
    pub(crate) line: u32,
    /// The next copy of the line.
    pub(crate) next: u32,
    /// The pair of the miss that is neither true nor false yet.
    pub(crate) pending: u32,
    /// While the line is in the first level, its slot there; after a write took it, the site of
    /// that write.
    pub(crate) slot_or_taker: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_fills_a_line_of_the_host() {
        assert_eq!(size_of::<CoreCopy>(), 64);
    }
}
