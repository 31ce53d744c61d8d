//! Simulates the levels of all threads and counts misses by instruction.
//!
//! **The problem.** A stream has hundreds of millions of records a second and at most five levels
//! to ask about each; almost all of them hit the first.
//!
//! **The idea.** Levels are swept one after the other, with up to 512 touches at a time: the misses
//! of one level are the touches of the next one, in program order, instruction and data sides
//! together. One buffer serves all levels of caches: each level overwrites its touches with its
//! misses.
//!
//! ```text
//! records --Stage--> touches --+--> first-level TLBs --misses--> second-level TLB      (a copy)
//!                              |
//!                              +--> L1 --misses--> L2 --misses--> L3                   (in place)
//!                                    |              |              |
//!                                    +------ Tally: one count for each reference and level
//! ```
//!
//! Each thread has its own first level, TLBs and private outer levels, made when its first record
//! arrives; shared levels are shared. A site's counters are touched only when it missed. A string
//! instruction is simulated once for each pair of lines that it passes: making the same references
//! again changes nothing there.
//!
//! **Invariants.** All touches of a reference lie in one sweep and have its number, so that a level
//! counts it once, even where it touches several lines. Numbers begin anew only where no reference
//! is open.
//!
//! **Order between threads** is the order in which batches arrive: with several threads, shared
//! levels see an interleaving that is one of many. **Leaves out** coherence: a line that one core
//! writes stays valid in others.
//!
//! **Cost.** See `benches/throughput.rs`; memory 8 bytes per way, rounded up to 8 or 16 ways.

mod thread_run;

use crate::bank::{Bank, Stores};
use crate::kernel::{Kernel, Pass, Vectors};
use crate::limits::InstructionSide;
use crate::located::LocatedMisses;
use crate::miss_log::{MissIntervals, MissLog, Noted};
use crate::scratch::Scratch;
use crate::stage::Stage;
use crate::tally::Tally;
use crate::touch::{held, Touches, STEP, SWEEP};
use crate::traffic::{SharedTraffic, Traffic};
use crate::{Counts, Geometry, GeometryError, Levels, Sharing, StoreMiss, Totals, CACHES_MAX, TLBS_MAX};
use event::{FetchFilter, Groups, Record, RecordKind, Sink, StateLayout, Stream, Upcoming};
use std::collections::HashMap;
use thread_run::ThreadRun;

/// A simulated memory hierarchy that counts misses by site and block.
pub struct Hierarchy {
    levels: Levels,
    fetch_records: FetchRecords,
    data_pages: DataPages,
    layout: StateLayout,
    threads: HashMap<u32, Box<Core>>,
    /// The counts of threads that have ended, if threads are counted separately.
    ended: Counts,
    shared: Shared,
    tallies: Tallies,
}

/// Where misses are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tallies {
    /// In one table for all threads.
    Shared,
    /// In a table for each thread.
    PerThread,
}

/// The meaning of `Fetch` records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FetchRecords {
    /// The use of a line.
    Uses,
    /// The miss of a first level that generated code simulates.
    Misses,
}

/// The meaning of data references for the first-level data TLB.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DataPages {
    /// Each reference uses its page.
    Uses,
    /// None: `DataPage` records are the misses of a TLB that generated code simulates.
    Misses,
}

/// What becomes of touches that are still staged when a batch ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// They are swept.
    Swept,
    /// They wait for the thread's next batch, which follows at once: a sweep of few touches takes
    /// nearly as long as one of many.
    Kept,
}

/// The levels that threads share.
struct Shared {
    banks: Vec<Option<Bank>>,
    tally: Tally,
    /// Where write-backs are counted.
    traffic: Option<SharedTraffic>,
    log: MissLog,
}

/// The levels and buffers of one thread.
struct Core {
    stage: Stage,
    groups: Groups,
    repeats: Repeats,
    first: Bank,
    outer: Vec<Option<Bank>>,
    pages: Option<FirstTlbs>,
    outer_tlb: Option<Bank>,
    traffic: Option<Traffic>,
    /// The thread's table of misses, unless all threads share one.
    tally: Option<Tally>,
    scratch: Box<Scratch>,
    fetch_records: FetchRecords,
    data_pages: DataPages,
    page_bytes: u64,
    /// Whether the staged touches contain pages that missed.
    page_touches: bool,
    /// Pages that missed, where those of both sides are recorded.
    page_misses: Box<Touches>,
    /// The last reference that each level counted.
    counted: [u32; CACHES_MAX],
    counted_tlb: [u32; TLBS_MAX],
}

/// Whether repeating the one or two references of a string instruction within their blocks of
/// memory changes anything.
#[derive(Clone, Copy)]
struct Repeats {
    /// Bytes of a block of memory that lies in one line and one page.
    line_bytes: u64,
    change: Change,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Nothing: two lines stay where every line enters sets of two ways and more, and end in the
    /// order they had.
    Nothing,
    /// It may change something.
    Something,
}

impl Repeats {
    fn new(levels: &Levels) -> Repeats {
        // Two references take turns: both stay in sets of two ways and more, and end in their
        // order.
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
struct FirstTlbs {
    bank: Bank,
    shift: [u32; 2],
    /// Keys of the last touches.
    last: [u64; STEP],
    fetches: InstructionSide,
    /// Touches that pass the filter of repeated pages; after the sweep, those of them that missed.
    filter_miss: Box<Touches>,
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
            return Err(GeometryError::new("L1D", levels.data, fault));
        }
        let banks = outer_banks(levels, Sharing::AllThreads);
        Ok(Hierarchy {
            levels: levels.clone(),
            fetch_records: FetchRecords::Uses,
            data_pages: DataPages::Uses,
            layout: StateLayout::default(),
            threads: HashMap::new(),
            ended: Counts::default(),
            shared: Shared { banks, tally: Tally::default(), traffic: None, log: MissLog::default() },
            tallies: Tallies::Shared,
        })
    }

    /// An empty hierarchy for a stream that was planned for `levels`. If the stream's `Fetch`,
    /// `FetchPage` and `DataPage` records are misses of a first level that generated code
    /// simulates, they are counted and passed to the outer levels. A full stream is simulated
    /// correctly too.
    ///
    /// # Errors
    /// When the levels cannot be simulated.
    pub fn of_stream(levels: &Levels, stream: &Stream) -> Result<Hierarchy, GeometryError> {
        let mut hierarchy = Hierarchy::new(levels)?;
        let Stream::Filtered(filter) = stream else { return Ok(hierarchy) };
        if filter.fetches != FetchFilter::LastOfSet {
            hierarchy.fetch_records = FetchRecords::Misses;
        }
        if filter.resident_pages().is_some() {
            hierarchy.data_pages = DataPages::Misses;
        }
        Ok(hierarchy)
    }

    /// Makes this hierarchy count write-backs too: exact for a full stream only, and about twice
    /// the work. Call it before the first record.
    pub fn counting_write_backs(mut self) -> Hierarchy {
        self.shared.traffic = Some(SharedTraffic::new(&self.levels));
        self
    }

    /// Makes this hierarchy count each thread separately. Call it before the first record. Cost: a
    /// table of sites and blocks for each thread.
    pub fn by_thread(mut self) -> Hierarchy {
        self.tallies = Tallies::PerThread;
        self
    }

    /// Empties this hierarchy and keeps its settings. The memory of its shared levels is reused,
    /// which is cheap if little of them was used.
    #[must_use]
    pub fn emptied(mut self) -> Hierarchy {
        self.threads.clear();
        self.ended = Counts::default();
        self.shared.tally = Tally::default();
        self.shared.banks.iter_mut().flatten().for_each(Bank::empty);
        if self.shared.traffic.is_some() {
            self.shared.traffic = Some(SharedTraffic::new(&self.levels));
        }
        self
    }

    /// Empties the caches and keeps what was counted. Threads must be counted together.
    pub(crate) fn empty_caches(&mut self) {
        self.threads.clear();
        self.shared.banks.iter_mut().flatten().for_each(Bank::empty);
    }

    /// Exchanges the table in which threads are counted together.
    pub(crate) fn exchange(&mut self, tally: &mut Tally) {
        std::mem::swap(&mut self.shared.tally, tally);
    }

    /// Sets the processor's state layout, which sizes `xsave` areas.
    pub fn set_state_layout(&mut self, layout: StateLayout) {
        self.layout = layout;
    }

    /// Simulates records of one thread, of which `intervals` knows the intervals, and counts their
    /// misses in the caches there; a group's misses are those of one of its records.
    pub fn records_divided(&mut self, thread: u32, records: &[Record], intervals: &mut MissIntervals) {
        std::mem::swap(&mut self.shared.log.intervals, intervals);
        self.shared.log.noted = Noted::Intervals;
        self.records(thread, records);
        self.shared.log.end();
        std::mem::swap(&mut self.shared.log.intervals, intervals);
    }

    /// Simulates records of one thread, and lists the references that missed in `located`, which is
    /// emptied first.
    pub fn records_located(&mut self, thread: u32, records: &[Record], located: &mut LocatedMisses) {
        located.clear();
        std::mem::swap(&mut self.shared.log.located, located);
        self.shared.log.noted = Noted::Places;
        self.records(thread, records);
        self.shared.log.end();
        std::mem::swap(&mut self.shared.log.located, located);
    }

    /// Simulates records of one thread, in program order. Afterwards [`Hierarchy::counts`] includes
    /// them.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        let behind = records.get(SWEEP..).unwrap_or_default();
        self.run(thread, records, Upcoming::of(behind), Rest::Swept);
    }

    /// Simulates records of one thread, and prefetches those that the thread receives next. If
    /// there are any, the last touches of `records` are swept with theirs, and
    /// [`Hierarchy::counts`] includes all of `records` only then.
    pub fn records_before(&mut self, thread: u32, records: &[Record], next: Upcoming) {
        let rest = if next.is_empty() { Rest::Swept } else { Rest::Kept };
        self.run(thread, records, next, rest);
    }

    fn run(&mut self, thread: u32, records: &[Record], next: Upcoming, rest: Rest) {
        let traffic = || self.shared.traffic.is_some().then(|| Traffic::new(&self.levels));
        // A stream that begins with a block is a full one, whatever stream was planned.
        let is_full = records.first().is_some_and(|record| record.code().kind() == RecordKind::Block);
        let passes_fetches = self.fetch_records == FetchRecords::Misses && !is_full;
        let passes_pages = self.data_pages == DataPages::Misses && !is_full;
        let new = || {
            let mut core = Core { traffic: traffic(), ..Core::new(&self.levels) };
            if passes_fetches {
                core = core.passing_fetches(&self.levels);
            }
            if passes_pages {
                core = Core { data_pages: DataPages::Misses, pages: None, ..core };
            }
            core
        };
        let core = self.threads.entry(thread).or_insert_with(|| {
            let tally = (self.tallies == Tallies::PerThread).then(Tally::default);
            Box::new(Core { tally, ..new() })
        });
        let mut run = ThreadRun { core, shared: &mut self.shared, layout: &self.layout, ahead: next };
        run.records(records, rest);
    }

    /// Frees the caches of a thread that makes no more records. Returns what it counted if threads
    /// are counted separately; [`Hierarchy::counts`] still includes it.
    pub fn end_thread(&mut self, thread: u32) -> Option<Counts> {
        let counts = self.threads.remove(&thread)?.tally?.counts();
        self.ended.add(&counts);
        Some(counts)
    }

    /// How many threads have caches.
    pub fn living_threads(&self) -> usize {
        self.threads.len()
    }

    /// What was counted so far; tables end at the last site and block with a miss. Cost: a copy of
    /// the tables.
    pub fn counts(&self) -> Counts {
        self.counts_with(self.shared.tally.counts())
    }

    /// [`Hierarchy::counts`] of a hierarchy whose records have ended: it must be
    /// [emptied](Hierarchy::emptied) before it is used again. Cost: less of the tables is copied.
    pub fn take_counts(&mut self) -> Counts {
        let together = self.shared.tally.take();
        self.counts_with(together)
    }

    /// The counts of all threads, of which those that are counted together are given.
    fn counts_with(&self, together: Counts) -> Counts {
        let write_backs = self.shared.traffic.as_ref().map(|traffic| traffic.write_backs);
        let mut counts = Counts { write_backs, ..together };
        counts.add(&self.ended);
        self.counts_of_threads().iter().for_each(|(_, own)| counts.add(own));
        counts
    }

    /// What each thread that has not ended counted so far, by its number; empty where threads are
    /// not counted apart. Write-backs are counted together.
    pub fn counts_of_threads(&self) -> Vec<(u32, Counts)> {
        let own = |(thread, core): (u32, &Core)| Some((thread, core.tally.as_ref()?.counts()));
        let mut all: Vec<(u32, Counts)> =
            self.threads.iter().map(|(thread, core)| (*thread, &**core)).filter_map(own).collect();
        all.sort_unstable_by_key(|(thread, _)| *thread);
        all
    }

    /// The misses so far, summed over all sites and blocks. Cost: the tables are added up, 15 words
    /// for each site, so a few hundred microseconds for a compiler.
    pub fn totals(&self) -> Totals {
        self.shared.tally.totals()
    }
}

impl Sink for Hierarchy {
    fn records(&mut self, thread: u32, records: &[Record]) {
        Hierarchy::records(self, thread, records);
    }
}

/// The outer levels with this sharing; `None` in the places of the others.
fn outer_banks(levels: &Levels, sharing: Sharing) -> Vec<Option<Bank>> {
    // Stores arrive as writes until a level allocates for them; behind it they arrive as fills.
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
            pages: FirstTlbs::new(levels),
            outer_tlb: levels.outer_tlb.map(|data| Bank::outer_tlb(data, levels.outer_fetch_tlb)),
            traffic: None,
            tally: None,
            fetch_records: FetchRecords::Uses,
            data_pages: DataPages::Uses,
            page_bytes: levels.data_tlb.map_or(0, |geometry| geometry.line_bytes.into()),
            page_touches: false,
            page_misses: Touches::empty(),
            scratch: Scratch::new(),
            counted: [0; CACHES_MAX],
            counted_tlb: [0; TLBS_MAX],
        }
    }
}

impl Core {
    /// Prepares the core for a stream whose `Fetch` and `FetchPage` records are misses of the first
    /// level.
    fn passing_fetches(self, levels: &Levels) -> Core {
        // Fetches bypass the first level: each of them has missed it already.
        let first = levels.instruction.map(|_| Bank::passing_fetches(levels.data, Stores::Write));
        let pages = levels.data_tlb.filter(|_| levels.instruction_tlb.is_some());
        let pages = pages.map(|data| Bank::passing_fetches(data, Stores::Fill));
        Core {
            fetch_records: FetchRecords::Misses,
            first: first.unwrap_or(self.first),
            pages: self.pages.map(|own| FirstTlbs { bank: pages.unwrap_or(own.bank), ..own }),
            ..self
        }
    }
}

impl FirstTlbs {
    fn new(levels: &Levels) -> Option<FirstTlbs> {
        let data = levels.data_tlb?;
        let instruction = levels.instruction_tlb;
        Some(FirstTlbs {
            bank: Bank::new(data, instruction, Stores::Fill),
            shift: [data, instruction.unwrap_or(data)].map(|geometry| geometry.line_bytes.trailing_zeros()),
            last: [u64::MAX; STEP],
            fetches: if instruction.is_some() {
                InstructionSide::Simulated
            } else {
                InstructionSide::Ignored
            },
            filter_miss: Touches::empty(),
            kernel: Kernel::fastest(),
        })
    }

    /// Sweeps the touches whose page differs from the one before (using a page again changes
    /// nothing), and returns those that missed.
    fn sweep(&mut self, scratch: &mut Scratch, touches: &Touches) -> &mut Touches {
        let FirstTlbs { bank, shift, last, fetches, filter_miss, kernel } = self;
        filter_miss.len = 0;
        kernel.pass(PageFilter { touches, shift: *shift, last, fetches: *fetches, filter_miss });
        bank.sweep(scratch, filter_miss);
        filter_miss
    }
}

/// Copies touches to `filter_miss` whose page is not that of the touch before.
struct PageFilter<'a> {
    touches: &'a Touches,
    shift: [u32; 2],
    last: &'a mut [u64; STEP],
    fetches: InstructionSide,
    filter_miss: &'a mut Touches,
}

impl Pass for PageFilter<'_> {
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
                // The page number and one bit for the side: the two first-level TLBs forget
                // separately.
                keys[lane] = step.address[lane] >> shift << 1 | u64::from(fetch);
                data_side[lane] = u32::from(!fetch);
            }
            // Only where the key changes can a TLB's order change.
            let mut new = kernel.long_changes(self.last, &keys) & held(len, start);
            if self.fetches == InstructionSide::Ignored {
                new &= !kernel.zeros(&data_side);
            }
            kernel.keep(new, step, self.filter_miss);
        }
        if !len.is_multiple_of(STEP) {
            // Only touches count as predecessors, not the unused lanes.
            *self.last = [self.last[(len - 1) % STEP]; STEP];
        }
    }
}
