//! What a level does beyond size, ways and policy: prefetching, and what levels know of each other.
//!
//! **What.** The words of a machine's description, as values; `refined` simulates them, and
//! `reference::NaiveRefined` defines them slowly. The defaults (nothing prefetched, independent
//! levels) are what [`Hierarchy`](crate::Hierarchy) is fast for.
//!
//! **Definitions.** *Inclusive*: what leaves this level leaves all levels inside. *Exclusive*:
//! filled by what the level inside gives up; a line that is found here moves inwards.
//!
//! **Sources.** Baer and Wang 1988 for inclusion; Jouppi 1990 for victim caches; Chen and Baer 1995
//! for strides.

/// What a level fetches unasked, within the page of 4 KiB that it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Prefetch {
    /// It fetches nothing unasked.
    #[default]
    None,
    /// Behind each line that it misses, the next one.
    NextLine,
    /// Where an instruction's data references that reach the level have twice kept the same
    /// distance, the line at that distance.
    Stride,
}

/// All kinds of prefetching.
pub const PREFETCHES: &[Prefetch] = &[Prefetch::None, Prefetch::NextLine, Prefetch::Stride];

/// What a level knows of those inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Inclusion {
    /// Nothing: it is filled on misses and keeps a line until its own policy gives the line up.
    #[default]
    Independent,
    /// It holds what they hold: a line that it gives up leaves them too.
    Inclusive,
    /// It holds what the level inside gave up.
    Exclusive,
}

/// All kinds of inclusion.
pub const INCLUSIONS: &[Inclusion] = &[Inclusion::Independent, Inclusion::Inclusive, Inclusion::Exclusive];
