//! The copies of one core, wherever hits change them.

use crate::associative::{Members, Standing};
use crate::copies::{CoreCopy, IN_FIRST};
use crate::ways::Slot;

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
