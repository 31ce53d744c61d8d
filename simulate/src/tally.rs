//! Who missed: counters by site and by block while a simulation runs.
//!
//! **Why this way.** One row of 64 bytes per site or block, one line of the host's cache, and a slot computed without a branch: kinds of
//! misses follow each other unpredictably. [`Tally::counts`] turns the rows into the public tables.

use crate::{BlockMisses, Counts, References, SiteMisses, CACHES_MAX, TLBS_MAX};
use event::{Record, RecordKind};

/// Slots of a row: loads or fetches by cache level, stores by cache level, TLB levels.
const SLOTS: usize = 8;
const STORES: usize = CACHES_MAX;
const TLBS: usize = 2 * CACHES_MAX;

type Row = [u64; SLOTS];

/// All counters.
#[derive(Default)]
pub(crate) struct Tally {
    /// Rows of data sites, then of blocks.
    sides: [Vec<Row>; 2],
    complex: Vec<References>,
    /// Records that could not be read.
    pub(crate) damaged: u64,
}

/// A level whose misses are counted.
#[derive(Clone, Copy)]
pub(crate) enum Level {
    Cache(usize),
    Tlb(usize),
}

impl Tally {
    /// Counts each reference among `misses` of `level` once; `counted` is the reference that was counted last.
    pub(crate) fn add(&mut self, level: Level, counted: &mut u32, misses: &[Record]) {
        // In a TLB stores and loads share a slot.
        let (first, store) = match level {
            Level::Cache(level) => (level, STORES),
            Level::Tlb(level) => (TLBS + level, 0),
        };
        let mut last = *counted;
        for miss in misses {
            let is_new = miss.extra != last;
            last = miss.extra;
            let kind = (miss.what >> 4) & 15;
            let side = usize::from(kind == RecordKind::Fetch as u32);
            let slot = first + store * usize::from(kind == RecordKind::Store as u32);
            let row = at(&mut self.sides[side], miss.site());
            row[slot & (SLOTS - 1)] += u64::from(is_new);
        }
        *counted = last;
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
