//! What a level is: sets, ways, lines; and which levels stand behind each other.
//!
//! **Why this way.** A TLB is a cache whose lines are pages, so one [`Geometry`] describes both. Set counts need not be powers of two (real
//! last levels have such); line sizes do, and never shrink outwards, so that one inner miss asks for exactly one outer line.
//! **Leaves out** latencies (`cycle.rs`). Source: Hill and Smith 1989 for the terms.

use crate::{Inclusion, LargePages, PageBuffer, Policy, Prefetch};
use std::fmt;

/// What a store does that misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreMiss {
    /// The line is fetched and entered.
    Allocate,
    /// The store passes to the next level and nothing is entered.
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
    /// Which line of a full set leaves.
    pub policy: Policy,
    /// What is fetched unasked.
    pub prefetch: Prefetch,
}

impl Geometry {
    /// A cache of `size_bytes` that allocates on store misses; the size is rounded down to whole sets.
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
        let (store_miss, policy, prefetch) = (StoreMiss::Allocate, Policy::Lru, Prefetch::None);
        Geometry { sets, ways, line_bytes, store_miss, policy, prefetch }
    }

    /// The same with another policy.
    pub const fn with_policy(self, policy: Policy) -> Geometry {
        Geometry { policy, ..self }
    }

    /// The same with a prefetcher.
    pub const fn with_prefetch(self, prefetch: Prefetch) -> Geometry {
        Geometry { prefetch, ..self }
    }

    /// The same without allocation on store misses.
    pub const fn bypassing(self) -> Geometry {
        Geometry { store_miss: StoreMiss::Bypass, ..self }
    }

    /// Bytes that it holds.
    pub const fn size_bytes(&self) -> u64 {
        self.sets * self.ways as u64 * self.line_bytes as u64
    }

    fn check(&self, level: &'static str) -> Result<(), GeometryError> {
        let error = |fault| Err(GeometryError { level, geometry: *self, fault });
        if self.sets == 0 || self.ways == 0 {
            return error("sets and ways must be at least 1");
        }
        if !self.line_bytes.is_power_of_two() || !(4..=1 << 30).contains(&self.line_bytes) {
            return error("the line size must be a power of two between 4 and 2^30 bytes");
        }
        if self.sets.saturating_mul(self.ways.into()) > 1 << 28 {
            return error("more than 2^28 lines");
        }
        if self.policy == Policy::TreePlru && self.ways > 64 {
            return error("tree-PLRU has at most 64 ways");
        }
        Ok(())
    }
}

/// Whether a level belongs to one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Every thread has its own (each thread on a core of its own).
    PerThread,
    /// All threads use the same one.
    AllThreads,
}

/// A unified level behind the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outer {
    /// Its shape.
    pub geometry: Geometry,
    /// Whose it is.
    pub sharing: Sharing,
    /// What it knows of the levels inside.
    pub inclusion: Inclusion,
}

impl Outer {
    /// A level that knows nothing of those inside.
    pub const fn new(geometry: Geometry, sharing: Sharing) -> Outer {
        Outer { geometry, sharing, inclusion: Inclusion::Independent }
    }
}

/// The levels that are simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// First-level instruction cache; without it instruction lines are not simulated in caches at all.
    pub instruction: Option<Geometry>,
    /// First-level data cache.
    pub data: Geometry,
    /// Second and third level, unified.
    pub outer: Vec<Outer>,
    /// First-level instruction TLB.
    pub instruction_tlb: Option<Geometry>,
    /// First-level data TLB.
    pub data_tlb: Option<Geometry>,
    /// Second-level TLB, unified, per thread.
    pub outer_tlb: Option<Geometry>,
    /// Pages of more sizes: where they lie, and the buffers that then stand in the place of the three above.
    pub large_pages: Option<LargePages>,
}

impl Levels {
    /// A data cache and nothing else.
    pub fn data_only(data: Geometry) -> Levels {
        Levels {
            instruction: None,
            data,
            outer: Vec::new(),
            instruction_tlb: None,
            data_tlb: None,
            outer_tlb: None,
            large_pages: None,
        }
    }

    /// Split first level and a shared last level: what cachegrind simulates.
    pub fn two_level(instruction: Geometry, data: Geometry, last: Geometry) -> Levels {
        let outer = vec![Outer::new(last, Sharing::AllThreads)];
        Levels { instruction: Some(instruction), outer, ..Levels::data_only(data) }
    }

    /// Whether they are what [`Hierarchy`](crate::Hierarchy) is fast for: recency order, no prefetchers, independent levels, pages of one size.
    pub fn is_plain(&self) -> bool {
        let plain =
            |geometry: &Geometry| geometry.policy == Policy::Lru && geometry.prefetch == Prefetch::None;
        let inner = [self.instruction, Some(self.data), self.instruction_tlb, self.data_tlb, self.outer_tlb];
        let outer = |outer: &Outer| plain(&outer.geometry) && outer.inclusion == Inclusion::Independent;
        inner.iter().flatten().all(plain) && self.outer.iter().all(outer) && self.large_pages.is_none()
    }

    /// Whether the levels can be simulated.
    ///
    /// # Errors
    /// When a geometry is impossible, a line or page shrinks outwards, or there are more than three levels.
    pub fn check(&self) -> Result<(), GeometryError> {
        let first = [("L1I", self.instruction), ("L1D", Some(self.data))];
        let tlbs = [("ITLB", self.instruction_tlb), ("DTLB", self.data_tlb), ("L2 TLB", self.outer_tlb)];
        for (level, geometry) in first.into_iter().chain(tlbs) {
            geometry.map_or(Ok(()), |geometry| geometry.check(level))?;
        }
        let largest = |geometries: &[Option<Geometry>]| {
            geometries.iter().flatten().map(|geometry| geometry.line_bytes).max().unwrap_or(0)
        };
        let mut inner_bytes = largest(&[self.instruction, Some(self.data)]);
        for (outer, level) in self.outer.iter().zip(["L2", "L3", "L4"]) {
            outer.geometry.check(level)?;
            let fault = if level == "L4" {
                "more than three levels are not simulated"
            } else if outer.geometry.line_bytes < inner_bytes {
                "its line is smaller than an inner level's"
            } else {
                inner_bytes = outer.geometry.line_bytes;
                continue;
            };
            return Err(GeometryError { level, geometry: outer.geometry, fault });
        }
        self.check_exclusive()?;
        self.check_large_pages()?;
        let needs = [
            ("ITLB", self.instruction_tlb, self.instruction.and(self.data_tlb)),
            ("L2 TLB", self.outer_tlb, self.data_tlb),
            ("L2 TLB", self.outer_tlb, self.instruction.map_or(self.data_tlb, |_| self.instruction_tlb)),
        ];
        for (level, geometry, needed) in needs {
            if let (Some(geometry), None) = (geometry, needed) {
                return Err(GeometryError {
                    level,
                    geometry,
                    fault: "it stands behind a level that is missing",
                });
            }
        }
        let lines_bytes = largest(&[self.instruction, Some(self.data)]);
        for (level, geometry) in tlbs {
            let Some(geometry) = geometry else { continue };
            let fault = if geometry.line_bytes < lines_bytes {
                "a page is smaller than a cache line"
            } else if level == "L2 TLB"
                && geometry.line_bytes < largest(&[self.instruction_tlb, self.data_tlb])
            {
                "its page is smaller than the first level's"
            } else {
                continue;
            };
            return Err(GeometryError { level, geometry, fault });
        }
        Ok(())
    }
}

impl Levels {
    /// What an exclusive level holds comes whole from the level inside, and from nowhere else.
    fn check_exclusive(&self) -> Result<(), GeometryError> {
        for (index, outer) in self.outer.iter().enumerate() {
            let inside: Vec<Geometry> = match index.checked_sub(1) {
                Some(inner) => vec![self.outer[inner].geometry],
                None => self.instruction.into_iter().chain([self.data]).collect(),
            };
            if outer.inclusion != Inclusion::Exclusive {
                continue;
            }
            let fault = if inside.iter().any(|inner| inner.line_bytes != outer.geometry.line_bytes) {
                "an exclusive level has lines as long as those of the level inside"
            } else if inside.iter().any(|inner| inner.store_miss == StoreMiss::Bypass) {
                "an exclusive level stands behind one that allocates for stores"
            } else if outer.geometry.store_miss == StoreMiss::Bypass
                || outer.geometry.prefetch != Prefetch::None
            {
                "an exclusive level is filled by the level inside: no bypass, no prefetcher"
            } else {
                continue;
            };
            let level = ["L2", "L3", "L4"][index.min(2)];
            return Err(GeometryError { level, geometry: outer.geometry, fault });
        }
        Ok(())
    }

    fn check_large_pages(&self) -> Result<(), GeometryError> {
        let Some(pages) = &self.large_pages else { return Ok(()) };
        let levels = [
            ("DTLB", &pages.data, self.data_tlb),
            ("ITLB", &pages.instruction, self.instruction_tlb),
            ("L2 TLB", &pages.outer, self.outer_tlb),
        ];
        for (level, buffers, base) in levels {
            let takes_base = |buffer: &PageBuffer| {
                base.is_some_and(|base| buffer.page_bytes.first() == Some(&base.line_bytes.into()))
            };
            let whole = |buffer: &&PageBuffer| {
                let sizes = &buffer.page_bytes;
                sizes.first() != Some(&buffer.geometry.line_bytes.into())
                    || sizes.iter().any(|bytes| !bytes.is_power_of_two())
            };
            buffers.iter().try_for_each(|buffer| buffer.geometry.check(level))?;
            let wrong = buffers.iter().find(whole).map(|buffer| buffer.geometry);
            let missing = base.filter(|_| !buffers.iter().any(takes_base));
            let stray = buffers.first().filter(|_| base.is_none()).map(|buffer| buffer.geometry);
            if let Some(geometry) = wrong.or(missing).or(stray) {
                let fault = "buffers for large pages stand beside one for base pages, and name powers of two";
                return Err(GeometryError { level, geometry, fault });
            }
        }
        let wrong =
            |range: &&crate::PageRange| !range.page_bytes.is_power_of_two() || range.start > range.last;
        match (pages.ranges.iter().find(wrong), self.data_tlb) {
            (None, Some(_)) => Ok(()),
            (_, tlb) => Err(GeometryError {
                level: "DTLB",
                geometry: tlb.unwrap_or(self.data),
                fault: "large pages need a TLB, and ranges of pages that are powers of two",
            }),
        }
    }
}

/// Why levels cannot be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeometryError {
    /// Which level.
    pub level: &'static str,
    /// Its geometry.
    pub geometry: Geometry,
    /// What is wrong with it.
    pub fault: &'static str,
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Geometry { sets, ways, line_bytes, .. } = self.geometry;
        write!(f, "{} with {sets} sets, {ways} ways, {line_bytes}-byte lines: {}", self.level, self.fault)
    }
}

impl std::error::Error for GeometryError {}
