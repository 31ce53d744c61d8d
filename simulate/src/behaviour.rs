//! Prefetching and inclusion: the behaviour of a level beyond size, ways and policy.
//!
//! **What.** These values correspond to the words of a machine's description. `refined` simulates
//! them, and `reference::NaiveRefined` defines them slowly. For the defaults (no prefetching,
//! independent levels) there is the fast [`Hierarchy`](crate::Hierarchy).
//!
//! **Definitions.** *Inclusive*: a line that leaves this level also leaves all inner levels.
//! *Exclusive*: the level is filled with the lines that the next inner level gives up; a line that
//! is found here moves inwards.
//!
//! **Sources.** Baer and Wang 1988 for inclusion; Jouppi 1990 for victim caches; Chen and Baer 1995
//! for strides.

/// The prefetcher of a level. It stays within the page of 4 KiB of the reference that triggers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Prefetch {
    /// The level has no prefetcher.
    #[default]
    None,
    /// After each miss it fetches the following line.
    NextLine,
    /// If the data references of an instruction that reach the level have twice had the same
    /// distance, it fetches the line at that distance.
    Stride,
}

/// All kinds of prefetching.
pub const PREFETCHES: &[Prefetch] = &[Prefetch::None, Prefetch::NextLine, Prefetch::Stride];

/// How the contents of a level depend on those of the inner levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Inclusion {
    /// Independent: it is filled on misses and keeps a line until its own policy replaces it.
    #[default]
    Independent,
    /// Inclusive: a line that it replaces is also removed from the inner levels.
    Inclusive,
    /// Exclusive: it holds the lines that the next inner level has replaced.
    Exclusive,
}

/// All kinds of inclusion.
pub const INCLUSIONS: &[Inclusion] = &[Inclusion::Independent, Inclusion::Inclusive, Inclusion::Exclusive];
