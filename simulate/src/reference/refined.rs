//! The slow twin of `refined`: it follows the definitions of `policy` and `behaviour` by recursion,
//! one line at a time.

use super::walk::{add, at, covered, parts};
use crate::policy::{Draw, SetHistory};
use crate::{
    Counts, FetchTlb, Geometry, Inclusion, Levels, PageBuffer, Prefetch, Sharing, StoreMiss, CACHES_MAX,
    TLBS_MAX,
};
use event::{Access, Decoder, Record, Reference, ReferenceKind, Sites, StateLayout};
use std::collections::{BTreeMap, HashMap};

/// A set: the contents of its ways, and the history of their uses.
#[derive(Clone)]
struct Set<T> {
    ways: Vec<Option<T>>,
    history: SetHistory,
}

/// A cache of any policy.
#[derive(Clone)]
struct Cache<T> {
    geometry: Geometry,
    sets: Vec<Set<T>>,
    draw: Draw,
}

impl<T: Copy + PartialEq> Cache<T> {
    fn new(geometry: Geometry) -> Cache<T> {
        let ways = geometry.ways as usize;
        let set = Set { ways: vec![None; ways], history: SetHistory::new(ways) };
        Cache { geometry, sets: vec![set; geometry.sets as usize], draw: Draw::new() }
    }

    fn set(&mut self, number: u64) -> &mut Set<T> {
        &mut self.sets[(number % self.geometry.sets) as usize]
    }

    fn find(&self, number: u64, what: T) -> Option<usize> {
        self.sets[(number % self.geometry.sets) as usize].ways.iter().position(|&way| way == Some(what))
    }

    fn touch(&mut self, number: u64, what: T) -> bool {
        let Some(way) = self.find(number, what) else { return false };
        self.set(number).history.used(way);
        true
    }

    fn fill(&mut self, number: u64, what: T) -> Option<T> {
        let set = &mut self.sets[(number % self.geometry.sets) as usize];
        let empty = set.ways.iter().position(Option::is_none);
        let way = empty.unwrap_or_else(|| (self.geometry.policy.victim)(&set.history, &mut self.draw));
        set.history.entered(way);
        set.ways[way].replace(what)
    }

    fn remove(&mut self, number: u64, what: T) -> bool {
        let Some(way) = self.find(number, what) else { return false };
        self.set(number).ways[way] = None;
        true
    }
}

/// A level: its lines by number, and the last references of its instructions.
#[derive(Clone)]
struct Level {
    cache: Cache<u64>,
    history: HashMap<u32, (u32, Vec<u64>)>,
}

impl Level {
    fn new(geometry: Geometry) -> Level {
        Level { cache: Cache::new(geometry), history: HashMap::new() }
    }

    fn line(&self, address: u64) -> u64 {
        address / u64::from(self.cache.geometry.line_bytes)
    }

    /// The next address, if the last three distances of a site were equal and the site kept its
    /// slot.
    fn stride(&mut self, site: u32, address: u64) -> Option<u64> {
        let (owner, past) = self.history.entry(site % 256).or_default();
        if *owner != site {
            past.clear();
        }
        *owner = site;
        past.push(address);
        let [one, two, three, four] = past[past.len().checked_sub(4)?..] else { return None };
        let distance = four.wrapping_sub(three);
        let same = three.wrapping_sub(two) == distance && two.wrapping_sub(one) == distance;
        (same && distance != 0).then(|| four.wrapping_add(distance))
    }
}

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
}

/// The thread of a touch, and whether it is for an instruction.
#[derive(Clone, Copy)]
struct Asker {
    thread: u32,
    fetch: bool,
}

impl NaiveRefined {
    /// An empty hierarchy of `levels`.
    pub fn new(levels: &Levels) -> NaiveRefined {
        let (threads, counts) = (BTreeMap::new(), Counts::default());
        NaiveRefined { levels: levels.clone(), threads, shared: outer(levels, Sharing::AllThreads), counts }
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
        self.counts.clone().trimmed()
    }

    fn reference(&mut self, reference: &Reference) {
        for part in parts(reference, self.levels.data.line_bytes) {
            self.part(&part);
        }
    }

    fn part(&mut self, reference: &Reference) {
        let asker = Asker { thread: reference.thread, fetch: reference.kind == ReferenceKind::Fetch };
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
        let reached = self.bring(asker, address, access, 0, 0);
        missed[..reached].fill(true);
        // Prefetchers of all levels that the reference reached decide before any line is fetched,
        // so that none sees what another one has just brought in.
        let mut wanted = Vec::new();
        for number in 0..levels.min(reached + 1) {
            let level = self.level(asker, number);
            let line_bytes = u64::from(level.cache.geometry.line_bytes);
            let next = match level.cache.geometry.prefetch {
                // A next-line prefetcher follows a miss; a stride prefetcher follows every data
                // reference that reaches its level.
                Prefetch::NextLine if number < reached => (level.line(address) + 1).checked_mul(line_bytes),
                Prefetch::Stride if !asker.fetch => level.stride(site, address),
                _ => None,
            };
            wanted.extend(next.map(|next| (number, next)));
        }
        for (number, next) in wanted {
            let level = self.level(asker, number);
            let line = level.line(next);
            // A prefetch never leaves the page of 4 KiB: the next page may be mapped anywhere.
            if next / 4096 == address / 4096 && level.cache.find(line, line).is_none() {
                self.bring(asker, next, Access::Load, number, number);
            }
        }
    }

    /// Looks a line up in level `number` and those behind it, for level `from`. Returns the level
    /// that had it.
    fn bring(&mut self, asker: Asker, address: u64, access: Access, from: usize, number: usize) -> usize {
        if number == self.levels.outer.len() + 1 {
            return number;
        }
        let moves = number > from && self.is(number, Inclusion::Exclusive);
        let level = self.level(asker, number);
        let (line, bypasses) = (level.line(address), level.cache.geometry.store_miss == StoreMiss::Bypass);
        if moves && level.cache.remove(line, line) || !moves && level.cache.touch(line, line) {
            return number;
        }
        let passes = bypasses && access == Access::Store;
        let behind = if passes { access } else { Access::Load };
        let found = self.bring(asker, address, behind, from, number + 1);
        if !(moves || passes) {
            self.enter(asker, address, number);
        }
        found
    }

    fn enter(&mut self, asker: Asker, address: u64, number: usize) {
        let level = self.level(asker, number);
        let line_bytes = u64::from(level.cache.geometry.line_bytes);
        let line = level.line(address);
        let Some(victim) = level.cache.fill(line, line) else { return };
        let victim = victim * line_bytes;
        if self.is(number, Inclusion::Inclusive) {
            self.take_out(asker, victim, line_bytes, number);
        }
        if self.is(number + 1, Inclusion::Exclusive) {
            let outside = self.level(asker, number + 1);
            let line = outside.line(victim);
            if !outside.cache.touch(line, line) {
                self.enter(asker, victim, number + 1);
            }
        }
    }

    /// Removes lines from the levels inside `number`: from those of the thread, or of all threads
    /// that share the level, and from shared ones.
    fn take_out(&mut self, asker: Asker, address: u64, line_bytes: u64, number: usize) {
        let all = self.levels.outer[number - 1].sharing == Sharing::AllThreads;
        let mut inside: Vec<&mut Level> = Vec::new();
        for (_, thread) in self.threads.iter_mut().filter(|(name, _)| all || **name == asker.thread) {
            inside.extend(&mut thread.instruction);
            inside.push(&mut thread.data);
            inside.extend(thread.outer[..number - 1].iter_mut().flatten());
        }
        inside.extend(self.shared[..number - 1].iter_mut().flatten());
        for level in inside {
            for byte in (0..line_bytes).step_by(4) {
                let line = level.line(address + byte);
                level.cache.remove(line, line);
            }
        }
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
            buffer.fill(number, (size, number));
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
