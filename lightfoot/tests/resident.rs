//! A data TLB that is kept beside the program misses what the simulator says that it misses: counts
//! of the filtered stream are those of the full one, function by function.

mod bench;

use bench::{compile, json, lightfoot, Bench};
use serde_json::Value;
use std::fs;

/// A machine whose data TLB has that many entries; small ones miss all the time.
fn machine(entries: u32) -> String {
    format!(
        r#"
name = "small"
page_bytes = [4096]

[[cache]]
level = 1
kind = "data"
size_bytes = "4K"
ways = 4
line_bytes = 64

[[cache]]
level = 1
kind = "instruction"
size_bytes = "4K"
ways = 4
line_bytes = 64

[[cache]]
level = 2
kind = "unified"
size_bytes = "64K"
ways = 8
line_bytes = 64

[[tlb]]
level = 1
kind = "data"
entries = {entries}
ways = "full"
page_bytes = [4096]

[[tlb]]
level = 1
kind = "instruction"
entries = 8
ways = "full"
page_bytes = [4096]

[[tlb]]
level = 2
kind = "unified"
entries = 64
ways = 4
page_bytes = [4096]
"#
    )
}

fn report(bench: &Bench, machine: &str, options: &[&str], program: &str) -> Value {
    let file = bench.join("report.json");
    let ran = lightfoot()
        .args(["cache", "--machine", machine, "--format", "json", "-o"])
        .arg(&file)
        .args(options)
        .args(["--", program])
        .run();
    ran.ends_with(0);
    json(&fs::read(file).unwrap())
}

#[test]
fn the_tlb_beside_the_program_misses_what_the_simulated_one_does() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = compile(&bench, "references", &["-g"], include_str!("resident/references.c")) else {
        return;
    };
    let program = program.to_str().unwrap();
    let mut misses = Vec::new();
    // Both levels are each thread's own: how threads take turns at a shared one is not fixed.
    for entries in [2, 3, 7, 64, 255] {
        let text = machine(entries);
        let description = bench.file("small.toml", text.as_bytes(), 0o644);
        let description = description.to_str().unwrap();
        let kept = report(&bench, description, &[], program);
        let full = report(&bench, description, &["--write-backs"], program);
        let stream = kept["machine"]["simulation"]["stream"].as_str().unwrap();
        assert!(stream.contains("data TLB"), "{stream}");
        assert_eq!(kept["totals"], full["totals"], "{entries} entries");
        assert_eq!(kept["functions"], full["functions"], "{entries} entries");
        misses.push(kept["totals"]["dtlb_misses"].as_u64().unwrap());
    }
    assert!(misses.is_sorted_by(|more, fewer| more > fewer), "{misses:?}");
}

/// What is kept on disk has these routines too.
#[test]
fn kept_translations_miss_as_often() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = compile(&bench, "references", &[], include_str!("resident/references.c")) else {
        return;
    };
    let run = |folder: &str| {
        let file = bench.join("report.json");
        let ran = lightfoot()
            .env("LIGHTFOOT_TRANSLATIONS", bench.join(folder))
            .args(["cache", "--machine", "zen4", "--format", "json", "-o"])
            .arg(&file)
            .arg("--")
            .arg(&program)
            .run();
        ran.ends_with(0);
        json(&fs::read(file).unwrap())["totals"].clone()
    };
    let [first, second, third] = [(); 3].map(|()| run("folder"));
    assert!(first == second && second == third, "{first} {second} {third}");
}
