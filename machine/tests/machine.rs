//! What consumers rely on, through the public interface only.

use lightfoot_machine::{
    abilities, CacheKind, Error, Inclusion, Machine, Origin, Prefetch, Prefetches, Replacement, StoreMiss,
    PRESETS,
};
use proptest::prelude::*;
use std::ffi::OsStr;
use std::path::Path;

fn preset(name: &str) -> Machine {
    Machine::preset(name).unwrap()
}

#[test]
fn an_override_changes_shape_and_nothing_else() {
    let machine = preset("ladner2002").with_override("l1d", "16K,2,32").unwrap();
    let cache = machine.data_cache(1).unwrap();
    assert_eq!((cache.size_bytes, cache.ways, cache.sets()), (16 << 10, 2, 256));
    assert_eq!(cache.store_miss, StoreMiss::Bypass);
    let source = machine.source_of("cache.L1D.ways").unwrap();
    assert_eq!((source.origin, source.note.as_str()), (Origin::Declared, "--l1d 16K,2,32"));
    assert_eq!(machine.source_of("cache.L1D.write").unwrap().origin, Origin::Assumed);
}

#[test]
fn words_behind_a_shape_say_how_a_cache_behaves() {
    let machine = preset("zen4").with_override("l1d", "32K,8,64,plru").unwrap();
    let machine = machine.with_override("l2", "1M, 8, 64, Inclusive, stride").unwrap();
    assert_eq!(machine.data_cache(1).unwrap().behaviour.replacement, Replacement::Plru);
    let outer = machine.data_cache(2).unwrap().behaviour;
    assert_eq!(
        (outer.inclusion, outer.prefetch),
        (Inclusion::Inclusive, Prefetches::default().with(Prefetch::Stride))
    );
    assert_eq!(machine.source_of("cache.L1D.replacement").unwrap().note, "--l1d 32K,8,64,plru");
    let again = Machine::from_toml(&machine.to_toml(), Path::new("again")).unwrap();
    assert_eq!(again.caches, machine.caches);
    let words = "36M,16,64,duel:QLRU_H11_M1_R1_U2:QLRU_H11_MR161_R1_U2:32,slices:0x1b5f575440,none,late:0";
    let machine = machine.with_override("l3", words).unwrap();
    let again = Machine::from_toml(&machine.to_toml(), Path::new("again")).unwrap();
    assert_eq!(again.caches, machine.caches);
    assert_eq!(again.data_cache(3).unwrap().behaviour.slices.masks(), [0x1b_5f57_5440]);
    // A shape alone leaves them as they are.
    let machine = machine.with_override("l1d", "48K,12,64").unwrap();
    assert_eq!(machine.data_cache(1).unwrap().behaviour.words(), ["plru"]);
    assert!(machine
        .with_override("l1d", "48K,12,64,lru")
        .unwrap()
        .data_cache(1)
        .unwrap()
        .behaviour
        .words()
        .is_empty());
    let error = |text: &str| preset("zen4").with_override("l1d", text).unwrap_err().to_string();
    assert!(error("32K,8,64,clock").starts_with("--l1d 32K,8,64,clock: \"clock\" is none of lru, fifo, plru"));
    assert!(error("32K,8,64,exclusive").contains("L1D has no level inside"));
}

#[test]
fn overrides_fit_together_whatever_their_order() {
    let (l2, l3) = (("l2", "16M,16,64"), ("l3", "64M,16,64,inclusive"));
    let bridge = || preset("sandy-bridge");
    let one = bridge().with_overrides(&[l2, l3]).unwrap();
    assert_eq!(one.caches, bridge().with_overrides(&[l3, l2]).unwrap().caches);
    assert!(bridge().with_override(l2.0, l2.1).is_err(), "the last level holds less than that");
    let wrong = ("l1d", "32K,8,64,slices:0x1");
    let error = bridge().with_overrides(&[wrong, l2, l3]).unwrap_err().to_string();
    assert!(error.starts_with("--l1d 32K,8,64,slices:0x1: cache.L1D.slice_masks"), "{error}");
}

#[test]
fn an_override_adds_and_removes_levels() {
    let machine = preset("cachegrind").with_override("L3", "33792K,11,64").unwrap();
    assert_eq!(machine.last_level().unwrap().name(), "L3");
    assert_eq!(machine.last_level().unwrap().sets(), 49_152);
    let machine = machine.with_override("l3", "none").unwrap().with_override("l2", "NONE").unwrap();
    assert_eq!(machine.last_level().unwrap().name(), "L1D");
    assert_eq!(machine.caches.len(), 2);
}

#[test]
fn a_fully_associative_override() {
    let machine = preset("cachegrind").with_override("l1i", "4K,full,64").unwrap();
    assert_eq!(machine.instruction_cache().unwrap().sets(), 1);
}

#[test]
fn overrides_say_what_is_wrong() {
    let error =
        |level: &str, text: &str| preset("cachegrind").with_override(level, text).unwrap_err().to_string();
    assert!(
        error("l1d", "32K,8").starts_with("--l1d 32K,8: 2 of 3 values are given; expected SIZE,WAYS,LINE")
    );
    assert!(error("l9", "32K,8,64").starts_with("--l9 32K,8,64: the levels are l1i, l1d, l2 and l3"));
    assert!(error("l2", "8M,16,32").contains("32 is less than L1D has"));
}

#[test]
fn a_name_is_host_preset_or_file() {
    assert_eq!(Machine::named(OsStr::new("host")).unwrap().name, "host");
    assert_eq!(Machine::named(OsStr::new("zen4")).unwrap().name, "zen4");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines/xeon-dp.toml");
    assert_eq!(Machine::named(file.as_os_str()).unwrap(), preset("xeon-dp"));
    assert!(matches!(Machine::named(OsStr::new("pdp11")), Err(Error::Unknown { .. })));
    let missing = Machine::named(OsStr::new("no/such.toml")).unwrap_err();
    assert!(missing.to_string().starts_with("no/such.toml: cannot be read: "), "{missing}");
}

#[test]
fn paths_through_the_levels() {
    let zen = preset("zen4");
    let path: Vec<String> = zen.data_path().map(|cache| cache.name()).collect();
    assert_eq!(path, ["L1D", "L2", "L3"]);
    assert_eq!(zen.instruction_cache().unwrap().kind, CacheKind::Instruction);
    assert_eq!((zen.data_tlb(2).unwrap().entries, zen.instruction_tlb(2).unwrap().entries), (3072, 512));
    assert!(zen.is_private(zen.data_cache(2).unwrap()) && !zen.is_private(zen.last_level().unwrap()));
    assert!(preset("ladner2002").data_tlb(1).is_none() && preset("ladner2002").instruction_cache().is_none());
    assert_eq!(preset("m1").base_page_bytes(), 16_384);
}

#[test]
fn json_has_the_same_fields_as_toml() {
    for preset in PRESETS {
        let machine = preset.machine();
        let json: serde_json::Value = serde_json::to_value(&machine).unwrap();
        assert_eq!(json["cache"].as_array().unwrap().len(), machine.caches.len());
        assert_eq!(json["cache"][0]["size_bytes"], machine.caches[0].size_bytes);
        assert_eq!(json["cache"][0]["kind"], "data");
    }
}

#[test]
fn abilities_are_sentences() {
    for row in abilities() {
        assert!(!row.name.is_empty() && !row.reason.is_empty(), "{row:?}");
        assert!(serde_json::to_value(&row).unwrap()["state"].is_string());
    }
}

/// A cache built by hand is refused before it can divide by zero.
#[test]
fn a_cache_of_nothing_is_refused() {
    let mut machine = preset("cachegrind");
    machine.caches[0].ways = 0;
    assert!(machine
        .check()
        .unwrap_err()
        .to_string()
        .contains("cache.L1D.size_bytes: a cache has at least 1 way"));
    assert_eq!(machine.caches[0].lines(), 0);
}

proptest! {
    #[test]
    fn overrides_never_panic(level in "(l1d|l1i|l2|l3|\\PC{0,4})", text in "[0-9kKMG,]{0,16}|\\PC{0,16}") {
        if let Ok(machine) = preset("skylake-sp").with_override(&level, &text) {
            prop_assert!(machine.check().is_ok());
        }
    }

    #[test]
    fn descriptions_never_panic(text in "\\PC{0,200}") {
        let _ = Machine::from_toml(&text, Path::new("any"));
    }

    /// One byte of a good description changed: read or refused, never a panic, and never an
    /// unchecked machine.
    #[test]
    fn damaged_descriptions_never_panic(which in 0..PRESETS.len(), at in any::<prop::sample::Index>(), byte in 32u8..127) {
        let mut text = PRESETS[which].toml.as_bytes().to_vec();
        let place = at.index(text.len());
        text[place] = byte;
        if let Ok(machine) = Machine::from_toml(&String::from_utf8(text).unwrap(), Path::new("any")) {
            prop_assert!(machine.check().is_ok());
        }
    }
}
