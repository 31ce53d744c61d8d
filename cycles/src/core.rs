//! The processors that the estimate knows: how wide, how far ahead, how long they wait.
//!
//! **Units.** Cycles of the core. Widths and reorder buffers are the vendors'. The waits of outer
//! levels stand here only for machines whose own penalties are assumed, because the round figures
//! of a description are those of a small processor. Bandwidths and overlaps were fitted once, on
//! that half of the kernels of `lightfoot study cycles` that its page calls the fitting half.

use machine::{Machine, Origin};

/// A core as the estimate sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Core {
    /// Micro-operations of a cycle.
    pub(crate) width: f64,
    /// Instructions of the reorder buffer.
    pub(crate) window: f64,
    /// Misses that are under way together at most, by where they are served: the second level, the
    /// third, memory.
    pub(crate) parallel: [f64; 3],
    /// The share of a wait for the third level or memory that is left where misses stay in a page.
    pub(crate) near: f64,
    /// What a load waits beyond a hit, if the second level, the third or memory has the line.
    pub(crate) waits: [f64; 3],
    /// Cycles of a line that a prefetcher brings, from each of these.
    pub(crate) streamed: [f64; 3],
    /// What a load waits for the second-level TLB, and for a walk through the page table.
    pub(crate) translations: [f64; 2],
    /// Walks that can be under way.
    pub(crate) walks: f64,
    /// Cycles of a misprediction beyond the decision of its branch.
    pub(crate) misprediction: f64,
}

/// Intel since Golden Cove.
const GOLDEN_COVE: Core = Core {
    width: 6.0,
    window: 512.0,
    parallel: [16.0, 12.0, 12.0],
    near: 0.5,
    waits: [11.0, 160.0, 500.0],
    streamed: [2.0, 8.0, 14.0],
    translations: [7.0, 30.0],
    walks: 4.0,
    misprediction: 22.0,
};

const SUNNY_COVE: Core = Core { width: 5.0, window: 352.0, waits: [9.0, 60.0, 300.0], ..GOLDEN_COVE };

const ZEN: Core =
    Core { width: 6.0, window: 320.0, waits: [10.0, 46.0, 350.0], misprediction: 13.0, ..GOLDEN_COVE };

const SKYLAKE: Core =
    Core { width: 4.0, window: 224.0, waits: [9.0, 50.0, 250.0], walks: 2.0, ..GOLDEN_COVE };

impl Core {
    /// The core of a machine, with its own penalties where these are not assumed.
    pub(crate) fn of(machine: &Machine) -> Core {
        let mut core = Core::family(machine);
        let declared = |field: &str| {
            let source = machine.source_of(field);
            source.is_some_and(|source| source.origin != Origin::Assumed)
        };
        if machine.data_tlb(1).is_none() {
            // Nothing tells whether misses stay in a page.
            core.near = 1.0;
        }
        let mut wait = 0.0;
        for cache in machine.data_path() {
            let place = usize::from(cache.level.clamp(1, 3)) - 1;
            let Some(penalty) = cache.penalty_cycles else { continue };
            wait += f64::from(penalty);
            if declared(&format!("cache.{}.penalty_cycles", cache.name())) {
                core.waits[place] = wait;
            }
        }
        for (level, wait) in (1..).zip(&mut core.translations) {
            let Some(tlb) = machine.data_tlb(level) else { continue };
            if let (Some(penalty), true) =
                (tlb.penalty_cycles, declared(&format!("tlb.{}.penalty_cycles", tlb.name())))
            {
                *wait = f64::from(penalty);
            }
        }
        if let (Some(cycles), true) =
            (machine.cycle.and_then(|cycle| cycle.branch_miss_cycles), declared("cycle"))
        {
            core.misprediction = f64::from(cycles);
        }
        core
    }

    fn family(machine: &Machine) -> Core {
        let says = |word: &str| machine.description.contains(word) || machine.name.starts_with(word);
        match () {
            () if says("AMD") || says("Zen") || says("zen") => ZEN,
            () if machine.has("amx_tile") => GOLDEN_COVE,
            () if machine.has("avx512_vbmi2") => SUNNY_COVE,
            () => SKYLAKE,
        }
    }
}
