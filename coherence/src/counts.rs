//! The words of a result: kinds of misses, and what is counted of a line and of two places.

/// What a run with coherent caches counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// References that read, one for each line that they touch.
    pub loads: u64,
    /// References that write, one for each line that they touch.
    pub stores: u64,
    /// Instructions that read and write in one step (a lock prefix, `xchg`).
    pub atomics: u64,
    /// Atomic instructions that had to fetch the line or the right to write it from another core.
    pub atomic_transfers: u64,
    /// Misses of the first level whose line the core had never held.
    pub cold: u64,
    /// Misses of the first level that a fully associative one of equal size has too.
    pub capacity: u64,
    /// Misses of the first level that a fully associative one of equal size does not have.
    pub conflict: u64,
    /// Misses of lines that another core's write had taken, of which the core then touched bytes
    /// that another core had written.
    pub true_sharing: u64,
    /// Misses of lines that another core's write had taken, of which the core then touched no such
    /// byte before it lost the line again.
    pub false_sharing: u64,
    /// Misses of all private levels.
    pub private_misses: u64,
    /// Writes to lines that the core held as one of several: the right to write was fetched.
    pub upgrades: u64,
    /// Copies that writes of other cores took away.
    pub invalidations: u64,
    /// Misses that another core answered with a line that it had changed.
    pub dirty_transfers: u64,
    /// Changed lines that left all private levels for want of room.
    pub write_backs: u64,
}

impl Counts {
    /// Misses of the first level.
    pub fn misses(&self) -> u64 {
        self.cold + self.capacity + self.conflict + self.sharing()
    }

    /// Misses of lines that another core's write had taken.
    pub fn sharing(&self) -> u64 {
        self.true_sharing + self.false_sharing
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Counts) {
        let columns = |counts: &Counts| {
            [
                counts.loads,
                counts.stores,
                counts.atomics,
                counts.atomic_transfers,
                counts.cold,
                counts.capacity,
                counts.conflict,
                counts.true_sharing,
                counts.false_sharing,
                counts.private_misses,
                counts.upgrades,
                counts.invalidations,
                counts.dirty_transfers,
                counts.write_backs,
            ]
        };
        let (own, more) = (columns(self), columns(other));
        let sum: [u64; 14] = std::array::from_fn(|column| own[column] + more[column]);
        [
            self.loads,
            self.stores,
            self.atomics,
            self.atomic_transfers,
            self.cold,
            self.capacity,
            self.conflict,
            self.true_sharing,
            self.false_sharing,
            self.private_misses,
            self.upgrades,
            self.invalidations,
            self.dirty_transfers,
            self.write_backs,
        ] = sum;
    }
}

/// What is counted of a line of which a copy was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Misses of truly shared bytes.
    pub true_sharing: u64,
    /// Misses of falsely shared bytes.
    pub false_sharing: u64,
    /// Writes that fetched the right to write.
    pub upgrades: u64,
    /// Copies that were taken.
    pub invalidations: u64,
    /// Misses that another core answered with the changed line.
    pub dirty_transfers: u64,
}

impl LineCounts {
    /// Misses of both kinds.
    pub fn sharing(&self) -> u64 {
        self.true_sharing + self.false_sharing
    }
}

/// Two places in the program whose references met in a line: the second one missed because the
/// first one had written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Index of the line in the results.
    pub line: u32,
    /// The site that missed.
    pub missed: u32,
    /// The site whose write took the line.
    pub took: u32,
    /// Where in the line the site that missed touched it first.
    pub missed_at: u8,
    /// Where in the line the write began.
    pub took_at: u8,
    /// Misses of truly shared bytes.
    pub true_sharing: u64,
    /// Misses of falsely shared bytes.
    pub false_sharing: u64,
}

/// The bytes of a line that a core has touched, a bit for each 64th of the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// The core.
    pub core: u32,
    /// Bytes that it has read.
    pub read: u64,
    /// Bytes that it has written.
    pub written: u64,
}

/// A line of which a copy was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedLine {
    /// Address of its first byte.
    pub address: u64,
    /// What was counted.
    pub counts: LineCounts,
    /// The cores that have touched it, in their order.
    pub touched: Vec<Touched>,
}

/// Misses of the first level by the site that missed; those of shared lines are in the [`Pair`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteCounts {
    /// Cold misses.
    pub cold: u64,
    /// Capacity misses.
    pub capacity: u64,
    /// Conflict misses.
    pub conflict: u64,
    /// Upgrades.
    pub upgrades: u64,
}

/// The results of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Sums over all cores.
    pub total: Counts,
    /// The sums of each core, by its number.
    pub cores: Vec<Counts>,
    /// The lines of which a copy was taken, in the order in which that happened first.
    pub lines: Vec<SharedLine>,
    /// The places that met in them.
    pub pairs: Vec<Pair>,
    /// Other misses by site.
    pub sites: Vec<SiteCounts>,
}
