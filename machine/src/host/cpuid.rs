//! Caches and TLBs as CPUID describes them.
//!
//! The leaves are read once, from the CPU or from a recording; decoding them is a pure function.
//! Intel: leaf 4 (caches), 0x16 (clock), 0x18 (TLBs). AMD: 0x8000001d (caches, in the form of leaf
//! 4), 0x80000005 and 0x80000006 (TLBs), 0x80000021 (the unit of second-level TLB sizes). **Leaves
//! out** the descriptor bytes of leaf 2: on all CPUs of the last ten years leaf 4 says more.
//! Source: Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E.

use crate::{Behaviour, Cache, CacheKind, Geometry, Replacement, StoreMiss, Tlb, TlbKind, WritePolicy};
use std::collections::BTreeMap;

/// `eax, ebx, ecx, edx` of a leaf.
pub(crate) type Registers = [u32; 4];

/// CPUID's answers by (leaf, subleaf).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leaves(BTreeMap<(u32, u32), Registers>);

/// The leaves that are read, with their numbers of subleaves.
const READ: &[(u32, u32)] = &[
    (0, 1),
    (1, 1),
    (4, 8),
    (7, 2),
    (0x16, 1),
    (0x18, 16),
    (0x4000_0000, 1),
    (0x8000_0000, 1),
    (0x8000_0005, 1),
    (0x8000_0006, 1),
    (0x8000_001d, 8),
    (0x8000_0021, 1),
];

/// CPUID leaf 0x80000021, eax: leaf 0x80000006 counts entries of TLBs in units of
/// [`LARGE_TLB_UNIT`]. Hypervisors clear it.
const LARGE_TLB_BIT: u32 = 1 << 14;

/// The first of AMD's families (Zen 5) that counts in these units, whether the bit is visible or
/// not.
const LARGE_TLB_FAMILY: u32 = 0x1a;

/// Entries of a second-level TLB that one unit stands for.
const LARGE_TLB_UNIT: u32 = 32;

/// CPUID leaf 7, edx: AVX-512 FP16, which came with AMX and not before.
const HALF_PRECISION_BIT: u32 = 1 << 23;

/// CPUID leaf 1, ecx: set by hypervisors, reserved on hardware.
const HYPERVISOR_BIT: u32 = 1 << 31;

impl Leaves {
    /// Reads the leaves of the CPU that runs this code.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn of_this_cpu() -> Leaves {
        Leaves::from(|leaf, subleaf| {
            let answer = std::arch::x86_64::__cpuid_count(leaf, subleaf);
            [answer.eax, answer.ebx, answer.ecx, answer.edx]
        })
    }

    /// Other architectures have no CPUID.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn of_this_cpu() -> Leaves {
        Leaves::default()
    }

    /// Reads from `cpuid` all leaves that are decoded, within the ranges that it announces.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only x86-64 has CPUID to ask"))]
    fn from(cpuid: impl Fn(u32, u32) -> Registers) -> Leaves {
        // A virtual machine's host answers CPUID, in ten microseconds and more: nothing is asked
        // twice, and no subleaf behind the last one.
        let mut leaves = Leaves::default();
        for &(leaf, subleaves) in READ {
            let announced = match leaf >> 28 {
                _ if [0, 0x8000_0000].contains(&leaf) => true,
                4 => leaves.get(1, 0)[2] & HYPERVISOR_BIT != 0,
                8 => leaf <= leaves.get(0x8000_0000, 0)[0],
                _ => leaf <= leaves.get(0, 0)[0],
            };
            for subleaf in (0..subleaves).filter(|_| announced) {
                let answer = cpuid(leaf, subleaf);
                leaves.0.insert((leaf, subleaf), answer);
                let is_last = match leaf {
                    // Caches, until the first that is none.
                    4 | 0x8000_001d => bits(answer[0], 0, 4) == 0,
                    // The first subleaf says how many follow.
                    7 | 0x18 => subleaf >= leaves.get(leaf, 0)[0],
                    _ => true,
                };
                if is_last {
                    break;
                }
            }
        }
        leaves
    }

    /// A recording: lines of `leaf subleaf eax ebx ecx edx` in hexadecimal; `#` starts a comment.
    #[cfg(test)]
    pub(crate) fn recorded(text: &str) -> Leaves {
        let mut leaves = Leaves::default();
        for line in text.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
            let words: Vec<u32> = line
                .split_whitespace()
                .map(|word| u32::from_str_radix(word.trim_start_matches("0x"), 16).unwrap())
                .collect();
            if let [leaf, subleaf, eax, ebx, ecx, edx] = words[..] {
                leaves.0.insert((leaf, subleaf), [eax, ebx, ecx, edx]);
            }
        }
        leaves
    }

    fn get(&self, leaf: u32, subleaf: u32) -> Registers {
        self.0.get(&(leaf, subleaf)).copied().unwrap_or_default()
    }

    /// `GenuineIntel`, `AuthenticAMD`, ...
    pub(crate) fn vendor(&self) -> String {
        let [_, ebx, ecx, edx] = self.get(0, 0);
        [ebx, edx, ecx].iter().flat_map(|word| word.to_le_bytes()).map(char::from).collect()
    }

    /// Family and model with their extensions folded in.
    pub(crate) fn family_model(&self) -> (u32, u32) {
        let signature = self.get(1, 0)[0];
        let base = bits(signature, 8, 11);
        let family = if base == 15 { base + bits(signature, 20, 27) } else { base };
        let extended = if base == 6 || base == 15 { bits(signature, 16, 19) << 4 } else { 0 };
        (family, extended | bits(signature, 4, 7))
    }

    /// Whether there is AVX-512 FP16 (leaf 7, edx). Hypervisors that hide AMX leave it visible.
    pub(crate) fn has_half_precision(&self) -> bool {
        self.get(7, 0)[3] & HALF_PRECISION_BIT != 0
    }

    /// The name that a hypervisor gives itself, when there is one.
    pub(crate) fn hypervisor(&self) -> Option<String> {
        if self.get(1, 0)[2] & HYPERVISOR_BIT == 0 {
            return None;
        }
        let [_, ebx, ecx, edx] = self.get(0x4000_0000, 0);
        let name: String =
            [ebx, ecx, edx].iter().flat_map(|word| word.to_le_bytes()).map(char::from).collect();
        Some(name.trim_matches(|letter: char| letter == '\0' || letter == ' ').to_string())
    }

    /// The base clock.
    pub(crate) fn base_frequency_mhz(&self) -> Option<u32> {
        Some(bits(self.get(0x16, 0)[0], 0, 15)).filter(|&mhz| mhz > 0)
    }

    /// Caches of leaf 4, else of leaf 0x8000001d.
    pub(crate) fn caches(&self) -> Vec<Cache> {
        let of = |leaf| (0..8).filter_map(move |subleaf| cache(self.get(leaf, subleaf))).collect::<Vec<_>>();
        let intel = of(4);
        if intel.is_empty() {
            of(0x8000_001d)
        } else {
            intel
        }
    }

    /// TLBs of leaf 0x18, else of AMD's leaves.
    pub(crate) fn tlbs(&self) -> Vec<Tlb> {
        let mut tlbs = Vec::new();
        for subleaf in 0..16 {
            if let Some(tlb) = intel_tlb(self.get(0x18, subleaf)) {
                enter(&mut tlbs, tlb);
            }
        }
        if tlbs.is_empty() && self.vendor() != "GenuineIntel" {
            self.amd_tlbs(&mut tlbs);
        }
        tlbs
    }

    fn amd_tlbs(&self, tlbs: &mut Vec<Tlb>) {
        let [large, small, ..] = self.get(0x8000_0005, 0);
        let [outer_large, outer_small, ..] = self.get(0x8000_0006, 0);
        for (page_bytes, inner, outer) in [(4096, small, outer_small), (2 << 20, large, outer_large)] {
            let halves = [(TlbKind::Data, 16), (TlbKind::Instruction, 0)];
            for (kind, shift) in halves {
                let (entries, ways) = (bits(inner >> shift, 0, 7), bits(inner >> shift, 8, 15));
                let ways = if ways == 0xff { entries } else { ways };
                tlbs.extend(tlb(1, kind, page_bytes, entries, ways));
                let (entries, code) = (bits(outer >> shift, 0, 11), bits(outer >> shift, 12, 15));
                let entries = entries * self.outer_tlb_unit();
                tlbs.extend(tlb(2, kind, page_bytes, entries, amd_ways(code, entries)));
            }
        }
    }

    /// How many entries one unit of leaf 0x80000006's TLB sizes stands for.
    fn outer_tlb_unit(&self) -> u32 {
        let large_tlb = self.get(0x8000_0021, 0)[0] & LARGE_TLB_BIT != 0;
        let amd = self.vendor() == "AuthenticAMD" && self.family_model().0 >= LARGE_TLB_FAMILY;
        if large_tlb || amd {
            LARGE_TLB_UNIT
        } else {
            1
        }
    }
}

/// Bits `low..=high`.
fn bits(word: u32, low: u32, high: u32) -> u32 {
    (word >> low) & (u32::MAX >> (31 - (high - low)))
}

/// A subleaf of leaf 4 or 0x8000001d; `None` where it ends the list or is no cache.
fn cache([eax, ebx, ecx, _]: Registers) -> Option<Cache> {
    let kind = match bits(eax, 0, 4) {
        1 => CacheKind::Data,
        2 => CacheKind::Instruction,
        3 => CacheKind::Unified,
        _ => return None,
    };
    let line_bytes = bits(ebx, 0, 11) + 1;
    let partitions = u64::from(bits(ebx, 12, 21) + 1);
    let sets = (u64::from(ecx) + 1) * partitions;
    let ways = if eax & 1 << 9 != 0 { u32::try_from(sets).ok()? } else { bits(ebx, 22, 31) + 1 };
    let sets = if eax & 1 << 9 != 0 { 1 } else { sets };
    let shape = Geometry::new(sets * u64::from(ways) * u64::from(line_bytes), ways, line_bytes).ok()?;
    Some(Cache {
        level: bits(eax, 5, 7) as u8,
        kind,
        size_bytes: shape.size_bytes,
        ways,
        line_bytes,
        store_miss: StoreMiss::Allocate,
        write: WritePolicy::Back,
        penalty_cycles: None,
        shared_by_cpus: bits(eax, 14, 25) + 1,
        behaviour: Behaviour::default(),
    })
}

/// A subleaf of leaf 0x18. Buffers for loads only stand for data; those for stores only are left
/// out.
fn intel_tlb([_, ebx, sets, edx]: Registers) -> Option<Tlb> {
    let kind = match bits(edx, 0, 4) {
        1 | 4 => TlbKind::Data,
        2 => TlbKind::Instruction,
        3 => TlbKind::Unified,
        _ => return None,
    };
    let sizes = [(0, 4 << 10), (1, 2 << 20), (2, 4 << 20), (3, 1 << 30)];
    let page_bytes = sizes.iter().filter(|(bit, _)| ebx & 1 << bit != 0).map(|&(_, size)| size).collect();
    let entries = bits(ebx, 16, 31).checked_mul(sets)?;
    let ways = if edx & 1 << 8 != 0 { entries } else { bits(ebx, 16, 31) };
    let level = bits(edx, 5, 7) as u8;
    let tlb =
        Tlb { level, kind, page_bytes, entries, ways, penalty_cycles: None, replacement: Replacement::Lru };
    (entries > 0 && (1..=2).contains(&level) && !tlb.page_bytes.is_empty()).then_some(tlb)
}

/// Enters a buffer, without the page sizes that an earlier one of its level and kind has.
fn enter(tlbs: &mut Vec<Tlb>, mut tlb: Tlb) {
    let twins = || tlbs.iter().filter(|other| other.level == tlb.level && other.kind == tlb.kind);
    let added: Vec<u64> =
        tlb.page_bytes.iter().copied().filter(|&page| !twins().any(|other| other.translates(page))).collect();
    tlb.page_bytes = added;
    if !tlb.page_bytes.is_empty() {
        tlbs.push(tlb);
    }
}

/// The associativity codes of leaf 0x80000006; 9 refers to a leaf that describes caches only.
fn amd_ways(code: u32, entries: u32) -> u32 {
    match code {
        1..=4 => code,
        5 => 6,
        6 => 8,
        8 => 16,
        0xa => 32,
        0xb => 48,
        0xc => 64,
        0xd => 96,
        0xe => 128,
        0xf => entries,
        _ => 0,
    }
}

/// A buffer with these numbers, when they describe one. Ways that do not divide the entries become
/// the largest smaller divisor.
fn tlb(level: u8, kind: TlbKind, page_bytes: u64, entries: u32, ways: u32) -> Option<Tlb> {
    if entries == 0 || ways == 0 {
        return None;
    }
    let ways = (1..=ways.min(entries)).rev().find(|&ways| entries.is_multiple_of(ways))?;
    Some(Tlb {
        level,
        kind,
        page_bytes: vec![page_bytes],
        entries,
        ways,
        penalty_cycles: None,
        replacement: Replacement::Lru,
    })
}

#[cfg(test)]
mod tests;
