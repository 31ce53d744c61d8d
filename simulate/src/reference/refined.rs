//! The slow twin of `refined`: it follows the definitions of `policy` and `behaviour` by recursion,
//! one line at a time.

use super::refined_level::{Cache, Level};
use super::walk::{add, at, covered, parts};
use crate::{
    Counts, FetchTlb, Geometry, Inclusion, LevelTraffic, Levels, PageBuffer, Prefetch, Sharing, StoreMiss,
    Traffic, CACHES_MAX, TLBS_MAX,
};
use event::{Access, Decoder, Record, Reference, ReferenceKind, Sites, StateLayout};
use std::collections::BTreeMap;

/// A TLB level: buffers with the sizes that they hold. Each entry is a size and a number.
type Tlb = Vec<(Vec<u64>, Cache<(u64, u64)>)>;

struct Thread {
    decoder: Decoder,
    instruction: Option<Level>,
    data: Level,
    outer: Vec<Option<Level>>,
    instruction_tlb: Option<Tlb>,
    data_tlb: Option<Tlb>,
    outer_tlb: Option<Tlb>,
    outer_fetch_tlb: Option<Tlb>,
}

/// The hierarchy.
pub struct NaiveRefined {
    levels: Levels,
    threads: BTreeMap<u32, Thread>,
    shared: Vec<Option<Level>>,
    counts: Counts,
    traffic: Traffic,
}

/// The thread of a touch, whether it is for an instruction, and the level whose prefetcher makes
/// it.
#[derive(Clone, Copy)]
struct Asker {
    thread: u32,
    fetch: bool,
    prefetcher: Option<usize>,
}

/// Where a line was found, and whether it comes dirty from an exclusive level.
#[derive(Clone, Copy)]
struct Found {
    level: usize,
    dirty: bool,
}

impl NaiveRefined {
    /// An empty hierarchy of `levels`.
    pub fn new(levels: &Levels) -> NaiveRefined {
        NaiveRefined {
            levels: levels.clone(),
            threads: BTreeMap::new(),
            shared: outer(levels, Sharing::AllThreads),
            counts: Counts::default(),
            traffic: Traffic::default(),
        }
    }

    /// Takes records of one thread, in program order.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        let levels = &self.levels;
        self.threads.entry(thread).or_insert_with(|| new_thread(thread, levels));
        for record in records {
            let mut references = Vec::new();
            let decoder = &mut self.threads.get_mut(&thread).expect("just entered").decoder;
            let result = decoder.decode(record, &Sites::default(), |reference| references.push(reference));
            self.counts.damaged += u64::from(result.is_err());
            references.iter().for_each(|reference| self.reference(reference));
        }
    }

    /// The counts so far. Complex references are not counted separately.
    pub fn counts(&self) -> Counts {
        let prefetched = self.levels.prefetches().then(|| self.traffic.prefetched());
        Counts { prefetched, ..self.counts.clone().trimmed() }
    }

    /// The lines that moved between levels so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    fn reference(&mut self, reference: &Reference) {
        for part in parts(reference, self.levels.data.line_bytes) {
            self.part(&part);
        }
    }

    fn part(&mut self, reference: &Reference) {
        let fetch = reference.kind == ReferenceKind::Fetch;
        let asker = Asker { thread: reference.thread, fetch, prefetcher: None };
        let access = match reference.kind {
            ReferenceKind::Data(Access::Prefetch) => return,
            ReferenceKind::Data(access) => access,
            ReferenceKind::Fetch => Access::Load,
        };
        let first = if asker.fetch { self.levels.instruction } else { Some(self.levels.data) };
        let base = if asker.fetch { self.levels.instruction_tlb } else { self.levels.data_tlb };
        let (mut missed, mut missed_tlbs) = ([false; CACHES_MAX], [false; TLBS_MAX]);
        for line in covered(reference, first) {
            self.touch(asker, reference.site, line.max(reference.address), access, &mut missed);
        }
        for page in covered(reference, base) {
            self.translate(asker, page, &mut missed_tlbs);
        }
        let site = reference.site as usize;
        if asker.fetch {
            let block = at(&mut self.counts.blocks, site);
            add(&mut block.fetches, missed);
            add(&mut block.tlbs, missed_tlbs);
        } else {
            let counts = at(&mut self.counts.sites, site);
            add(if access == Access::Store { &mut counts.stores } else { &mut counts.loads }, missed);
            add(&mut counts.tlbs, missed_tlbs);
        }
    }

    fn level(&mut self, asker: Asker, number: usize) -> &mut Level {
        let thread = self.threads.get_mut(&asker.thread).expect("it has records");
        match number {
            0 if asker.fetch => thread.instruction.as_mut().expect("it fetches"),
            0 => &mut thread.data,
            _ => thread.outer[number - 1].as_mut().or(self.shared[number - 1].as_mut()).expect("one of both"),
        }
    }

    fn is(&self, number: usize, inclusion: Inclusion) -> bool {
        number > 0 && self.levels.outer.get(number - 1).is_some_and(|outer| outer.inclusion == inclusion)
    }

    fn touch(
        &mut self,
        asker: Asker,
        site: u32,
        address: u64,
        access: Access,
        missed: &mut [bool; CACHES_MAX],
    ) {
        let levels = self.levels.outer.len() + 1;
        let reached = self.bring(asker, address, access, 0).level;
        missed[..reached].fill(true);
        let mut wanted = Vec::new();
        for number in 0..levels.min(reached + 1) {
            for next in self.wanted(asker, site, address, number, number < reached) {
                wanted.push((number, next));
            }
        }
        for (number, next) in wanted.into_iter().filter(|(_, next)| next / 4096 == address / 4096) {
            let here = self.at(number, next);
            let level = self.level(asker, number);
            let line = level.line(here);
            if !level.cache.holds(line, line) {
                self.bring(Asker { prefetcher: Some(number), ..asker }, next, Access::Load, number);
            }
        }
    }

    /// What the prefetchers of a level want after a touch.
    fn wanted(&mut self, asker: Asker, site: u32, address: u64, number: usize, missed: bool) -> Vec<u64> {
        let level = self.level(asker, number);
        let line_bytes = u64::from(level.cache.geometry.line_bytes);
        let (line, kinds) = (level.line(address), level.cache.geometry.prefetch);
        let mut wanted = Vec::new();
        if kinds.has(Prefetch::NextLine) && missed {
            wanted.extend((line + 1).checked_mul(line_bytes));
        }
        if kinds.has(Prefetch::Stride) && !asker.fetch {
            wanted.extend(level.stride(site, address));
        }
        if kinds.has(Prefetch::Streamer) {
            wanted.extend(level.stream(address));
        }
        if kinds.has(Prefetch::AdjacentLine) && missed {
            let other = if line % 2 == 0 { line + 1 } else { line - 1 };
            wanted.push(other * line_bytes);
        }
        wanted
    }

    /// The virtual `address` as level `number` sees it.
    fn at(&self, number: usize, address: u64) -> u64 {
        if number == 0 {
            address
        } else {
            self.levels.pages.physical(self.levels.large_pages.as_ref(), address)
        }
    }

    fn moved(&mut self, asker: Asker, number: usize) -> &mut LevelTraffic {
        if number == 0 && asker.fetch {
            &mut self.traffic.instruction
        } else {
            &mut self.traffic.levels[number]
        }
    }

    /// Looks a line up in level `number` and those behind it.
    fn bring(&mut self, asker: Asker, address: u64, access: Access, number: usize) -> Found {
        let store = access == Access::Store;
        if number == self.levels.outer.len() + 1 {
            self.traffic.stores_to_memory += u64::from(store);
            return Found { level: number, dirty: false };
        }
        let from = asker.prefetcher.unwrap_or(0);
        let here = self.at(number, address);
        let moves = number > from && self.is(number, Inclusion::Exclusive);
        if let Some(dirty) =
            if moves { self.take(asker, here, number) } else { self.look(asker, here, number, store) }
        {
            if number > from {
                self.moved(asker, number).supplied += 1;
            }
            return Found { level: number, dirty };
        }
        let bypasses = self.level(asker, number).cache.geometry.store_miss == StoreMiss::Bypass;
        let passes = bypasses && store;
        let behind = if passes { access } else { Access::Load };
        let found = self.bring(asker, address, behind, number + 1);
        if moves || passes {
            return found;
        }
        self.enter(asker, here, number, store || found.dirty, asker.prefetcher);
        Found { dirty: false, ..found }
    }

    /// Takes a line out of an exclusive level; says whether it was dirty, if it was there.
    fn take(&mut self, asker: Asker, address: u64, number: usize) -> Option<bool> {
        let level = self.level(asker, number);
        let line = level.line(address);
        level.cache.remove(line, line)
    }

    /// Uses a line of a level if it is there; its dirt stays there.
    fn look(&mut self, asker: Asker, address: u64, number: usize, store: bool) -> Option<bool> {
        let level = self.level(asker, number);
        let line = level.line(address);
        level.touches += u64::from(asker.prefetcher.is_none());
        if !level.cache.touch(line, line) {
            return None;
        }
        if store {
            level.cache.mark_dirty(line, line);
        }
        if asker.prefetcher.is_none() {
            let until = level.late_until.remove(&line);
            let late = until.is_some_and(|until| level.touches <= until);
            self.moved(asker, number).late += u64::from(late);
        }
        Some(false)
    }

    /// Enters a line, for a prefetcher of level `fetcher` if that is given.
    fn enter(&mut self, asker: Asker, address: u64, number: usize, dirty: bool, fetcher: Option<usize>) {
        let moved = self.moved(asker, number);
        moved.lines_in += 1;
        moved.prefetched_in += u64::from(fetcher.is_some());
        let level = self.level(asker, number);
        let line_bytes = u64::from(level.cache.geometry.line_bytes);
        let line = level.line(address);
        if fetcher == Some(number) {
            let late_touches = u64::from(level.cache.geometry.prefetch.late_touches);
            level.late_until.insert(line, level.touches + late_touches);
        }
        let Some((victim, mut dirty)) = level.cache.fill(line, line, dirty) else { return };
        level.late_until.remove(&victim);
        let victim = victim * line_bytes;
        if self.is(number, Inclusion::Inclusive) {
            dirty |= self.take_out(asker, victim, line_bytes, number);
        }
        self.moved(asker, number).dirty_out += u64::from(dirty);
        let outside = self.at(usize::from(number == 0), victim);
        if self.is(number + 1, Inclusion::Exclusive) {
            self.moved(asker, number).clean_out += u64::from(!dirty);
            let level = self.level(asker, number + 1);
            let line = level.line(outside);
            if !level.cache.touch(line, line) {
                self.enter(asker, outside, number + 1, dirty, None);
            } else if dirty {
                level.cache.mark_dirty(line, line);
            }
        } else if dirty {
            for number in number + 1..=self.levels.outer.len() {
                let level = self.level(asker, number);
                let line = level.line(outside);
                if level.cache.mark_dirty(line, line) {
                    break;
                }
            }
        }
    }

    /// Removes lines from the levels inside `number`: from those of the thread, or of all threads
    /// that share the level, and from shared ones. Says whether one was dirty.
    fn take_out(&mut self, asker: Asker, address: u64, line_bytes: u64, number: usize) -> bool {
        let all = self.levels.outer[number - 1].sharing == Sharing::AllThreads;
        let mut inside: Vec<(usize, &mut Level)> = Vec::new();
        for (_, thread) in self.threads.iter_mut().filter(|(name, _)| all || **name == asker.thread) {
            // Instruction lines are never dirty.
            inside.extend(thread.instruction.iter_mut().map(|level| (0, level)));
            inside.push((0, &mut thread.data));
            let outer = thread.outer[..number - 1].iter_mut().enumerate();
            inside.extend(outer.filter_map(|(place, level)| Some((place + 1, level.as_mut()?))));
        }
        let shared = self.shared[..number - 1].iter_mut().enumerate();
        inside.extend(shared.filter_map(|(place, level)| Some((place + 1, level.as_mut()?))));
        let mut any = false;
        for (place, level) in inside {
            let bytes = u64::from(level.cache.geometry.line_bytes);
            for line in level.cache.contents() {
                let start = match place {
                    0 => self.levels.pages.physical(self.levels.large_pages.as_ref(), line * bytes),
                    _ => line * bytes,
                };
                if start >= address && start - address < line_bytes {
                    let dirty = level.cache.remove(line, line) == Some(true);
                    level.late_until.remove(&line);
                    self.traffic.levels[place].dirty_out += u64::from(dirty);
                    any |= dirty;
                }
            }
        }
        any
    }

    fn translate(&mut self, asker: Asker, address: u64, missed: &mut [bool; TLBS_MAX]) {
        let base = if asker.fetch { self.levels.instruction_tlb } else { self.levels.data_tlb };
        let mut page_bytes = base.map_or(4096, |base| u64::from(base.line_bytes));
        // The first range that holds the page counts, so it is visited last.
        for range in self.levels.large_pages.iter().flat_map(|large| large.ranges.iter().rev()) {
            let first = address / range.page_bytes * range.page_bytes;
            if first >= range.start && first + (range.page_bytes - 1) <= range.last {
                page_bytes = range.page_bytes;
            }
        }
        let thread = self.threads.get_mut(&asker.thread).expect("it has records");
        let first = if asker.fetch { &mut thread.instruction_tlb } else { &mut thread.data_tlb };
        let second = match self.levels.outer_fetch_tlb {
            FetchTlb::Own(_) if asker.fetch => &mut thread.outer_fetch_tlb,
            FetchTlb::Absent if asker.fetch => &mut None,
            _ => &mut thread.outer_tlb,
        };
        let walks = asker.fetch && self.levels.outer_fetch_tlb == FetchTlb::Absent;
        let [missed, missed_again] = missed;
        for (tlb, missed) in [first, second].into_iter().flatten().zip([&mut *missed, &mut *missed_again]) {
            // The largest size that is not larger than the page. A level that only holds larger
            // pages takes its smallest size.
            let sizes: Vec<u64> = tlb.iter().flat_map(|(sizes, _)| sizes).copied().collect();
            let taken = sizes.iter().copied().filter(|&size| size <= page_bytes).max();
            let Some(size) = taken.or(sizes.iter().copied().min()) else { return };
            let (_, buffer) =
                tlb.iter_mut().rev().find(|(sizes, _)| sizes.contains(&size)).expect("it has it");
            let number = address / size;
            if buffer.touch(number, (size, number)) {
                return;
            }
            buffer.fill(number, (size, number), false);
            *missed = true;
        }
        if walks && self.levels.outer_tlb.is_some() {
            *missed_again = true;
        }
    }
}

fn outer(levels: &Levels, sharing: Sharing) -> Vec<Option<Level>> {
    let one = |outer: &crate::Outer| (outer.sharing == sharing).then(|| Level::new(outer.geometry));
    levels.outer.iter().map(one).collect()
}

fn new_thread(thread: u32, levels: &Levels) -> Thread {
    let large = levels.large_pages.as_ref();
    let tlb = |base: Option<Geometry>, large: Option<&Vec<PageBuffer>>| {
        let base = base?;
        let all = large.map(|large| large.iter().map(|one| (one.page_bytes.clone(), one.geometry)).collect());
        let all = all.unwrap_or_else(|| vec![(vec![u64::from(base.line_bytes)], base)]);
        Some(all.into_iter().map(|(sizes, geometry)| (sizes, Cache::new(geometry))).collect())
    };
    let line_bytes = levels.instruction.map_or(64, |geometry| geometry.line_bytes);
    Thread {
        decoder: Decoder::new(thread, line_bytes, StateLayout::default()),
        instruction: levels.instruction.map(Level::new),
        data: Level::new(levels.data),
        outer: outer(levels, Sharing::PerThread),
        instruction_tlb: tlb(levels.instruction_tlb, large.map(|large| &large.instruction)),
        data_tlb: tlb(levels.data_tlb, large.map(|large| &large.data)),
        outer_tlb: tlb(levels.outer_tlb, large.map(|large| &large.outer)),
        outer_fetch_tlb: tlb(levels.outer_fetch_tlb.own(), large.map(|large| &large.outer_instruction)),
    }
}
