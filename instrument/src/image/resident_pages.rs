//! The host's version of the routines that look up data pages (`emit::page_routine`), for state
//! areas, repeats that run backwards, and all other references that generated code hands over.
//!
//! **How.** The host reads the group of values that the thread recorded last from the ring. Then it
//! looks up the pages of the group's references, in order, in the tables of the thread's context.
//! **Why the host.** These references are rare, and their extent depends on layouts that a few
//! instructions cannot compute. **Invariant.** The program can write to ring and context, so the
//! host trusts nothing that it reads here: a group that cannot be decoded uses no page, and the
//! number of pages that one reference uses is limited.

use super::Image;
use crate::code::resident_pages::{page_what, ResidentPages};
use crate::code::state_area::state_layout;
use crate::evidence::Forgery;
use crate::target::layout::context;
use crate::target::layout::segment_start;
use event::{Access, Complex, Record, Stream, VALUES_MAX, WIDE_BYTES};

/// The most pages that one reference may use: 64 GB of small pages.
const WALKED_PAGES_MAX: u64 = 1 << 24;

/// A copy of the data TLB of a context.
struct Table {
    shape: ResidentPages,
    /// For each entry, minus the address of its page.
    pages: Vec<u64>,
    /// For each entry, the time of its last use.
    times: Vec<u64>,
    /// The present time.
    clock: u64,
    /// For each hint, the number of entries whose pages have it.
    counts: Vec<u8>,
}

impl Table {
    /// Uses the page with this number; returns whether it missed. A page that misses replaces the
    /// least recently used one.
    fn misses(&mut self, number: u64) -> bool {
        let minus = (number << self.shape.shift()).wrapping_neg();
        let found = self.pages.iter().position(|&page| page == minus);
        let entry = found.or_else(|| (0..self.times.len()).min_by_key(|&entry| self.times[entry]));
        let Some(entry) = entry else { return false };
        if found.is_none() {
            *self.count(minus) = self.count(minus).wrapping_add(1);
            let before = std::mem::replace(&mut self.pages[entry], minus);
            *self.count(before) = self.count(before).wrapping_sub(1);
        }
        self.clock = self.clock.wrapping_add(context::PAGE_CLOCK_STEP.into());
        self.times[entry] = self.clock.wrapping_add(entry as u64);
        found.is_none()
    }

    /// The number of entries whose pages share the hint of the page with the negated address
    /// `minus`.
    fn count(&mut self, minus: u64) -> &mut u8 {
        let number = minus.wrapping_neg() >> self.shape.shift();
        &mut self.counts[number as usize % context::PAGE_HINTS_COUNT as usize]
    }

    /// Uses the pages of a reference, and appends records of those that miss to `misses`.
    fn reference(&mut self, what: u32, address: u64, size_bytes: u32, misses: &mut Vec<Record>) {
        let page_bytes = u64::from(self.shape.page_bytes);
        let end = address.saturating_add(u64::from(size_bytes.max(1)) - 1);
        let mut before = None;
        for page in address / page_bytes..=end / page_bytes {
            if !self.misses(page) {
                continue;
            }
            match before.filter(|_| size_bytes <= WIDE_BYTES) {
                Some(first) => {
                    let first: &mut Record = &mut misses[first];
                    first.extra = 1;
                }
                None => {
                    before = Some(misses.len());
                    let address = address.max(page * page_bytes);
                    misses.push(Record { address, what, extra: 0 });
                }
            }
        }
    }
}

impl Image {
    /// Uses the pages of the complex reference that context `context` recorded last; returns
    /// records of those that missed.
    pub(crate) fn use_group_pages(&self, context: usize) -> Vec<Record> {
        let Stream::Filtered(filter) = self.translator.stream else { return Vec::new() };
        let Some(shape) = ResidentPages::of(&filter) else { return Vec::new() };
        let Some(group) = self.last_group(context) else { return Vec::new() };
        let Ok(complex) = Complex::decode(&group) else { return Vec::new() };
        let what = page_what(group[0].what);
        let mut table = self.resident_table(context, shape);
        let mut misses = Vec::new();
        // A forged string operation may state any length.
        let walks = complex.walked_bytes() / u64::from(shape.page_bytes);
        if walks > WALKED_PAGES_MAX {
            self.evidence.note(Forgery::Record(group[0].address, group[0].what, group[0].extra));
            return Vec::new();
        }
        complex.stretches(&state_layout(), shape.page_bytes.into(), |references, _| {
            for &(address, size_bytes, access) in references {
                if access != Access::Prefetch {
                    table.reference(what, address, size_bytes, &mut misses);
                }
            }
        });
        self.write_table(context, &table);
        misses
    }

    /// The records of the group that context `context` recorded last; the context holds their
    /// number of bytes. `None` if that number is impossible, which is noted as forged.
    fn last_group(&self, context: usize) -> Option<Vec<Record>> {
        let bytes = self.position(context)?;
        let group = self.read32(context, context::PAGE_GROUP) as usize;
        let possible = group.is_multiple_of(16) && group <= 16 * VALUES_MAX && (16..=bytes).contains(&group);
        if !possible {
            self.evidence.note(Forgery::Position(group as u64));
            return None;
        }
        let mut records = vec![Record::default(); group / 16];
        let start = segment_start(self.context(context), self.segments[context]);
        self.shared.copy_records(start + bytes - group, &mut records);
        Some(records)
    }

    /// Empties the data TLB of context `context`.
    pub(super) fn empty_resident(&self, context: usize, shape: ResidentPages) {
        let entries = shape.entries as usize;
        // Empty entries are older than all others. They have one address, and so one hint.
        let mut empty = Table {
            shape,
            pages: vec![context::RESIDENT_EMPTY; entries],
            times: (0..entries as u64).collect(),
            clock: 0,
            counts: vec![0; context::PAGE_HINTS_COUNT as usize],
        };
        *empty.count(context::RESIDENT_EMPTY) = entries as u8;
        self.write_table(context, &empty);
        // The first entry of each group is its oldest. Behind the last entry are none: their times
        // are never the least.
        let groups = shape.groups();
        for group in 0..groups {
            let first = u64::from(group * context::RESIDENT_GROUP);
            self.write64(context, context::RESIDENT_LEAST + 8 * group, first);
        }
        for absent in shape.entries..groups * context::RESIDENT_GROUP {
            self.write64(context, context::RESIDENT_TIMES + 8 * absent, u64::MAX);
        }
    }

    fn resident_table(&self, context: usize, shape: ResidentPages) -> Table {
        let words = |at: u32| {
            let bytes = self.shared.read(self.context(context) + at as usize, 8 * shape.entries as usize);
            bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
        };
        let counts = self.context(context) + context::PAGE_COUNTS as usize;
        Table {
            shape,
            pages: words(context::RESIDENT_PAGES),
            times: words(context::RESIDENT_TIMES),
            clock: self.read64(context, context::PAGE_CLOCK),
            counts: self.shared.read(counts, context::PAGE_HINTS_COUNT as usize),
        }
    }

    fn write_table(&self, context: usize, table: &Table) {
        let write = |at: u32, words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.shared.write(self.context(context) + at as usize, &bytes);
        };
        write(context::RESIDENT_PAGES, &table.pages);
        write(context::RESIDENT_TIMES, &table.times);
        self.write64(context, context::PAGE_CLOCK, table.clock);
        self.shared.write(self.context(context) + context::PAGE_COUNTS as usize, &table.counts);
    }

    /// Whether the segment of context `context` must be handed over before more is appended.
    pub(crate) fn is_full(&self, context: usize) -> bool {
        self.read64(context, context::RING_POSITION) >= self.read64(context, context::RING_LIMIT)
    }
}
