//! A translation lookaside buffer.
//!
//! A buffer lists the page sizes whose translations it holds. Cores with separate buffers for
//! different page sizes have several of one level and kind. **Leaves out** the page walk: its cost
//! is one declared number.

use crate::Replacement;
#[cfg(feature = "toml")]
use serde::Serialize;

/// The accesses whose addresses a TLB translates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "toml", derive(Serialize))]
#[cfg_attr(feature = "toml", serde(rename_all = "lowercase"))]
pub enum TlbKind {
    /// Loads and stores.
    Data,
    /// Instruction fetches.
    Instruction,
    /// Loads, stores and instruction fetches.
    Unified,
}

/// A TLB of the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "toml", derive(Serialize))]
pub struct Tlb {
    /// Distance from the core, 1 or 2.
    pub level: u8,
    /// The accesses whose addresses it translates.
    pub kind: TlbKind,
    /// Sizes of the pages it translates, ascending powers of two.
    pub page_bytes: Vec<u64>,
    /// Number of translations that it holds.
    pub entries: u32,
    /// Entries of a set; equal to `entries` when fully associative.
    pub ways: u32,
    /// Cycles that a miss costs on top of a hit; `None` if the cost is unknown.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "Option::is_none"))]
    pub penalty_cycles: Option<u32>,
    /// Which translation of a full set is replaced.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "crate::behaviour::is_default"))]
    pub replacement: Replacement,
}

impl Tlb {
    /// Number of sets; 1 is fully associative.
    pub fn sets(&self) -> u32 {
        self.entries / self.ways.max(1)
    }

    /// Whether it holds translations of pages of `page_bytes`.
    pub fn translates(&self, page_bytes: u64) -> bool {
        self.page_bytes.contains(&page_bytes)
    }

    /// A short name: `L1 DTLB`, `L1 ITLB`, `L2 TLB`.
    pub fn name(&self) -> String {
        let letter = match self.kind {
            TlbKind::Data => "D",
            TlbKind::Instruction => "I",
            TlbKind::Unified => "",
        };
        format!("L{} {letter}TLB", self.level)
    }
}
