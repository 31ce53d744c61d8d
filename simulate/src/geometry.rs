//! The geometry of a cache or TLB: sets, ways, lines, and its policies.
//!
//! **Why this way.** A TLB is a cache whose lines are pages, so one [`Geometry`] describes both.
//! Set counts need not be powers of two (real last levels have such); line sizes must be. **Leaves
//! out** latencies (`cycle.rs`). Source: Hill and Smith 1989 for the terms.

use crate::policy::Shape;
use crate::{Policy, Prefetch, Prefetchers};
use machine::SliceMasks;
use std::fmt;

/// What a store that misses does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreMiss {
    /// It fetches the line into the cache (write-allocate).
    Allocate,
    /// It goes to the next level, and the cache does not change (no-write-allocate).
    Bypass,
}

/// One cache or TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Number of sets; 1 is fully associative.
    pub sets: u64,
    /// Lines of a set; 1 is direct-mapped.
    pub ways: u32,
    /// Bytes of a line (of a page, for a TLB), a power of two.
    pub line_bytes: u32,
    /// What stores do that miss.
    pub store_miss: StoreMiss,
    /// Which line of a full set is replaced.
    pub policy: Policy,
    /// Its prefetchers.
    pub prefetch: Prefetchers,
    /// How it is cut into slices.
    pub slices: SliceMasks,
}

impl Geometry {
    /// A cache of `size_bytes` that allocates on store misses; the size is rounded down to whole
    /// sets.
    pub const fn cache(size_bytes: u64, ways: u32, line_bytes: u32) -> Geometry {
        let sets = size_bytes / (ways as u64 * line_bytes as u64);
        Geometry::of(sets, ways, line_bytes)
    }

    /// A TLB of `entries`.
    pub const fn tlb(entries: u32, ways: u32, page_bytes: u32) -> Geometry {
        let sets = (entries / ways) as u64;
        Geometry::of(sets, ways, page_bytes)
    }

    const fn of(sets: u64, ways: u32, line_bytes: u32) -> Geometry {
        let (store_miss, policy, prefetch) = (StoreMiss::Allocate, Policy::LRU, Prefetchers::NONE);
        Geometry { sets, ways, line_bytes, store_miss, policy, prefetch, slices: SliceMasks::ONE }
    }

    /// Replaces the replacement policy.
    pub const fn with_policy(self, policy: Policy) -> Geometry {
        Geometry { policy, ..self }
    }

    /// Adds a prefetcher to those that it has.
    pub const fn with_prefetch(self, prefetch: Prefetch) -> Geometry {
        Geometry { prefetch: self.prefetch.with(prefetch), ..self }
    }

    /// Makes prefetched lines arrive late, as [`Prefetchers::late_touches`] says.
    pub const fn with_late_touches(self, late_touches: u32) -> Geometry {
        Geometry { prefetch: self.prefetch.late_by(late_touches), ..self }
    }

    /// Cuts it into slices.
    pub const fn with_slices(self, slices: SliceMasks) -> Geometry {
        Geometry { slices, ..self }
    }

    /// Makes stores that miss bypass the cache.
    pub const fn bypassing(self) -> Geometry {
        Geometry { store_miss: StoreMiss::Bypass, ..self }
    }

    /// Its capacity in bytes.
    pub const fn size_bytes(&self) -> u64 {
        self.sets * self.ways as u64 * self.line_bytes as u64
    }

    fn slice_fault(&self) -> Option<&'static str> {
        if !self.sets.is_multiple_of(self.slices.slices()) {
            return Some("its sets are no multiple of its slices");
        }
        let in_line = u64::from(self.line_bytes.max(1)) - 1;
        let inside = self.slices.masks().iter().any(|mask| mask & in_line != 0);
        inside.then_some("a slice mask takes address bits above those inside a line")
    }

    pub(crate) fn check(&self, level: &'static str) -> Result<(), GeometryError> {
        let error = |fault| Err(GeometryError::new(level, *self, fault));
        if self.sets == 0 || self.ways == 0 {
            return error("sets and ways must be at least 1");
        }
        if !self.line_bytes.is_power_of_two() || !(4..=1 << 30).contains(&self.line_bytes) {
            return error("the line size must be a power of two between 4 and 2^30 bytes");
        }
        if self.sets.saturating_mul(self.ways.into()) > 1 << 28 {
            return error("more than 2^28 lines");
        }
        let (sets, variant) = (self.sets as usize, self.policy.variant);
        let fault = (self.policy.fault)(Shape { sets, ways: self.ways, variant });
        fault.or_else(|| self.slice_fault()).map_or(Ok(()), error)
    }
}

/// Why levels cannot be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeometryError {
    /// Name of the level.
    pub level: &'static str,
    /// Its sets.
    pub sets: u64,
    /// Its ways.
    pub ways: u32,
    /// Bytes of its lines.
    pub line_bytes: u32,
    /// What is wrong with it.
    pub fault: &'static str,
}

impl GeometryError {
    /// The error that a level of this geometry has a fault.
    pub const fn new(level: &'static str, geometry: Geometry, fault: &'static str) -> GeometryError {
        let Geometry { sets, ways, line_bytes, .. } = geometry;
        GeometryError { level, sets, ways, line_bytes, fault }
    }
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GeometryError { level, sets, ways, line_bytes, fault } = self;
        write!(f, "{level} with {sets} sets, {ways} ways, {line_bytes}-byte lines: {fault}")
    }
}

impl std::error::Error for GeometryError {}
