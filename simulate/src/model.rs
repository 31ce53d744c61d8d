//! Derives the simulated levels from a machine's description.
//!
//! **What.** [`Modelled::of`] uses the split or data-only first level, up to two further levels on
//! the data path, and the TLBs for base pages. **Why this way.** Parts of a machine that cannot be
//! simulated are listed in sentences, not silently dropped. **Leaves out** a fourth level, the
//! instruction side of a unified first level, and write-through, which changes traffic but no
//! misses.

use crate::{
    plan_levels, CycleModel, FetchTlb, Geometry, GeometryError, Inclusion, LargePages, Levels, Outer,
    PageBuffer, PageRange, Pages, Policy, Prefetch, Sharing, StoreMiss, StreamPlan, WriteBacks, CACHES_MAX,
    TLBS_MAX,
};
use machine::{Cache, CacheKind, Machine, Tlb, TlbKind};

/// The simulated levels of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modelled {
    /// The levels that are simulated.
    pub levels: Levels,
    /// For each cache level of the simulation, the machine's number of it.
    pub numbers: Vec<u8>,
    /// Sentences about the parts of the machine that are not simulated.
    pub left_out: Vec<String>,
}

impl Modelled {
    /// Derives the levels of `machine`; `None` if it has no first-level cache for data.
    ///
    /// # Errors
    /// When the levels do not fit together.
    pub fn of(machine: &Machine) -> Result<Option<Modelled>, GeometryError> {
        let Some(first) = machine.data_cache(1) else { return Ok(None) };
        let mut left_out = Vec::new();
        if first.kind == CacheKind::Unified {
            left_out.push("the unified first level is simulated for data only".into());
        }
        let instruction = machine.instruction_cache().filter(|cache| cache.kind == CacheKind::Instruction);
        let mut levels = Levels { instruction: instruction.map(cache), ..Levels::data_only(cache(first)) };
        let mut numbers = vec![1];
        for outer in machine.data_path().filter(|cache| cache.level > 1) {
            if numbers.len() == CACHES_MAX {
                left_out.push(format!("{} is not simulated: {CACHES_MAX} levels are the most", outer.name()));
                continue;
            }
            let sharing = if machine.is_private(outer) { Sharing::PerThread } else { Sharing::AllThreads };
            levels.outer.push(Outer {
                inclusion: inclusion(outer.behaviour.inclusion),
                ..Outer::new(cache(outer), sharing)
            });
            numbers.push(outer.level);
        }
        add_tlbs(&mut levels, machine, &mut left_out);
        levels.check()?;
        Ok(Some(Modelled { levels, numbers, left_out }))
    }
}

fn add_tlbs(levels: &mut Levels, machine: &Machine, left_out: &mut Vec<String>) {
    let page_bytes = machine.base_page_bytes();
    levels.data_tlb = machine.data_tlb(1).map(|buffer| tlb(buffer, page_bytes));
    let instruction = levels.instruction.and(levels.data_tlb).and(machine.instruction_tlb(1));
    levels.instruction_tlb = instruction.map(|buffer| tlb(buffer, page_bytes));
    let complete =
        levels.data_tlb.is_some() && levels.instruction.is_some() == levels.instruction_tlb.is_some();
    let outer = machine.data_tlb(2);
    levels.outer_tlb = outer.filter(|_| complete).map(|buffer| tlb(buffer, page_bytes));
    if outer.is_some() && !complete {
        left_out.push("the second-level TLB is not simulated: a first-level one is missing".into());
    } else if levels.instruction_tlb.is_some() {
        add_outer_fetch_tlb(levels, machine, left_out);
    }
}

/// The second-level TLB of instructions: the unified one, one of their own, or none.
fn add_outer_fetch_tlb(levels: &mut Levels, machine: &Machine, left_out: &mut Vec<String>) {
    let page_bytes = machine.base_page_bytes();
    match (machine.data_tlb(2), machine.instruction_tlb(2)) {
        (None, None) => {}
        (Some(data), Some(instruction)) if data == instruction => {}
        (Some(_), Some(instruction)) => {
            levels.outer_fetch_tlb = FetchTlb::Own(tlb(instruction, page_bytes));
        }
        (Some(_), None) => {
            levels.outer_fetch_tlb = FetchTlb::Absent;
            left_out.push(format!(
                "machine {} names no second-level TLB for instructions: their misses of the first level \
                 count as misses of the second",
                machine.name
            ));
        }
        (None, Some(_)) => left_out.push(format!(
            "the second-level TLB for instructions is not simulated: machine {} names none for data",
            machine.name
        )),
    }
}

fn cache(cache: &Cache) -> Geometry {
    let geometry = Geometry::cache(cache.size_bytes, cache.ways, cache.line_bytes)
        .with_policy(policy(cache.behaviour.replacement))
        .with_late_touches(cache.behaviour.late_touches)
        .with_slices(cache.behaviour.slices);
    let kinds = cache.behaviour.prefetch.kinds();
    let geometry = kinds.fold(geometry, |geometry, kind| geometry.with_prefetch(prefetch(kind)));
    match cache.store_miss {
        machine::StoreMiss::Allocate => Geometry { store_miss: StoreMiss::Allocate, ..geometry },
        machine::StoreMiss::Bypass => geometry.bypassing(),
    }
}

fn tlb(tlb: &Tlb, page_bytes: u64) -> Geometry {
    Geometry::tlb(tlb.entries, tlb.ways, u32::try_from(page_bytes).unwrap_or(4096))
        .with_policy(policy(tlb.replacement))
}

/// The policy that a description's word names.
fn policy(replacement: machine::Replacement) -> Policy {
    Policy::of(replacement).expect("a test finds a policy for every word")
}

fn prefetch(prefetch: machine::Prefetch) -> Prefetch {
    match prefetch {
        machine::Prefetch::None => Prefetch::None,
        machine::Prefetch::NextLine => Prefetch::NextLine,
        machine::Prefetch::Stride => Prefetch::Stride,
        machine::Prefetch::Streamer => Prefetch::Streamer,
        machine::Prefetch::AdjacentLine => Prefetch::AdjacentLine,
    }
}

fn inclusion(inclusion: machine::Inclusion) -> Inclusion {
    match inclusion {
        machine::Inclusion::Independent => Inclusion::Independent,
        machine::Inclusion::Inclusive => Inclusion::Inclusive,
        machine::Inclusion::Exclusive => Inclusion::Exclusive,
    }
}

impl Modelled {
    /// Adds large pages at the addresses of `ranges`; without ranges nothing changes.
    ///
    /// # Errors
    /// When the machine has no TLB, or its buffers do not fit together.
    pub fn with_large_pages(
        mut self,
        machine: &Machine,
        ranges: Vec<PageRange>,
    ) -> Result<Modelled, GeometryError> {
        if ranges.is_empty() {
            return Ok(self);
        }
        let buffers = |level: u8, kind: TlbKind| -> Vec<PageBuffer> {
            let here = machine.tlbs.iter().filter(|tlb| tlb.level == level);
            let here = here.filter(|tlb| tlb.kind == kind || tlb.kind == TlbKind::Unified);
            let buffer = |buffer: &Tlb| PageBuffer {
                page_bytes: buffer.page_bytes.iter().copied().filter(|&bytes| bytes <= 1 << 30).collect(),
                geometry: tlb(buffer, buffer.page_bytes[0]),
            };
            here.map(buffer).filter(|buffer| !buffer.page_bytes.is_empty()).collect()
        };
        let present = |base: Option<Geometry>, buffers| if base.is_some() { buffers } else { Vec::new() };
        self.levels.large_pages = Some(LargePages {
            ranges,
            data: present(self.levels.data_tlb, buffers(1, TlbKind::Data)),
            instruction: present(self.levels.instruction_tlb, buffers(1, TlbKind::Instruction)),
            outer: present(self.levels.outer_tlb, buffers(2, TlbKind::Data)),
            outer_instruction: present(self.levels.outer_fetch_tlb.own(), buffers(2, TlbKind::Instruction)),
        });
        self.levels.check()?;
        Ok(self)
    }
}

impl Modelled {
    /// Puts the machine's base pages, and large ones as a whole, where a permutation with this seed
    /// puts them.
    ///
    /// # Errors
    /// When a line of the machine is longer than a page.
    pub fn with_random_pages(mut self, machine: &Machine, seed: u64) -> Result<Modelled, GeometryError> {
        // A page too large for the type is refused like any other that is out of range.
        let page_bytes = u32::try_from(machine.base_page_bytes()).unwrap_or(0);
        self.levels.pages = Pages::Random { seed, page_bytes };
        self.levels.check()?;
        Ok(self)
    }
}

/// The stream that the engine should record for `machine`, and the reason; no references for a
/// machine without a first level.
///
/// # Errors
/// When the machine's levels do not fit together.
pub fn plan_stream(machine: &Machine, write_backs: WriteBacks) -> Result<StreamPlan, GeometryError> {
    Ok(match Modelled::of(machine)? {
        Some(modelled) => plan_levels(&modelled.levels, write_backs),
        None => StreamPlan {
            stream: event::Stream::Counts,
            why: format!("counts only: machine {} has no first-level cache for data", machine.name),
        },
    })
}

impl CycleModel {
    /// The machine's declared costs; `None` if it declares no base cost. Unknown penalties are 0.
    pub fn of(machine: &Machine) -> Option<CycleModel> {
        let cycle = machine.cycle?;
        let penalty = |declared: Option<u32>| declared.map_or(0.0, f64::from);
        let mut cache_miss = [0.0; CACHES_MAX];
        for (cost, cache) in cache_miss.iter_mut().zip(machine.data_path()) {
            *cost = penalty(cache.penalty_cycles);
        }
        let declared = |tlb: Option<&Tlb>| tlb.and_then(|tlb| tlb.penalty_cycles);
        let mut tlb_miss = [0.0; TLBS_MAX];
        let mut fetch_tlb_miss = [0.0; TLBS_MAX];
        for (level, (data, fetch)) in (1..).zip(tlb_miss.iter_mut().zip(&mut fetch_tlb_miss)) {
            let of_data = declared(machine.data_tlb(level));
            *data = penalty(of_data);
            *fetch = penalty(declared(machine.instruction_tlb(level)).or(of_data));
        }
        let first = machine.instruction_cache().and_then(|cache| cache.penalty_cycles);
        let fetch_miss = first.map_or(cache_miss[0], f64::from);
        let misprediction = penalty(cycle.branch_miss_cycles);
        Some(CycleModel {
            per_instruction: cycle.base_cycles_per_instruction,
            cache_miss,
            fetch_miss,
            tlb_miss,
            fetch_tlb_miss,
            misprediction,
        })
    }
}
