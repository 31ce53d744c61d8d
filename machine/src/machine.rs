//! The machine as a value, and the questions that consumers ask it.
//!
//! Fields are public because a machine is data. A machine that is built by hand should be checked
//! by [`Machine::check`].

use crate::{Cache, FieldSource, Tlb, TlbKind};
#[cfg(feature = "toml")]
use serde::Serialize;

/// The declared costs of events, for estimates:
/// ```text
/// cycles = instructions * base_cycles_per_instruction
///        + Σ misses * penalty_cycles
///        + mispredictions * branch_miss_cycles
/// ```
///
/// The penalty of a miss is a field of its [`Cache`] or [`Tlb`]; it is added to the penalties of
/// the inner levels.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "toml", derive(Serialize))]
pub struct CycleModel {
    /// Cycles of an instruction whose references all hit the first level.
    pub base_cycles_per_instruction: f64,
    /// Cycles that a mispredicted branch adds; `None` if the cost is unknown.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "Option::is_none"))]
    pub branch_miss_cycles: Option<u32>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "toml", derive(Serialize))]
pub struct Machine {
    /// Short name, `host` for this machine.
    pub name: String,
    /// A description of one sentence.
    pub description: String,
    /// Nominal clock frequency; `None` if unknown.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "Option::is_none"))]
    pub frequency_mhz: Option<u32>,
    /// Logical CPUs of a core.
    pub threads_per_core: u32,
    /// Page sizes that programs can get, ascending; the first is the base page.
    pub page_bytes: Vec<u64>,
    /// Instruction sets, a sorted subset of [`crate::FEATURES`].
    pub features: Vec<String>,
    /// Declared costs of events; `None` if there are none.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "Option::is_none"))]
    pub cycle: Option<CycleModel>,
    /// Caches, sorted by level; at one level data before instructions.
    #[cfg_attr(feature = "toml", serde(rename = "cache"))]
    pub caches: Vec<Cache>,
    /// TLBs, by level.
    #[cfg_attr(feature = "toml", serde(rename = "tlb"))]
    pub tlbs: Vec<Tlb>,
    /// Origins of fields; see [`Machine::source_of`].
    #[cfg_attr(feature = "toml", serde(rename = "source"))]
    pub sources: Vec<FieldSource>,
}

impl Machine {
    /// The caches that a load looks up, from the innermost to the outermost.
    pub fn data_path(&self) -> impl Iterator<Item = &Cache> {
        self.caches.iter().filter(|cache| cache.holds_data())
    }

    /// The cache that loads and stores look up at `level` (1 is innermost).
    pub fn data_cache(&self, level: u8) -> Option<&Cache> {
        self.data_path().find(|cache| cache.level == level)
    }

    /// The cache that instruction fetches look up first.
    pub fn instruction_cache(&self) -> Option<&Cache> {
        self.caches.iter().find(|cache| cache.level == 1 && cache.holds_instructions())
    }

    /// The outermost cache that holds data.
    pub fn last_level(&self) -> Option<&Cache> {
        self.data_path().max_by_key(|cache| cache.level)
    }

    /// The TLB that loads and stores look up at `level` for pages of the base size.
    pub fn data_tlb(&self, level: u8) -> Option<&Tlb> {
        self.tlb(level, TlbKind::Data, self.base_page_bytes())
    }

    /// The TLB that instruction fetches look up at `level` for pages of the base size.
    pub fn instruction_tlb(&self, level: u8) -> Option<&Tlb> {
        self.tlb(level, TlbKind::Instruction, self.base_page_bytes())
    }

    /// The TLB at `level` for pages of `page_bytes`: one of kind `kind`, else a unified one.
    pub fn tlb(&self, level: u8, kind: TlbKind, page_bytes: u64) -> Option<&Tlb> {
        let fits = |tlb: &&Tlb| tlb.level == level && tlb.translates(page_bytes);
        let of = |kind| self.tlbs.iter().filter(fits).find(|tlb| tlb.kind == kind);
        of(kind).or_else(|| of(TlbKind::Unified))
    }

    /// The smallest page.
    pub fn base_page_bytes(&self) -> u64 {
        self.page_bytes.first().copied().unwrap_or(4096)
    }

    /// Whether the machine has an instruction set, by its name in [`crate::FEATURES`].
    pub fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|name| name == feature)
    }

    /// Whether only the threads of one core use `cache`.
    pub fn is_private(&self, cache: &Cache) -> bool {
        cache.shared_by_cpus <= self.threads_per_core
    }

    /// The origin of a field, for example `source_of("cache.L1D.ways")`. The longest matching entry
    /// wins, and among equals the last one.
    pub fn source_of(&self, field: &str) -> Option<&FieldSource> {
        self.sources.iter().filter(|source| source.covers(field)).max_by_key(|source| source.field.len())
    }

    /// Sorts caches by level, data before instructions before unified.
    pub(crate) fn sort_caches(&mut self) {
        sort_few(&mut self.caches, |cache| (cache.level, cache.kind as u8));
    }
}

/// Sorts the few caches or TLBs of a machine; equal ones keep their order. The library's stable
/// sort would be compiled for each, with five kilobytes.
pub(crate) fn sort_few<T, K: Ord>(all: &mut [T], key: impl Fn(&T) -> K) {
    for end in 1..all.len() {
        let before = all[..end].partition_point(|one| key(one) <= key(&all[end]));
        all[before..=end].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_are_sorted_as_by_the_library() {
        proptest::proptest!(|(rows in proptest::collection::vec((0u8..4, 0u8..), 0..12))| {
            let (mut ours, mut expected) = (rows.clone(), rows);
            sort_few(&mut ours, |row| row.0);
            expected.sort_by_key(|row| row.0);
            assert_eq!(ours, expected);
        });
    }
}
