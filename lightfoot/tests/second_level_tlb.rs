//! Second-level TLBs: sizes that `doctor` reports, and which side asks which buffer.

mod bench;

use bench::{json, lightfoot, Bench};
use serde_json::Value;

#[test]
fn doctor_reports_no_second_level_hardly_larger_than_the_first() {
    let run = lightfoot().args(["doctor", "--format", "json"]).run();
    let machine = json(&run.stdout)["machine"].clone();
    let tlbs = machine["tlb"].as_array().unwrap();
    let assumed = |name: &str| {
        let sources = machine["source"].as_array().unwrap();
        let of = |field: &str| sources.iter().rev().find(|source| source["field"] == field);
        of(&format!("tlb.{name}")).or_else(|| of("tlb")).unwrap()["origin"] == "assumed"
    };
    for outer in tlbs.iter().filter(|tlb| tlb["level"] == 2) {
        let kind = outer["kind"].as_str().unwrap();
        let name = match kind {
            "data" => "L2 DTLB",
            "instruction" => "L2 ITLB",
            _ => "L2 TLB",
        };
        let feeds = |inner: &serde_json::Value| kind == "unified" || inner["kind"] == kind;
        for inner in tlbs.iter().filter(|tlb| tlb["level"] == 1 && feeds(tlb)) {
            let [outside, inside] = [outer, inner].map(|tlb| tlb["entries"].as_u64().unwrap());
            assert!(outside >= 2 * inside || assumed(name), "{name}: {outside} behind {inside}");
        }
    }
}

/// A machine whose first-level TLBs have 8 entries each, and these behind.
fn machine(bench: &Bench, outer: &[(&str, u32, u32)]) -> std::path::PathBuf {
    let mut text = String::from(
        "name = \"small\"\ndescription = \"few pages\"\nthreads_per_core = 1\npage_bytes = [4096]\n\
         features = []\n[cycle]\nbase_cycles_per_instruction = 1.0\n",
    );
    for kind in ["data", "instruction"] {
        text += &format!(
            "[[cache]]\nlevel = 1\nkind = \"{kind}\"\nsize_bytes = \"32K\"\nways = 8\nline_bytes = 64\n"
        );
    }
    let inner = ["data", "instruction"].map(|kind| (1, kind, 8, 7));
    let outer = outer.iter().map(|&(kind, entries, penalty)| (2, kind, entries, penalty));
    for (level, kind, entries, penalty) in inner.into_iter().chain(outer) {
        text += &format!(
            "[[tlb]]\nlevel = {level}\nkind = \"{kind}\"\nentries = {entries}\nways = \"full\"\n\
             page_bytes = [4096]\npenalty_cycles = {penalty}\n"
        );
    }
    bench.file("small.toml", text.as_bytes(), 0o644)
}

/// The estimate's terms for TLBs, and the report.
fn cached(bench: &Bench, outer: &[(&str, u32, u32)]) -> (Vec<(String, u64)>, Value) {
    let machine = machine(bench, outer);
    let options = ["--format", "json", "/bin/ls", "/"];
    let ran = lightfoot().args(["cache", "--machine"]).arg(&machine).args(options).run();
    let report = json(&ran.ends_with(0).stderr);
    let terms = report["cycles"]["declared"]["terms"].as_array().unwrap().iter();
    let terms = terms.map(|term| (term["of"].as_str().unwrap().into(), term["count"].as_u64().unwrap()));
    (terms.filter(|(of, _): &(String, u64)| of.starts_with("TLB")).collect(), report)
}

#[test]
fn instruction_fetches_ask_the_second_level_that_is_declared_for_them() {
    let bench = Bench::new();
    let count = |terms: &[(String, u64)], of: &str| {
        terms.iter().find(|(name, _)| name == of).unwrap_or_else(|| panic!("{of}: {terms:?}")).1
    };
    let (large, report) = cached(&bench, &[("data", 512, 30), ("instruction", 512, 50)]);
    // Where `ls` has no symbols, one warning says so; there is none beside it.
    let warnings = report["warnings"].as_array().cloned().unwrap_or_default();
    let others = warnings.iter().filter(|said| !said.to_string().contains("no symbol table in"));
    assert_eq!(others.count(), 0, "{warnings:?}");
    let (small, _) = cached(&bench, &[("data", 512, 30), ("instruction", 16, 50)]);
    let fetches = "TLB2-instruction misses";
    assert!(count(&small, fetches) > 2 * count(&large, fetches), "{small:?} {large:?}");
    let data = count(&large, "TLB2-data misses");
    assert!(count(&small, "TLB2-data misses").abs_diff(data) <= data / 10, "{small:?} {large:?}");
}

#[test]
fn a_description_without_one_for_instructions_is_said() {
    let bench = Bench::new();
    let (terms, report) = cached(&bench, &[("data", 512, 30)]);
    assert!(terms.iter().any(|(of, count)| of == "TLB2 misses" && *count > 0), "{terms:?}");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("machine small names no second-level TLB for instructions"), "{warnings}");
}
