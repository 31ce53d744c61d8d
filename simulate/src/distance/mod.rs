//! Miss curves in one pass: the misses of caches of many sizes, from one look at each reference.
//!
//! **What.** [`StackDistances`] takes a stream and gives a [`MissCurve`]: for each of up to [`SIZES_MAX`] sizes, exactly the misses that a cache of
//! that size with true LRU would have, fully associative or of a given number of sets. Stores allocate. As in reports, a reference that touches
//! several lines counts as at most one miss.
//!
//! **Why this way.** A cache with LRU holds what it would hold if it were smaller, and more (Mattson et al. 1970): how many other lines of its set were
//! used since a line's last use, its *stack distance*, says for every size at once whether it is there. Distances themselves are
//! not computed: which of the sizes a distance lies between is all that a curve needs, and is found by comparing times (`stack`).
//! **Leaves out** other policies, which lack the property; levels behind others; coherence.
//!
//! **Which stream.** The full one, or one whose filter has no more sets than the curve ([`CurveSizes::filter`]): a line that its set used last is at distance
//! 0, a hit in every size. **Cost.** See `benches/distance.rs`. Memory: 4 bytes per line of every page that was touched. Its twin is
//! `reference::NaiveDistances`.
//!
//! [`WorkingSet`] stands beside it: how much of memory is touched in each window of time, from the same tables.

mod pages;
mod sizes;
mod stack;
mod working_set;

pub use sizes::{CurveSizes, SizesError, SIZES_MAX};
pub use working_set::{Window, WorkingSet};

use crate::kernel::{Kernel, TouchRow, Work};
use crate::stage::Fetches;
use crate::{Misses, Sharing};
use event::{Access, Groups, Record, RecordKind, Sink, StateLayout, Step, CUT_SITE, SIZES};
use stack::{Stack, NEAR};
use std::collections::HashMap;

/// Loads, stores, instruction lines.
const KINDS: usize = 3;
const INSTRUCTIONS: usize = 2;

/// References by kind and by the first size in which they hit; the last place is that of misses in every size.
type Histogram = [[u64; SIZES_MAX + 1]; KINDS];

/// Measures stack distances.
pub struct StackDistances {
    sizes: CurveSizes,
    sharing: Sharing,
    layout: StateLayout,
    groups: HashMap<u32, Groups>,
    /// By thread; of thread 0 where all threads share.
    stacks: HashMap<u32, Sides>,
    found: Histogram,
    damaged: u64,
    fetches: Fetches,
    kernel: Kernel,
}

/// The data and the instruction side.
struct Sides {
    data: Stack,
    instruction: Stack,
}

/// Misses by size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissCurve {
    /// Bytes of a cache, ascending, and its misses; a read-modify-write misses as a load. The instruction side has caches of its own.
    pub points: Vec<(u64, Misses)>,
    /// Records that could not be read (0 in a healthy stream).
    pub damaged: u64,
}

impl MissCurve {
    /// Adds the misses of other memory in caches of the same sizes; to an empty curve, any.
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
            found: [[0; SIZES_MAX + 1]; KINDS],
            damaged: 0,
            fetches: Fetches::Simulated,
            kernel: Kernel::fastest(),
        }
    }

    /// The same without the instruction side, whose records may then be of any kind.
    #[must_use]
    pub fn data_only(self) -> StackDistances {
        StackDistances { fetches: Fetches::Ignored, ..self }
    }

    /// Takes records that use lines as all do, but whose misses do not count.
    pub fn warm(&mut self, thread: u32, records: &[Record]) {
        let (found, damaged) = (self.found, self.damaged);
        self.records(thread, records);
        (self.found, self.damaged) = (found, damaged);
    }

    /// Takes records of one thread, in program order.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        let StackDistances { sizes, sharing, layout, groups, stacks, found, damaged, fetches, kernel } = self;
        let owner = if *sharing == Sharing::PerThread { thread } else { 0 };
        let new = || Sides { data: Stack::new(sizes), instruction: Stack::new(sizes) };
        let sides = stacks.entry(owner).or_insert_with(new);
        let groups = groups.entry(thread).or_default();
        let line_shift = sizes.line_bytes().trailing_zeros();
        let fetches = *fetches;
        kernel.run(Run { sides, groups, layout, found, damaged, fetches, line_shift, records });
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

/// Records on their way into the stacks of one thread.
struct Run<'a> {
    sides: &'a mut Sides,
    groups: &'a mut Groups,
    layout: &'a StateLayout,
    found: &'a mut Histogram,
    damaged: &'a mut u64,
    fetches: Fetches,
    line_shift: u32,
    records: &'a [Record],
}

impl Work<u64, NEAR> for Run<'_> {
    type Output = ();

    #[inline(always)]
    fn run<K: TouchRow<u64, NEAR>>(mut self, kernel: K) {
        for record in self.records {
            let (kind, size) = (record.what as usize >> 4 & 15, record.what as usize & 15);
            let last = record.address.wrapping_add(u64::from(SIZES[size].max(1)) - 1);
            let line = record.address >> self.line_shift;
            let last_line = last >> self.line_shift;
            let plain = kind <= RecordKind::Store as usize && last_line >= line && !self.groups.is_open();
            if plain {
                let mut size = self.sides.data.touch(kernel, line);
                for line in line + 1..=last_line {
                    size = size.max(self.sides.data.touch(kernel, line));
                }
                self.found[kind & 1][size & SIZES_MAX] += 1;
            } else if kind == RecordKind::Modify as usize && last_line == line && !self.groups.is_open() {
                let size = self.sides.data.touch(kernel, line);
                self.found[RecordKind::Load as usize][size & SIZES_MAX] += 1;
                // What it stores to is in front, so every size has it.
                self.found[RecordKind::Store as usize][0] += 1;
            } else {
                self.record(kernel, record);
            }
        }
    }
}

impl Run<'_> {
    /// A record that is not simply data.
    #[inline(never)]
    fn record<K: TouchRow<u64, NEAR>>(&mut self, kernel: K, record: &Record) {
        match self.groups.push(record) {
            Step::Plain => self.plain(kernel, record),
            Step::Part => {}
            Step::Damaged(_) => *self.damaged += 1,
            Step::DamagedBefore(_) => {
                *self.damaged += 1;
                self.plain(kernel, record);
            }
            Step::Whole(_, complex) => {
                let layout = *self.layout;
                complex.references(&layout, |address, size_bytes, access| match access {
                    Access::Load => self.data(kernel, RecordKind::Load, address, size_bytes),
                    Access::Store => self.data(kernel, RecordKind::Store, address, size_bytes),
                    Access::Prefetch => {}
                });
            }
        }
    }

    fn plain<K: TouchRow<u64, NEAR>>(&mut self, kernel: K, record: &Record) {
        let (address, size_bytes) = (record.address, record.code().size_bytes());
        match record.code().kind() {
            kind @ (RecordKind::Load | RecordKind::Store) => self.data(kernel, kind, address, size_bytes),
            RecordKind::Modify => {
                self.data(kernel, RecordKind::Load, address, size_bytes);
                self.data(kernel, RecordKind::Store, address, size_bytes);
            }
            RecordKind::Fetch => self.fetch(kernel, address, 1),
            RecordKind::Block if record.site() != CUT_SITE => self.fetch(kernel, address, record.extra),
            _ => {}
        }
    }

    /// A data reference: it misses where one of its lines does.
    fn data<K: TouchRow<u64, NEAR>>(&mut self, kernel: K, kind: RecordKind, address: u64, size_bytes: u32) {
        let last = address.saturating_add(u64::from(size_bytes.max(1)) - 1) >> self.line_shift;
        let sizes = (address >> self.line_shift..=last).map(|line| self.sides.data.touch(kernel, line));
        let size = sizes.max().unwrap_or(0);
        self.found[kind as usize][size] += 1;
    }

    /// Instruction lines, each a reference.
    fn fetch<K: TouchRow<u64, NEAR>>(&mut self, kernel: K, address: u64, len_bytes: u32) {
        if self.fetches == Fetches::Ignored {
            return;
        }
        let last = address.saturating_add(u64::from(len_bytes.max(1)) - 1) >> self.line_shift;
        for line in address >> self.line_shift..=last {
            let size = self.sides.instruction.touch(kernel, line);
            self.found[INSTRUCTIONS][size] += 1;
        }
    }
}
