//! The levels that are simulated, and their order.
//!
//! **Invariant.** Lines do not become shorter outwards, so that an inner miss needs exactly one
//! outer line; [`Levels::check`] refuses other hierarchies. Source: Hill and Smith 1989 for the
//! terms.

use crate::{
    Geometry, GeometryError, Inclusion, LargePages, PageBuffer, PageRange, Pages, Policy, StoreMiss,
};
use machine::SliceMasks;

/// Whether a level belongs to one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Every thread has its own (each thread on a core of its own).
    PerThread,
    /// One level serves all threads.
    AllThreads,
}

/// A unified level behind the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outer {
    /// Sets, ways and lines.
    pub geometry: Geometry,
    /// Whether each thread has its own or all share one.
    pub sharing: Sharing,
    /// How its contents depend on those of the inner levels.
    pub inclusion: Inclusion,
}

impl Outer {
    /// A level that is independent of the inner levels.
    pub const fn new(geometry: Geometry, sharing: Sharing) -> Outer {
        Outer { geometry, sharing, inclusion: Inclusion::Independent }
    }
}

/// The buffer that translates for instruction fetches that miss their first-level TLB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FetchTlb {
    /// The second-level TLB of data, which is unified.
    #[default]
    Unified,
    /// A second-level TLB of their own.
    Own(Geometry),
    /// None: a miss of the first level is a page walk, and counts as a miss of the second.
    Absent,
}

impl FetchTlb {
    /// The shape of a buffer of their own.
    pub fn own(self) -> Option<Geometry> {
        match self {
            FetchTlb::Own(geometry) => Some(geometry),
            FetchTlb::Unified | FetchTlb::Absent => None,
        }
    }
}

/// The levels that are simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// First-level instruction cache; without it instruction lines are not simulated in caches at
    /// all.
    pub instruction: Option<Geometry>,
    /// First-level data cache.
    pub data: Geometry,
    /// Second and third level, unified.
    pub outer: Vec<Outer>,
    /// First-level instruction TLB.
    pub instruction_tlb: Option<Geometry>,
    /// First-level data TLB.
    pub data_tlb: Option<Geometry>,
    /// Second-level TLB of data, and of instructions where it is unified; per thread.
    pub outer_tlb: Option<Geometry>,
    /// Second-level TLB of instructions.
    pub outer_fetch_tlb: FetchTlb,
    /// Pages of more sizes: where they lie, and the buffers that then stand in the place of the
    /// three above.
    pub large_pages: Option<LargePages>,
    /// Where pages lie in physical memory, whose addresses choose the sets of all levels behind the
    /// first.
    pub pages: Pages,
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
            outer_fetch_tlb: FetchTlb::Unified,
            large_pages: None,
            pages: Pages::Virtual,
        }
    }

    /// Split first level and a shared last level: what cachegrind simulates.
    pub fn two_level(instruction: Geometry, data: Geometry, last: Geometry) -> Levels {
        let outer = vec![Outer::new(last, Sharing::AllThreads)];
        Levels { instruction: Some(instruction), outer, ..Levels::data_only(data) }
    }

    /// Whether [`Hierarchy`](crate::Hierarchy) can simulate them: LRU, no prefetchers, independent
    /// levels in one slice, pages of one size at virtual addresses.
    pub fn is_plain(&self) -> bool {
        let plain = |geometry: &Geometry| {
            geometry.policy == Policy::LRU
                && geometry.prefetch.is_none()
                && geometry.slices == SliceMasks::ONE
        };
        let tlbs = [self.instruction_tlb, self.data_tlb, self.outer_tlb, self.outer_fetch_tlb.own()];
        let inner = [self.instruction, Some(self.data)].into_iter().chain(tlbs).flatten();
        let outer = |outer: &Outer| plain(&outer.geometry) && outer.inclusion == Inclusion::Independent;
        inner.into_iter().all(|geometry| plain(&geometry))
            && self.outer.iter().all(outer)
            && self.large_pages.is_none()
            && self.pages == Pages::Virtual
    }

    /// Whether one of the caches has a prefetcher.
    pub fn prefetches(&self) -> bool {
        let first = [self.instruction, Some(self.data)].into_iter().flatten();
        let outer = self.outer.iter().map(|outer| outer.geometry);
        first.chain(outer).any(|geometry| !geometry.prefetch.is_none())
    }

    /// Whether the levels can be simulated.
    ///
    /// # Errors
    /// When a geometry is impossible, a line or page shrinks outwards, or there are more than three
    /// levels.
    pub fn check(&self) -> Result<(), GeometryError> {
        let first = [("L1I", self.instruction), ("L1D", Some(self.data))];
        let tlbs = [
            ("ITLB", self.instruction_tlb),
            ("DTLB", self.data_tlb),
            ("L2 TLB", self.outer_tlb),
            ("L2 ITLB", self.outer_fetch_tlb.own()),
        ];
        // Check each level by itself.
        for (level, geometry) in first.into_iter().chain(tlbs) {
            geometry.map_or(Ok(()), |geometry| geometry.check(level))?;
        }
        let largest = |geometries: &[Option<Geometry>]| {
            geometries.iter().flatten().map(|geometry| geometry.line_bytes).max().unwrap_or(0)
        };
        // Then compare each level with the next inner one: lines must not become shorter outwards.
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
            return Err(GeometryError::new(level, outer.geometry, fault));
        }
        self.check_exclusive()?;
        self.check_large_pages()?;
        self.check_pages()?;
        // A level needs the inner level whose misses it gets.
        let needs = [
            ("ITLB", self.instruction_tlb, self.instruction.and(self.data_tlb)),
            ("L2 TLB", self.outer_tlb, self.data_tlb),
            ("L2 TLB", self.outer_tlb, self.instruction.map_or(self.data_tlb, |_| self.instruction_tlb)),
            ("L2 ITLB", self.outer_fetch_tlb.own(), self.outer_tlb.and(self.instruction_tlb)),
        ];
        for (level, geometry, needed) in needs {
            if let (Some(geometry), None) = (geometry, needed) {
                return Err(GeometryError::new(level, geometry, "it stands behind a level that is missing"));
            }
        }
        // Pages hold whole lines, and pages of the second level whole pages of the first.
        let lines_bytes = largest(&[self.instruction, Some(self.data)]);
        for (level, geometry) in tlbs {
            let Some(geometry) = geometry else { continue };
            let fault = if geometry.line_bytes < lines_bytes {
                "a page is smaller than a cache line"
            } else if level.starts_with("L2")
                && geometry.line_bytes < largest(&[self.instruction_tlb, self.data_tlb])
            {
                "its page is smaller than the first level's"
            } else {
                continue;
            };
            return Err(GeometryError::new(level, geometry, fault));
        }
        Ok(())
    }
}

impl Levels {
    /// Checks that an exclusive level gets its lines as a whole from the next inner level only.
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
            } else if outer.geometry.store_miss == StoreMiss::Bypass || !outer.geometry.prefetch.is_none() {
                "an exclusive level is filled by the level inside: no bypass, no prefetcher"
            } else {
                continue;
            };
            let level = ["L2", "L3", "L4"][index.min(2)];
            return Err(GeometryError::new(level, outer.geometry, fault));
        }
        Ok(())
    }

    /// Checks that every line lies in one page of physical memory.
    fn check_pages(&self) -> Result<(), GeometryError> {
        let outer = self.outer.iter().map(|outer| outer.geometry);
        let longest = outer.chain([self.data]).map(|geometry| geometry.line_bytes).max();
        let fault = longest.and_then(|line_bytes| self.pages.fault(line_bytes));
        fault.map_or(Ok(()), |fault| Err(GeometryError::new("L1D", self.data, fault)))
    }

    fn check_large_pages(&self) -> Result<(), GeometryError> {
        let Some(pages) = &self.large_pages else { return Ok(()) };
        let levels = [
            ("DTLB", &pages.data, self.data_tlb),
            ("ITLB", &pages.instruction, self.instruction_tlb),
            ("L2 TLB", &pages.outer, self.outer_tlb),
            ("L2 ITLB", &pages.outer_instruction, self.outer_fetch_tlb.own()),
        ];
        for (level, buffers, base) in levels {
            // Base pages must be among those that the buffers of a level take.
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
                return Err(GeometryError::new(level, geometry, fault));
            }
        }
        let wrong = |range: &&PageRange| !range.page_bytes.is_power_of_two() || range.start > range.last;
        match (pages.ranges.iter().find(wrong), self.data_tlb) {
            (None, Some(_)) => Ok(()),
            (_, tlb) => Err(GeometryError::new(
                "DTLB",
                tlb.unwrap_or(self.data),
                "large pages need a TLB, and ranges of pages that are powers of two",
            )),
        }
    }
}
