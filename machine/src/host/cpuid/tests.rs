//! Decoding of recorded and hand-written leaves; numbers are worked out from the manuals, not from
//! the decoder.

use super::*;

const LEAF_18: &str = include_str!("../../../fixtures/leaf-18.txt");
const ZEN4: &str = include_str!("../../../fixtures/zen4.txt");
const ZEN5: &str = include_str!("../../../fixtures/zen5.txt");
const GUEST: &str = include_str!("../../../fixtures/kvm-guest/cpuid.txt");

fn shapes(leaves: &Leaves) -> Vec<(String, u64, u32, u64)> {
    leaves.caches().iter().map(|c| (c.name(), c.size_bytes, c.ways, c.sets())).collect()
}

fn tlb(leaves: &Leaves, level: u8, kind: TlbKind, page_bytes: u64) -> Option<(u32, u32)> {
    let tlbs = leaves.tlbs();
    let found = tlbs.iter().find(|t| t.level == level && t.kind == kind && t.translates(page_bytes))?;
    Some((found.entries, found.ways))
}

#[test]
fn a_guest_with_a_last_level_of_odd_size() {
    let leaves = Leaves::recorded(GUEST);
    let expected = [
        ("L1D".to_string(), 48 << 10, 12, 64),
        ("L1I".to_string(), 64 << 10, 16, 64),
        ("L2".to_string(), 2 << 20, 16, 2048),
        ("L3".to_string(), 480 << 20, 16, 491_520),
    ];
    assert_eq!(shapes(&leaves), expected);
    assert_eq!(leaves.vendor(), "GenuineIntel");
    assert_eq!(leaves.family_model(), (6, 167));
    assert_eq!(leaves.hypervisor().as_deref(), Some("KVMKVMKVM"));
    assert!(leaves.tlbs().is_empty());
    assert_eq!(leaves.base_frequency_mhz(), None);
}

#[test]
fn intel_tlb_leaves() {
    let leaves = Leaves::recorded(LEAF_18);
    assert_eq!(tlb(&leaves, 1, TlbKind::Data, 4096), Some((96, 6)));
    assert_eq!(tlb(&leaves, 1, TlbKind::Data, 2 << 20), Some((32, 4)));
    assert_eq!(tlb(&leaves, 1, TlbKind::Data, 4 << 20), Some((32, 4)));
    assert_eq!(tlb(&leaves, 1, TlbKind::Data, 1 << 30), Some((8, 8)));
    assert_eq!(tlb(&leaves, 1, TlbKind::Instruction, 4096), Some((256, 8)));
    assert_eq!(tlb(&leaves, 2, TlbKind::Unified, 2 << 20), Some((2048, 16)));
    assert_eq!(leaves.tlbs().len(), 5, "the buffer for stores is left out");
    assert_eq!(leaves.base_frequency_mhz(), Some(2600));
    assert_eq!(leaves.hypervisor(), None);
}

#[test]
fn a_fully_associative_cache() {
    let caches = Leaves::recorded(LEAF_18).caches();
    assert_eq!((caches[0].name(), caches[0].sets(), caches[0].shared_by_cpus), ("L1D".to_string(), 64, 2));
    assert_eq!((caches[1].size_bytes, caches[1].ways, caches[1].sets()), (1024, 16, 1));
}

#[test]
fn amd_leaves() {
    let leaves = Leaves::recorded(ZEN4);
    assert_eq!(leaves.family_model(), (0x19, 0x61));
    let sizes: Vec<u64> = leaves.caches().iter().map(|cache| cache.size_bytes).collect();
    assert_eq!(sizes, [32 << 10, 32 << 10, 1 << 20, 32 << 20]);
    assert_eq!(leaves.caches()[3].shared_by_cpus, 16);
    assert_eq!(tlb(&leaves, 1, TlbKind::Data, 4096), Some((72, 72)));
    assert_eq!(tlb(&leaves, 1, TlbKind::Instruction, 2 << 20), Some((64, 64)));
    assert_eq!(tlb(&leaves, 2, TlbKind::Data, 4096), Some((3072, 8)));
    assert_eq!(tlb(&leaves, 2, TlbKind::Instruction, 4096), Some((512, 4)));
    assert_eq!(tlb(&leaves, 2, TlbKind::Data, 2 << 20), None, "code 9 says nothing");
    assert_eq!(tlb(&leaves, 2, TlbKind::Instruction, 2 << 20), Some((512, 2)));
}

#[test]
fn amd_counts_second_level_tlbs_in_units_of_32_from_family_1a_on() {
    let bit = Leaves::recorded(ZEN5);
    let hidden = Leaves::recorded(&ZEN5.replace("80000021 0 4000", "80000021 0 0"));
    for leaves in [&bit, &hidden] {
        assert_eq!(leaves.family_model(), (0x1a, 0x44));
        for page_bytes in [4096, 2 << 20] {
            assert_eq!(tlb(leaves, 1, TlbKind::Data, page_bytes), Some((96, 96)));
            assert_eq!(tlb(leaves, 1, TlbKind::Instruction, page_bytes), Some((64, 64)));
            assert_eq!(tlb(leaves, 2, TlbKind::Data, page_bytes), Some((4096, 16)));
            assert_eq!(tlb(leaves, 2, TlbKind::Instruction, page_bytes), Some((2048, 8)));
        }
    }
    let older = Leaves::recorded(&format!("{ZEN4}\n80000021 0 4000 0 0 0"));
    assert_eq!(tlb(&older, 2, TlbKind::Instruction, 4096), Some((512 * 32, 4)), "the bit says so");
}

#[test]
fn nothing_announced_is_not_asked() {
    let leaves = Leaves::from(|leaf, _| match leaf {
        0 => [4, 0, 0, 0],
        0x8000_0000 => [0x8000_0004, 0, 0, 0],
        1 | 4 => [0; 4],
        other => panic!("asked for leaf {other:#x}"),
    });
    assert!(leaves.caches().is_empty() && leaves.tlbs().is_empty());
}

#[test]
fn nothing_is_asked_twice_or_behind_the_last_subleaf() {
    let guest = Leaves::recorded(GUEST);
    let asked = std::cell::RefCell::new(Vec::new());
    let leaves = Leaves::from(|leaf, subleaf| {
        asked.borrow_mut().push((leaf, subleaf));
        guest.get(leaf, subleaf)
    });
    let asked = asked.into_inner();
    assert_eq!(asked.iter().collect::<std::collections::BTreeSet<_>>().len(), asked.len(), "{asked:x?}");
    let has = |leaf, subleaf| asked.contains(&(leaf, subleaf));
    assert!(has(4, 4) && has(7, 1) && has(0x18, 0) && has(0x4000_0000, 0), "{asked:x?}");
    assert!(!has(4, 5) && !has(0x18, 1) && !has(0x8000_001d, 0), "{asked:x?}");
    assert_eq!((leaves.caches(), leaves.tlbs()), (guest.caches(), guest.tlbs()));
}

#[test]
fn any_answer_decodes() {
    proptest::proptest!(|(words in proptest::array::uniform4(proptest::num::u32::ANY))| {
        let leaves = Leaves::from(|leaf, _| if leaf & 0x0fff_ffff == 0 { [u32::MAX; 4] } else { words });
        let caches = leaves.caches();
        assert!(caches.iter().all(|c| c.sets() * u64::from(c.ways) * u64::from(c.line_bytes) == c.size_bytes));
        assert!(leaves.tlbs().iter().all(|t| t.ways > 0 && t.entries % t.ways == 0));
        leaves.hypervisor();
    });
}

#[test]
fn other_vendors_leave_no_tlb() {
    assert!(tlb_of_zero().is_empty());
}

fn tlb_of_zero() -> Vec<Tlb> {
    Leaves::default().tlbs()
}
