//! The screen: rejects records that generated code cannot have written, because the program can
//! write into the ring.
//!
//! **What.** The screen compares each copied record with what existed when the host handed the
//! segment over: the kinds and sizes of records, the numbers of sites, blocks and requests, and the
//! lengths of blocks. A string operation or a tile states its own length, so that length is
//! compared with the time that the program has run. **Why this way.** Nearly all records are plain
//! references, and one look-up and one comparison pass them: a table indexed by the low byte holds
//! the first number that does not exist, or 0 if the record needs a closer look. With AVX-512,
//! sixteen records at once are compared with rules by kind while they are copied
//! ([`wide`](super::wide)), and only steps that do not pass there are looked up in the copy. The
//! same pass counts records by kind ([`kind_counts`](super::kind_counts)). Behind the screen
//! consumers can trust every number, but no address, because an address may have any value.
//! **Leaves out** false records that look like true ones.

use super::kind_counts::{KindCounts, KINDS};
use super::wide::{Copied, Rules, Wide, COPIED_MAX};
use crate::evidence::Forgery;
use crate::target::memory::{RecordSteps, Shared};
use event::{Code, Complex, Record, RecordKind, Shape, COMPLEX_CODE, CUT_SITE, PAYLOAD_CODE, SIZES};
use std::collections::HashMap;
use std::time::Duration;

/// What exists when a segment is handed over, and how long the run has lasted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) sites: u32,
    pub(crate) blocks: u32,
    /// Requests for events that a tool has made.
    pub(crate) requests: u32,
    pub(crate) elapsed: Duration,
}

/// The most bytes that string instructions of a thread can walk over in a second: 128 in each of 4
/// billion cycles.
const WALKED_PER_S: u64 = 1 << 39;
/// Bytes that a thread may walk over in addition, because clocks are not exact.
const WALKED_FREE: u64 = 1 << 24;
/// A block has fewer bytes than this, and a cut takes back fewer instructions.
const BLOCK_BYTES_MAX: u32 = 1 << 16;

/// Records that are tested together, without a branch for each.
const STEP: usize = 8;

/// The screen of a run.
pub(super) struct Screen {
    limits: Limits,
    /// The first number that no record may name, for each low byte of [`Record::what`]; 0 if such
    /// records need a closer look.
    first_missing: [u32; 256],
    /// The vectors that test records first, and their rules.
    wide: Option<Wide>,
    rules: Rules,
    /// Records that were checked, by kind.
    kinds: KindCounts,
    /// Bytes that each thread has walked over.
    walked: HashMap<u32, u64>,
    /// Recently decoded shapes of groups, because string functions use few masks millions of times.
    shapes: [Option<Group>; SHAPES],
}

/// Shapes that the screen remembers.
const SHAPES: usize = 16;

/// The shape of a group of records, decoded from `extra` of its first record.
#[derive(Clone, Copy)]
struct Group {
    extra: u32,
    /// Records of the group.
    values: usize,
    /// Whether the group states at run time how many bytes it accesses.
    walks: bool,
}

impl Group {
    fn of(first: &Record) -> Group {
        let shape = event::group_shape(first).ok();
        let walks = matches!(shape, Some(Shape::String { .. } | Shape::Tile { .. }));
        Group { extra: first.extra, values: shape.map_or(1, Shape::values), walks }
    }
}

impl Screen {
    pub(super) fn new() -> Screen {
        Screen {
            limits: Limits::default(),
            first_missing: [0; 256],
            wide: Wide::new(),
            rules: rules(Limits::default()),
            kinds: KindCounts::default(),
            walked: HashMap::new(),
            shapes: [None; SHAPES],
        }
    }

    /// Sets the limits of the records that follow.
    pub(super) fn expect(&mut self, limits: Limits) {
        let same_numbers = Limits { elapsed: self.limits.elapsed, ..limits } == self.limits;
        self.limits = limits;
        if same_numbers {
            return;
        }
        self.rules = rules(limits);
        for (code, first) in (0..=u8::MAX).zip(&mut self.first_missing) {
            let size_exists = SIZES[usize::from(code & 15)] > 0;
            *first =
                match kind(code) {
                    Some(
                        RecordKind::Load | RecordKind::Store | RecordKind::Modify | RecordKind::Prefetch,
                    ) if size_exists => limits.sites,
                    Some(RecordKind::Fetch | RecordKind::FetchPage) => limits.blocks,
                    // Words of calls and events are as frequent as plain references.
                    Some(RecordKind::Tool) => limits.requests,
                    Some(RecordKind::Payload) if code == PAYLOAD_CODE => limits.sites,
                    _ => 0,
                };
        }
    }

    /// Copies records of one thread out of shared memory, from `offset` on, and looks at leading
    /// ones meanwhile. [`Screen::pass`] must be called next, and checks the others.
    pub(super) fn copy(&mut self, shared: &Shared, offset: usize, into: &mut [Record]) -> Copied {
        let steps = (into.len() / KINDS).min(COPIED_MAX);
        let copied = self.copy_steps(|steps| shared.record_steps(offset, steps), steps, into);
        let rest = copied.steps * KINDS;
        shared.copy_records(offset + rest * size_of::<Record>(), &mut into[rest..]);
        copied
    }

    /// Copies steps of records, if vectors can look at them.
    fn copy_steps<'s>(
        &mut self,
        from: impl FnOnce(usize) -> RecordSteps<'s>,
        steps: usize,
        into: &mut [Record],
    ) -> Copied {
        let (Some(wide), rules) = (self.wide, &self.rules) else { return Copied::default() };
        self.kinds.add_steps(steps, |sums| wide.copy(&from(steps), into, rules, sums))
    }

    /// Checks records of one thread, of which [`Screen::copy`] has looked at those that it copied
    /// in steps; groups must be whole. Returns the number of records of plain references and words
    /// of calls, which is exact unless a group is damaged: its payloads are then counted too.
    pub(super) fn pass(&mut self, thread: u32, records: &[Record], copied: Copied) -> Result<usize, Forgery> {
        let before = self.no_references();
        let others = self.check(thread, records, copied);
        self.kinds.flush();
        let no_references = self.no_references() - before;
        Ok(records.len().saturating_sub(others?).saturating_sub(no_references as usize))
    }

    /// Checks records. Returns how many of them are events or belong to groups.
    fn check(&mut self, thread: u32, records: &[Record], copied: Copied) -> Result<usize, Forgery> {
        let Copied { steps, mut doubtful, mut others } = copied;
        // Steps of vectors that did not pass, in two steps each.
        while doubtful != 0 {
            let at = doubtful.trailing_zeros() as usize * KINDS;
            others += self.pass_step(thread, &records[at..])?;
            others += self.pass_step(thread, &records[at + STEP..])?;
            doubtful &= doubtful - 1;
        }
        for at in (steps * KINDS..records.len()).step_by(STEP) {
            others += self.pass_step(thread, &records[at..])?;
        }
        Ok(others)
    }

    /// Records that were checked, by the upper four bits of their codes.
    pub(super) fn counts(&self) -> &[u64; KINDS] {
        self.kinds.totals()
    }

    /// Records so far of blocks and of misses of data pages.
    fn no_references(&self) -> u64 {
        [RecordKind::Block, RecordKind::DataPage].map(|kind| self.counts()[kind as usize]).iter().sum()
    }

    /// Checks the first step of `records`. Returns how many of its records are events or belong to
    /// groups.
    fn pass_step(&mut self, thread: u32, records: &[Record]) -> Result<usize, Forgery> {
        const EVENT: u8 = (RecordKind::Tool as u8) << 4;
        let step = &records[..records.len().min(STEP)];
        self.kinds.add(step);
        let mut others = match self.limits.requests {
            0 => 0,
            _ => step.iter().filter(|record| record.what as u8 == EVENT).count(),
        };
        if !self.any_stands_out(step) || self.only_pages_stand_out(step) {
            return Ok(others);
        }
        for at in 0..step.len() {
            if stands_out(&self.first_missing, &records[at]) {
                others += self.examine(thread, &records[at..])?;
            }
        }
        Ok(others)
    }

    /// Whether any of these records needs a closer look. A whole step is tested without a branch
    /// for each record. (Comparing kind, size and number without the table took 4 % more of the
    /// observer's time.)
    #[inline(always)]
    fn any_stands_out(&self, step: &[Record]) -> bool {
        let one = |record: &Record| stands_out(&self.first_missing, record);
        match step.first_chunk::<STEP>() {
            Some(step) => step.iter().fold(0, |any, record| any | u32::from(one(record))) != 0,
            None => step.iter().any(one),
        }
    }

    /// Whether all of these records but misses of pages pass without a closer look, and those are
    /// possible. In front of some TLBs every second record is a miss of a page, so they too are
    /// tested together.
    fn only_pages_stand_out(&self, step: &[Record]) -> bool {
        let passes = |record: &Record| {
            let is_page = record.what as u8 >> 4 == RecordKind::DataPage as u8;
            (is_page & (record.what >> 8 < self.limits.sites) & (record.extra <= 1))
                | !stands_out(&self.first_missing, record)
        };
        step.iter().fold(true, |all, record| all & passes(record))
    }

    /// Examines the first of `records` closely. Returns the number of records of its group, or 0 if
    /// it begins none.
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
        possible.then_some(0).ok_or(Forgery::Record(address, what, extra))
    }

    /// The shape of the group that begins with `first`.
    fn group(&mut self, first: &Record) -> Group {
        let slot = (first.extra ^ first.extra >> 4 ^ first.extra >> 8) as usize % SHAPES;
        match self.shapes[slot] {
            Some(group) if group.extra == first.extra => group,
            _ => *self.shapes[slot].insert(Group::of(first)),
        }
    }

    /// Whether the thread has run long enough for all bytes that its groups state, this group
    /// included. A group that cannot be decoded counts no bytes.
    fn has_time_for(&mut self, thread: u32, group: &[Record], values: usize) -> bool {
        let end = values.min(group.len());
        let Ok(complex) = Complex::decode(&group[..end]) else { return true };
        let walked = self.walked.entry(thread).or_default();
        *walked = walked.saturating_add(complex.walked_bytes());
        let elapsed_us = u64::try_from(self.limits.elapsed.as_micros()).unwrap_or(u64::MAX);
        *walked <= elapsed_us.saturating_mul(WALKED_PER_S / 1_000_000).saturating_add(WALKED_FREE)
    }
}

/// The rules by which vectors test records. They pass nothing that the closer look would reject.
fn rules(limits: Limits) -> Rules {
    let none = [0; KINDS];
    let mut rules = Rules { first_missing: none, size_max: none, extra_has: none, extra: [u32::MAX; KINDS] };
    let any_size = SIZES.len() as u32 - 1;
    let size_max = SIZES.iter().rposition(|&bytes| bytes > 0).unwrap_or(0) as u32;
    let (sites, blocks) = (limits.sites, limits.blocks);
    for (kind, first_missing, size_max) in [
        (RecordKind::Load, sites, size_max),
        (RecordKind::Store, sites, size_max),
        (RecordKind::Modify, sites, size_max),
        (RecordKind::Prefetch, sites, size_max),
        (RecordKind::Fetch, blocks, any_size),
        (RecordKind::FetchPage, blocks, any_size),
        (RecordKind::Tool, limits.requests, any_size),
        // No other code of these kinds is a payload's, or that of a group.
        (RecordKind::Payload, sites, u32::from(PAYLOAD_CODE & 15)),
        (RecordKind::Complex, sites, u32::from(COMPLEX_CODE & 15)),
        (RecordKind::DataPage, sites, any_size),
        // The number of a cut is none of a block.
        (RecordKind::Block, blocks.min(CUT_SITE as u32), any_size),
    ] {
        rules.first_missing[kind as usize] = first_missing;
        rules.size_max[kind as usize] = size_max;
    }
    for (kind, extra) in [(RecordKind::DataPage, 1), (RecordKind::Block, BLOCK_BYTES_MAX - 1)] {
        rules.extra[kind as usize] = extra;
    }
    // Of groups, masked accesses: they state no length, and have two records.
    (rules.extra_has[RecordKind::Complex as usize], rules.extra[RecordKind::Complex as usize]) =
        Shape::MASKED_EXTRA;
    rules
}

/// Whether a record names a number that does not exist for its kind and size, or needs a closer
/// look.
#[inline(always)]
fn stands_out(first_missing: &[u32; 256], record: &Record) -> bool {
    record.what >> 8 >= first_missing[usize::from(record.what as u8)]
}

/// The kind of record that a low byte names; `None` for bytes that generated code never writes.
fn kind(code: u8) -> Option<RecordKind> {
    (code >> 4 <= RecordKind::DataPage as u8).then(|| Code(code).kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::{AddressWidth, Segment, StringOperation};

    const LIMITS: Limits = Limits { sites: 10, blocks: 5, requests: 2, elapsed: Duration::from_millis(1) };

    fn passes(records: &[Record]) -> bool {
        let mut screen = Screen::new();
        screen.expect(LIMITS);
        received(&mut screen, records).is_ok()
    }

    /// Copies and checks records.
    fn received(screen: &mut Screen, records: &[Record]) -> Result<usize, Forgery> {
        let mut part = vec![Record::default(); records.len()];
        let steps = (records.len() / KINDS).min(COPIED_MAX);
        let copied = screen.copy_steps(|steps| RecordSteps::of(&records[..steps * KINDS]), steps, &mut part);
        let rest = copied.steps * KINDS;
        part[rest..].copy_from_slice(&records[rest..]);
        assert_eq!(part, records);
        screen.pass(0, &part, copied)
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
        // Page misses are no plain references, whatever stands beside them.
        let mut screen = Screen::new();
        screen.expect(LIMITS);
        for others in [record(9, Load, 0), record(4, Block, 0), record(4, FetchPage, 0)] {
            let others = Record { extra: 1, ..others };
            let records: Vec<Record> =
                (0..21).map(|index| if index % 3 == 0 { page } else { others }).collect();
            assert_eq!(
                received(&mut screen, &records).ok(),
                Some(14 - 14 * usize::from(others.code().kind() == Block))
            );
            let forged = Record { extra: 2, ..page };
            assert!(received(&mut screen, &[&records[..], &[forged]].concat()).is_err());
        }
        for code in 0xb0..=0xff {
            assert!(!passes(&[Record { what: code, ..Record::default() }]), "kind {:#x}", code >> 4);
        }
    }

    /// Numbers that are the same in every run (Marsaglia 2003).
    fn next(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    /// A record that passes, or nearly: its words are at the limits of what exists.
    fn nearly_possible(state: &mut u64) -> Record {
        let kind = [next(state) as u32 % 11, RecordKind::Complex as u32][next(state) as usize % 4 / 3];
        let number = [0, 1, 2, 4, 5, 9, 10, CUT_SITE as u32][next(state) as usize % 8];
        let size = [0, 1, 13, 14, 15][next(state) as usize % 5];
        let (has, may) = Shape::MASKED_EXTRA;
        let masked = has | next(state) as u32 & may;
        // One bit more than a masked access that passes: other shapes of masks, or of nothing.
        let nearly = masked ^ 1 << (next(state) % 32);
        let extras = [0, 1, 2, BLOCK_BYTES_MAX - 1, BLOCK_BYTES_MAX, u32::MAX, masked, nearly];
        let extra = extras[next(state) as usize % 8];
        Record {
            address: next(state) % (2 * u64::from(BLOCK_BYTES_MAX)),
            what: number << 8 | kind << 4 | size,
            extra,
        }
    }

    #[test]
    fn vectors_pass_what_the_closer_look_passes() {
        assert!(SIZES[..14].iter().all(|&bytes| bytes > 0), "sizes that exist have the first codes");
        let narrow = || Screen { wide: None, ..Screen::new() };
        let passed = |mut screen: Screen, records: &[Record]| {
            screen.expect(LIMITS);
            received(&mut screen, records).ok().map(|plain| (plain, *screen.counts()))
        };
        let mut state = 0x9e37_79b9_7f4a_7c15;
        let mut seen = [0; 2];
        for round in 0..20_000 {
            // Mostly records that pass, and among them some that may not.
            let doubtful = round % 5;
            let records: Vec<Record> = (0..next(&mut state) % 80)
                .map(|_| match next(&mut state) % 40 {
                    draw if draw < doubtful => nearly_possible(&mut state),
                    draw => {
                        record(draw as u32 % 10, [RecordKind::Load, RecordKind::Store][draw as usize % 2], 4)
                    }
                })
                .collect();
            let expected = passed(narrow(), &records);
            assert_eq!(passed(Screen::new(), &records), expected, "{records:?}");
            if let Some((_, counts)) = expected {
                let mut one_by_one = [0; KINDS];
                records.iter().for_each(|record| one_by_one[usize::from(record.what as u8 >> 4)] += 1);
                assert_eq!(counts, one_by_one, "{records:?}");
            }
            seen[usize::from(expected.is_some())] += 1;
        }
        assert!(seen.iter().all(|&count| count > 1000), "{seen:?}");
    }

    #[test]
    fn vectors_reject_every_code_that_the_table_rejects() {
        let Some(wide) = Wide::new() else { return };
        let mut screen = Screen::new();
        screen.expect(LIMITS);
        for what in
            (0..12).chain([CUT_SITE as u32]).flat_map(|number| (0..=0xff).map(move |code| number << 8 | code))
        {
            for extra in [0, 1, 2, BLOCK_BYTES_MAX - 1, BLOCK_BYTES_MAX, Shape::MASKED_EXTRA.0] {
                let records = [Record { address: u64::MAX, what, extra }; KINDS];
                let mut copy = records;
                let steps = RecordSteps::of(&records);
                let copied = wide.copy(&steps, &mut copy, &screen.rules, &mut Default::default());
                let passes = screen.pass_step(0, &records[..1]).is_ok();
                assert!(copied.doubtful == 1 || passes, "{what:#x} {extra:#x}");
            }
        }
    }

    #[test]
    fn masked_accesses_pass_at_once() {
        let Some(wide) = Wide::new() else { return };
        let mut screen = Screen::new();
        screen.expect(LIMITS);
        let shape = Shape::Masked {
            direction: event::Direction::Load,
            layout: event::MaskedLayout::InPlace,
            element_bytes: 1,
            count: 32,
        };
        let mut records = Vec::new();
        (0..8).for_each(|site| Complex::new(shape, &[0x1000, 0xff]).encode(site, &mut records));
        let mut copy = records.clone();
        let copied = wide.copy(&RecordSteps::of(&records), &mut copy, &screen.rules, &mut Default::default());
        assert_eq!((copied.doubtful, copied.others), (0, 16));
        let others = screen.pass_step(0, &records[..STEP]).unwrap();
        assert_eq!(others, 8, "as the closer look counts them");
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
