//! The results of a simulation, as plain numbers.
//!
//! **Units.** References: one that touches several lines of a level counts as at most one miss of
//! that level (cachegrind's convention), but one of more than [`event::WIDE_BYTES`] counts each
//! line that misses. A fetch is one instruction line. **Leaves out** the numbers of references:
//! most references of a filtered stream are never recorded, so the totals of loads, stores and
//! instructions come from the engine's block counts. Only complex references are counted here
//! ([`References`]), because block counts do not show them.

use event::Complex;

/// The most cache levels.
pub const CACHES_MAX: usize = 3;
/// The most TLB levels.
pub const TLBS_MAX: usize = 2;

/// Misses of one data site, by level (0 is the first).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteMisses {
    /// Loads that missed; a read-modify-write counts here.
    pub loads: [u64; CACHES_MAX],
    /// Stores that missed.
    pub stores: [u64; CACHES_MAX],
    /// Loads and stores that missed the data TLB.
    pub tlbs: [u64; TLBS_MAX],
}

/// Misses of one block's instruction lines, by level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockMisses {
    /// Lines that missed.
    pub fetches: [u64; CACHES_MAX],
    /// Lines whose page missed the instruction TLB.
    pub tlbs: [u64; TLBS_MAX],
}

/// Loads and stores that complex references made at one site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Iterations of repeated string instructions.
    pub iterations: u64,
    /// Executions of the complex instruction, except those that repeated 0 times.
    pub executions: u64,
    /// Executions that repeat until their count is used up (`movs`, `stos`, `lods`).
    pub counted_down: u64,
}

impl References {
    /// Adds the execution of a complex instruction, without its loads and stores.
    pub fn execute(&mut self, complex: &Complex) {
        let iterations = complex.iterations();
        self.executions += u64::from(iterations > 0);
        self.iterations += iterations;
        self.counted_down += u64::from(complex.runs_its_count_down());
    }

    /// Adds the counts of another part of the run.
    pub fn add(&mut self, other: &References) {
        self.executions += other.executions;
        self.iterations += other.iterations;
        self.loads += other.loads;
        self.stores += other.stores;
        self.counted_down += other.counted_down;
    }
}

/// Misses of one level, for all sites together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// Misses of loads.
    pub loads: u64,
    /// Misses of stores (for a TLB 0, because all its data misses count as `loads`).
    pub stores: u64,
    /// Misses of instruction lines.
    pub instructions: u64,
}

impl Misses {
    /// Misses of any kind.
    pub fn total(&self) -> u64 {
        self.loads + self.stores + self.instructions
    }
}

/// The counts of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Indexed by data site.
    pub sites: Vec<SiteMisses>,
    /// Indexed by block.
    pub blocks: Vec<BlockMisses>,
    /// Complex references, indexed by data site.
    pub complex: Vec<References>,
    /// Dirty lines that each cache level gave up, if that was requested. They are exact for a full
    /// stream only.
    pub write_backs: Option<[u64; CACHES_MAX]>,
    /// Lines that prefetchers fetched into each level, if one of the levels has a prefetcher. The
    /// first level is that of data and that of instructions together.
    pub prefetched: Option<[Prefetched; CACHES_MAX]>,
    /// Lines that moved between levels, if that was requested of refined levels. Exact for a full
    /// stream only.
    pub traffic: Option<Traffic>,
    /// Records that could not be read (0 in a healthy stream).
    pub damaged: u64,
}

/// Lines of a level that no reference had asked for when they were fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefetched {
    /// Lines that entered because a prefetcher of any level wanted them. Misses do not count them.
    pub lines: u64,
    /// Hits of lines that had not arrived (see
    /// [`Prefetchers::late_touches`](crate::Prefetchers::late_touches)). Misses do not count them.
    pub late: u64,
}

/// Lines that one level got and gave, each as long as the level's own lines.
///
/// Bytes that a level loads are `lines_in` lines; bytes that it evicts are `dirty_out + clean_out`
/// lines. Memory is read once for each line that enters an outermost level that is not exclusive;
/// in front of an exclusive one, for `lines_in` of the level inside less what the exclusive level
/// supplied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelTraffic {
    /// Lines that entered: by misses, by prefetches, and in an exclusive level as victims.
    pub lines_in: u64,
    /// Those of `lines_in` that a prefetcher of any level fetched.
    pub prefetched_in: u64,
    /// Lines that an inner level, or a prefetcher of one, asked for and found here; in a first
    /// level 0.
    pub supplied: u64,
    /// Changed lines that it replaced or had to give up, and that were written outwards.
    pub dirty_out: u64,
    /// Unchanged lines that it replaced and that moved to an exclusive level outside. Elsewhere
    /// they are dropped, and not counted.
    pub clean_out: u64,
    /// Prefetched lines that were asked for before they arrived (see
    /// [`Prefetchers::late_touches`](crate::Prefetchers::late_touches)): hits that waited.
    pub late: u64,
}

/// Lines that moved between the levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The first level of data, and the outer levels.
    pub levels: [LevelTraffic; CACHES_MAX],
    /// The first level of instructions.
    pub instruction: LevelTraffic,
    /// Stores that no level took, because all let stores that miss pass.
    pub stores_to_memory: u64,
}

impl LevelTraffic {
    fn add(&mut self, other: &LevelTraffic) {
        self.lines_in += other.lines_in;
        self.prefetched_in += other.prefetched_in;
        self.supplied += other.supplied;
        self.dirty_out += other.dirty_out;
        self.clean_out += other.clean_out;
        self.late += other.late;
    }
}

impl Traffic {
    /// What prefetchers did, level by level.
    pub fn prefetched(&self) -> [Prefetched; CACHES_MAX] {
        let of = |level: &LevelTraffic| Prefetched { lines: level.prefetched_in, late: level.late };
        let mut levels = self.levels.each_ref().map(of);
        levels[0].lines += self.instruction.prefetched_in;
        levels[0].late += self.instruction.late;
        levels
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Traffic) {
        self.levels.iter_mut().zip(&other.levels).for_each(|(to, from)| to.add(from));
        self.instruction.add(&other.instruction);
        self.stores_to_memory += other.stores_to_memory;
    }

    /// Dirty lines that each level gave up.
    pub fn dirty_out(&self) -> [u64; CACHES_MAX] {
        self.levels.map(|level| level.dirty_out)
    }
}

impl Counts {
    /// Adds what was counted elsewhere, site by site and block by block.
    pub fn add(&mut self, other: &Counts) {
        self.add_renumbered(other, |site| site, |block| block);
    }

    /// Adds what was counted elsewhere under equal numbers. Cost: nothing if these counts have no
    /// entry, because then they become the others.
    pub fn take(&mut self, other: Counts) {
        if *self == Counts::default() {
            *self = other.trimmed();
        } else {
            self.add(&other);
        }
    }

    /// Adds what was counted elsewhere under other numbers: `site` and `block` return the numbers
    /// that sites and blocks have here.
    pub fn add_renumbered(&mut self, other: &Counts, site: impl Fn(u32) -> u32, block: impl Fn(u32) -> u32) {
        each(&mut self.sites, &other.sites, &site, (SiteMisses::is_empty, SiteMisses::add));
        each(&mut self.blocks, &other.blocks, &block, (BlockMisses::is_empty, BlockMisses::add));
        let is_empty = |references: &References| *references == References::default();
        each(&mut self.complex, &other.complex, &site, (is_empty, References::add));
        if let Some(more) = &other.write_backs {
            sum(self.write_backs.get_or_insert_default(), more);
        }
        if let Some(more) = &other.prefetched {
            let own = self.prefetched.get_or_insert_default();
            own.iter_mut().zip(more).for_each(|(to, from)| {
                to.lines += from.lines;
                to.late += from.late;
            });
        }
        if let Some(more) = &other.traffic {
            self.traffic.get_or_insert_default().add(more);
        }
        self.damaged += other.damaged;
    }

    /// The sums over all sites and over all blocks, each as a table of one entry.
    #[must_use]
    pub fn summed(&self) -> Counts {
        let mut sums = Counts::default();
        sums.add_renumbered(self, |_| 0, |_| 0);
        sums
    }

    /// The sums over all sites and blocks, by level; one pass over the tables.
    pub fn totals(&self) -> Totals {
        let mut sites = SiteMisses::default();
        self.sites.iter().for_each(|site| sites.add(site));
        let mut blocks = BlockMisses::default();
        self.blocks.iter().for_each(|block| blocks.add(block));
        let cache = |level: usize| Misses {
            loads: sites.loads[level],
            stores: sites.stores[level],
            instructions: blocks.fetches[level],
        };
        let tlb =
            |level: usize| Misses { loads: sites.tlbs[level], stores: 0, instructions: blocks.tlbs[level] };
        Totals { caches: std::array::from_fn(cache), tlbs: std::array::from_fn(tlb) }
    }

    /// Misses of cache level `level` (0 is the first).
    pub fn cache(&self, level: usize) -> Misses {
        let mut misses = Misses::default();
        for site in &self.sites {
            misses.loads += site.loads[level];
            misses.stores += site.stores[level];
        }
        misses.instructions = self.blocks.iter().map(|block| block.fetches[level]).sum();
        misses
    }

    /// Misses of TLB level `level`.
    pub fn tlb(&self, level: usize) -> Misses {
        Misses {
            loads: self.sites.iter().map(|site| site.tlbs[level]).sum(),
            stores: 0,
            instructions: self.blocks.iter().map(|block| block.tlbs[level]).sum(),
        }
    }

    /// These counts without empty entries at the tables' ends, so that equal results compare equal.
    pub fn trimmed(mut self) -> Counts {
        trim(&mut self.sites);
        trim(&mut self.blocks);
        trim(&mut self.complex);
        self
    }
}

impl SiteMisses {
    /// Whether nothing missed.
    pub fn is_empty(&self) -> bool {
        // One test of all bits: a comparison with an empty entry would be a call for each site.
        let bits = |counts: &[u64]| counts.iter().fold(0, |bits, count| bits | count);
        bits(&self.loads) | bits(&self.stores) | bits(&self.tlbs) == 0
    }

    /// Adds the misses of `other`.
    pub fn add(&mut self, other: &SiteMisses) {
        sum(&mut self.loads, &other.loads);
        sum(&mut self.stores, &other.stores);
        sum(&mut self.tlbs, &other.tlbs);
    }
}

impl BlockMisses {
    /// Whether nothing missed.
    pub fn is_empty(&self) -> bool {
        self.fetches.iter().chain(&self.tlbs).fold(0, |bits, count| bits | count) == 0
    }

    /// Adds the misses of `other`.
    pub fn add(&mut self, other: &BlockMisses) {
        sum(&mut self.fetches, &other.fetches);
        sum(&mut self.tlbs, &other.tlbs);
    }
}

fn sum(to: &mut [u64], from: &[u64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// Adds each entry of `from` that is not empty to the one in `to` that has its number there.
fn each<T: Default>(
    to: &mut Vec<T>,
    from: &[T],
    number: impl Fn(u32) -> u32,
    (is_empty, add): (impl Fn(&T) -> bool, impl Fn(&mut T, &T)),
) {
    for (own, entry) in from.iter().enumerate().filter(|(_, entry)| !is_empty(entry)) {
        let number = number(own as u32) as usize;
        if to.len() <= number {
            to.resize_with(number + 1, T::default);
        }
        add(&mut to[number], entry);
    }
}

fn trim<T: Default + PartialEq>(table: &mut Vec<T>) {
    let used = table.iter().rposition(|entry| *entry != T::default()).map_or(0, |last| last + 1);
    table.truncate(used);
}

/// Misses of every level, of all sites and blocks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Misses of each cache level.
    pub caches: [Misses; CACHES_MAX],
    /// Misses of each TLB level.
    pub tlbs: [Misses; TLBS_MAX],
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts with a miss of each kind and level, each by another number.
    fn counts() -> Counts {
        let mut counts = Counts { damaged: 1, ..Counts::default() };
        let mut next = 1;
        let mut count = || {
            next *= 3;
            next
        };
        for kind in 0..3 {
            for level in 0..CACHES_MAX {
                let mut site = SiteMisses::default();
                match kind {
                    0 => site.loads[level] = count(),
                    1 => site.stores[level] = count(),
                    _ => site.tlbs[level % TLBS_MAX] = count(),
                }
                counts.sites.extend([site, SiteMisses::default()]);
                let mut block = BlockMisses::default();
                match kind {
                    0 => block.fetches[level] = count(),
                    _ => block.tlbs[level % TLBS_MAX] = count(),
                }
                counts.blocks.extend([BlockMisses::default(), block]);
            }
        }
        counts
    }

    #[test]
    fn one_pass_sums_all_levels() {
        let counts = counts();
        let totals = counts.totals();
        for level in 0..CACHES_MAX {
            assert_eq!(totals.caches[level], counts.cache(level), "{level}");
        }
        for level in 0..TLBS_MAX {
            assert_eq!(totals.tlbs[level], counts.tlb(level), "{level}");
        }
        assert!(totals.caches[2].total() > 0 && totals.tlbs[1].total() > 0);
    }

    #[test]
    fn entries_are_empty_if_they_equal_an_empty_one() {
        let counts = counts();
        assert!(counts.sites.iter().all(|site| site.is_empty() == (*site == SiteMisses::default())));
        assert!(counts.blocks.iter().all(|block| block.is_empty() == (*block == BlockMisses::default())));
    }

    #[test]
    fn counts_are_taken_as_they_are_added() {
        let (mut taken, mut added) = (Counts::default(), Counts::default());
        for _ in 0..2 {
            taken.take(counts());
            added.add(&counts());
            assert_eq!(taken, added);
        }
    }
}
