//! The tool: simulates a program's references, and counts each miss for the object that it touched.
//!
//! **The problem.** Misses come out of a simulation in large batches, while blocks come and go
//! between two references. **The idea.** A batch is divided: its references go to the simulation,
//! which returns the misses with the numbers of their records; its events are kept with the number
//! of references before them. Then both lists are merged: all misses before an event are counted
//! with the map as it is, and the event changes the map.
//!
//! ```text
//!   batch       L S E1 L L E2 S          E: a call, an allocation or its end
//!   simulation  L S    L L    S  ──▶ misses of records 1, 2, 4
//!   merge       1 | E1 | 2 | E2 | 4
//! ```
//!
//! References and misses are those of `lightfoot cache`, so that the sums over all objects are its
//! totals. Where a region is counted, everything is simulated and followed, and a thread's misses
//! and accesses count while the region is open in it. Where children are followed, each image has
//! caches and a map of its own, and the sums are those of all.

use crate::fields::{Fields, Kind};
use crate::locals::Wanted;
use crate::map::{ObjectMap, Place, WARMED};
use crate::names::{name, Named};
use crate::region::Region;
use crate::simulators::Simulators;
use crate::tally::Tally;
use crate::uses::{AllUses, ThreadUses, NOBODY};
use event::{Access, Groups, Record, RecordKind, StateLayout, Step, Stream};
use heap::CallStack;
use instrument::mark::Deed;
use instrument::tool::{Divided, Instrumenter, Sums};
use instrument::{ComplexCounts, EndedImage, Fork, Module, Observer};
use simulate::{count_kinds, Counts, Levels, LocatedMiss, LocatedMisses, MissSide};
use std::collections::HashMap;

/// The tool: an observer with instrumentation code, for
/// [`run_observed`](instrument::tool::run_observed).
pub struct ObjectTool<'a> {
    levels: Levels,
    map: ObjectMap,
    tally: Tally,
    /// Where types are wanted.
    fields: Option<Fields>,
    /// Where all references are wanted.
    uses: Option<AllUses>,
    simulators: Simulators,
    image: u32,
    /// Complex references of threads whose records were read in part.
    groups: HashMap<u32, Groups>,
    /// The threads of images that live, behind the image.
    threads: Vec<(u32, u32)>,
    /// Where a region is counted.
    region: Option<Region>,
    on_image: OnImage<'a>,
    found: Found,
    buffers: Buffers,
}

/// Gets each image that has ended, with what was counted in it under its own numbers.
type OnImage<'a> = Box<dyn FnMut(&EndedImage<'_>, &Counts) + Send + 'a>;

/// What a run has found.
#[derive(Default)]
pub struct Found {
    /// Misses by site and block, under the numbers of the run's profile.
    pub counts: Counts,
    /// Records that the simulation read, by kind.
    pub records: event::Counter,
    /// The objects.
    pub objects: Named,
}

#[derive(Default)]
struct Buffers {
    divided: Divided,
    misses: LocatedMisses,
}

impl<'a> ObjectTool<'a> {
    /// A tool that simulates `levels` from a stream that was planned for them; places of allocation
    /// are told apart by `frames_max` calls.
    pub fn new(levels: &Levels, stream: Stream, frames_max: usize) -> ObjectTool<'a> {
        ObjectTool {
            levels: levels.clone(),
            map: ObjectMap::new(frames_max),
            tally: Tally::default(),
            fields: None,
            uses: None,
            simulators: Simulators::new(levels, stream),
            image: 0,
            groups: HashMap::new(),
            threads: Vec::new(),
            region: None,
            on_image: Box::new(|_, _| {}),
            found: Found::default(),
            buffers: Buffers::default(),
        }
    }

    /// Also finds the types of objects, and counts misses by field.
    #[must_use]
    pub fn with_types(self) -> ObjectTool<'a> {
        let mut tool = ObjectTool { fields: Some(Fields::default()), ..self };
        tool.map.locals.wanted = Wanted::All;
        tool
    }

    /// Counts what threads miss and access while a marker has them count.
    #[must_use]
    pub fn within_region(self) -> ObjectTool<'a> {
        ObjectTool { region: Some(Region::default()), ..self }
    }

    /// Also counts accesses, bytes used of fetched lines, and fields that are used together: for a
    /// full stream, and a first level of data with LRU and no prefetcher.
    #[must_use]
    pub fn with_accesses(self) -> ObjectTool<'a> {
        ObjectTool { uses: Some(AllUses::new(self.levels.data)), ..self }
    }

    /// The program runs already, in process `pid`, and had memory before.
    #[must_use]
    pub fn of_running(mut self, pid: i32) -> ObjectTool<'a> {
        self.map.ran_before(pid);
        self
    }

    /// Passes on each image that has ended, with what was counted in it under its own numbers.
    #[must_use]
    pub fn with_images(self, on_image: impl FnMut(&EndedImage<'_>, &Counts) + Send + 'a) -> ObjectTool<'a> {
        ObjectTool { on_image: Box::new(on_image), ..self }
    }

    /// The instrumentation code, and the running sums that it needs. Call it once.
    pub fn instrumenter(&mut self) -> (Instrumenter, Sums) {
        (self.map.instrumenter(), Sums::Instructions)
    }

    /// What was found, once the program has run.
    pub fn into_found(self) -> Found {
        let ObjectTool { map, tally, fields, uses, mut found, .. } = self;
        found.objects = name(tally.finish(), (fields, uses), &map.finish());
        found
    }

    /// Simulates the references of a batch; their misses are in the buffers then. Returns whether
    /// they count.
    fn simulate(&mut self, thread: u32, references: &[Record]) -> bool {
        let Buffers { misses, .. } = &mut self.buffers;
        count_kinds(references, &mut self.found.records);
        let simulator = self.simulators.present();
        let Some(region) = &mut self.region else {
            simulator.records_located(thread, references, misses);
            return true;
        };
        let simulate = |simulator: &mut simulate::Simulator| {
            simulator.records_located(thread, references, misses);
        };
        region.counting((self.image, thread), simulator, simulate)
    }
}

/// Counts misses, and accesses where they are wanted, for objects.
struct Counting<'a> {
    map: &'a mut ObjectMap,
    tally: &'a mut Tally,
    fields: Option<&'a mut Fields>,
    uses: Option<(&'a mut AllUses, ThreadUses)>,
    calls: CallStack,
    /// Whether misses and accesses count.
    counts: bool,
}

impl Counting<'_> {
    /// Merges the misses of a batch with its events, and with its references where accesses are
    /// wanted.
    fn merge(
        &mut self,
        misses: &LocatedMisses,
        events: &[(usize, Record)],
        references: &[Record],
        groups: &mut Groups,
    ) {
        let mut left = Left { caches: misses.caches(), pages: misses.pages(), warmed: [usize::MAX; 2] };
        if self.uses.is_some() {
            return self.merge_all(left, events, references, groups);
        }
        let mut events = events.iter();
        while let [(before, _), ..] = events.as_slice() {
            self.missed(*before, &mut left);
            // Most events have no miss between them.
            let until = left.first();
            while let Some((_, event)) = events.as_slice().first().filter(|(before, _)| *before <= until) {
                self.map.event(&mut self.calls, event);
                events.next();
            }
        }
        self.missed(usize::MAX, &mut left);
    }

    /// Merges misses and events with all references.
    fn merge_all(
        &mut self,
        mut left: Left<'_>,
        events: &[(usize, Record)],
        references: &[Record],
        groups: &mut Groups,
    ) {
        let mut done = 0;
        let ends = events.iter().map(|(before, event)| (*before, Some(event)));
        for (before, event) in ends.chain([(references.len(), None)]) {
            for (number, record) in (done..before).zip(&references[done..before]) {
                self.missed(number + 1, &mut left);
                self.used(record, groups);
            }
            done = before;
            self.missed(before, &mut left);
            event.into_iter().for_each(|event| self.map.event(&mut self.calls, event));
        }
        self.missed(usize::MAX, &mut left);
    }

    /// Counts the misses of records before this one.
    #[inline(always)]
    fn missed(&mut self, record: usize, left: &mut Left<'_>) {
        if !self.counts {
            return self.passed(record, left);
        }
        while let Some(miss) = next(&mut left.caches, record) {
            let (place, number) = self.object(&miss, left.caches, &mut left.warmed[0]);
            self.tally.of(number).missed_caches(&miss);
            if let Some(fields) = &mut self.fields {
                fields.miss(self.map, &place, &miss, Kind::Caches);
            }
            if let Some((uses, thread)) = &mut self.uses {
                if is_fetch_of_data(&miss) {
                    uses.fetch(thread, miss.address, number);
                }
            }
        }
        while let Some(miss) = next(&mut left.pages, record) {
            let (place, number) = self.object(&miss, left.pages, &mut left.warmed[1]);
            self.tally.of(number).missed_pages(&miss);
            if let Some(fields) = &mut self.fields {
                fields.miss(self.map, &place, &miss, Kind::Pages);
            }
        }
    }

    /// Passes over misses of records before this one, which do not count; they end fetches that do.
    #[inline(never)]
    fn passed(&mut self, record: usize, left: &mut Left<'_>) {
        while let Some(miss) = next(&mut left.caches, record) {
            if let Some((uses, thread)) = self.uses.as_mut().filter(|_| is_fetch_of_data(&miss)) {
                uses.fetch(thread, miss.address, NOBODY);
            }
        }
        while next(&mut left.pages, record).is_some() {}
    }

    /// What a miss touched, and the number of its sums. Misses come in long runs of one object.
    #[inline(always)]
    fn object(&mut self, miss: &LocatedMiss, behind: &[LocatedMiss], warmed: &mut usize) -> (Place, u32) {
        if miss.side() != MissSide::Fetch {
            if let Some(place) = self.map.last_at(miss.address) {
                return (place, self.tally.number(place.key));
            }
        }
        warm(self.map, miss, behind, warmed);
        let place = self.place(miss);
        (place, self.tally.number(place.key))
    }

    /// Counts the accesses of a record.
    #[inline]
    fn used(&mut self, record: &Record, groups: &mut Groups) {
        let (site, size_bytes) = (record.site(), record.code().size_bytes());
        match record.code().kind() {
            RecordKind::Load => self.access(site, record.address, size_bytes, Access::Load),
            RecordKind::Store => self.access(site, record.address, size_bytes, Access::Store),
            RecordKind::Modify => {
                self.access(site, record.address, size_bytes, Access::Load);
                self.access(site, record.address, size_bytes, Access::Store);
            }
            RecordKind::Complex | RecordKind::Payload => {
                if let Step::Whole(site, complex) = groups.push(record) {
                    complex.references(&StateLayout::default(), |address, size_bytes, access| {
                        self.access(site, address, size_bytes, access);
                    });
                }
            }
            _ => {}
        }
    }

    fn access(&mut self, site: usize, address: u64, size_bytes: u32, access: Access) {
        let Some((uses, thread)) = &mut self.uses else { return };
        if access == Access::Prefetch {
            return;
        }
        if !self.counts {
            return uses.touch(thread, address, size_bytes.into());
        }
        let (place, number) = match self.map.again(&self.calls, address, site) {
            Some((place, Some(number))) => (place, number),
            Some((place, None)) => (place, self.tally.number(place.key)),
            None => {
                let place = self.map.variable_at(&self.calls, address, site);
                let number = self.tally.number(place.key);
                self.map.note(&self.calls, address, site, (place, number));
                (place, number)
            }
        };
        uses.of(number).count(access);
        uses.touch(thread, address, size_bytes.into());
        if let Some(fields) = &mut self.fields {
            fields.access(self.map, (&place, number), (address, access), (&mut **uses, thread));
        }
    }

    /// What a miss touched. Many places come here, which would each have a copy.
    #[inline(never)]
    fn place(&mut self, miss: &LocatedMiss) -> Place {
        match miss.side() {
            MissSide::Fetch => self.map.code_at(miss.address),
            _ => self.map.variable_at(&self.calls, miss.address, miss.site()),
        }
    }
}

/// Whether a miss fetches a line of data into the first level.
fn is_fetch_of_data(miss: &LocatedMiss) -> bool {
    miss.missed(0) && miss.side() != MissSide::Fetch
}

/// Misses of a batch that are not counted yet, and for each list how many were left of it behind
/// those that are warmed.
struct Left<'a> {
    caches: &'a [LocatedMiss],
    pages: &'a [LocatedMiss],
    warmed: [usize; 2],
}

impl Left<'_> {
    /// The record of the first miss.
    fn first(&self) -> usize {
        let first = |list: &[LocatedMiss]| list.first().map_or(usize::MAX, |miss| miss.record as usize);
        first(self.caches).min(first(self.pages))
    }
}

/// Warms the map for a miss and the next ones of its list, unless it is warmed.
#[inline(always)]
fn warm(map: &ObjectMap, miss: &LocatedMiss, behind: &[LocatedMiss], warmed: &mut usize) {
    if behind.len() < *warmed {
        let ahead = behind.len().min(WARMED - 1);
        *warmed = behind.len() - ahead;
        map.warm(std::iter::once(miss.address).chain(behind[..ahead].iter().map(|miss| miss.address)));
    }
}

/// The next miss of a record before this one.
#[inline(always)]
fn next(list: &mut &[LocatedMiss], record: usize) -> Option<LocatedMiss> {
    let (first, rest) = list.split_first().filter(|(first, _)| (first.record as usize) < record)?;
    *list = rest;
    Some(*first)
}

impl Observer for ObjectTool<'_> {
    fn records(&mut self, thread: u32, records: &[Record]) {
        let mut divided = std::mem::take(&mut self.buffers.divided);
        divided.clear();
        // Loops without calls fill whole batches, of which nothing is to be copied.
        let is_event = |record: &Record| record.what as u8 >> 4 == RecordKind::Tool as u8;
        let references = if records.iter().any(is_event) {
            divided.fill(records);
            divided.references()
        } else {
            records
        };
        let counts = self.simulate(thread, references);
        let groups = self.groups.entry(thread).or_insert_with(|| {
            self.threads.push((self.image, thread));
            Groups::default()
        });
        let calls = self.map.take(thread);
        let (map, tally) = (&mut self.map, &mut self.tally);
        let fields = self.fields.as_mut();
        let uses = self.uses.as_mut().map(|uses| {
            let own = uses.take(thread);
            (uses, own)
        });
        let mut counting = Counting { map, tally, fields, uses, calls, counts };
        counting.merge(&self.buffers.misses, divided.events(), references, groups);
        let Counting { calls, uses, .. } = counting;
        if let Some((uses, own)) = uses {
            uses.put_back(thread, own);
        }
        self.map.put_back(thread, calls);
        self.buffers.divided = divided;
    }

    fn complex_counts(&self) -> ComplexCounts {
        ComplexCounts::ByObserver
    }

    fn image(&mut self, number: u32) {
        self.image = number;
        self.simulators.turn_to(number);
        self.map.turn_to(number);
    }

    fn thread_ended(&mut self, image: u32, thread: u32) {
        // Tables of a region are exchanged with those of all threads.
        if self.region.is_none() {
            self.simulators.thread_ends(image, thread);
        }
    }

    fn modules(&mut self, image: u32, more: &[Module]) {
        self.map.more_modules(image, more);
    }

    fn sites(&mut self, image: u32, more: &[u64]) {
        self.map.more_sites(image, more);
    }

    fn marked(&mut self, _image: u32, _thread: u32, deed: Deed) {
        self.region.iter_mut().for_each(|region| region.marked(deed));
    }

    fn forked(&mut self, fork: &Fork) {
        self.map.forked(fork);
    }

    fn image_ended(&mut self, image: &EndedImage<'_>) {
        self.map.ended(image.number, image.profile.instructions_retired());
        let simulated = self.simulators.ended(image.number);
        let counts = match &mut self.region {
            Some(region) => region.ended(image.number),
            None => simulated,
        };
        let ends = |of: &(u32, u32)| of.0 == image.number;
        for &(_, thread) in self.threads.iter().filter(|of| ends(of)) {
            self.groups.remove(&thread);
            self.uses.iter_mut().for_each(|uses| uses.end(thread));
        }
        self.threads.retain(|of| !ends(of));
        (self.on_image)(image, &counts);
        let numbers = image.numbering;
        if numbers.is_own() {
            return self.found.counts.take(counts);
        }
        self.found.counts.add_renumbered(&counts, |site| numbers.site(site), |block| numbers.block(block));
    }
}
