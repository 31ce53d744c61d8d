//! Copies: what a core has of a line, or had.

use crate::associative::{Members, Standing};
use crate::caches::Access;
use crate::ways::Slot;

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

    /// Whether a touch of these bytes changes nothing but times and bytes, as nearly all do.
    #[inline(always)]
    pub(crate) fn is_calm(&self, bytes: u64, access: Access) -> bool {
        let may_write = !access.writes() | (self.state == State::Modified);
        (self.stale & bytes == 0) & self.twin.in_level & may_write
    }

    /// Notes a touch. Loads and stores take turns as no branch foresees, so there is none.
    #[inline(always)]
    pub(crate) fn touch(&mut self, bytes: u64, access: Access, time: u64) {
        let read = 0u64.wrapping_sub(access.reads().into()) & bytes;
        let written = 0u64.wrapping_sub(access.writes().into()) & bytes;
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

/// The copies of one core, as its fully associative level sees them.
pub(crate) struct Own<'a> {
    pub(crate) copies: &'a mut [CoreCopy],
    pub(crate) slots: &'a mut [Slot],
}

impl Members for Own<'_> {
    #[inline]
    fn time(&self, member: u32) -> u64 {
        let copy = &self.copies[member as usize];
        match copy.held.place & IN_FIRST {
            0 => copy.held.time,
            _ => self.slots[copy.slot_or_taker as usize].held.time,
        }
    }

    #[inline]
    fn standing(&mut self, member: u32) -> &mut Standing {
        let copy = &mut self.copies[member as usize];
        match copy.held.place & IN_FIRST {
            0 => &mut copy.held.twin,
            _ => &mut self.slots[copy.slot_or_taker as usize].held.twin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_and_a_slot_fill_a_line_of_the_host() {
        assert_eq!((size_of::<CoreCopy>(), size_of::<Slot>()), (64, 64));
    }
}
