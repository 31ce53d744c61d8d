//! Prefetching and inclusion: the behaviour of a level beyond size, ways, policy and slices.
//!
//! **What.** These values correspond to the words of a machine's description. `refined` simulates
//! them, and `reference::NaiveRefined` defines them slowly. For the defaults (no prefetching,
//! independent levels) there is the fast [`Hierarchy`](crate::Hierarchy).
//!
//! **Definitions.** *Inclusive*: a line that leaves this level also leaves all inner levels.
//! *Exclusive*: the level is filled with the lines that the next inner level gives up; a line that
//! is found here moves inwards. *Late*: a prefetched line arrives after the level has been touched
//! a declared number of times more; no clock is needed, and equal streams give equal counts.
//!
//! **Sources.** Baer and Wang 1988 for inclusion; Jouppi 1990 for victim caches; Chen and Baer 1995
//! for strides; Intel's optimization reference manual (248966, "Data Prefetching") for the streamer
//! and the adjacent line.

/// A kind of prefetcher. It stays within the page of 4 KiB of the reference that triggers it.
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
    /// It follows up to 32 pages. Once lines of a page were touched twice in a row in ascending or
    /// descending order, each further step fetches the next two lines in that direction, up to 20
    /// lines ahead.
    Streamer,
    /// After each miss it fetches the other line of the aligned pair.
    AdjacentLine,
}

/// All kinds of prefetching.
pub const PREFETCHES: &[Prefetch] =
    &[Prefetch::None, Prefetch::NextLine, Prefetch::Stride, Prefetch::Streamer, Prefetch::AdjacentLine];

/// The prefetchers of a level, and how late their lines are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Prefetchers {
    /// Bit n stands for kind n.
    kinds: u8,
    /// A line counts as late if one of the next `late_touches` touches of the level, counted from
    /// the one for which it was fetched, is the first that asks for it. 0: lines arrive at once.
    pub late_touches: u32,
}

impl Prefetchers {
    /// No prefetcher.
    pub const NONE: Prefetchers = Prefetchers { kinds: 0, late_touches: 0 };

    /// These prefetchers and one more.
    #[must_use]
    pub const fn with(self, prefetch: Prefetch) -> Prefetchers {
        Prefetchers { kinds: self.kinds | Prefetchers::bit(prefetch), ..self }
    }

    /// These prefetchers, whose lines are late by as many touches.
    #[must_use]
    pub const fn late_by(self, late_touches: u32) -> Prefetchers {
        Prefetchers { late_touches, ..self }
    }

    /// Whether one of them is of this kind.
    pub const fn has(self, prefetch: Prefetch) -> bool {
        self.kinds & Prefetchers::bit(prefetch) != 0
    }

    /// Whether there is none.
    pub const fn is_none(self) -> bool {
        self.kinds == 0
    }

    const fn bit(prefetch: Prefetch) -> u8 {
        match prefetch {
            Prefetch::None => 0,
            other => 1 << other as u8,
        }
    }
}

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
