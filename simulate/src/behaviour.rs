//! Prefetching, inclusion and slices: the behaviour of a level beyond size, ways and policy.
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
//! and the adjacent line; Maurice et al. 2015 for slices.

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

/// The most masks of a slice hash: 64 slices.
pub const SLICE_MASKS_MAX: usize = 6;

/// A cache in 2^n slices: bit k of a line's slice is the parity of its address under mask k.
///
/// The sets of a slice stand side by side. Inside a slice a line's set is its number modulo the
/// sets of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SliceHash {
    masks: [u64; SLICE_MASKS_MAX],
    count: u8,
}

impl SliceHash {
    /// One slice.
    pub const ONE: SliceHash = SliceHash { masks: [0; SLICE_MASKS_MAX], count: 0 };

    /// The hash with these masks; `None` if there are more than [`SLICE_MASKS_MAX`].
    pub fn new(masks: &[u64]) -> Option<SliceHash> {
        let mut hash = SliceHash { count: masks.len() as u8, ..SliceHash::ONE };
        hash.masks.get_mut(..masks.len())?.copy_from_slice(masks);
        Some(hash)
    }

    /// Its masks.
    pub fn masks(&self) -> &[u64] {
        &self.masks[..usize::from(self.count)]
    }

    /// The slice of a line by the address of its first byte.
    pub fn slice(&self, address: u64) -> u64 {
        let parity = |mask: &u64| u64::from((address & mask).count_ones() & 1);
        self.masks().iter().rev().fold(0, |slice, mask| slice << 1 | parity(mask))
    }

    /// Why a cache with as many sets, and lines of this length, cannot have these slices.
    pub(crate) fn fault(&self, sets: u64, line_bytes: u32) -> Option<&'static str> {
        let masks = self.masks();
        if !sets.is_multiple_of(1 << masks.len()) {
            return Some("its sets are no multiple of its slices");
        }
        let in_line = u64::from(line_bytes.max(1)) - 1;
        let wrong = masks.iter().any(|mask| mask & in_line != 0 || *mask == 0);
        wrong.then_some("a slice mask takes some address bits above those inside a line, and no others")
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
