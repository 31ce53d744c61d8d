//! One cache of the hierarchy.
//!
//! Sizes and numbers of sets need not be powers of two: there are caches of 48 KiB in 12 ways, and
//! last levels of 11 or 15 ways. Only the line size is a power of two, because an address is split
//! into line number and offset by a shift. A fully associative cache has a single set. Source: Hill
//! and Smith 1989 for the terms.

use crate::Behaviour;
#[cfg(feature = "toml")]
use serde::Serialize;

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "toml", derive(Serialize))]
#[cfg_attr(feature = "toml", serde(rename_all = "lowercase"))]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Data and instructions.
    Unified,
}

/// What a store that misses does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "toml", derive(Serialize))]
#[cfg_attr(feature = "toml", serde(rename_all = "lowercase"))]
pub enum StoreMiss {
    /// It fetches the line into the cache (write-allocate).
    Allocate,
    /// It goes to the next level, and the cache does not change (no-write-allocate).
    Bypass,
}

/// When stored data is written to the next level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "toml", derive(Serialize))]
#[cfg_attr(feature = "toml", serde(rename_all = "lowercase"))]
pub enum WritePolicy {
    /// When the changed line is replaced (write-back).
    Back,
    /// With each store (write-through).
    Through,
}

/// A cache of the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "toml", derive(Serialize))]
pub struct Cache {
    /// Distance from the core, 1 to 4.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// Capacity; always `sets() * ways * line_bytes`.
    pub size_bytes: u64,
    /// Lines of a set; 1 is direct-mapped.
    pub ways: u32,
    /// Bytes of a line, a power of two.
    pub line_bytes: u32,
    /// What stores do that miss.
    pub store_miss: StoreMiss,
    /// When stores reach the next level.
    pub write: WritePolicy,
    /// Cycles that a miss costs on top of a hit, as the machine's author declares them; `None` if
    /// the cost is unknown.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "Option::is_none"))]
    pub penalty_cycles: Option<u32>,
    /// Logical CPUs that share one such cache.
    pub shared_by_cpus: u32,
    /// Replacement, inclusion and prefetching.
    #[cfg_attr(feature = "toml", serde(flatten))]
    pub behaviour: Behaviour,
}

impl Cache {
    /// Number of sets, any positive integer; 1 is fully associative.
    pub fn sets(&self) -> u64 {
        self.size_bytes / (u64::from(self.ways) * u64::from(self.line_bytes)).max(1)
    }

    /// Number of lines.
    pub fn lines(&self) -> u64 {
        self.sets() * u64::from(self.ways)
    }

    /// The usual short name: `L1D`, `L1I`, `L2`; `L2D` where an outer level is split.
    pub fn name(&self) -> String {
        let suffix = match self.kind {
            CacheKind::Data => "D",
            CacheKind::Instruction => "I",
            CacheKind::Unified => "",
        };
        format!("L{}{suffix}", self.level)
    }

    /// Whether loads and stores go through it.
    pub fn holds_data(&self) -> bool {
        self.kind != CacheKind::Instruction
    }

    /// Whether instruction fetches go through it.
    pub fn holds_instructions(&self) -> bool {
        self.kind != CacheKind::Data
    }
}
