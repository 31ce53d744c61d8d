//! The fast path: references of one line that the first level has found lately, and of which
//! nothing changes but times and bytes.
//!
//! Nearly all references are of this kind, so they run in a loop of their own, which keeps its
//! counts in registers. Whatever it does not know it leaves to [`CoherentCaches::access`]. Turns
//! that are simulated in steps have a loop of their own as well, which goes from turn to turn: a
//! call for each step of two references cost more than these did.

use super::{Access, CoherentCaches, Core};
use crate::copies::CoreCopy;
use crate::turn::{Turn, STEP};
use crate::ways::{Held, RECENT};
use event::{Record, RecordKind, SIZES};

/// What a plain record does.
#[derive(Clone, Copy)]
pub(crate) struct Plain {
    /// Bytes that it touches; more than a line has for a record of another kind.
    pub(crate) size_bytes: u32,
    pub(crate) access: Access,
    /// A bit for each byte that it reads, and that it writes.
    read: u64,
    written: u64,
    /// 1 for a load, and 1 << 32 for a store.
    counts: u64,
    /// What the line must not lack.
    needs: u8,
}

impl Plain {
    const fn new(size_bytes: u32, access: Access) -> Plain {
        // Longer ones touch more than a line, and are not for the loop below.
        let bytes = if size_bytes < u64::BITS { (1 << size_bytes) - 1 } else { u64::MAX };
        let (reads, writes) = (access.reads() as u64, access.writes() as u64);
        let (read, written, counts) = (reads * bytes, writes * bytes, reads | writes << 32);
        Plain { size_bytes, access, read, written, counts, needs: access.needs() }
    }
}

/// The binary logarithm of the bytes that a line of nearly all machines has.
const USUAL_SHIFT: u32 = 6;

/// The size of what is no plain record.
const NOT_PLAIN: u32 = 1 << 16;

/// What records do by the low byte of their `what`.
const PLAIN: [Plain; 256] = {
    let mut all = [Plain::new(NOT_PLAIN, Access::Load); 256];
    let mut size = 0;
    while size < SIZES.len() {
        let size_bytes = if SIZES[size] == 0 { NOT_PLAIN } else { SIZES[size] };
        all[(RecordKind::Load as usize) << 4 | size] = Plain::new(size_bytes, Access::Load);
        all[(RecordKind::Store as usize) << 4 | size] = Plain::new(size_bytes, Access::Store);
        all[(RecordKind::Modify as usize) << 4 | size] = Plain::new(size_bytes, Access::Modify);
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
        // Nearly all lines have 64 bytes, and constants save registers. Others go the long way.
        match self.line_shift {
            USUAL_SHIFT => self.hits_of::<USUAL_SHIFT>(core, records),
            _ => 0,
        }
    }

    /// A function of its own, so that the loop has all registers.
    #[inline(never)]
    fn hits_of<const SHIFT: u32>(&mut self, core: usize, records: &[Record]) -> usize {
        let Some(Core { first, time, counts, .. }) = self.cores.get_mut(core) else { return 0 };
        let ((recent, times), copies) = (first.recent(), &mut self.copies[..]);
        let (mut now, mut counted) = (*time, 0);
        for record in records {
            let Some(plain) = hit::<SHIFT>(recent, times, copies, now + 1, record) else { break };
            now += 1;
            counted += plain.counts;
        }
        let made = now - std::mem::replace(time, now);
        counts.loads += counted & u64::from(u32::MAX);
        counts.stores += counted >> 32;
        made as usize
    }

    /// Makes steps of turns that are simulated side by side, from the turn `from` on, as long as
    /// they are plain hits. Returns the turn that does not go on so, and how many references of its
    /// step it has made. The last record of a turn is left to the caller.
    pub(crate) fn hits_in_steps(&mut self, turns: &mut [Turn], from: usize) -> (usize, usize) {
        match self.line_shift {
            USUAL_SHIFT => self.hits_in_steps_of::<USUAL_SHIFT>(turns, from),
            _ => (from, 0),
        }
    }

    #[inline(never)]
    fn hits_in_steps_of<const SHIFT: u32>(&mut self, turns: &mut [Turn], from: usize) -> (usize, usize) {
        let copies = &mut self.copies[..];
        let mut number = from;
        loop {
            let Some(turn) = turns.get_mut(number) else {
                number = 0;
                continue;
            };
            // The first turn is not over; others may be.
            if let Some(left) = turn.records.get(turn.at..).filter(|left| !left.is_empty()) {
                let Some(core) = self.cores.get_mut(turn.core) else { return (number, 0) };
                let (recent, times) = core.first.recent();
                for made in 0..STEP {
                    let record = left.get(made).filter(|_| left.len() > made + 1);
                    let now = core.time + 1;
                    let plain = record.and_then(|record| hit::<SHIFT>(recent, times, copies, now, record));
                    let Some(plain) = plain else { return (number, made) };
                    core.time = now;
                    turn.at += 1;
                    core.counts.loads += plain.counts & u64::from(u32::MAX);
                    core.counts.stores += plain.counts >> 32;
                }
            } else if number == 0 {
                return (0, 0);
            }
            number += 1;
        }
    }
}

/// Makes a reference at a time if it is a plain hit; returns what it does.
#[inline(always)]
fn hit<const SHIFT: u32>(
    recent: &[Held; RECENT],
    times: &mut [u64],
    copies: &mut [CoreCopy],
    now: u64,
    record: &Record,
) -> Option<&'static Plain> {
    let line_bytes = 1u64 << SHIFT;
    let plain = &PLAIN[usize::from(record.what as u8)];
    let (line, at) = (record.address >> SHIFT, record.address & (line_bytes - 1));
    let held = &recent[line as usize % RECENT];
    let copy = copies.get_mut(held.copy as usize)?;
    let (read, written) = (plain.read << at, plain.written << at);
    // All tests in one word, because hardly any fails.
    let crosses = line_bytes.wrapping_sub(at + u64::from(plain.size_bytes)) >> 63;
    let unlike = held.line ^ line;
    if unlike | crosses | copy.changes(read | written, plain.needs) != 0 {
        return None;
    }
    *times.get_mut(held.way as usize)? = now;
    copy.touch(read, written, now);
    Some(plain)
}
