//! Miss curves in one pass: the misses of caches of many sizes, with one look-up per reference.
//!
//! **What.** [`StackDistances`] takes a stream and gives a [`MissCurve`]: for each of up to
//! [`SIZES_MAX`] sizes, exactly the misses that a cache of that size with true LRU would have,
//! fully associative or of a given number of sets. Stores allocate. As in reports, a reference that
//! touches several lines counts as at most one miss.
//!
//! **Why this way.** A cache with LRU holds what it would hold if it were smaller, and more
//! (Mattson et al. 1970): how many other lines of its set were used since a line's last use, its
//! *stack distance*, says for every size at once whether it is there. The recent lines of a set
//! stand in a row, in order (`stack`); distances behind it come from bits in the order of time
//! (`back`). **Leaves out** other policies, which lack the property; levels behind others;
//! coherence.
//!
//! **Which stream.** The full one, or one whose filter has no more sets than the curve
//! ([`CurveSizes::filter`]): a line that its set used last is at distance 0, a hit in every size.
//! **Cost.** See `benches/distance.rs`. Memory: 4 bytes per line of every page that was touched.
//! Its twin is `reference::NaiveDistances`.
//!
//! [`WorkingSet`] stands beside it: how much of memory is touched in each window of time, from the
//! same tables.

mod back;
mod histogram;
mod line_times;
mod sizes;
mod stack;
mod working_set;

pub use sizes::{CurveSizes, SizesError, SIZES_MAX};
pub use working_set::{Window, WorkingSet};

use crate::kernel::{Kernel, Pass, Vectors};
use crate::limits::InstructionSide;
use crate::{Misses, Sharing};
use event::{Access, Code, Groups, Record, RecordKind, Sink, StateLayout, Step, CUT_SITE, WIDE_BYTES};
use histogram::{Histogram, INSTRUCTIONS, NOTHING_FOUND};
use stack::{Stack, BATCH};
use std::collections::HashMap;

/// Measures stack distances.
pub struct StackDistances {
    sizes: CurveSizes,
    sharing: Sharing,
    layout: StateLayout,
    groups: HashMap<u32, Groups>,
    /// The stacks of each thread; those of thread 0 where all threads share.
    stacks: HashMap<u32, SideStacks>,
    found: Histogram,
    damaged: u64,
    fetches: InstructionSide,
    codes: Box<CodeTable>,
    kernel: Kernel,
}

/// The data and the instruction side.
struct SideStacks {
    data: Stack,
    instruction: Stack,
}

/// Misses by size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissCurve {
    /// Bytes of a cache, ascending, and its misses; a read-modify-write misses as a load. The
    /// instruction side has caches of its own.
    pub points: Vec<(u64, Misses)>,
    /// Records that could not be read (0 in a healthy stream).
    pub damaged: u64,
}

impl MissCurve {
    /// Adds the misses of another curve with equal sizes; an empty curve takes those of any sizes.
    pub fn add(&mut self, other: &MissCurve) {
        if self.points.is_empty() {
            self.points = other.points.iter().map(|(bytes, _)| (*bytes, Misses::default())).collect();
        }
        for ((_, sum), (_, more)) in self.points.iter_mut().zip(&other.points) {
            sum.loads += more.loads;
            sum.stores += more.stores;
            sum.instructions += more.instructions;
        }
        self.damaged += other.damaged;
    }

    /// The data side: bytes, and misses of loads and stores.
    pub fn data(&self) -> Vec<(u64, u64)> {
        self.points.iter().map(|(bytes, misses)| (*bytes, misses.loads + misses.stores)).collect()
    }

    /// The instruction side: bytes, and instruction lines that missed.
    pub fn instructions(&self) -> Vec<(u64, u64)> {
        self.points.iter().map(|(bytes, misses)| (*bytes, misses.instructions)).collect()
    }
}

impl StackDistances {
    /// Empty caches of `sizes`; each thread has its own, or all share them.
    pub fn new(sizes: &CurveSizes, sharing: Sharing) -> StackDistances {
        StackDistances {
            sizes: sizes.clone(),
            sharing,
            layout: StateLayout::default(),
            groups: HashMap::new(),
            stacks: HashMap::new(),
            found: NOTHING_FOUND,
            damaged: 0,
            fetches: InstructionSide::Simulated,
            codes: Box::new(CodeTable::new(sizes.line_bytes(), InstructionSide::Simulated)),
            kernel: Kernel::fastest(),
        }
    }

    /// Leaves out the instruction side, whose records may then be of any kind.
    #[must_use]
    pub fn data_only(self) -> StackDistances {
        let codes = Box::new(CodeTable::new(self.sizes.line_bytes(), InstructionSide::Ignored));
        StackDistances { fetches: InstructionSide::Ignored, codes, ..self }
    }

    /// Processes records of one thread whose misses are not counted, in order to warm the caches.
    pub fn warm(&mut self, thread: u32, records: &[Record]) {
        let (found, damaged) = (self.found, self.damaged);
        self.records(thread, records);
        (self.found, self.damaged) = (found, damaged);
    }

    /// Processes records of one thread, in program order.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        let StackDistances { sizes, sharing, layout, groups, stacks, found, damaged, fetches, codes, kernel } =
            self;
        // Threads that share a cache share its stacks; groups stay a thread's own.
        let owner = if *sharing == Sharing::PerThread { thread } else { 0 };
        let new = || SideStacks { data: Stack::new(sizes, *kernel), instruction: Stack::new(sizes, *kernel) };
        let sides = stacks.entry(owner).or_insert_with(new);
        let groups = groups.entry(thread).or_default();
        let line_shift = sizes.line_bytes().trailing_zeros();
        let fetches = *fetches;
        let sets = &*sizes;
        kernel.pass(CurveRun {
            sides,
            groups,
            layout,
            found,
            damaged,
            fetches,
            codes,
            line_shift,
            sets,
            records,
        });
    }

    /// Frees the stacks of a thread that makes no more records, if threads do not share them.
    pub fn end_thread(&mut self, thread: u32) {
        self.groups.remove(&thread);
        if self.sharing == Sharing::PerThread {
            self.stacks.remove(&thread);
        }
    }

    /// How many stacks there are: one for each thread, or one for all.
    pub fn stacks(&self) -> usize {
        self.stacks.len()
    }

    /// The misses so far.
    pub fn curve(&self) -> MissCurve {
        let missed = |kind: usize, size: usize| self.found[kind][size + 1..].iter().sum();
        let misses =
            |size| Misses { loads: missed(0, size), stores: missed(1, size), instructions: missed(2, size) };
        let points = self.sizes.bytes().enumerate().map(|(size, bytes)| (bytes, misses(size)));
        MissCurve { points: points.collect(), damaged: self.damaged }
    }
}

impl Sink for StackDistances {
    fn records(&mut self, thread: u32, records: &[Record]) {
        StackDistances::records(self, thread, records);
    }
}

/// By record code, how the record is processed.
struct CodeTable {
    /// The highest offset in its line at which a record is one touch of data; −1 if it never is.
    limits: [i32; 1 << 8],
    /// The kind under which its misses are counted; [`IGNORED`] if it is not simulated.
    kinds: [u8; 1 << 8],
}

/// The kind of records that are not simulated.
const IGNORED: u8 = u8::MAX;

impl CodeTable {
    fn new(line_bytes: u32, fetches: InstructionSide) -> CodeTable {
        let (mut limits, mut kinds) = ([-1; 1 << 8], [0; 1 << 8]);
        for (code, (limit, kind)) in (0..=u8::MAX).zip(limits.iter_mut().zip(&mut kinds)) {
            let code = Code(code);
            // The last offset at which the access ends within its line.
            let highest = line_bytes as i32 - code.size_bytes().max(1) as i32;
            match code.kind() {
                // The store of a read-modify-write finds the line in front, so it hits in every
                // size.
                RecordKind::Load | RecordKind::Modify => (*limit, *kind) = (highest, RecordKind::Load as u8),
                RecordKind::Store => (*limit, *kind) = (highest, RecordKind::Store as u8),
                RecordKind::Fetch if fetches == InstructionSide::Ignored => *kind = IGNORED,
                RecordKind::FetchPage | RecordKind::DataPage => *kind = IGNORED,
                _ => {}
            }
        }
        CodeTable { limits, kinds }
    }
}

/// Distance in records between the one that is processed and the one that is prefetched.
const AHEAD: usize = BATCH;

/// Records on their way into the stacks of one thread.
struct CurveRun<'a> {
    sides: &'a mut SideStacks,
    groups: &'a mut Groups,
    layout: &'a StateLayout,
    found: &'a mut Histogram,
    damaged: &'a mut u64,
    fetches: InstructionSide,
    codes: &'a CodeTable,
    line_shift: u32,
    sets: &'a CurveSizes,
    records: &'a [Record],
}

impl Pass for CurveRun<'_> {
    type Output = ();

    #[inline(always)]
    fn run<K: Vectors>(mut self, kernel: K) {
        let mut records = self.records;
        while let Some((first, behind_first)) = records.split_first() {
            // A group that is open takes records one by one.
            records = match self.groups.is_open() {
                false => self.stage(kernel, records),
                true => records,
            };
            // Nothing was staged: the first record needs thought.
            if records.len() == behind_first.len() + 1 {
                self.record(first);
                records = behind_first;
            }
        }
        self.sides.data.flush(kernel, self.found);
        self.sides.instruction.flush(kernel, self.found);
    }
}

impl CurveRun<'_> {
    /// Stages records up to the first that is not simply data; returns the rest.
    #[inline(always)]
    fn stage<'a, K: Vectors>(&mut self, kernel: K, records: &'a [Record]) -> &'a [Record] {
        let sweep = self.sides.data.sweep(kernel, self.found);
        let (line_shift, offset_mask) = (self.line_shift, (1 << self.line_shift) - 1);
        let mut len = sweep.len;
        let (staged, behind) = records.split_at(records.len().min(BATCH - len));
        for (number, record) in staged.iter().enumerate() {
            // Another core has written it.
            records.get(number + AHEAD).iter().for_each(|ahead| kernel.prefetch(*ahead));
            let code = record.what as usize & 0xff;
            let kind = self.codes.kinds[code];
            // One comparison decides: a limit of −1 is met by no offset.
            let is_touch = (record.address & offset_mask) as i32 <= self.codes.limits[code];
            // Written always, counted where it is a touch: no branch that the data could
            // mispredict.
            sweep.lines[len] = record.address >> line_shift;
            sweep.kinds[len] = kind;
            // The next record overwrites what was none.
            len += usize::from(is_touch);
            if !is_touch && kind != IGNORED {
                sweep.len = len;
                return &records[number..];
            }
        }
        sweep.len = len;
        behind
    }

    /// A record that is not simply data.
    #[inline(never)]
    fn record(&mut self, record: &Record) {
        match self.groups.push(record) {
            Step::Plain => self.plain(record),
            Step::Part => {}
            Step::Damaged(_) => *self.damaged += 1,
            Step::DamagedBefore(_) => {
                *self.damaged += 1;
                self.plain(record);
            }
            Step::Whole(_, complex) => {
                let layout = *self.layout;
                // All references once, and then their repetitions at a distance that is known.
                complex.stretches(&layout, 1 << self.line_shift, |references, times| {
                    for &(address, size_bytes, access) in references {
                        match access {
                            Access::Load => self.data(RecordKind::Load, address, size_bytes),
                            Access::Store => self.data(RecordKind::Store, address, size_bytes),
                            Access::Prefetch => {}
                        }
                    }
                    self.again(references, times - 1);
                });
            }
        }
    }

    /// Repeats the one or two last `references`, each within a line, `times` times in turn. If both
    /// are of one set, each then finds the other's line in front of its own; otherwise its own line
    /// is in front. The stack does not change.
    fn again(&mut self, references: &[(u64, u32, Access)], times: u64) {
        if times == 0 {
            return;
        }
        let line = |&(address, ..): &(u64, u32, Access)| address >> self.line_shift;
        // Lines of the other reference that come between two uses of one: one or none.
        let between = match references {
            [one, other] => {
                let (one, other) = (line(one), line(other));
                u64::from(one != other && one % self.sets.sets() == other % self.sets.sets())
            }
            _ => 0,
        };
        let ways = self.sets.ways();
        let size = ways.iter().position(|&ways| between < ways).unwrap_or(ways.len());
        for (.., access) in references {
            let kind = if *access == Access::Store { RecordKind::Store } else { RecordKind::Load };
            self.found[kind as usize][size] += times;
        }
    }

    fn plain(&mut self, record: &Record) {
        let (address, size_bytes) = (record.address, record.code().size_bytes());
        match record.code().kind() {
            kind @ (RecordKind::Load | RecordKind::Store) => self.data(kind, address, size_bytes),
            RecordKind::Modify => {
                self.data(RecordKind::Load, address, size_bytes);
                self.data(RecordKind::Store, address, size_bytes);
            }
            RecordKind::Fetch => self.fetch(address, 1),
            RecordKind::Block if record.site() != CUT_SITE => self.fetch(address, record.extra),
            _ => {}
        }
    }

    /// A data reference: it misses where one of its lines does; each line of a wide one counts by
    /// itself.
    fn data(&mut self, kind: RecordKind, address: u64, size_bytes: u32) {
        // Lines from the first byte's to the last byte's.
        let last = address.saturating_add(u64::from(size_bytes.max(1)) - 1) >> self.line_shift;
        let first = address >> self.line_shift;
        if size_bytes > WIDE_BYTES {
            (first..=last).for_each(|line| self.sides.data.push(kind as usize, line..=line, self.found));
        } else {
            self.sides.data.push(kind as usize, first..=last, self.found);
        }
    }

    /// Instruction lines, each a reference.
    fn fetch(&mut self, address: u64, len_bytes: u32) {
        if self.fetches == InstructionSide::Ignored {
            return;
        }
        let last = address.saturating_add(u64::from(len_bytes.max(1)) - 1) >> self.line_shift;
        for line in address >> self.line_shift..=last {
            self.sides.instruction.push(INSTRUCTIONS, line..=line, self.found);
        }
    }
}
