//! A hierarchy that is walked touch by touch, with any policy, prefetchers, inclusion and large
//! pages.
//!
//! **What.** A touch looks a line up from the first level outwards until it is found, and enters it
//! into the levels inside. Then the prefetchers of the levels that were reached fetch, the
//! outermost last. **Why this way.** With back-invalidation and victims, a level's contents depend
//! on more than its own stream, so levels cannot be swept one after the other as in `hierarchy`.
//! **Leaves out** write-backs.
//!
//! **Cost.** Some 20 ns per touch. Its twin is `reference::NaiveRefined`.

mod cache;
mod pages;
mod stride;

use crate::touch::Side;
use crate::{
    Counts, FetchTlb, Geometry, GeometryError, Inclusion, Levels, Sharing, StoreMiss, CACHES_MAX, TLBS_MAX,
};
use cache::PolicyCache;
use event::{Access, Groups, Record, RecordKind, StateLayout, Step, CUT_SITE, WIDE_BYTES};
use pages::{page_bytes, Buffers, Translation};
use std::collections::HashMap;
use stride::Prefetcher;

/// Prefetched lines lie in the same page, of this many bytes, as the touched line.
pub(crate) const PREFETCH_PAGE_BYTES: u64 = 4096;

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
    counts: Counts,
}

/// A cache and its prefetcher.
struct CacheLevel {
    cache: PolicyCache,
    prefetcher: Prefetcher,
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

impl CacheLevel {
    fn new(geometry: Geometry) -> CacheLevel {
        CacheLevel { cache: PolicyCache::new(geometry), prefetcher: Prefetcher::new(geometry.prefetch) }
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
            counts: Counts::default(),
        })
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
        records.iter().for_each(|record| self.record(core, record));
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

    /// The counts so far. Cost: a copy of the tables.
    pub fn counts(&self) -> Counts {
        self.counts.clone().trimmed()
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
                if self.trains(core) {
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

    /// Whether a prefetcher of the core learns from addresses, and not only from lines.
    fn trains(&self, core: usize) -> bool {
        let own = &self.cores[core];
        let outer = own.outer.iter().chain(&self.shared).flatten();
        outer.chain([&own.data]).any(|level| matches!(level.prefetcher, Prefetcher::Stride(_)))
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
    fn lines(&mut self, core: usize, site: u32, address: u64, size_bytes: u32, access: Access) -> bool {
        let store = access == Access::Store;
        let last = address.saturating_add(u64::from(size_bytes.max(1)) - 1);
        let mut touch = Touch { core, side: Side::Data, address, site, store };
        let mut missed = [false; CACHES_MAX];
        let line_bytes = u64::from(self.levels.data.line_bytes);
        loop {
            self.touch(touch, &mut missed);
            let line = touch.address & !(line_bytes - 1);
            if last - line < line_bytes {
                break;
            }
            touch.address = line + line_bytes;
        }
        let missed_tlbs = self.pages(core, Side::Data, address, last);
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
            let missed_tlbs = self.pages(core, Side::Instruction, line, line);
            let counts = at(&mut self.counts.blocks, block as usize);
            add(&mut counts.fetches, missed);
            add(&mut counts.tlbs, missed_tlbs);
            if last - line < line_bytes {
                break;
            }
            line += line_bytes;
        }
    }

    /// Takes one line through the levels, and then the lines that their prefetchers fetch.
    fn touch(&mut self, touch: Touch, missed: &mut [bool; CACHES_MAX]) {
        // First the line itself is entered, from the level that has it inwards.
        let reached = self.bring(touch, 0);
        let levels = self.levels.outer.len() + 1;
        missed[..reached.min(levels)].fill(true);
        // Then the prefetchers of the levels that were reached choose their lines; all choose
        // before any of them fetches.
        let mut wanted = [None; CACHES_MAX];
        for (number, wanted) in wanted.iter_mut().enumerate().take(levels.min(reached + 1)) {
            let level = self.level(touch.core, touch.side, number);
            let line_bytes = u64::from(level.cache.geometry.line_bytes);
            *wanted = match level.prefetcher {
                Prefetcher::None => None,
                Prefetcher::NextLine if number == reached => None,
                Prefetcher::NextLine => (touch.address & !(line_bytes - 1)).checked_add(line_bytes),
                Prefetcher::Stride(_) if touch.side == Side::Instruction => None,
                Prefetcher::Stride(_) => level.prefetcher.train(touch.site, touch.address),
            };
        }
        for (number, address) in wanted.into_iter().enumerate() {
            let Some(address) = address else { continue };
            if (address ^ touch.address) < PREFETCH_PAGE_BYTES {
                self.prefetch(Touch { address, store: false, ..touch }, number);
            }
        }
    }

    /// Fetches a line into level `number` if the level lacks it.
    fn prefetch(&mut self, touch: Touch, number: usize) {
        let cache = &self.level(touch.core, touch.side, number).cache;
        if !cache.holds(cache.line(touch.address)) {
            self.bring(touch, number);
        }
    }

    fn level(&mut self, core: usize, side: Side, number: usize) -> &mut CacheLevel {
        let core = &mut self.cores[core];
        match (number.checked_sub(1), side) {
            (None, Side::Data) => &mut core.data,
            (None, Side::Instruction) => core.instruction.as_mut().expect("fetches need a first level"),
            (Some(outer), _) => {
                core.outer[outer].as_mut().or(self.shared[outer].as_mut()).expect("of one or of all")
            }
        }
    }

    fn inclusion(&self, number: usize) -> Option<Inclusion> {
        Some(self.levels.outer.get(number.checked_sub(1)?)?.inclusion)
    }

    /// Brings a line into level `from`. Returns the level that had it, or the number of levels.
    fn bring(&mut self, touch: Touch, from: usize) -> usize {
        let levels = self.levels.outer.len() + 1;
        let mut enters = [false; CACHES_MAX];
        let mut store = touch.store;
        let mut reached = from;
        while reached < levels {
            let cache = &mut self.level(touch.core, touch.side, reached).cache;
            let line = cache.line(touch.address);
            let geometry = cache.geometry;
            // An exclusive level gives its line away instead of keeping it.
            let moves = reached > from && self.inclusion(reached) == Some(Inclusion::Exclusive);
            let cache = &mut self.level(touch.core, touch.side, reached).cache;
            if if moves { cache.remove(line) } else { cache.touch(line) } {
                break;
            }
            // Behind a level that the line enters, a store counts as a fill.
            store &= geometry.store_miss == StoreMiss::Bypass;
            enters[reached] = !(moves || store);
            reached += 1;
        }
        // Levels are entered from the outside inwards, so that inclusion holds at each step.
        for number in (from..reached).rev().filter(|&number| enters[number]) {
            self.enter(touch.core, touch.side, number, touch.address);
        }
        reached
    }

    /// Enters a missing line. The line that is replaced leaves the levels inside, or enters the
    /// level outside.
    fn enter(&mut self, core: usize, side: Side, number: usize, address: u64) {
        let cache = &mut self.level(core, side, number).cache;
        let line = cache.line(address);
        let Some(victim) = cache.fill(line) else { return };
        let (victim, line_bytes) = (cache.address(victim), u64::from(cache.geometry.line_bytes));
        if self.inclusion(number) == Some(Inclusion::Inclusive) {
            self.invalidate(core, number, victim, line_bytes);
        }
        if self.inclusion(number + 1) == Some(Inclusion::Exclusive) {
            let outside = &mut self.level(core, side, number + 1).cache;
            let line = outside.line(victim);
            if !outside.touch(line) {
                self.enter(core, side, number + 1, victim);
            }
        }
    }

    /// Removes `line_bytes` at `address` from the levels inside `number`: from those of the core,
    /// or of all cores that share the level, and from shared ones.
    fn invalidate(&mut self, core: usize, number: usize, address: u64, line_bytes: u64) {
        let shared = self.levels.outer[number - 1].sharing == Sharing::AllThreads;
        for (_, one) in self.cores.iter_mut().enumerate().filter(|(other, _)| shared || *other == core) {
            let first = one.instruction.iter_mut().chain([&mut one.data]);
            let outer = one.outer[..number - 1].iter_mut().flatten();
            first.chain(outer).for_each(|level| level.invalidate(address, line_bytes));
        }
        let shared = self.shared[..number - 1].iter_mut().flatten();
        shared.for_each(|level| level.invalidate(address, line_bytes));
    }

    /// The TLB levels that the base pages from `address` to `last` missed.
    fn pages(&mut self, core: usize, side: Side, address: u64, last: u64) -> [bool; TLBS_MAX] {
        let mut missed = [false; TLBS_MAX];
        let base = if side == Side::Data { self.levels.data_tlb } else { self.levels.instruction_tlb };
        let Some(base) = base else { return missed };
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
        }
        if side == Side::Instruction && walks {
            missed[1] = missed[0];
        }
        missed
    }
}

impl CacheLevel {
    fn invalidate(&mut self, address: u64, line_bytes: u64) {
        let own_bytes = u64::from(self.cache.geometry.line_bytes);
        for offset in (0..line_bytes).step_by(own_bytes as usize) {
            let line = self.cache.line(address + offset);
            self.cache.remove(line);
        }
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
