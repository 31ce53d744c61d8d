//! Who missed: counters by site and by block while a simulation runs.
//!
//! **Why this way.** One row of 64 bytes per site or block, one line of the host's cache, and a slot computed without a branch: kinds of
//! misses follow each other unpredictably. Misses of one site that follow each other, as in loops over arrays, are added at once: adding
//! them one by one would wait for the counter each time. [`Tally::counts`] turns the rows into the public tables.

use crate::kernel::{Kernel, Pass, Vectors};
use crate::touch::{held, Touches, STEP};
use crate::{BlockMisses, Counts, References, SiteMisses, CACHES_MAX, TLBS_MAX};
use event::RecordKind;

/// Slots of a row: loads or fetches by cache level, stores by cache level, TLB levels.
const SLOTS: usize = 8;
const STORES: usize = CACHES_MAX;
const TLBS: usize = 2 * CACHES_MAX;

type Row = [u64; SLOTS];

/// All counters.
pub(crate) struct Tally {
    /// Rows of data sites, then of blocks.
    sides: [Vec<Row>; 2],
    complex: Vec<References>,
    /// Records that could not be read.
    pub(crate) damaged: u64,
    kernel: Kernel,
}

/// A level whose misses are counted.
#[derive(Clone, Copy)]
pub(crate) enum Level {
    Cache(usize),
    Tlb(usize),
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { sides: Default::default(), complex: Vec::new(), damaged: 0, kernel: Kernel::fastest() }
    }
}

impl Tally {
    /// Counts each reference among `misses` of `level` once; `counted` is the reference that was counted last.
    pub(crate) fn add(&mut self, level: Level, counted: &mut u32, misses: &Touches) {
        // In a TLB stores and loads share a slot.
        let (first, store) = match level {
            Level::Cache(level) => (level, STORES),
            Level::Tlb(level) => (TLBS + level, 0),
        };
        if misses.len > 0 {
            self.kernel.pass(Add { sides: &mut self.sides, first, store, counted: *counted, misses });
            *counted = misses.reference[misses.len - 1];
        }
    }

    pub(crate) fn complex(&mut self, site: usize) -> &mut References {
        at(&mut self.complex, site)
    }

    /// All that was counted.
    pub(crate) fn counts(&self) -> Counts {
        let levels = |row: &Row, first| std::array::from_fn(|level| row[first + level]);
        let tlbs = |row: &Row| -> [u64; TLBS_MAX] { std::array::from_fn(|level| row[TLBS + level]) };
        let [data, code] = &self.sides;
        let site =
            |row: &Row| SiteMisses { loads: levels(row, 0), stores: levels(row, STORES), tlbs: tlbs(row) };
        let block = |row: &Row| BlockMisses { fetches: levels(row, 0), tlbs: tlbs(row) };
        let counts = Counts {
            sites: data.iter().map(site).collect(),
            blocks: code.iter().map(block).collect(),
            complex: self.complex.clone(),
            write_backs: None,
            damaged: self.damaged,
        };
        counts.trimmed()
    }
}

/// Adds misses to the rows.
struct Add<'a> {
    sides: &'a mut [Vec<Row>; 2],
    /// Slot of loads and fetches, and how far behind it that of stores is.
    first: usize,
    store: usize,
    counted: u32,
    misses: &'a Touches,
}

impl Pass for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<K: Vectors>(mut self, kernel: K) {
        let misses = self.misses;
        let mut references = [self.counted; STEP];
        let mut whats = [0; STEP];
        for start in (0..misses.len).step_by(STEP) {
            let step = misses.step(start);
            let held = held(misses.len, start);
            let new = kernel.changes(&mut references, step.reference) & held;
            // Runs of equal `what`; the sentinel behind the last lane ends the last run.
            let mut heads = (kernel.changes(&mut whats, step.what) | 1) & held | 1 << STEP;
            while heads & held != 0 {
                let head = heads.trailing_zeros();
                heads &= heads - 1;
                let run = (1 << heads.trailing_zeros()) - (1 << head);
                self.run_of(step.what[head as usize & (STEP - 1)], (new & run).count_ones());
            }
        }
    }
}

impl Add<'_> {
    #[inline(always)]
    fn run_of(&mut self, what: u32, count: u32) {
        let kind = (what >> 4) & 15;
        let side = usize::from(kind == RecordKind::Fetch as u32);
        let slot = self.first + self.store * usize::from(kind == RecordKind::Store as u32);
        let row = at(&mut self.sides[side], (what >> 8) as usize);
        row[slot & (SLOTS - 1)] += u64::from(count);
    }
}

/// The element at `index`; the table grows when it is short.
#[inline(always)]
fn at<T: Clone + Default>(table: &mut Vec<T>, index: usize) -> &mut T {
    if index >= table.len() {
        grow(table, index);
    }
    &mut table[index]
}

#[cold]
#[inline(never)]
fn grow<T: Clone + Default>(table: &mut Vec<T>, index: usize) {
    table.resize((index + 1).next_power_of_two(), T::default());
}
