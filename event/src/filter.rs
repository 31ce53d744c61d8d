//! The in-line filter that generated code may apply before it records a reference.
//!
//! An access to the line that was last used in its set changes nothing in a recency-ordered cache
//! (Mattson et al. 1970, stack algorithms), so the target keeps, per filter set, the last line, and
//! records only accesses that differ. When that is exact is decided from a machine description by
//! `simulate`; this file only says what the engine is asked to do.

/// Sets of a filter, and the size of what it remembers in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetFilter {
    /// Number of sets, a power of two that divides the set count of every cache the filter stands
    /// before.
    pub sets: u32,
    /// Bytes of a line (or page), a power of two, the smallest of any cache the filter stands
    /// before.
    pub line_bytes: u32,
}

impl SetFilter {
    /// One that drops nothing: every reference is recorded.
    pub const NOTHING: SetFilter = SetFilter { sets: 1, line_bytes: 0 };

    /// Whether it drops nothing.
    pub fn drops_nothing(&self) -> bool {
        self.line_bytes == 0
    }
}

/// What may stay unrecorded because it provably changes nothing in the simulated hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Data lines; [`SetFilter::NOTHING`] where every reference of data is wanted.
    pub data: SetFilter,
    /// Instruction lines.
    pub instruction: SetFilter,
    /// Data pages (when a data TLB is simulated): a reference is recorded when its line *or* its
    /// page misses the filter.
    pub data_page: Option<SetFilter>,
    /// Instruction pages.
    pub instruction_page: Option<SetFilter>,
    /// What stores do.
    pub stores: StoreFilter,
    /// How much of the instruction side is known.
    pub fetches: FetchFilter,
    /// How much is known of data pages.
    pub pages: PageFilter,
    /// What is recorded of an instruction that loads and stores at one address.
    pub modifies: ModifyFilter,
}

impl Filter {
    /// Data pages of which the last one of each set is known: a reference to another one is
    /// recorded.
    pub fn last_pages(&self) -> Option<SetFilter> {
        self.data_page.filter(|_| self.pages == PageFilter::LastOfSet)
    }

    /// The first-level data TLB that is kept where the program runs, and its entries.
    pub fn resident_pages(&self) -> Option<(SetFilter, u32)> {
        match self.pages {
            PageFilter::LastOfSet => None,
            PageFilter::FirstLevel { ways } => self.data_page.map(|shape| (shape, ways)),
        }
    }
}

/// How much is known of data pages where the program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageFilter {
    /// Each set's last one: a reference to another page is recorded.
    #[default]
    LastOfSet,
    /// All of a fully associative first-level data TLB, with true LRU: a `DataPage` record is a
    /// miss, and data references are recorded for their lines alone. `data_page` has one set.
    FirstLevel {
        /// Entries, at least 2.
        ways: u32,
    },
}

/// Most pages of a first-level data TLB that a [`PageFilter`] keeps.
pub const RESIDENT_PAGES_MAX: u32 = 255;

/// How much is known of instruction lines and pages where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchFilter {
    /// Each set's last one, as of data: a `Fetch` record where line or page is another.
    LastOfSet,
    /// All of the first level, with true LRU: a `Fetch` record is a miss of an instruction cache of
    /// `instruction`'s sets (any number) and `line_ways` ways, a `FetchPage` record one of an
    /// instruction TLB of `instruction_page`'s sets and `page_ways` ways. Exact, because both see
    /// nothing but instructions, and code lines are known when code is translated.
    FirstLevel {
        /// Ways of the instruction cache, at least 2.
        line_ways: u32,
        /// Ways of the instruction TLB, at least 2; 0 without one.
        page_ways: u32,
    },
}

/// Most lines (or pages) of a first level that a [`FetchFilter`] keeps.
pub const FETCH_LINES_MAX: u32 = 1 << 14;
/// Most sets of a first level that a [`FetchFilter`] keeps.
pub const FETCH_SETS_MAX: u32 = 256;

/// What is recorded of an instruction that loads, computes and stores at one address. Its store
/// always meets the line that its load has brought in, so one of the two says what a cache does.
///
/// Valgrind 3.19 (measured) joins a load with the store that follows at the same address. Locked
/// instructions load before they compare and exchange, so that it finds two loads and a store
/// there, of which it joins the latter two; `cmpxchg` and its kin compare and exchange at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModifyFilter {
    /// A `Modify` record, which is a load and a store.
    #[default]
    Both,
    /// A store, as callgrind counts; locked: a load and a store.
    StoreAlone,
    /// A load, as cachegrind counts; locked: two loads.
    LoadAlone,
}

/// What a store does to the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFilter {
    /// Stores allocate: they are filtered like loads.
    LikeLoads,
    /// Stores that miss do not allocate: a store is filtered only where its line is the set's last
    /// (it then is present), and a recorded store does not enter the filter but empties its set.
    NeverEnter,
}

/// What the engine records of the program's references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Nothing, and nothing is counted either: what translation alone costs. A tool's own events
    /// are recorded still.
    Nothing,
    /// Nothing but complex references whose count cannot be known beforehand (`rep`, gather,
    /// scatter, masked).
    Counts,
    /// `Fetch`, `FetchPage`, `Load`, `Store`, `Modify` records that pass the filter, and all
    /// complex ones.
    Filtered(Filter),
    /// A `Block` record per block and every reference.
    Full,
    /// Every reference but those whose operand is next to the stack pointer or has a fixed address,
    /// and all complex ones: what can touch memory that was allocated. No blocks.
    Allocated,
    /// Every reference of data, plain and complex, in program order, and neither blocks nor hints.
    References,
}
