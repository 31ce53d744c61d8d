//! The slow twin of `hierarchy` and of `traffic`: true LRU, independent levels, write-backs.
//!
//! **What.** A set is a `Vec` of lines, the most recently used one first. A reference goes through
//! the levels line by line, the lowest line first.
//!
//! **Write-backs.** A line is dirty in the level that a store entered. A dirty victim is counted,
//! then marks its line dirty in the next outer level that holds it; it allocates nothing and moves
//! nothing. The victim leaves before the missing line is looked up further out.

use super::walk::{add, at, covered, parts};
use crate::report::{CACHES_MAX, TLBS_MAX};
use crate::{Counts, FetchTlb, Geometry, Levels, Sharing, StoreMiss};
use event::{Access, Decoder, Record, Reference, ReferenceKind, Sites, StateLayout};
use std::collections::HashMap;

/// A line of a set.
#[derive(Clone, Copy, Debug)]
struct Line {
    number: u64,
    dirty: bool,
}

/// The outcome of a touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The cache had the line.
    Hit,
    /// The cache lacked the line, and replaced this dirty line (its address), if any.
    Miss(Option<u64>),
}

/// One cache.
#[derive(Clone, Debug)]
pub struct NaiveCache {
    geometry: Geometry,
    sets: Vec<Vec<Line>>,
}

impl NaiveCache {
    /// An empty cache.
    pub fn new(geometry: Geometry) -> NaiveCache {
        NaiveCache { geometry, sets: vec![Vec::new(); geometry.sets as usize] }
    }

    fn locate(&mut self, address: u64) -> (u64, &mut Vec<Line>) {
        let number = address / u64::from(self.geometry.line_bytes);
        (number, &mut self.sets[(number % self.geometry.sets) as usize])
    }

    /// Reads (`Access::Load`) or writes the line that holds `address`.
    pub fn touch(&mut self, address: u64, access: Access) -> Found {
        let Geometry { ways, line_bytes, store_miss, .. } = self.geometry;
        let (number, set) = self.locate(address);
        let write = access == Access::Store;
        if let Some(way) = set.iter().position(|line| line.number == number) {
            let line = set.remove(way);
            // A line that enters stands in front, and the last one leaves if the set is full.
            set.insert(0, Line { number, dirty: line.dirty || write });
            return Found::Hit;
        }
        if write && store_miss == StoreMiss::Bypass {
            return Found::Miss(None);
        }
        set.insert(0, Line { number, dirty: write });
        let victim = if set.len() > ways as usize { set.pop() } else { None };
        Found::Miss(victim.filter(|line| line.dirty).map(|line| line.number * u64::from(line_bytes)))
    }

    /// Marks the line that holds `address` dirty, if it is there.
    fn mark_dirty(&mut self, address: u64) -> bool {
        let (number, set) = self.locate(address);
        let line = set.iter_mut().find(|line| line.number == number);
        line.is_some_and(|line| {
            line.dirty = true;
            true
        })
    }
}

/// The levels that belong to one thread.
struct Thread {
    decoder: Decoder,
    instruction: Option<NaiveCache>,
    data: NaiveCache,
    outer: Vec<Option<NaiveCache>>,
    instruction_tlb: Option<NaiveCache>,
    data_tlb: Option<NaiveCache>,
    outer_tlb: Option<NaiveCache>,
    outer_fetch_tlb: Option<NaiveCache>,
}

/// The hierarchy.
pub struct Naive {
    levels: Levels,
    sites: Sites,
    threads: HashMap<u32, Thread>,
    shared: Vec<Option<NaiveCache>>,
    counts: Counts,
    write_backs: [u64; CACHES_MAX],
}

impl Naive {
    /// An empty hierarchy of `levels`.
    pub fn new(levels: &Levels) -> Naive {
        let cache = |outer: &crate::Outer| {
            (outer.sharing == Sharing::AllThreads).then(|| NaiveCache::new(outer.geometry))
        };
        Naive {
            levels: levels.clone(),
            sites: Sites::default(),
            threads: HashMap::new(),
            shared: levels.outer.iter().map(cache).collect(),
            counts: Counts::default(),
            write_backs: [0; CACHES_MAX],
        }
    }

    fn thread(&mut self, number: u32) -> Thread {
        self.threads.remove(&number).unwrap_or_else(|| {
            let levels = &self.levels;
            let private = |outer: &crate::Outer| {
                (outer.sharing == Sharing::PerThread).then(|| NaiveCache::new(outer.geometry))
            };
            let line_bytes = levels.instruction.map_or(64, |geometry| geometry.line_bytes);
            Thread {
                decoder: Decoder::new(number, line_bytes, StateLayout::default()),
                instruction: levels.instruction.map(NaiveCache::new),
                data: NaiveCache::new(levels.data),
                outer: levels.outer.iter().map(private).collect(),
                instruction_tlb: levels.instruction_tlb.map(NaiveCache::new),
                data_tlb: levels.data_tlb.map(NaiveCache::new),
                outer_tlb: levels.outer_tlb.map(NaiveCache::new),
                outer_fetch_tlb: levels.outer_fetch_tlb.own().map(NaiveCache::new),
            }
        })
    }

    /// Takes records of one thread, in program order.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        let mut state = self.thread(thread);
        for record in records {
            let mut references = Vec::new();
            let result = state.decoder.decode(record, &self.sites, |reference| references.push(reference));
            self.counts.damaged += u64::from(result.is_err());
            for reference in references {
                self.reference(&mut state, &reference);
            }
        }
        self.threads.insert(thread, state);
    }

    /// The counts so far, including write-backs. Complex references are not counted separately.
    pub fn counts(&self) -> Counts {
        Counts { write_backs: Some(self.write_backs), ..self.counts.clone().trimmed() }
    }

    fn reference(&mut self, thread: &mut Thread, reference: &Reference) {
        for part in parts(reference, self.levels.data.line_bytes) {
            self.part(thread, &part);
        }
    }

    fn part(&mut self, thread: &mut Thread, reference: &Reference) {
        let site = reference.site as usize;
        match reference.kind {
            ReferenceKind::Data(Access::Prefetch) => {}
            ReferenceKind::Fetch => {
                let (missed, missed_tlbs) = self.walk(thread, reference, Access::Load);
                let block = at(&mut self.counts.blocks, site);
                add(&mut block.fetches, missed);
                add(&mut block.tlbs, missed_tlbs);
            }
            ReferenceKind::Data(access) => {
                let (missed, missed_tlbs) = self.walk(thread, reference, access);
                let counts = at(&mut self.counts.sites, site);
                add(if access == Access::Store { &mut counts.stores } else { &mut counts.loads }, missed);
                add(&mut counts.tlbs, missed_tlbs);
            }
        }
    }

    /// The levels that the reference missed, each at most once.
    fn walk(
        &mut self,
        thread: &mut Thread,
        reference: &Reference,
        access: Access,
    ) -> ([bool; CACHES_MAX], [bool; TLBS_MAX]) {
        let fetch = reference.kind == ReferenceKind::Fetch;
        let first = if fetch { self.levels.instruction } else { Some(self.levels.data) };
        let tlb = if fetch { self.levels.instruction_tlb } else { self.levels.data_tlb };
        let (mut missed, mut missed_tlbs) = ([false; CACHES_MAX], [false; TLBS_MAX]);
        for line in covered(reference, first) {
            self.touch(thread, reference.kind, line, access, &mut missed);
        }
        for page in covered(reference, tlb) {
            let mut missed = |level: usize, tlb: &mut NaiveCache| {
                let missed = tlb.touch(page, Access::Load) != Found::Hit;
                missed_tlbs[level] |= missed;
                missed
            };
            let first = if fetch { &mut thread.instruction_tlb } else { &mut thread.data_tlb };
            let Some(first) = first else { continue };
            if !missed(0, first) {
                continue;
            }
            // A miss of the first level looks the page up in the second, of which instructions may
            // have one of their own or none.
            match (fetch, self.levels.outer_fetch_tlb, &mut thread.outer_tlb) {
                (_, _, None) => {}
                (false, _, Some(second)) | (true, FetchTlb::Unified, Some(second)) => _ = missed(1, second),
                (true, FetchTlb::Own(_), Some(_)) => {
                    _ = missed(1, thread.outer_fetch_tlb.as_mut().expect("it is its own"));
                }
                (true, FetchTlb::Absent, Some(_)) => missed_tlbs[1] = true,
            }
        }
        (missed, missed_tlbs)
    }

    /// Takes one line through the cache levels.
    fn touch(
        &mut self,
        thread: &mut Thread,
        kind: ReferenceKind,
        address: u64,
        access: Access,
        missed: &mut [bool; CACHES_MAX],
    ) {
        // A store is a write in the level where it arrives. Behind a level that allocated for it,
        // it is a fill.
        let mut arrives = access;
        for (level, missed) in missed.iter_mut().enumerate().take(self.levels.outer.len() + 1) {
            let cache = match (level, kind) {
                (0, ReferenceKind::Fetch) => thread.instruction.as_mut(),
                (0, _) => Some(&mut thread.data),
                _ => thread.outer[level - 1].as_mut().or(self.shared[level - 1].as_mut()),
            };
            let Some(cache) = cache else { return };
            let Found::Miss(victim) = cache.touch(address, arrives) else { return };
            *missed = true;
            if cache.geometry.store_miss == StoreMiss::Allocate {
                arrives = Access::Load;
            }
            if let Some(victim) = victim {
                self.write_back(thread, level, victim);
            }
        }
    }

    fn write_back(&mut self, thread: &mut Thread, level: usize, victim: u64) {
        self.write_backs[level] += 1;
        for outer in level..self.levels.outer.len() {
            let cache = thread.outer[outer].as_mut().or(self.shared[outer].as_mut());
            if cache.is_some_and(|cache| cache.mark_dirty(victim)) {
                return;
            }
        }
    }
}
