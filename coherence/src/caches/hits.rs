//! The fast path: references of one line that the first level has found lately, and of which
//! nothing changes but times and bytes.
//!
//! Nearly all references are of this kind, so they run in a loop of their own, which keeps its
//! counts in registers. Whatever it does not know it leaves to [`CoherentCaches::access`].

use super::{Access, CoherentCaches, Core};
use event::{Record, RecordKind, SIZES};

/// What a plain record does.
#[derive(Clone, Copy)]
pub(crate) struct Plain {
    /// Bytes that it touches; more than a line has for a record of another kind.
    pub(crate) size_bytes: u32,
    pub(crate) access: Access,
    /// A bit for each byte.
    bytes: u64,
}

/// The size of what is no plain record.
const NOT_PLAIN: u32 = 1 << 16;

/// Bytes of lines of which each has a bit.
const BITS: u32 = u64::BITS;

/// What records do by the low byte of their `what`.
const PLAIN: [Plain; 256] = {
    let mut all = [Plain { size_bytes: NOT_PLAIN, access: Access::Load, bytes: 0 }; 256];
    let mut size = 0;
    while size < SIZES.len() {
        let size_bytes = if SIZES[size] == 0 { NOT_PLAIN } else { SIZES[size] };
        // Longer ones touch more than a line, and are not for this loop.
        let bytes = if size_bytes < BITS { (1 << size_bytes) - 1 } else { u64::MAX };
        all[(RecordKind::Load as usize) << 4 | size] = Plain { size_bytes, access: Access::Load, bytes };
        all[(RecordKind::Store as usize) << 4 | size] = Plain { size_bytes, access: Access::Store, bytes };
        all[(RecordKind::Modify as usize) << 4 | size] = Plain { size_bytes, access: Access::Modify, bytes };
        size += 1;
    }
    all
};

/// What a record does, if it is a plain one.
#[inline(always)]
pub(crate) fn plain(record: &Record) -> Option<&'static Plain> {
    Some(&PLAIN[usize::from(record.what as u8)]).filter(|plain| plain.size_bytes != NOT_PLAIN)
}

impl CoherentCaches {
    /// Makes references of a core as long as they are plain hits; returns how many.
    #[inline]
    pub(crate) fn hits(&mut self, core: usize, records: &[Record]) -> usize {
        let line_bytes = 1u64 << self.line_shift;
        if line_bytes > BITS.into() {
            return 0;
        }
        let Some(Core { first, time, counts, .. }) = self.cores.get_mut(core) else { return 0 };
        let (mut now, mut loads, mut stores) = (*time, 0, 0);
        let mut made = 0;
        for record in records {
            let plain = &PLAIN[usize::from(record.what as u8)];
            let at = record.address & (line_bytes - 1);
            if at + u64::from(plain.size_bytes) > line_bytes {
                break;
            }
            let bytes = plain.bytes << at;
            let Some(slot) = first.recent(record.address >> self.line_shift) else { break };
            let (read, written) = plain.access.divide(bytes);
            if !slot.held.is_calm(read, written) {
                break;
            }
            now += 1;
            slot.held.touch(read, written, now);
            loads += u64::from(plain.access.reads());
            stores += u64::from(plain.access.writes());
            made += 1;
        }
        *time = now;
        counts.loads += loads;
        counts.stores += stores;
        made
    }
}
