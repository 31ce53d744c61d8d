//! Defaults for what a machine does not report: TLBs under most hypervisors, penalties everywhere.
//!
//! The family is recognised by its instruction sets and not by a model number, which virtual
//! machines disguise. The numbers are rounded from the vendors' optimisation manuals; the machine
//! marks each one as assumed.

use super::Leaves;
use crate::{Behaviour, Cache, CacheKind, CycleModel, Replacement, StoreMiss, Tlb, TlbKind, WritePolicy};

/// A family of cores with the same assumptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Core {
    /// Intel with AMX or AVX-512 FP16: Golden Cove and later.
    GoldenCove,
    /// Intel with AVX-512 VBMI2: Ice Lake and kin.
    SunnyCove,
    /// AMD, families 0x17 and 0x19.
    Zen,
    /// AMD, family 0x1a and later.
    Zen5,
    /// Anything else, taken for a Skylake.
    Generic,
}

impl Core {
    /// The family that the vendor and the instruction sets suggest.
    pub(crate) fn of(leaves: &Leaves, features: &[String]) -> Core {
        let has = |name: &str| features.iter().any(|feature| feature == name);
        let vendor = leaves.vendor();
        let family = leaves.family_model().0;
        if vendor == "AuthenticAMD" && family >= 0x1a {
            Core::Zen5
        } else if matches!(vendor.as_str(), "AuthenticAMD" | "HygonGenuine") && family >= 0x17 {
            Core::Zen
        } else if vendor == "GenuineIntel" && (has("amx_tile") || leaves.has_half_precision()) {
            Core::GoldenCove
        } else if vendor == "GenuineIntel" && has("avx512_vbmi2") {
            Core::SunnyCove
        } else {
            Core::Generic
        }
    }

    /// The note that the machine carries about an assumed value.
    pub(crate) fn note(self) -> &'static str {
        match self {
            Core::GoldenCove => {
                "default for Intel cores with AMX or AVX-512 FP16 (Golden Cove and later); not reported here"
            }
            Core::SunnyCove => "default for Intel cores with AVX-512 VBMI2 (Ice Lake); not reported here",
            Core::Zen => "default for AMD Zen cores (as Zen 4); not reported here",
            Core::Zen5 => "default for AMD Zen 5 cores; not reported here",
            Core::Generic => "default for an unknown core (as Skylake); not reported here",
        }
    }

    fn is_zen(self) -> bool {
        matches!(self, Core::Zen | Core::Zen5)
    }

    /// Costs of instructions and mispredictions.
    pub(crate) fn cycle(self) -> CycleModel {
        let branch_miss_cycles = if self.is_zen() { 13 } else { 17 };
        CycleModel { base_cycles_per_instruction: 0.5, branch_miss_cycles: Some(branch_miss_cycles) }
    }

    /// Cycles that a miss at `level` adds.
    pub(crate) fn miss_cycles(self, level: u8) -> u32 {
        match level {
            1 => 10,
            2 if self.is_zen() => 36,
            2 => 50,
            _ => 200,
        }
    }

    /// Cycles that a TLB miss at `level` adds.
    pub(crate) fn translation_cycles(self, level: u8) -> u32 {
        if level == 1 {
            7
        } else {
            30
        }
    }

    /// The family's TLBs: level, kind, entries, ways.
    fn tlb_shapes(self) -> &'static [(u8, TlbKind, u32, u32)] {
        use TlbKind::{Data, Instruction, Unified};
        match self {
            Core::GoldenCove => &[(1, Data, 96, 6), (1, Instruction, 256, 8), (2, Unified, 2048, 16)],
            Core::SunnyCove => &[(1, Data, 64, 4), (1, Instruction, 128, 8), (2, Unified, 2048, 16)],
            Core::Zen => {
                &[(1, Data, 72, 72), (1, Instruction, 64, 64), (2, Data, 3072, 24), (2, Instruction, 512, 4)]
            }
            Core::Zen5 => {
                &[(1, Data, 96, 96), (1, Instruction, 64, 64), (2, Data, 4096, 16), (2, Instruction, 2048, 8)]
            }
            Core::Generic => &[(1, Data, 64, 4), (1, Instruction, 128, 8), (2, Unified, 1536, 12)],
        }
    }

    /// TLBs for base pages.
    pub(crate) fn tlbs(self, page_bytes: u64) -> Vec<Tlb> {
        let tlb = |&(level, kind, entries, ways): &(u8, TlbKind, u32, u32)| {
            let penalty_cycles = Some(self.translation_cycles(level));
            Tlb {
                level,
                kind,
                page_bytes: vec![page_bytes],
                entries,
                ways,
                penalty_cycles,
                replacement: Replacement::Lru,
            }
        };
        self.tlb_shapes().iter().map(tlb).collect()
    }

    /// Default caches, equal for all families: a machine that hides even its caches gives no hint
    /// for a better guess.
    pub(crate) fn caches(self) -> Vec<Cache> {
        let shapes = [
            (1, CacheKind::Data, 32 << 10, 8),
            (1, CacheKind::Instruction, 32 << 10, 8),
            (2, CacheKind::Unified, 1 << 20, 16),
            (3, CacheKind::Unified, 32 << 20, 16),
        ];
        let cache = |(level, kind, size_bytes, ways)| Cache {
            level,
            kind,
            size_bytes,
            ways,
            line_bytes: 64,
            store_miss: StoreMiss::Allocate,
            write: WritePolicy::Back,
            penalty_cycles: Some(self.miss_cycles(level)),
            shared_by_cpus: 1,
            behaviour: Behaviour::default(),
        };
        shapes.into_iter().map(cache).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Emerald Rapids behind a hypervisor that hides AMX and the leaf of TLBs.
    #[test]
    fn a_golden_cove_without_amx_is_told_from_an_ice_lake() {
        let core = |edx: u32| {
            let leaves = Leaves::recorded(&format!("0 0 20 756e6547 6c65746e 49656e69\n7 0 2 0 0 {edx:x}"));
            Core::of(&leaves, &["avx512_vbmi2".to_owned()])
        };
        assert_eq!((core(0), core(1 << 23)), (Core::SunnyCove, Core::GoldenCove));
    }

    #[test]
    fn every_family_fits_together() {
        for core in [Core::GoldenCove, Core::SunnyCove, Core::Zen, Core::Zen5, Core::Generic] {
            let mut machine = crate::Machine::preset("cachegrind").unwrap();
            machine.caches = core.caches();
            machine.tlbs = core.tlbs(4096);
            machine.cycle = Some(core.cycle());
            machine.check().unwrap();
        }
    }
}
