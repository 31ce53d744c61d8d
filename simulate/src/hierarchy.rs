//! Threads, levels, and who misses where.
//!
//! **What.** Each thread has its own first level, TLBs and private outer levels, made when its first record arrives; shared levels are
//! shared. Records are staged as touches and swept level by level: the misses of one sweep are the touches of the next, in
//! program order, instruction and data sides together. **Why this way.** A site's counters are touched only when it missed.
//!
//! A string instruction is simulated once for each pair of lines that it passes: making the same references again changes nothing there.
//!
//! **Order between threads** is the order in which batches arrive: with several threads, shared levels see an interleaving that is
//! one of many. **Leaves out** coherence: a line that one core writes stays valid in others.
//!
//! **Cost.** On one core of a 2023 server see `benches/throughput.rs`; memory 8 bytes per way, rounded up to 8 or 16 ways.

use crate::bank::{Bank, Scratch, Stores};
use crate::kernel::{Kernel, Pass, Vectors};
use crate::stage::{Fetches, Stage, FIRST_REFERENCE};
use crate::tally::{Level, Tally};
use crate::touch::{held, Touches, STEP};
use crate::traffic::{SharedTraffic, Traffic};
use crate::{Counts, Geometry, GeometryError, Levels, Sharing, StoreMiss, Totals, CACHES_MAX, TLBS_MAX};
use event::{
    masked_reference, Access, FetchFilter, Filter, Groups, Record, RecordKind, Sink, StateLayout, Step,
    Stream, CUT_SITE,
};
use std::collections::HashMap;

/// A simulated memory hierarchy that counts misses by site and block.
pub struct Hierarchy {
    levels: Levels,
    fetch_records: FetchRecords,
    layout: StateLayout,
    threads: HashMap<u32, Box<Core>>,
    shared: Shared,
    tallies: Tallies,
}

/// Where misses are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tallies {
    /// Together.
    Shared,
    /// Thread by thread.
    PerThread,
}

/// What `Fetch` records say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FetchRecords {
    /// Lines that are used.
    Uses,
    /// Misses of a first level that is kept where the program runs.
    Misses,
}

/// What threads share.
struct Shared {
    banks: Vec<Option<Bank>>,
    tally: Tally,
    /// Where write-backs are counted.
    traffic: Option<SharedTraffic>,
}

/// What a thread has of its own.
struct Core {
    stage: Stage,
    groups: Groups,
    repeats: Repeats,
    first: Bank,
    outer: Vec<Option<Bank>>,
    pages: Option<Pages>,
    outer_tlb: Option<Bank>,
    traffic: Option<Traffic>,
    /// Where its misses are counted, if not with those of the others.
    tally: Option<Tally>,
    scratch: Box<Scratch>,
    fetch_records: FetchRecords,
    /// Touches of instruction pages are among those that are staged.
    page_touches: bool,
    /// By level, the last reference that was counted.
    counted: [u32; CACHES_MAX],
    counted_tlb: [u32; TLBS_MAX],
}

/// What it changes that the one or two references of a string instruction's iteration are made again, each in the same block.
#[derive(Clone, Copy)]
struct Repeats {
    /// Of a block: it lies in one line and one page.
    line_bytes: u64,
    change: Change,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Nothing: two lines stay where every line enters sets of two ways and more, and end in the order they had.
    Nothing,
    /// It may change something.
    Something,
}

impl Repeats {
    fn new(levels: &Levels) -> Repeats {
        let keeps = |geometry: Geometry| geometry.ways > 1;
        let first = keeps(levels.data) && levels.data.store_miss == StoreMiss::Allocate;
        let change = match first && levels.data_tlb.is_none_or(keeps) {
            true => Change::Nothing,
            false => Change::Something,
        };
        let page_bytes = levels.data_tlb.map_or(u32::MAX, |geometry| geometry.line_bytes);
        Repeats { line_bytes: levels.data.line_bytes.min(page_bytes).into(), change }
    }
}

/// The first-level TLBs.
struct Pages {
    bank: Bank,
    shift: [u32; 2],
    /// Keys of the touches looked at last.
    last: [u64; STEP],
    fetches: Fetches,
    /// Touches of new pages, and then those that missed.
    news: Box<Touches>,
    kernel: Kernel,
}

impl Hierarchy {
    /// An empty hierarchy.
    ///
    /// # Errors
    /// When the levels cannot be simulated.
    pub fn new(levels: &Levels) -> Result<Hierarchy, GeometryError> {
        levels.check()?;
        if !levels.is_plain() {
            let fault = "this simulation has LRU, independent levels, no prefetchers and one page size";
            return Err(GeometryError { level: "L1D", geometry: levels.data, fault });
        }
        let banks = outer_banks(levels, Sharing::AllThreads);
        Ok(Hierarchy {
            levels: levels.clone(),
            fetch_records: FetchRecords::Uses,
            layout: StateLayout::default(),
            threads: HashMap::new(),
            shared: Shared { banks, tally: Tally::default(), traffic: None },
            tallies: Tallies::Shared,
        })
    }

    /// An empty hierarchy for a stream that was planned for `levels`: where its `Fetch` and `FetchPage` records are misses of a first level that is
    /// kept elsewhere, they are counted and go on to the outer levels. A full stream in its place is simulated all the same.
    ///
    /// # Errors
    /// When the levels cannot be simulated.
    pub fn of_stream(levels: &Levels, stream: &Stream) -> Result<Hierarchy, GeometryError> {
        let mut hierarchy = Hierarchy::new(levels)?;
        if let Stream::Filtered(Filter { fetches: FetchFilter::FirstLevel { .. }, .. }) = stream {
            hierarchy.fetch_records = FetchRecords::Misses;
        }
        Ok(hierarchy)
    }

    /// The same, which counts write-backs too: exact for a full stream only, and about twice the work. To be called before the first record.
    pub fn counting_write_backs(mut self) -> Hierarchy {
        self.shared.traffic = Some(SharedTraffic::new(&self.levels));
        self
    }

    /// The same, which counts thread by thread. To be called before the first record. Cost: a table of sites and blocks for each thread.
    pub fn by_thread(mut self) -> Hierarchy {
        self.tallies = Tallies::PerThread;
        self
    }

    /// An empty hierarchy that counts the same, in the room of this one's shared levels: cheap where little of them was used.
    #[must_use]
    pub fn emptied(mut self) -> Hierarchy {
        self.threads.clear();
        self.shared.tally = Tally::default();
        self.shared.banks.iter_mut().flatten().for_each(Bank::empty);
        if self.shared.traffic.is_some() {
            self.shared.traffic = Some(SharedTraffic::new(&self.levels));
        }
        self
    }

    /// Sets the processor's state layout, which sizes `xsave` areas.
    pub fn set_state_layout(&mut self, layout: StateLayout) {
        self.layout = layout;
    }

    /// Takes records of one thread, in program order. Afterwards [`Hierarchy::counts`] includes them.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        let traffic = || self.shared.traffic.is_some().then(|| Traffic::new(&self.levels));
        let is_full = records.first().is_some_and(|record| record.code().kind() == RecordKind::Block);
        let misses = self.fetch_records == FetchRecords::Misses && !is_full;
        let new = || match misses {
            true => Box::new(Core::new(&self.levels).passing_fetches(&self.levels)),
            false => Box::new(Core { traffic: traffic(), ..Core::new(&self.levels) }),
        };
        let core = self.threads.entry(thread).or_insert_with(|| {
            let tally = (self.tallies == Tallies::PerThread).then(Tally::default);
            Box::new(Core { tally, ..*new() })
        });
        let mut run = Run { core, shared: &mut self.shared, layout: &self.layout };
        run.records(records);
    }

    /// What was counted so far; tables end at the last site and block with a miss. Cost: a copy of the tables.
    pub fn counts(&self) -> Counts {
        let write_backs = self.shared.traffic.as_ref().map(|traffic| traffic.write_backs);
        let mut counts = Counts { write_backs, ..self.shared.tally.counts() };
        self.counts_of_threads().iter().for_each(|(_, own)| counts.add(own));
        counts
    }

    /// The same thread by thread, by number; empty where threads are not counted apart. Write-backs are counted together.
    pub fn counts_of_threads(&self) -> Vec<(u32, Counts)> {
        let own = |(thread, core): (u32, &Core)| Some((thread, core.tally.as_ref()?.counts()));
        let mut all: Vec<(u32, Counts)> =
            self.threads.iter().map(|(thread, core)| (*thread, &**core)).filter_map(own).collect();
        all.sort_unstable_by_key(|(thread, _)| *thread);
        all
    }

    /// The same of all sites and blocks together. Cost: the tables are added up, 15 words for each site, so a few hundred microseconds for a compiler.
    pub fn totals(&self) -> Totals {
        self.shared.tally.totals()
    }
}

impl Sink for Hierarchy {
    fn records(&mut self, thread: u32, records: &[Record]) {
        Hierarchy::records(self, thread, records);
    }
}

/// The outer levels that are shared as asked, `None` in the others' places.
fn outer_banks(levels: &Levels, sharing: Sharing) -> Vec<Option<Bank>> {
    let mut stores = Stores::Write;
    let mut inner = levels.data.store_miss;
    let mut banks = Vec::new();
    for outer in &levels.outer {
        if inner == StoreMiss::Allocate {
            stores = Stores::Fill;
        }
        banks.push((outer.sharing == sharing).then(|| Bank::outer(outer.geometry, stores)));
        inner = outer.geometry.store_miss;
    }
    banks
}

impl Core {
    fn new(levels: &Levels) -> Core {
        Core {
            stage: Stage::new(levels),
            groups: Groups::default(),
            repeats: Repeats::new(levels),
            first: Bank::new(levels.data, levels.instruction, Stores::Write),
            outer: outer_banks(levels, Sharing::PerThread),
            pages: Pages::new(levels),
            outer_tlb: levels.outer_tlb.map(|geometry| Bank::outer(geometry, Stores::Fill)),
            traffic: None,
            tally: None,
            fetch_records: FetchRecords::Uses,
            page_touches: false,
            scratch: Scratch::new(),
            counted: [0; CACHES_MAX],
            counted_tlb: [0; TLBS_MAX],
        }
    }
}

impl Core {
    /// The same for a stream whose `Fetch` and `FetchPage` records are misses of the first level.
    fn passing_fetches(self, levels: &Levels) -> Core {
        let first = levels.instruction.map(|_| Bank::passing_fetches(levels.data, Stores::Write));
        let pages = levels.data_tlb.filter(|_| levels.instruction_tlb.is_some());
        let pages = pages.map(|data| Bank::passing_fetches(data, Stores::Fill));
        Core {
            fetch_records: FetchRecords::Misses,
            first: first.unwrap_or(self.first),
            pages: self.pages.map(|own| Pages { bank: pages.unwrap_or(own.bank), ..own }),
            ..self
        }
    }
}

impl Pages {
    fn new(levels: &Levels) -> Option<Pages> {
        let data = levels.data_tlb?;
        let instruction = levels.instruction_tlb;
        Some(Pages {
            bank: Bank::new(data, instruction, Stores::Fill),
            shift: [data, instruction.unwrap_or(data)].map(|geometry| geometry.line_bytes.trailing_zeros()),
            last: [u64::MAX; STEP],
            fetches: if instruction.is_some() { Fetches::Simulated } else { Fetches::Ignored },
            news: Touches::empty(),
            kernel: Kernel::fastest(),
        })
    }

    /// Sweeps the touches whose page is not the one that the touch before used: using it again changes nothing. Answers with those that missed.
    fn sweep(&mut self, scratch: &mut Scratch, touches: &Touches) -> &mut Touches {
        let Pages { bank, shift, last, fetches, news, kernel } = self;
        news.len = 0;
        kernel.pass(Sift { touches, shift: *shift, last, fetches: *fetches, news });
        bank.sweep(scratch, news);
        news
    }
}

/// Copies touches of new pages to `news`.
struct Sift<'a> {
    touches: &'a Touches,
    shift: [u32; 2],
    last: &'a mut [u64; STEP],
    fetches: Fetches,
    news: &'a mut Touches,
}

impl Pass for Sift<'_> {
    type Output = ();

    #[inline(always)]
    fn run<K: Vectors>(self, kernel: K) {
        let [data, code] = self.shift;
        let len = self.touches.len;
        for start in (0..len).step_by(STEP) {
            let step = self.touches.step(start);
            // A page and the side that uses it.
            let mut keys = [0; STEP];
            let mut data_side = [0; STEP];
            for lane in 0..STEP {
                let fetch = (step.what[lane] >> 4) & 15 == RecordKind::Fetch as u32;
                let shift = if fetch { code } else { data };
                keys[lane] = step.address[lane] >> shift << 1 | u64::from(fetch);
                data_side[lane] = u32::from(!fetch);
            }
            let mut new = kernel.long_changes(self.last, &keys) & held(len, start);
            if self.fetches == Fetches::Ignored {
                new &= !kernel.zeros(&data_side);
            }
            kernel.keep(new, step, self.news);
        }
        if !len.is_multiple_of(STEP) {
            // Only what was held counts as the step before.
            *self.last = [self.last[(len - 1) % STEP]; STEP];
        }
    }
}

/// Touches for the caches, and touches for the TLBs: of instructions, the former are lines, the latter pages.
fn split(touches: &Touches) -> (Box<Touches>, Box<Touches>) {
    let (mut lines, mut pages) = (Touches::empty(), Touches::empty());
    for n in 0..touches.len {
        let (address, what, reference) = (touches.address[n], touches.what[n], touches.reference[n]);
        let kind = (what >> 4) & 15;
        let is = |other: RecordKind| kind == other as u32;
        if !is(RecordKind::FetchPage) {
            lines.push(address, what, reference);
        }
        if is(RecordKind::FetchPage) {
            pages.push(address, what & !0xff | (RecordKind::Fetch as u32) << 4, reference);
        } else if !is(RecordKind::Fetch) {
            pages.push(address, what, reference);
        }
    }
    (lines, pages)
}

/// One thread's records on their way through the levels.
struct Run<'a> {
    core: &'a mut Core,
    shared: &'a mut Shared,
    layout: &'a StateLayout,
}

impl Run<'_> {
    fn records(&mut self, mut records: &[Record]) {
        while !records.is_empty() {
            if !self.core.groups.is_open() {
                let staged = self.core.stage.fill(records);
                records = &records[staged..];
                if self.core.stage.is_full() {
                    self.drain(records);
                    continue;
                }
                if let Some((shape, [base, mask])) = self.core.groups.masked(records) {
                    self.masked(records[0].site(), masked_reference(shape, base, mask));
                    records = &records[2..];
                    continue;
                }
            }
            let Some((record, rest)) = records.split_first() else { break };
            self.record(record);
            records = rest;
        }
        self.drain(&[]);
    }

    /// A record that is not simply a touch.
    fn record(&mut self, record: &Record) {
        let kind = record.code().kind();
        if !self.core.groups.is_open() && !matches!(kind, RecordKind::Complex | RecordKind::Payload) {
            return self.plain(record);
        }
        match self.core.groups.push(record) {
            Step::Part => {}
            Step::Damaged(_) => self.shared.tally.damaged += 1,
            Step::DamagedBefore(_) => {
                self.shared.tally.damaged += 1;
                self.plain(record);
            }
            Step::Plain => self.plain(record),
            Step::Whole(site, complex) => {
                let counts = self.tally().complex(site);
                let iterations = complex.iterations();
                counts.executions += u64::from(iterations > 0);
                counts.iterations += iterations;
                let layout = *self.layout;
                let Repeats { line_bytes, change } = self.core.repeats;
                complex.stretches(&layout, line_bytes, |references, times| {
                    self.stretch(site, references, times, change);
                });
            }
        }
    }

    /// A masked access of `site` that makes this reference.
    fn masked(&mut self, site: usize, reference: Option<(u64, u32, Access)>) {
        let counts = self.tally().complex(site);
        counts.executions += 1;
        counts.iterations += 1;
        if let Some(reference) = reference {
            self.stretch(site, &[reference], 1, Change::Something);
        }
    }

    /// `references`, so many times over.
    fn stretch(&mut self, site: usize, references: &[(u64, u32, Access)], times: u64, change: Change) {
        let counts = self.tally().complex(site);
        for (.., access) in references {
            match access {
                Access::Load => counts.loads += times,
                Access::Store => counts.stores += times,
                Access::Prefetch => {}
            }
        }
        let simulated = if change == Change::Nothing { 1 } else { times };
        for _ in 0..simulated {
            for &(address, size_bytes, access) in references {
                let kind = match access {
                    Access::Load => RecordKind::Load,
                    Access::Store => RecordKind::Store,
                    Access::Prefetch => continue,
                };
                self.data(site as u32, address, size_bytes, kind);
            }
        }
    }

    /// Where the thread's misses are counted.
    fn tally(&mut self) -> &mut Tally {
        self.core.tally.as_mut().unwrap_or(&mut self.shared.tally)
    }

    fn plain(&mut self, record: &Record) {
        let site = record.site() as u32;
        let size_bytes = record.code().size_bytes();
        match record.code().kind() {
            kind @ (RecordKind::Load | RecordKind::Store) => {
                self.data(site, record.address, size_bytes, kind)
            }
            RecordKind::Modify => {
                self.data(site, record.address, size_bytes, RecordKind::Load);
                self.data(site, record.address, size_bytes, RecordKind::Store);
            }
            RecordKind::Fetch => self.fetch(site, record.address, 1),
            RecordKind::FetchPage => self.page(site, record.address),
            RecordKind::Block if record.site() != CUT_SITE => self.fetch(site, record.address, record.extra),
            _ => {}
        }
    }

    /// A data reference: its lines, lowest first.
    fn data(&mut self, site: u32, address: u64, size_bytes: u32, kind: RecordKind) {
        let line_bytes = self.core.stage.line_bytes;
        let what = site << 8 | (kind as u32) << 4;
        let last = address.saturating_add(u64::from(size_bytes.max(1)) - 1);
        self.line(address, what);
        let mut line = address & !(line_bytes - 1);
        while last - line >= line_bytes {
            line += line_bytes;
            self.line(line, what);
        }
        self.next_reference();
    }

    /// The instruction lines of `len_bytes` at `address`, each a reference.
    fn fetch(&mut self, block: u32, address: u64, len_bytes: u32) {
        if self.core.stage.fetches == Fetches::Ignored {
            return;
        }
        let line_bytes = self.core.stage.fetch_line_bytes;
        let what = block << 8 | (RecordKind::Fetch as u32) << 4;
        let last = address.saturating_add(u64::from(len_bytes.max(1)) - 1);
        let mut line = address & !(line_bytes - 1);
        loop {
            self.line(line, what);
            self.next_reference();
            if last - line < line_bytes {
                break;
            }
            line += line_bytes;
        }
    }

    /// A miss of an instruction page.
    fn page(&mut self, block: u32, address: u64) {
        if self.core.fetch_records == FetchRecords::Misses {
            self.line(address, block << 8 | (RecordKind::FetchPage as u32) << 4);
            self.core.page_touches = true;
            self.next_reference();
        }
    }

    fn line(&mut self, address: u64, what: u32) {
        if self.core.stage.is_full() {
            self.sweep(&[]);
        }
        self.core.stage.push(address, what);
    }

    fn next_reference(&mut self) {
        self.core.stage.reference += 1;
        if self.core.stage.is_full() {
            self.drain(&[]);
        }
    }

    /// Sweeps between references, `ahead` of which are staged next; numbering starts anew.
    fn drain(&mut self, ahead: &[Record]) {
        self.sweep(ahead);
        self.core.stage.reference = FIRST_REFERENCE;
        self.core.counted = [0; CACHES_MAX];
        self.core.counted_tlb = [0; TLBS_MAX];
    }

    /// All staged touches through all levels.
    fn sweep(&mut self, ahead: &[Record]) {
        let Core {
            stage,
            first,
            outer,
            pages,
            outer_tlb,
            traffic,
            scratch,
            counted,
            counted_tlb,
            fetch_records,
            page_touches,
            tally: own_tally,
            ..
        } = &mut *self.core;
        let Shared { banks, tally, traffic: shared_traffic } = &mut *self.shared;
        let tally = own_tally.as_mut().unwrap_or(tally);
        if let (Some(own), Some(shared)) = (traffic, shared_traffic) {
            own.sweep(shared, &stage.touches);
        }
        let mut sides = std::mem::take(page_touches).then(|| split(&stage.touches));
        if let Some(pages) = pages {
            if *fetch_records == FetchRecords::Misses {
                pages.fetches = if sides.is_some() { Fetches::Simulated } else { Fetches::Ignored };
                if sides.is_some() {
                    // A line's page, which is ignored, may be the one that missed.
                    pages.last = [u64::MAX; STEP];
                }
            }
            let touches = sides.as_ref().map_or(&*stage.touches, |(_, pages)| pages);
            let misses = pages.sweep(scratch, touches);
            tally.add(Level::Tlb(0), &mut counted_tlb[0], misses);
            if let Some(bank) = outer_tlb {
                bank.sweep(scratch, misses);
                tally.add(Level::Tlb(1), &mut counted_tlb[1], misses);
            }
        }
        // A level leaves its misses where the touches were: one buffer stays in the host's first level, several would not.
        let touches = sides.as_mut().map_or(&mut *stage.touches, |(lines, _)| lines);
        first.sweep_reading(scratch, touches, ahead);
        tally.add(Level::Cache(0), &mut counted[0], touches);
        for (index, (own, shared)) in outer.iter_mut().zip(banks).enumerate() {
            let Some(bank) = own.as_mut().or(shared.as_mut()) else { continue };
            bank.sweep(scratch, touches);
            tally.add(Level::Cache(index + 1), &mut counted[index + 1], touches);
        }
        stage.touches.len = 0;
    }
}
