//! Operations on sixteen touches at once: staging, locating, comparing, packing.
//!
//! The provided methods are plain code and define what each operation does; kernels override those
//! for which they have instructions. Masks have a bit per touch, bit 0 for the first.

use super::row::Row;
use crate::limits::TouchLimits;
use crate::row_map::RowMap;
use crate::touch::{is_fetch, lanes_mut, TouchStep, Touches, STEP};
use event::{Record, RecordKind};

/// Operations on sixteen touches at once; masks have a bit per touch. The provided versions are
/// plain code.
pub(crate) trait Vectors: Copy {
    /// Writes sixteen touches behind the last one of `touches`, as if all `records` were touches of
    /// references with numbers from `reference` on; returns a mask of the records that are touches.
    #[inline(always)]
    fn stage(
        self,
        records: &[Record; STEP],
        limits: &TouchLimits,
        reference: u32,
        touches: &mut Touches,
    ) -> u32 {
        let Touches { address, what, reference: references, len } = touches;
        let address: &mut [u64; STEP] = lanes_mut(address, *len);
        let what: &mut [u32; STEP] = lanes_mut(what, *len);
        let references: &mut [u32; STEP] = lanes_mut(references, *len);
        let mut are = 0;
        // All sixteen are written; the mask says which of them count.
        for (lane, record) in records.iter().enumerate() {
            address[lane] = record.address;
            what[lane] = record.what;
            references[lane] = reference.wrapping_add(lane as u32);
            are |= u32::from(limits.hold(record)) << lane;
        }
        are
    }

    /// The second words of a step's records.
    #[inline(always)]
    fn whats(self, records: &[Record; STEP]) -> [u32; STEP] {
        std::array::from_fn(|lane| records[lane].what)
    }

    /// A mask of the records whose last word is 0.
    #[inline(always)]
    fn without_extra(self, records: &[Record; STEP]) -> u32 {
        let is_zero = |record: &Record| u32::from(record.extra == 0);
        records.iter().enumerate().fold(0, |zero, (lane, record)| zero | is_zero(record) << lane)
    }

    /// Prefetches the host's cache line that holds `_item`.
    #[inline(always)]
    fn prefetch<T>(self, _item: &T) {}

    /// Prefetches the host's cache line at `_address`, into the second level.
    #[inline(always)]
    fn prefetch_address(self, _address: usize) {}

    /// The bits of the lanes that hold a line.
    #[inline(always)]
    fn find(self, row: &Row<u64, 16>, line: u64) -> u32 {
        row.0.iter().enumerate().fold(0, |found, (lane, &tag)| found | u32::from(tag == line) << lane)
    }

    /// A mask of the numbers that are 0.
    #[inline(always)]
    fn zeros(self, found: &[u32; STEP]) -> u32 {
        found.iter().enumerate().fold(0, |zeros, (lane, &found)| zeros | u32::from(found == 0) << lane)
    }

    /// A mask of the touches that are fetches.
    #[inline(always)]
    fn fetches(self, what: &[u32; STEP]) -> u32 {
        self.of_kind(what, RecordKind::Fetch)
    }

    /// A mask of the touches or records of this kind.
    #[inline(always)]
    fn of_kind(self, what: &[u32; STEP], kind: RecordKind) -> u32 {
        let is = |what: u32| (what >> 4) & 15 == kind as u32;
        what.iter().enumerate().fold(0, |are, (lane, &what)| are | u32::from(is(what)) << lane)
    }

    /// A mask of the lanes in which `some` and `others` differ.
    #[inline(always)]
    fn differ(self, some: &[u32; STEP], others: &[u32; STEP]) -> u32 {
        differ(some, others)
    }

    /// A mask of the lanes in which the 8-byte numbers of `some` and `others` differ.
    #[inline(always)]
    fn long_differ(self, some: &[u64; STEP], others: &[u64; STEP]) -> u32 {
        differ(some, others)
    }

    /// A mask of the numbers that differ from their predecessor; `before` holds the numbers of the
    /// last step, and is replaced by those of this one.
    #[inline(always)]
    fn changes(self, before: &mut [u32; STEP], now: &[u32; STEP]) -> u32 {
        changes(before, now)
    }

    /// A mask of the 8-byte numbers that differ from their predecessor; `before` holds the numbers
    /// of the last step, and is replaced by those of this one.
    #[inline(always)]
    fn long_changes(self, before: &mut [u64; STEP], now: &[u64; STEP]) -> u32 {
        changes(before, now)
    }

    /// Finds the rows of touches in caches whose numbers of sets are powers of two.
    #[inline(always)]
    fn locate(self, step: TouchStep, maps: &[RowMap; 2], rows: &mut [u32; STEP]) -> Located {
        let mut located = Located { line: [0; STEP], quotient: [0; STEP] };
        for lane in 0..STEP {
            // The kind of the touch chooses the cache, by index and not by a branch.
            let map = &maps[usize::from(is_fetch(step.what[lane]))];
            let line = step.address[lane] >> map.line_shift;
            rows[lane] = map.base + (line & (map.sets - 1)) as u32;
            located.line[lane] = line;
            located.quotient[lane] = line >> map.set_shift;
        }
        located
    }

    /// Writes narrow tags, and returns a mask of the quotients that do not fit. The largest number
    /// of 4 bytes, inverted, is `EMPTY`, so it does not fit.
    #[inline(always)]
    fn narrow(self, quotients: &[u64; STEP], tags: &mut [u32; STEP]) -> u32 {
        let mut beyond = 0;
        for lane in 0..STEP {
            tags[lane] = !(quotients[lane] as u32);
            beyond |= u32::from(quotients[lane] >= u64::from(u32::MAX)) << lane;
        }
        beyond
    }

    /// The numbers of the lanes in `kept`, moved to the leading lanes.
    #[inline(always)]
    fn pack(self, kept: u32, numbers: &[u32; STEP]) -> [u32; STEP] {
        let mut packed = *numbers;
        // Where the kept lanes are the leading ones they already stand where they should.
        if kept.trailing_ones() < kept.count_ones() {
            let (mut kept, mut to) = (kept, 0);
            while kept != 0 {
                packed[to & (STEP - 1)] = numbers[kept.trailing_zeros() as usize & (STEP - 1)];
                kept &= kept - 1;
                to += 1;
            }
        }
        packed
    }

    /// Appends the touches of `step` whose lanes are in `kept`.
    #[inline(always)]
    fn keep(self, kept: u32, step: TouchStep, touches: &mut Touches) {
        let mut kept = kept;
        while kept != 0 {
            // The lowest kept lane, which is then struck from the mask; `&` spares a check of
            // bounds.
            let lane = kept.trailing_zeros() as usize & (STEP - 1);
            kept &= kept - 1;
            touches.push(step.address[lane], step.what[lane], step.reference[lane]);
        }
    }
}

/// Line numbers, and their quotients by the number of sets.
pub(crate) struct Located {
    pub(crate) line: [u64; STEP],
    pub(crate) quotient: [u64; STEP],
}

#[inline(always)]
fn differ<T: Copy + PartialEq>(some: &[T; STEP], others: &[T; STEP]) -> u32 {
    (0..STEP).fold(0, |differ, lane| differ | u32::from(some[lane] != others[lane]) << lane)
}

#[inline(always)]
fn changes<T: Copy + PartialEq>(before: &mut [T; STEP], now: &[T; STEP]) -> u32 {
    let mut changes = u32::from(now[0] != before[STEP - 1]);
    for lane in 1..STEP {
        changes |= u32::from(now[lane] != now[lane - 1]) << lane;
    }
    *before = *now;
    changes
}
