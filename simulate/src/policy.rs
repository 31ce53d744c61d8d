//! What caches do beyond size and ways: which line leaves, what is fetched unasked, what levels know of each other, and where pages are large.
//!
//! **What.** The words of a description, as values; `refined` simulates them, and `reference::NaiveRefined` says the same slowly. The defaults (recency
//! order, nothing unasked, independent levels, one page size) are what `Hierarchy` is fast for.
//!
//! **Definitions.** *Tree-PLRU*: a bit at each node of a binary tree over the ways, rounded up to a power of two, points to the half that was used longer
//! ago; a half without ways is never pointed to. *Random*: the n-th replacement of a cache takes the way that the n-th number of [`Draw`] names.
//! *FIFO*: the line that was entered first. An empty way, the lowest first, is taken before any line leaves. *Inclusive*: what leaves this level
//! leaves all levels inside. *Exclusive*: filled by what the level inside gives up; what is found here moves inwards.
//!
//! **Sources.** Smith 1982 for the policies; Baer and Wang 1988 for inclusion; Jouppi 1990 for victim caches; Chen and Baer 1995 for strides.

/// Which line of a full set leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The least recently used one.
    #[default]
    Lru,
    /// The one that came first.
    Fifo,
    /// The one that a binary tree of bits points to; at most 64 ways.
    TreePlru,
    /// Any, from a generator that starts alike in every cache.
    Random,
}

/// All policies.
pub const POLICIES: &[Policy] = &[Policy::Lru, Policy::Fifo, Policy::TreePlru, Policy::Random];

/// What a level fetches unasked, within the page of 4 KiB that it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Prefetch {
    /// Nothing.
    #[default]
    None,
    /// Behind each line that it misses, the next one.
    NextLine,
    /// Where an instruction's data references that reach the level have twice kept the same distance, the line at that distance.
    Stride,
}

/// All of them.
pub const PREFETCHES: &[Prefetch] = &[Prefetch::None, Prefetch::NextLine, Prefetch::Stride];

/// What a level knows of those inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Inclusion {
    /// Nothing: it is filled on misses and keeps lines as long as it does.
    #[default]
    Independent,
    /// It holds what they hold: a line that it gives up leaves them too.
    Inclusive,
    /// It holds what the level inside gave up.
    Exclusive,
}

/// All of them.
pub const INCLUSIONS: &[Inclusion] = &[Inclusion::Independent, Inclusion::Inclusive, Inclusion::Exclusive];

/// The numbers by which [`Policy::Random`] draws: xorshift64*, always from the same start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) const fn new() -> Draw {
        Draw(0x9e37_79b9_7f4a_7c15)
    }

    /// The next number, below `limit`.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((number * u64::from(limit)) >> 32) as u32
    }
}

/// Addresses on larger pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageRange {
    /// First byte.
    pub start: u64,
    /// Last byte.
    pub last: u64,
    /// Bytes of a page; only pages that lie in the range as a whole are large.
    pub page_bytes: u64,
}

/// A buffer of translations for pages of some sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageBuffer {
    /// Sizes that it takes, ascending.
    pub page_bytes: Vec<u64>,
    /// Its shape; the line is the smallest page.
    pub geometry: crate::Geometry,
}

/// Large pages and the buffers for them, those for base pages included.
///
/// A translation goes to a level's buffer for the largest size that is not larger than its page: where no buffer takes the whole page, parts do.
/// A level whose smallest pages are larger keeps those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LargePages {
    /// Where pages are large; where ranges meet the first one counts.
    pub ranges: Vec<PageRange>,
    /// First level, data.
    pub data: Vec<PageBuffer>,
    /// First level, instructions.
    pub instruction: Vec<PageBuffer>,
    /// Second level.
    pub outer: Vec<PageBuffer>,
}

impl LargePages {
    /// Bytes of the page that holds `address`, where it is a large one.
    pub(crate) fn page_bytes(&self, address: u64) -> Option<u64> {
        let holds = |range: &&PageRange| {
            let first = address & !(range.page_bytes - 1);
            first >= range.start && first | (range.page_bytes - 1) <= range.last
        };
        self.ranges.iter().find(holds).map(|range| range.page_bytes)
    }
}
