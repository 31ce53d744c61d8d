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
