//! A hierarchy that is walked touch by touch, with any policy, prefetchers, inclusion, slices and
//! pages.
//!
//! **What.** A touch looks a line up from the first level outwards until it is found, and enters it
//! into the levels inside. Then the prefetchers of the levels that were reached fetch, the
//! outermost last. **Why this way.** With back-invalidation and victims, a level's contents depend
//! on more than its own stream, so levels cannot be swept one after the other as in `hierarchy`.
//! This file makes touches of records and counts misses; `walk` takes one touch through the levels
//! and counts the lines that move. **Leaves out** write-through and coherence.
//!
//! **Cost.** Some 35 ns for a touch that hits the first level, 200 for one that misses three. Its
//! twin is `reference::NaiveRefined`.

mod cache;
mod pages;
mod prefetch;
mod walk;

use crate::policy::Repeats;
use crate::touch::Side;
use crate::{
    Counts, FetchTlb, Geometry, GeometryError, Levels, LocatedMisses, Prefetch, Sharing, Traffic, CACHES_MAX,
    TLBS_MAX,
};
use cache::PolicyCache;
use event::{Access, Groups, Record, RecordKind, StateLayout, Step, CUT_SITE, WIDE_BYTES};
use pages::{page_bytes, Buffers, Translation};
use prefetch::Prefetching;
use std::collections::HashMap;

/// A hierarchy whose levels may have any policy, prefetcher and inclusion.
pub struct Refined {
    levels: Levels,
    layout: StateLayout,
    /// Indices into `cores` and `groups`, by thread.
    threads: HashMap<u32, usize>,
    cores: Vec<Core>,
    groups: Vec<Groups>,
    /// Places in `cores` and `groups` of threads that have ended.
    free: Vec<usize>,
    shared: Vec<Option<CacheLevel>>,
    strings: Strings,
    counts: Counts,
    traffic: Traffic,
    /// Lines that the prefetchers of a touch want, with their levels; empty between touches.
    wanted: Vec<(usize, u64)>,
    /// The misses of the batch, where they are listed.
    located: Option<LocatedMisses>,
    /// The index of the record whose references are taken.
    at: u32,
}

/// How the references of a complex instruction are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strings {
    /// Those that hit the line that was used last may be taken together.
    ByLine,
    /// Each counts: a policy, a prefetcher or the delay of prefetched lines depends on each touch.
    ByReference,
}

/// A cache and its prefetchers.
struct CacheLevel {
    cache: PolicyCache,
    prefetching: Prefetching,
}

/// The levels that belong to one thread.
struct Core {
    instruction: Option<CacheLevel>,
    data: CacheLevel,
    outer: Vec<Option<CacheLevel>>,
    instruction_tlb: Option<Buffers>,
    data_tlb: Option<Buffers>,
    outer_tlb: Option<Buffers>,
    outer_fetch_tlb: Option<Buffers>,
}

/// One touch: its core and side, its address, and its instruction.
#[derive(Clone, Copy)]
struct Touch {
    core: usize,
    side: Side,
    address: u64,
    site: u32,
    store: bool,
}

impl Strings {
    fn of(levels: &Levels) -> Strings {
        let strides = |geometry: &Geometry| geometry.prefetch.has(Prefetch::Stride);
        let outer = levels.outer.iter().map(|outer| &outer.geometry);
        let counts = |geometry: Geometry| geometry.policy.repeats == Repeats::Count;
        let data = levels.data;
        let first = data.prefetch.has(Prefetch::Streamer) || data.prefetch.late_touches > 0;
        if first || counts(data) || levels.data_tlb.is_some_and(counts) || outer.chain([&data]).any(strides) {
            Strings::ByReference
        } else {
            Strings::ByLine
        }
    }
}

impl CacheLevel {
    fn new(geometry: Geometry) -> CacheLevel {
        let prefetching = Prefetching::new(geometry.prefetch, geometry.line_bytes);
        CacheLevel { cache: PolicyCache::new(geometry), prefetching }
    }
}

/// The outer levels with this sharing; `None` in the places of the others.
fn outer(levels: &Levels, sharing: Sharing) -> Vec<Option<CacheLevel>> {
    let one = |outer: &crate::Outer| (outer.sharing == sharing).then(|| CacheLevel::new(outer.geometry));
    levels.outer.iter().map(one).collect()
}

impl Core {
    fn new(levels: &Levels) -> Core {
        let large = levels.large_pages.as_ref();
        Core {
            instruction: levels.instruction.map(CacheLevel::new),
            data: CacheLevel::new(levels.data),
            outer: outer(levels, Sharing::PerThread),
            instruction_tlb: Buffers::new(levels.instruction_tlb, large.map(|large| &large.instruction[..])),
            data_tlb: Buffers::new(levels.data_tlb, large.map(|large| &large.data[..])),
            outer_tlb: Buffers::new(levels.outer_tlb, large.map(|large| &large.outer[..])),
            outer_fetch_tlb: Buffers::new(
                levels.outer_fetch_tlb.own(),
                large.map(|large| &large.outer_instruction[..]),
            ),
        }
    }
}

impl Refined {
    /// An empty hierarchy.
    ///
    /// # Errors
    /// When the levels cannot be simulated.
    pub fn new(levels: &Levels) -> Result<Refined, GeometryError> {
        levels.check()?;
        Ok(Refined {
            levels: levels.clone(),
            layout: StateLayout::default(),
            threads: HashMap::new(),
            cores: Vec::new(),
            groups: Vec::new(),
            free: Vec::new(),
            shared: outer(levels, Sharing::AllThreads),
            strings: Strings::of(levels),
            counts: Counts::default(),
            traffic: Traffic::default(),
            wanted: Vec::new(),
            located: None,
            at: 0,
        })
    }

    /// Also reports lines that moved in [`Counts`]: [`Counts::traffic`] and
    /// [`Counts::write_backs`]. They are exact for a full stream.
    #[must_use]
    pub fn counting_traffic(mut self) -> Refined {
        self.counts.traffic = Some(Traffic::default());
        self
    }

    /// The lines that moved between levels so far; dirty ones are exact for a full stream.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Takes records of one thread, in program order.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        let Refined { threads, cores, groups, free, levels, .. } = self;
        let core = *threads.entry(thread).or_insert_with(|| {
            let place = free.pop().unwrap_or(cores.len());
            let (core, group) = (Core::new(levels), Groups::default());
            match cores.get_mut(place) {
                Some(former) => (*former, groups[place]) = (core, group),
                None => {
                    cores.push(core);
                    groups.push(group);
                }
            }
            place
        });
        self.at = 0;
        for (at, record) in records.iter().enumerate() {
            // What began in an earlier batch is listed under the first record of this one.
            if !self.groups[core].is_open() {
                self.at = at as u32;
            }
            self.record(core, record);
        }
    }

    /// Takes records of one thread, and lists the references that missed in `located`, which is
    /// emptied first. Lines that prefetchers fetch are no misses.
    pub fn records_located(&mut self, thread: u32, records: &[Record], located: &mut LocatedMisses) {
        located.clear();
        self.located = Some(std::mem::take(located));
        self.records(thread, records);
        *located = self.located.take().unwrap_or_default();
    }

    /// Gives the caches of a thread that makes no more records to the next new thread, which finds
    /// them empty.
    pub fn end_thread(&mut self, thread: u32) {
        self.free.extend(self.threads.remove(&thread));
    }

    /// How many cores there are: the most threads that lived at a time.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Exchanges the tables of misses and complex references with those of `counts`.
    pub(crate) fn exchange(&mut self, counts: &mut Counts) {
        std::mem::swap(&mut self.counts.sites, &mut counts.sites);
        std::mem::swap(&mut self.counts.blocks, &mut counts.blocks);
        std::mem::swap(&mut self.counts.complex, &mut counts.complex);
    }

    /// The counts so far. Cost: a copy of the tables.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts.clone().trimmed();
        if counts.traffic.is_some() {
            counts.traffic = Some(self.traffic);
            counts.write_backs = Some(self.traffic.dirty_out());
        }
        counts.prefetched = self.levels.prefetches().then(|| self.traffic.prefetched());
        counts
    }

    fn record(&mut self, core: usize, record: &Record) {
        match self.groups[core].push(record) {
            Step::Part => {}
            Step::Plain => self.plain(core, record),
            Step::Damaged(_) => self.counts.damaged += 1,
            Step::DamagedBefore(_) => {
                self.counts.damaged += 1;
                self.plain(core, record);
            }
            Step::Whole(site, complex) => {
                at(&mut self.counts.complex, site).execute(&complex);
                let layout = self.layout;
                if self.strings == Strings::ByReference {
                    return complex.references(&layout, |address, size_bytes, access| {
                        self.stretch(core, site, &[(address, size_bytes, access)], 1);
                    });
                }
                let line_bytes = self.levels.data.line_bytes.into();
                complex.stretches(&layout, line_bytes, |references, times| {
                    self.stretch(core, site, references, times);
                });
            }
        }
    }

    /// Counts `references`, each of which lies in one line, made `times` times in turn. Once all of
    /// them hit the first level, more rounds change nothing, so the simulation stops there.
    fn stretch(&mut self, core: usize, site: usize, references: &[(u64, u32, Access)], times: u64) {
        let counts = at(&mut self.counts.complex, site);
        for (.., access) in references {
            match access {
                Access::Load => counts.loads += times,
                Access::Store => counts.stores += times,
                Access::Prefetch => {}
            }
        }
        for _ in 0..times {
            let mut found = true;
            for &(address, size_bytes, access) in
                references.iter().filter(|(.., kind)| *kind != Access::Prefetch)
            {
                found &= self.data(core, site as u32, address, size_bytes, access);
            }
            if found {
                return;
            }
        }
    }

    fn plain(&mut self, core: usize, record: &Record) {
        let (site, address) = (record.site() as u32, record.address);
        let size_bytes = record.code().size_bytes();
        match record.code().kind() {
            RecordKind::Load => _ = self.data(core, site, address, size_bytes, Access::Load),
            RecordKind::Store => _ = self.data(core, site, address, size_bytes, Access::Store),
            RecordKind::Modify => {
                self.data(core, site, address, size_bytes, Access::Load);
                self.data(core, site, address, size_bytes, Access::Store);
            }
            RecordKind::Fetch => self.fetch(core, site, address, 1),
            RecordKind::Block if record.site() != CUT_SITE => self.fetch(core, site, address, record.extra),
            _ => {}
        }
    }

    /// Simulates a data reference; each line of a wide one counts by itself. Returns whether the
    /// first level had all lines.
    fn data(&mut self, core: usize, site: u32, address: u64, size_bytes: u32, access: Access) -> bool {
        let line_bytes = u64::from(self.levels.data.line_bytes);
        let last = address.saturating_add(u64::from(size_bytes.max(1)) - 1);
        // A wide reference is cut at the ends of lines, and each piece counts.
        let (mut start, mut all) = (address, true);
        while size_bytes > WIDE_BYTES && last - (start & !(line_bytes - 1)) >= line_bytes {
            let next = (start & !(line_bytes - 1)) + line_bytes;
            all &= self.lines(core, site, start, (next - start) as u32, access);
            start = next;
        }
        all & self.lines(core, site, start, (last - start + 1) as u32, access)
    }

    /// Simulates a data reference that counts as at most one miss of a level, its lines from the
    /// lowest on. Returns whether the first level had all lines.
    #[inline(never)]
    fn lines(&mut self, core: usize, site: u32, address: u64, size_bytes: u32, access: Access) -> bool {
        let store = access == Access::Store;
        let last = address.saturating_add(u64::from(size_bytes.max(1)) - 1);
        let mut touch = Touch { core, side: Side::Data, address, site, store };
        let (mut missed, mut first) = ([false; CACHES_MAX], None);
        let line_bytes = u64::from(self.levels.data.line_bytes);
        loop {
            self.touch(touch, &mut missed);
            if missed[0] {
                first.get_or_insert(touch.address);
            }
            let line = touch.address & !(line_bytes - 1);
            if last - line < line_bytes {
                break;
            }
            touch.address = line + line_bytes;
        }
        let (missed_tlbs, page) = self.pages(core, Side::Data, address, last);
        let kind = if store { RecordKind::Store } else { RecordKind::Load };
        self.list(kind, site, (first, &missed[..]), (page, &missed_tlbs[..]));
        let counts = at(&mut self.counts.sites, site as usize);
        add(if store { &mut counts.stores } else { &mut counts.loads }, missed);
        add(&mut counts.tlbs, missed_tlbs);
        !missed[0] && !missed_tlbs[0]
    }

    /// Simulates the instruction lines of `len_bytes` at `address`, each as a reference.
    fn fetch(&mut self, core: usize, block: u32, address: u64, len_bytes: u32) {
        let Some(geometry) = self.levels.instruction else { return };
        let line_bytes = u64::from(geometry.line_bytes);
        let last = address.saturating_add(u64::from(len_bytes.max(1)) - 1);
        let mut line = address & !(line_bytes - 1);
        loop {
            let touch = Touch { core, side: Side::Instruction, address: line, site: block, store: false };
            let mut missed = [false; CACHES_MAX];
            self.touch(touch, &mut missed);
            let (missed_tlbs, page) = self.pages(core, Side::Instruction, line, line);
            self.list(RecordKind::Fetch, block, (Some(line), &missed[..]), (page, &missed_tlbs[..]));
            let counts = at(&mut self.counts.blocks, block as usize);
            add(&mut counts.fetches, missed);
            add(&mut counts.tlbs, missed_tlbs);
            if last - line < line_bytes {
                break;
            }
            line += line_bytes;
        }
    }

    /// Lists a reference that missed, with the first addresses that did.
    #[inline(never)]
    fn list(
        &mut self,
        kind: RecordKind,
        site: u32,
        caches: (Option<u64>, &[bool]),
        pages: (Option<u64>, &[bool]),
    ) {
        let Some(located) = &mut self.located else { return };
        located.add(self.at, (kind, site), caches, pages);
    }

    /// The TLB levels that the base pages from `address` to `last` missed, and the first address of
    /// them in a page that the first level missed.
    fn pages(&mut self, core: usize, side: Side, address: u64, last: u64) -> ([bool; TLBS_MAX], Option<u64>) {
        let (mut missed, mut at) = ([false; TLBS_MAX], None);
        let base = if side == Side::Data { self.levels.data_tlb } else { self.levels.instruction_tlb };
        let Some(base) = base else { return (missed, at) };
        let shift = base.line_bytes.trailing_zeros();
        let walks = self.levels.outer_tlb.is_some() && self.levels.outer_fetch_tlb == FetchTlb::Absent;
        let Core { instruction_tlb, data_tlb, outer_tlb, outer_fetch_tlb, .. } = &mut self.cores[core];
        let (first, second) = match (side, self.levels.outer_fetch_tlb) {
            (Side::Data, _) => (data_tlb, outer_tlb),
            (Side::Instruction, FetchTlb::Unified) => (instruction_tlb, outer_tlb),
            (Side::Instruction, FetchTlb::Own(_) | FetchTlb::Absent) => (instruction_tlb, outer_fetch_tlb),
        };
        // Each page is looked up in the first level and, if it is missing there, in the second.
        for page in address >> shift..=last >> shift {
            let page = page << shift;
            let bytes = page_bytes(self.levels.large_pages.as_ref(), base, page);
            for (missed, buffers) in missed.iter_mut().zip([&mut *first, &mut *second]) {
                let Some(buffers) = buffers else { break };
                if buffers.translate(page, bytes) == Translation::Hit {
                    break;
                }
                *missed = true;
            }
            if missed[0] {
                at.get_or_insert(page.max(address));
            }
        }
        if side == Side::Instruction && walks {
            missed[1] = missed[0];
        }
        (missed, at)
    }
}

impl event::Sink for Refined {
    fn records(&mut self, thread: u32, records: &[Record]) {
        Refined::records(self, thread, records);
    }
}

fn at<T: Clone + Default>(table: &mut Vec<T>, index: usize) -> &mut T {
    if index >= table.len() {
        table.resize((index + 1).next_power_of_two(), T::default());
    }
    &mut table[index]
}

fn add<const N: usize>(counts: &mut [u64; N], missed: [bool; N]) {
    counts.iter_mut().zip(missed).for_each(|(count, missed)| *count += u64::from(missed));
}
