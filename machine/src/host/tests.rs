//! Reading recorded machines: what is reported, what had to be assumed, and that both are marked.

use super::*;
use crate::TlbKind;
use std::path::Path;

fn tree(name: &str) -> Tree {
    Tree::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name))
}

fn guest() -> Machine {
    read(&tree("kvm-guest"), &Leaves::recorded(include_str!("../../fixtures/kvm-guest/cpuid.txt")))
}

fn origin(machine: &Machine, field: &str) -> Origin {
    machine.source_of(field).unwrap_or_else(|| panic!("{field} has no source")).origin
}

#[test]
fn a_guest() {
    let machine = guest();
    machine.check().unwrap();
    let sizes: Vec<(String, u64)> = machine.caches.iter().map(|c| (c.name(), c.size_bytes)).collect();
    let expected = [("L1D", 48 << 10), ("L1I", 64 << 10), ("L2", 2 << 20), ("L3", 480 << 20)];
    assert_eq!(sizes, expected.map(|(name, size)| (name.to_string(), size)));
    assert_eq!(machine.last_level().unwrap().sets(), 491_520);
    assert_eq!(machine.page_bytes, [4096, 2 << 20, 1 << 30]);
    assert!(machine.has("amx_tile") && machine.has("avx512f") && machine.has("fsgsbase"));
    assert_eq!(machine.frequency_mhz, Some(2600));
    assert!(!machine.is_private(machine.last_level().unwrap()));
    assert!(machine.is_private(machine.data_cache(2).unwrap()));
}

#[test]
fn what_is_assumed_says_so() {
    let machine = guest();
    assert_eq!(origin(&machine, "cache.L1D.ways"), Origin::Reported);
    assert_eq!(origin(&machine, "cache.L1D.penalty_cycles"), Origin::Assumed);
    assert_eq!(origin(&machine, "cache.L3.store_miss"), Origin::Assumed);
    assert_eq!(origin(&machine, "tlb.L2 TLB.entries"), Origin::Assumed);
    assert_eq!(origin(&machine, "cycle.branch_miss_cycles"), Origin::Assumed);
    assert_eq!(origin(&machine, "features"), Origin::Reported);
    assert_eq!(
        machine.data_tlb(1).map(|tlb| (tlb.entries, tlb.ways)),
        Some((96, 6)),
        "AMX means Golden Cove"
    );
    assert_eq!(machine.instruction_tlb(2), machine.data_tlb(2), "the second level is unified");
}

#[test]
fn a_tree_with_ways_of_zero_and_eleven() {
    let machine = read(&tree("fully-associative"), &Leaves::default());
    machine.check().unwrap();
    let first = machine.data_cache(1).unwrap();
    assert_eq!((first.ways, first.sets(), first.shared_by_cpus), (64, 1, 2));
    assert!(machine.is_private(first));
    let last = machine.last_level().unwrap();
    assert_eq!((last.size_bytes, last.ways, last.sets()), (39_424 << 10, 11, 57_344));
    assert_eq!((machine.threads_per_core, machine.frequency_mhz), (2, Some(2500)));
    assert_eq!((machine.description.as_str(), machine.page_bytes.as_slice()), ("Made up", &[4096][..]));
}

#[test]
fn without_sysfs_cpuid_answers() {
    let machine = read(&tree("nowhere"), &Leaves::recorded(include_str!("../../fixtures/leaf-18.txt")));
    assert_eq!(machine.data_cache(1).unwrap().size_bytes, 32 << 10);
    assert!(machine.source_of("cache.L1D.ways").unwrap().note.starts_with("CPUID"));
    assert_eq!(origin(&machine, "tlb.L1 DTLB.entries"), Origin::Reported);
    assert_eq!(machine.tlb(1, TlbKind::Data, 2 << 20).unwrap().entries, 32);
    assert_eq!(machine.frequency_mhz, Some(2600));
    machine.check().unwrap();
}

#[test]
fn zen_5_has_large_second_level_tlbs() {
    let recorded = include_str!("../../fixtures/zen5.txt");
    for text in [recorded.to_string(), recorded.replace("80000021 0 4000", "80000021 0 0")] {
        let machine = read(&tree("nowhere"), &Leaves::recorded(&text));
        let entries = |tlb: Option<&crate::Tlb>| tlb.map(|tlb| tlb.entries);
        assert_eq!(entries(machine.data_tlb(2)), Some(4096));
        assert_eq!(entries(machine.instruction_tlb(2)), Some(2048));
        assert_eq!(origin(&machine, "tlb.L2 DTLB.entries"), Origin::Reported);
        machine.check().unwrap();
    }
}

/// Zen 5's TLB sizes without their unit, as the decoder would read them from an older family.
#[test]
fn a_second_level_hardly_larger_than_the_first_is_not_called_reported() {
    let text = include_str!("../../fixtures/zen5.txt").replace("80000021 0 4000", "80000021 0 0");
    let machine = read(&tree("nowhere"), &Leaves::recorded(&text.replace("b40f40", "a60f12")));
    assert_eq!(machine.data_tlb(1).unwrap().entries, 96);
    for (field, shape) in [("L2 DTLB", (3072, 24)), ("L2 ITLB", (512, 4))] {
        let source = machine.source_of(&format!("tlb.{field}.entries")).unwrap();
        assert_eq!(source.origin, Origin::Assumed, "{field}");
        assert!(source.note.contains("which cannot be"), "{}", source.note);
        let found = machine.tlbs.iter().find(|tlb| tlb.name() == field).unwrap();
        assert_eq!((found.entries, found.ways), shape);
    }
    assert_eq!(origin(&machine, "tlb.L1 DTLB.entries"), Origin::Reported);
    assert!(machine.sources.iter().any(|source| source.note.contains("L2 DTLB of 128 entries behind")));
    machine.check().unwrap();
}

#[test]
fn a_cache_no_larger_than_the_one_inside_is_not_called_reported() {
    let zen4 = include_str!("../../fixtures/zen4.txt");
    let smaller = zen4.replace("8000001d 2 4143 1c0003f 7ff 2", "8000001d 2 4143 1c0003f 3f 2");
    let machine = read(&tree("nowhere"), &Leaves::recorded(&smaller));
    let second = machine.data_cache(2).unwrap();
    assert_eq!(second.size_bytes, 1 << 20, "the family's");
    assert_eq!(origin(&machine, "cache.L2.size_bytes"), Origin::Assumed);
    assert_eq!(origin(&machine, "cache.L3.size_bytes"), Origin::Reported);
    machine.check().unwrap();
}

#[test]
fn any_tlb_sizes_leave_no_reported_level_that_cannot_be() {
    let zen4 = include_str!("../../fixtures/zen4.txt");
    proptest::proptest!(|(inner: u32, outer: u32, family in 0x15_u32..0x1c)| {
        let signature = format!("1 0 {:x} 0 0 0", (family - 15) << 20 | 0xf00);
        let text = zen4.replace("1 0 a60f12 0 0 0", &signature);
        let text = format!("{text}\n80000005 0 {inner:x} {inner:x} 0 0\n80000006 0 {outer:x} {outer:x} 0 0");
        let machine = read(&tree("nowhere"), &Leaves::recorded(&text));
        machine.check().unwrap();
        for kind in [TlbKind::Data, TlbKind::Instruction] {
            for page in [4096, 2 << 20] {
                let (inner, outer) = (machine.tlb(1, kind, page), machine.tlb(2, kind, page));
                let (Some(inner), Some(outer)) = (inner, outer) else { continue };
                let field = format!("tlb.{}.entries", outer.name());
                let assumed = origin(&machine, &field) == Origin::Assumed;
                assert!(assumed || outer.entries >= 2 * inner.entries, "{inner:?} {outer:?}");
            }
        }
    });
}

#[test]
fn with_nothing_everything_is_assumed() {
    let machine = read(&tree("nowhere"), &Leaves::default());
    machine.check().unwrap();
    assert_eq!(origin(&machine, "cache.L2.size_bytes"), Origin::Assumed);
    assert!(machine.data_cache(3).is_some() && machine.data_tlb(2).is_some());
}

#[test]
fn this_host_fits_together_and_reads_back() {
    let machine = Machine::host();
    machine.check().unwrap();
    assert!(machine.data_cache(1).is_some());
    assert_eq!(Machine::from_toml(&machine.to_toml(), Path::new("host")).unwrap(), machine);
}
