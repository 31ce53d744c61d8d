//! Which records generated code can have written: everything else in a ring is the program's own
//! doing.
//!
//! **What.** Each record of a part of a segment, copied out of the program's reach, is held against
//! what was translated when the segment was handed over: kinds and sizes that exist, sites, blocks
//! and requests that have been given out, blocks as long as they are. Lengths that a record itself
//! claims, of an operation on a string or of a tile, are held against the time that the program has
//! had. **Why this way.** One look-up and one comparison tell the records of plain references,
//! which are nearly all; a table by the low byte holds the first number that does not exist, 0 for
//! what needs a closer look. Behind the screen no consumer needs to distrust a number, only
//! addresses, which may be anything. **Leaves out** false records that look like true ones.

use crate::evidence::Forgery;
use event::{Code, Complex, Record, RecordKind, COMPLEX_CODE, CUT_SITE, PAYLOAD_CODE, SIZES};
use std::collections::HashMap;
use std::time::Duration;

/// What exists when a segment is handed over, and how long the run has lasted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) sites: u32,
    pub(crate) blocks: u32,
    /// Events that a tool has asked for.
    pub(crate) requests: u32,
    pub(crate) elapsed: Duration,
}

/// Bytes that a thread walks over by string instructions in a second, at most: 128 in each of 4
/// billion cycles.
const WALKED_PER_S: u64 = 1 << 39;
/// Beside that: clocks are not exact.
const WALKED_FREE: u64 = 1 << 24;
/// Bytes of a block, and instructions that one can take back, are fewer.
const BLOCK_BYTES_MAX: u32 = 1 << 16;

/// Records that are looked at together.
const STEP: usize = 8;

/// The screen of a run.
pub(super) struct Screen {
    limits: Limits,
    /// By the low byte of `what`.
    first_missing: [u32; 256],
    /// Bytes that each thread has walked over.
    walked: HashMap<u32, u64>,
    /// Shapes of groups that came before: string functions compare under few masks millions of
    /// times.
    shapes: [Option<Group>; SHAPES],
}

/// Shapes that are remembered.
const SHAPES: usize = 16;

/// What a group's first record says of it, by its `extra`.
#[derive(Clone, Copy)]
struct Group {
    extra: u32,
    values: usize,
    /// How far it walks is a run-time value.
    walks: bool,
}

impl Group {
    fn of(first: &Record) -> Group {
        let shape = event::group_shape(first).ok();
        let walks = matches!(shape, Some(event::Shape::String { .. } | event::Shape::Tile { .. }));
        Group { extra: first.extra, values: shape.map_or(1, event::Shape::values), walks }
    }
}

impl Screen {
    pub(super) fn new() -> Screen {
        Screen {
            limits: Limits::default(),
            first_missing: [0; 256],
            walked: HashMap::new(),
            shapes: [None; SHAPES],
        }
    }

    /// What follows was written under these limits.
    pub(super) fn expect(&mut self, limits: Limits) {
        let same_numbers = Limits { elapsed: self.limits.elapsed, ..limits } == self.limits;
        self.limits = limits;
        if same_numbers {
            return;
        }
        for (code, first) in (0..=u8::MAX).zip(&mut self.first_missing) {
            let size_exists = SIZES[usize::from(code & 15)] > 0;
            *first =
                match kind(code) {
                    Some(
                        RecordKind::Load | RecordKind::Store | RecordKind::Modify | RecordKind::Prefetch,
                    ) if size_exists => limits.sites,
                    Some(RecordKind::Fetch | RecordKind::FetchPage) => limits.blocks,
                    Some(RecordKind::Payload) if code == PAYLOAD_CODE => limits.sites,
                    _ => 0,
                };
        }
    }

    /// Checks records of one thread, in which groups are whole. How many are of plain references,
    /// nearly: a damaged group's payloads are taken for such.
    pub(super) fn pass(&mut self, thread: u32, records: &[Record]) -> Result<usize, Forgery> {
        let mut plain = records.len();
        for start in (0..records.len()).step_by(STEP) {
            let step = &records[start..records.len().min(start + STEP)];
            if !self.any_stands_out(step) {
                continue;
            }
            for at in start..start + step.len() {
                if stands_out(&self.first_missing, &records[at]) {
                    plain = plain.saturating_sub(self.examine(thread, &records[at..])?);
                }
            }
        }
        Ok(plain)
    }

    /// Whether any of these records needs a closer look; of a whole step without a branch for each.
    /// (Comparing kind, size and number without the table took 4 % more of the observer's time.)
    #[inline(always)]
    fn any_stands_out(&self, step: &[Record]) -> bool {
        let one = |record: &Record| stands_out(&self.first_missing, record);
        match step.first_chunk::<STEP>() {
            Some(step) => step.iter().fold(0, |any, record| any | u32::from(one(record))) != 0,
            None => step.iter().any(one),
        }
    }

    /// Looks at the first of `records` closely; how many belong to it.
    #[inline(never)]
    fn examine(&mut self, thread: u32, records: &[Record]) -> Result<usize, Forgery> {
        let Record { address, what, extra } = records[0];
        let (number, code) = (what >> 8, what as u8);
        if code == COMPLEX_CODE {
            let group = self.group(&records[0]);
            let has_time = !group.walks || self.has_time_for(thread, records, group.values);
            let possible = number < self.limits.sites && has_time;
            return possible.then_some(group.values).ok_or(Forgery::Record(address, what, extra));
        }
        let possible = match kind(code) {
            Some(RecordKind::Block) if number == CUT_SITE as u32 => address < BLOCK_BYTES_MAX.into(),
            Some(RecordKind::Block) => number < self.limits.blocks && extra < BLOCK_BYTES_MAX,
            Some(RecordKind::Tool) => number < self.limits.requests,
            Some(RecordKind::DataPage) => number < self.limits.sites && extra <= 1,
            _ => false,
        };
        possible.then_some(1).ok_or(Forgery::Record(address, what, extra))
    }

    /// What the first record of a group says.
    fn group(&mut self, first: &Record) -> Group {
        let slot = (first.extra ^ first.extra >> 4 ^ first.extra >> 8) as usize % SHAPES;
        match self.shapes[slot] {
            Some(group) if group.extra == first.extra => group,
            _ => *self.shapes[slot].insert(Group::of(first)),
        }
    }

    /// Whether the thread can have walked so far. A group that is not whole is none, and walks
    /// nowhere.
    fn has_time_for(&mut self, thread: u32, group: &[Record], values: usize) -> bool {
        let end = values.min(group.len());
        let Ok(complex) = Complex::decode(&group[..end]) else { return true };
        let walked = self.walked.entry(thread).or_default();
        *walked = walked.saturating_add(complex.walked_bytes());
        let elapsed_us = u64::try_from(self.limits.elapsed.as_micros()).unwrap_or(u64::MAX);
        *walked <= elapsed_us.saturating_mul(WALKED_PER_S / 1_000_000).saturating_add(WALKED_FREE)
    }
}

/// Whether a record's number is none that its code goes with.
#[inline(always)]
fn stands_out(first_missing: &[u32; 256], record: &Record) -> bool {
    record.what >> 8 >= first_missing[usize::from(record.what as u8)]
}

/// The kind that a code names; `None` for codes that no code writes.
fn kind(code: u8) -> Option<RecordKind> {
    (code >> 4 <= RecordKind::DataPage as u8).then(|| Code(code).kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::{AddressWidth, Segment, Shape, StringOperation};

    const LIMITS: Limits = Limits { sites: 10, blocks: 5, requests: 2, elapsed: Duration::from_millis(1) };

    fn passes(records: &[Record]) -> bool {
        let mut screen = Screen::new();
        screen.expect(LIMITS);
        screen.pass(0, records).is_ok()
    }

    fn record(number: u32, kind: RecordKind, low: u32) -> Record {
        Record { address: u64::MAX, what: number << 8 | (kind as u32) << 4 | low, extra: 3 }
    }

    #[test]
    fn numbers_that_were_not_given_out_do_not_pass() {
        use RecordKind::*;
        for (kind, numbers) in [
            (Load, 10),
            (Store, 10),
            (Modify, 10),
            (Prefetch, 10),
            (Fetch, 5),
            (FetchPage, 5),
            (Block, 5),
            (Tool, 2),
        ] {
            assert!(passes(&[record(0, kind, 0), record(numbers - 1, kind, 0)]), "{kind:?}");
            assert!(!passes(&[record(0, kind, 0), record(numbers, kind, 0)]), "{kind:?}");
        }
        assert!(!passes(&[record(0, Load, 15)]), "a size that does not exist");
        let page = Record { extra: 1, ..record(9, DataPage, 0) };
        assert!(passes(&[page]) && !passes(&[Record { extra: 2, ..page }]));
        assert!(!passes(&[Record { extra: 1, ..record(10, DataPage, 0) }]));
        for code in 0xb0..=0xff {
            assert!(!passes(&[Record { what: code, ..Record::default() }]), "kind {:#x}", code >> 4);
        }
    }

    #[test]
    fn blocks_are_as_long_as_blocks_are() {
        let block = Record { extra: u32::MAX, ..record(1, RecordKind::Block, 0) };
        assert!(!passes(&[block]));
        let cut = record(CUT_SITE as u32, RecordKind::Block, 0);
        assert!(!passes(&[cut]));
        assert!(passes(&[Record { address: 7, ..cut }]));
    }

    #[test]
    fn a_string_is_as_long_as_there_was_time() {
        let shape = Shape::String {
            operation: StringOperation::Stos,
            element_bytes: 8,
            width: AddressWidth::Bits64,
            segment: Segment::Flat,
        };
        let fill = |bytes: u64| {
            let mut group = Vec::new();
            Complex::new(shape, &[0, 0x1000, 0x1000 + bytes]).encode(3, &mut group);
            group
        };
        assert!(passes(&fill(1 << 20)));
        assert!(!passes(&fill(1 << 40)));
        let many: Vec<Record> = (0..1000).flat_map(|_| fill(1 << 20)).collect();
        assert!(!passes(&many), "together they take too long");
    }
}
