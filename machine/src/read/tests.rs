//! Every way in which a description can be wrong, with the line and the field that the reader is
//! told.

use crate::{Error, Machine, StoreMiss, WritePolicy};
use std::path::Path;

const GOOD: &str = r#"name = "toy"
page_bytes = [4096, "2M"]
features = ["sse2", "avx2"]

[cycle]
base_cycles_per_instruction = 1
branch_miss_cycles = 20

[[cache]]
level = 1
kind = "data"
size_bytes = "48K"
ways = 12
line_bytes = 64
store_miss = "bypass"
write = "through"
penalty_cycles = 4

[[cache]]
level = 2
kind = "unified"
size_bytes = 0x100_000
ways = "full"
line_bytes = 64

[[tlb]]
level = 1
kind = "data"
entries = 64
ways = "full"
"#;

fn read(text: &str) -> Result<Machine, Error> {
    Machine::from_toml(text, Path::new("toy.toml"))
}

/// Replaces one piece of the good text and returns the error's sentence.
fn error_after(old: &str, new: &str) -> String {
    assert!(GOOD.contains(old), "the good text has no {old:?}");
    read(&GOOD.replacen(old, new, 1)).expect_err(new).to_string()
}

#[test]
fn a_good_description() {
    let machine = read(GOOD).unwrap();
    assert_eq!(machine.page_bytes, [4096, 2 << 20]);
    assert_eq!(machine.features, ["avx2", "sse2"]);
    let data = machine.data_cache(1).unwrap();
    assert_eq!((data.sets(), data.store_miss, data.write), (64, StoreMiss::Bypass, WritePolicy::Through));
    assert_eq!(machine.data_cache(2).unwrap().sets(), 1);
    assert_eq!(machine.data_cache(2).unwrap().size_bytes, 1 << 20);
    assert_eq!(machine.data_tlb(1).unwrap().ways, 64);
    assert_eq!(machine.cycle.unwrap().base_cycles_per_instruction, 1.0);
}

#[test]
fn what_is_written_reads_back() {
    let machine = read(GOOD).unwrap();
    assert_eq!(read(&machine.to_toml()).unwrap(), machine);
}

#[test]
fn every_error_names_line_and_field() {
    let cases = [
        (
            "ways = 12",
            "wayz = 12",
            "toy.toml:9: cache.ways: is missing; expected a whole number, 1 or more, or \"full\"",
        ),
        (
            "ways = 12",
            "ways = 0",
            "toy.toml:13: cache.ways: 0; expected a whole number, 1 or more, or \"full\"",
        ),
        ("ways = 12", "ways = \"all\"", "toy.toml:13: cache.ways: \"all\" is not a number of ways; expected"),
        (
            "ways = 12",
            "ways = 7",
            "toy.toml:12: cache.L1D.size_bytes: 49152 bytes are not a whole number of sets of 7",
        ),
        (
            "line_bytes = 64",
            "line_bytes = 48",
            "toy.toml:12: cache.L1D.size_bytes: a line of 48 bytes is no power",
        ),
        (
            "line_bytes = 64",
            "line_bytes = -64",
            "toy.toml:14: cache.line_bytes: -64; expected a whole number from 4",
        ),
        (
            "size_bytes = \"48K\"",
            "size_bytes = \"48Q\"",
            "toy.toml:12: cache.size_bytes: \"48Q\" is not a size",
        ),
        (
            "size_bytes = \"48K\"",
            "size_bytes = 1.5",
            "toy.toml:12: cache.size_bytes: 1.5; expected bytes, or",
        ),
        (
            "kind = \"data\"",
            "kind = \"dato\"",
            "toy.toml:11: cache.kind: \"dato\"; expected \"data\" or \"instruction\"",
        ),
        ("level = 1", "level = 5", "toy.toml:10: cache.level: 5; expected a whole number from 1 to 4"),
        (
            "level = 2",
            "level = 1",
            "toy.toml:19: cache.L1: stands beside L1D at the same level; expected one cache",
        ),
        (
            "\"bypass\"",
            "\"drop\"",
            "toy.toml:15: cache.store_miss: \"drop\"; expected \"allocate\" or \"bypass\"",
        ),
        ("\"through\"", "true", "toy.toml:16: cache.write: true; expected \"back\" or \"through\""),
        (
            "penalty_cycles = 4",
            "penalty = 4",
            "toy.toml:17: cache.penalty: is not a field; expected one of size_bytes",
        ),
        ("name = \"toy\"", "", "toy.toml:1: name: is missing; expected a string"),
        ("name = \"toy\"", "name = 7", "toy.toml:1: name: 7; expected a string"),
        (
            "name = \"toy\"",
            "name = \"toy\"\ncolour = 3",
            "toy.toml:2: colour: is not a field; expected one of name",
        ),
        ("[4096, \"2M\"]", "4096", "toy.toml:2: page_bytes: 4096; expected a list of sizes"),
        ("[4096, \"2M\"]", "[4096, true]", "toy.toml:2: page_bytes: true; expected a list of sizes"),
        ("[4096, \"2M\"]", "[5000]", "toy.toml:2: page_bytes: 5000; expected ascending powers of two"),
        ("[4096, \"2M\"]", "[]", "toy.toml:2: page_bytes: no page size; expected at least one"),
        ("\"avx2\"", "\"avx3\"", "toy.toml:3: features: \"avx3\" is unknown; expected amx_bf16"),
        ("[cycle]", "[cycel]", "toy.toml:5: cycel: is not a field; expected one of name"),
        (
            "instruction = 1",
            "instruction = \"1\"",
            "toy.toml:6: cycle.base_cycles_per_instruction: \"1\"; expected a number",
        ),
        (
            "instruction = 1",
            "instruction = -1.5",
            "toy.toml:6: cycle.base_cycles_per_instruction: -1.5; expected a number, 0",
        ),
        (
            "branch_miss_cycles = 20",
            "branch_miss_cycles = 2.5",
            "toy.toml:7: cycle.branch_miss_cycles: 2.5; expected a whole",
        ),
        ("entries = 64", "entries = 0", "toy.toml:29: tlb.entries: 0; expected a whole number from 1"),
        (
            "entries = 64\nways = \"full\"",
            "entries = 64\nways = 7",
            "toy.toml:30: tlb.L1 DTLB.ways: 7 does not divide 64",
        ),
        ("[[tlb]]", "[tlb]", "toy.toml:26: tlb: a value of type table; expected tables [[tlb]]"),
        ("ways = 12", "ways = = 12", "toy.toml:13: not valid TOML: "),
        (
            "penalty_cycles = 4",
            "replacement = \"clock\"",
            "toy.toml:17: cache.replacement: \"clock\"; expected \"lru\" or \"fifo\" or \"plru\" or \"random\"",
        ),
        (
            "penalty_cycles = 4",
            "replacement = \"QLRU_H00_M4_R0_U1\"",
            "toy.toml:17: cache.replacement: \"QLRU_H00_M4_R0_U1\" (\"M4\" is none of M0 M1 M2 M3",
        ),
        (
            "penalty_cycles = 4",
            "replacement = \"duel:QLRU_H11_M1_R1_U2:QLRU_H11_M3_R1_U2:48\"",
            "toy.toml:17: cache.L1D.replacement: 48 leader sets of each policy in 64 sets; expected leaders",
        ),
        ("penalty_cycles = 4", "replacement = 7", "toy.toml:17: cache.replacement: 7; expected \"lru\" or"),
        (
            "penalty_cycles = 4",
            "inclusion = \"inclusive\"",
            "toy.toml:17: cache.L1D.inclusion: L1D has no level inside; expected an outer level",
        ),
        (
            "size_bytes = 0x100_000",
            "size_bytes = 0x100_000\ninclusion = \"exclusive\"",
            "toy.toml:23: cache.L2.inclusion: exclusive behind L1D; expected a level inside with lines",
        ),
        (
            "size_bytes = 0x100_000",
            "size_bytes = 0x100_000\nreplacement = \"plru\"",
            "toy.toml:23: cache.L2.replacement: plru of 16384 ways; expected at most 64 ways, or lru",
        ),
        (
            "size_bytes = 0x100_000",
            "size_bytes = 0x100_000\nprefetch = \"next_line\"",
            "toy.toml:23: cache.prefetch: \"next_line\"; expected \"none\" or \"next-line\" or \"stride\"",
        ),
        (
            "penalty_cycles = 4",
            "prefetch_late_touches = -1",
            "toy.toml:17: cache.prefetch_late_touches: -1; expected a whole number from 0 to 1000000",
        ),
        (
            "penalty_cycles = 4",
            "slice_masks = [0x40, \"a\"]",
            "toy.toml:17: cache.slice_masks: \"a\"; expected at most 6 masks of address bits from 0 to 62",
        ),
        ("penalty_cycles = 4", "slice_masks = [0]", "toy.toml:17: cache.slice_masks: mask 0x0; expected at most"),
        (
            "penalty_cycles = 4",
            "slice_masks = [0x60]",
            "toy.toml:17: cache.L1D.slice_masks: 0x60 has bits inside a line of 64 bytes; expected address bits",
        ),
        (
            "size_bytes = 0x100_000",
            "size_bytes = 0x100_000\nslice_masks = [0x40]",
            "toy.toml:23: cache.L2.slice_masks: 2 slices of 1 sets; expected as many sets in each slice",
        ),
    ];
    for (old, new, expected) in cases {
        let error = error_after(old, new);
        assert!(error.starts_with(expected), "{new}\n  said     {error}\n  expected {expected}");
    }
}

#[test]
fn a_line_may_not_shrink_outwards() {
    let text = GOOD.replacen("ways = \"full\"\nline_bytes = 64", "ways = 8\nline_bytes = 32", 1);
    let error = read(&text).unwrap_err().to_string();
    assert!(error.starts_with("toy.toml:24: cache.L2.line_bytes: 32 is less than L1D has"), "{error}");
}

#[test]
fn errors_of_sources() {
    let text = format!("{GOOD}\n[[source]]\nfield = \"cycle\"\norigin = \"rumoured\"\n");
    let error = read(&text).unwrap_err().to_string();
    assert!(error.contains("source.origin: \"rumoured\"; expected \"measured\" or \"reported\""), "{error}");
}
