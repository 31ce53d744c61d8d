//! Counters of misses by site and by block, while a simulation runs.
//!
//! **The problem.** A miss is one addition to a counter, but a loop over an array misses at one
//! site thousands of times in a row, and each addition would wait for the one before it.
//!
//! **The idea.** The misses of a sweep are packed before they are counted: first to one per
//! reference, then to runs of equal `what`s; each run is one addition of its length.
//!
//! ```text
//! misses     a a a a b b a a      (reference numbers 1 1 2 3 4 5 6 7)
//! references a a a b b a a        the first touch of each reference
//! runs       a:3 b:2 a:2          one addition each
//! ```
//!
//! Counters have 4 bytes and stand in a column per level and kind of miss. Sites that miss together
//! are neighbours, so the counters in use stay in the host's caches even for a compiler's hundred
//! thousand sites. Counts beyond 4 bytes are carried to a map. [`Tally::counts`] turns the columns
//! into the public tables.
//!
//! **Invariant.** A count is its column's entry plus 2^32 times its carries.

use crate::kernel::{Kernel, Pass, Vectors};
use crate::touch::{held, lanes, lanes_mut, Touches, ROOM, STEP};
use crate::{BlockMisses, Counts, Misses, References, SiteMisses, Totals, CACHES_MAX, TLBS_MAX};
use event::RecordKind;
use std::collections::HashMap;

/// Levels: caches, then TLBs.
const LEVELS: usize = CACHES_MAX + TLBS_MAX;

/// Kinds of misses: loads, stores, fetches.
const LOADS: usize = 0;
const STORES: usize = 1;
const FETCHES: usize = 2;

/// Lane numbers.
const NUMBERS: [u32; STEP] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Counters by site or block.
type Column = Vec<u32>;

/// All counters.
pub(crate) struct Tally {
    /// Counters of each level and kind of miss. In a TLB, stores count as loads.
    columns: [[Column; 3]; LEVELS],
    /// How often a counter overflowed, by level, kind and site.
    carries: Carries,
    runs: Box<Runs>,
    complex: Vec<References>,
    /// Records that could not be read.
    pub(crate) damaged: u64,
    kernel: Kernel,
}

type Carries = HashMap<(usize, usize, usize), u64>;

/// A level whose misses are counted.
#[derive(Clone, Copy)]
pub(crate) enum LevelId {
    Cache(usize),
    Tlb(usize),
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            columns: Default::default(),
            carries: Carries::new(),
            runs: Box::default(),
            complex: Vec::new(),
            damaged: 0,
            kernel: Kernel::fastest(),
        }
    }
}

impl Tally {
    /// Counts each reference among `misses` of `level` once. `counted` is the reference that was
    /// counted last.
    pub(crate) fn add(&mut self, level: LevelId, counted: &mut u32, misses: &Touches) {
        let (level, store) = match level {
            LevelId::Cache(level) => (level, STORES),
            LevelId::Tlb(level) => (CACHES_MAX + level, LOADS),
        };
        if misses.len > 0 {
            let Tally { columns, carries, runs, kernel, .. } = self;
            let columns = &mut columns[level];
            kernel.pass(Add { columns, carries, runs, level, store, counted: *counted, misses });
            *counted = misses.reference[misses.len - 1];
        }
    }

    /// Misses of `kind` by site at `level`.
    fn count(&self, level: usize, kind: usize, site: usize) -> u64 {
        let count = self.columns[level][kind].get(site).copied().unwrap_or(0);
        // The map is nearly always empty.
        let carries =
            if self.carries.is_empty() { None } else { self.carries.get(&(level, kind, site)).copied() };
        u64::from(count) + (carries.unwrap_or(0) << 32)
    }

    /// The number of sites or blocks up to the last one with a miss of these kinds.
    fn len(&self, kinds: &[usize]) -> usize {
        let used = |column: &Column| column.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        let columns = self.columns.iter().flat_map(|level| kinds.iter().map(|&kind| used(&level[kind])));
        let carried = self.carries.keys().map(|&(_, _, site)| site + 1);
        columns.chain(carried).max().unwrap_or(0)
    }

    pub(crate) fn complex(&mut self, site: usize) -> &mut References {
        at(&mut self.complex, site)
    }

    /// The sums over all sites and blocks.
    pub(crate) fn totals(&self) -> Totals {
        let level = |level: usize| {
            // The sum of a column, and 2^32 for each overflow of a counter.
            let sum = |kind: usize| {
                let carried =
                    self.carries.iter().filter(|((other, of, _), _)| (*other, *of) == (level, kind));
                let carried: u64 = carried.map(|(_, times)| times << 32).sum();
                self.columns[level][kind].iter().map(|&count| u64::from(count)).sum::<u64>() + carried
            };
            Misses { loads: sum(LOADS), stores: sum(STORES), instructions: sum(FETCHES) }
        };
        Totals {
            caches: std::array::from_fn(level),
            tlbs: std::array::from_fn(|number| level(CACHES_MAX + number)),
        }
    }

    /// All counts as public tables.
    pub(crate) fn counts(&self) -> Counts {
        self.counts_beside(self.complex.clone())
    }

    /// All counts as public tables. The counts of complex references are moved, not copied.
    pub(crate) fn take(&mut self) -> Counts {
        let complex = std::mem::take(&mut self.complex);
        self.counts_beside(complex)
    }

    /// All counts, of which those of complex references are given.
    fn counts_beside(&self, complex: Vec<References>) -> Counts {
        let caches = |kind, site| std::array::from_fn(|level| self.count(level, kind, site));
        let tlbs = |kind, site| std::array::from_fn(|level| self.count(CACHES_MAX + level, kind, site));
        let site = |site| SiteMisses {
            loads: caches(LOADS, site),
            stores: caches(STORES, site),
            tlbs: tlbs(LOADS, site),
        };
        let block = |block| BlockMisses { fetches: caches(FETCHES, block), tlbs: tlbs(FETCHES, block) };
        let counts = Counts {
            sites: (0..self.len(&[LOADS, STORES])).map(site).collect(),
            blocks: (0..self.len(&[FETCHES])).map(block).collect(),
            complex,
            write_backs: None,
            prefetched: None,
            traffic: None,
            damaged: self.damaged,
        };
        counts.trimmed()
    }
}

/// Misses of one sweep that follow each other and have equal `what`s.
struct Runs {
    what: [u32; ROOM],
    /// The number of misses before each run; behind the last run, the number before its end.
    start: [u32; ROOM],
}

impl Default for Runs {
    fn default() -> Runs {
        Runs { what: [0; ROOM], start: [0; ROOM] }
    }
}

/// Adds misses to a level's columns.
struct Add<'a> {
    columns: &'a mut [Column; 3],
    carries: &'a mut Carries,
    runs: &'a mut Runs,
    level: usize,
    /// The kind as which stores count.
    store: usize,
    counted: u32,
    misses: &'a Touches,
}

impl Pass for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<K: Vectors>(mut self, kernel: K) {
        let count = self.references(kernel);
        let runs = self.heads(kernel, count);
        for run in 0..runs {
            let Runs { what, start } = &*self.runs;
            self.run_of(what[run], start[run + 1] - start[run]);
        }
    }
}

impl Add<'_> {
    /// Copies the `what` of each reference that was not counted yet, and returns their number.
    #[inline(always)]
    fn references<K: Vectors>(&mut self, kernel: K) -> usize {
        let mut before = [self.counted; STEP];
        let mut count = 0;
        for start in (0..self.misses.len).step_by(STEP) {
            let step = self.misses.step(start);
            // Touches of one reference follow each other: the first of them counts.
            let new = kernel.changes(&mut before, step.reference) & held(self.misses.len, start);
            *lanes_mut(&mut self.runs.what, count) = kernel.pack(new, step.what);
            count += new.count_ones() as usize;
        }
        count
    }

    /// Keeps those of `count` misses that begin a run, and returns their number.
    #[inline(always)]
    fn heads<K: Vectors>(&mut self, kernel: K, count: usize) -> usize {
        let Runs { what, start: starts } = &mut *self.runs;
        let mut before = [0; STEP];
        let mut runs = 0;
        for start in (0..count).step_by(STEP) {
            // The words that are written lie before those that are read next.
            let step = *lanes(what, start);
            let heads = (kernel.changes(&mut before, &step) | u32::from(start == 0)) & held(count, start);
            *lanes_mut(what, runs) = kernel.pack(heads, &step);
            *lanes_mut(starts, runs) = kernel.pack(heads, &NUMBERS.map(|number| number + start as u32));
            runs += heads.count_ones() as usize;
        }
        // The end of the last run.
        starts[runs] = count as u32;
        runs
    }

    #[inline(always)]
    fn run_of(&mut self, what: u32, count: u32) {
        // All misses of a run have one `what`: one site, one kind.
        let kind = (what >> 4) & 15;
        // Loads and all other kinds count in column 0, so there is no branch on the kind.
        let column = self.store * usize::from(kind == RecordKind::Store as u32)
            + FETCHES * usize::from(kind == RecordKind::Fetch as u32);
        let site = (what >> 8) as usize;
        let counter = at(&mut self.columns[column.min(FETCHES)], site);
        // Four bytes hold nearly every count; overflows are carried to a map.
        let (sum, carry) = counter.overflowing_add(count);
        *counter = sum;
        if carry {
            self.carry(column, site);
        }
    }

    #[cold]
    #[inline(never)]
    fn carry(&mut self, kind: usize, site: usize) {
        *self.carries.entry((self.level, kind, site)).or_default() += 1;
    }
}

/// The element at `index` of a table, which grows if it is too short.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_carry_over() {
        let mut tally = Tally::default();
        let mut misses = Touches::empty();
        let what = 5 << 8 | (RecordKind::Store as u32) << 4;
        (1..=40).for_each(|reference| misses.push(0, what, reference));
        tally.add(LevelId::Cache(1), &mut 0, &misses);
        tally.columns[1][STORES][5] = u32::MAX - 7;
        tally.add(LevelId::Cache(1), &mut 0, &misses);
        assert_eq!(tally.counts().sites[5].stores[1], u64::from(u32::MAX) - 7 + 40);
        assert_eq!(tally.totals().caches[1], tally.counts().cache(1));
    }

    #[test]
    fn counts_that_are_taken_are_those_that_were_copied() {
        let mut tally = Tally::default();
        let mut misses = Touches::empty();
        misses.push(0, 3 << 8 | (RecordKind::Load as u32) << 4, 1);
        tally.add(LevelId::Tlb(0), &mut 0, &misses);
        tally.complex(7).loads = 9;
        let copied = tally.counts();
        assert_eq!((copied.sites[3].tlbs[0], copied.complex.len()), (1, 8));
        assert_eq!(tally.take(), copied);
    }
}
