//! The machine that is measured and simulated: `doctor --measure`, what it keeps, and what a report
//! says about the machine that its counts belong to.

mod bench;

use bench::{json, lightfoot, Bench, Ran};
use serde_json::Value;

/// On a quiet machine the description is kept, and on a busy one nothing is; which one this is,
/// nobody knows.
#[test]
fn doctor_measures_or_says_that_the_machine_is_busy() {
    let bench = Bench::new();
    let ran = lightfoot().args(["doctor", "--measure"]).env("XDG_CACHE_HOME", bench.path()).run();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    let kept = bench.join("lightfoot/machine/measured.toml");
    match ran.status {
        0 => {
            assert!(said.contains("Kept as --machine measured") && kept.is_file(), "{said}");
            let shown = lightfoot().args(["machines", "measured"]).env("XDG_CACHE_HOME", bench.path()).run();
            let text = String::from_utf8_lossy(&shown.ends_with(0).stdout).into_owned();
            assert!(text.contains("(measured)") && text.contains("measured: a chase: "), "{text}");
        }
        1 => {
            assert!(
                said.starts_with("Nothing was measured, and nothing is kept: the machine is busy: "),
                "{said}"
            );
            assert!(!kept.exists(), "{said}");
        }
        other => panic!("{other}: {}", ran.said()),
    }
}

#[test]
fn a_measured_description_is_kept_listed_and_simulated() {
    let bench = Bench::new();
    let with = |words: &[&str]| lightfoot().args(words).env("XDG_CACHE_HOME", bench.path()).run();
    with(&["machines", "measured"]).fails_with(125).says("has not been measured").in_one_line();
    with(&["cache", "--machine", "measured", "true"]).fails_with(125).says("doctor --measure");
    let list = |ran: Ran| String::from_utf8_lossy(&ran.ends_with(0).stdout).into_owned();
    assert!(list(with(&["machines"])).contains("not measured yet"));
    // What a measurement writes: the host's description with another name and a date.
    let host = with(&["machines", "host", "--toml"]);
    let toml = String::from_utf8(host.ends_with(0).stdout.clone()).unwrap();
    let dated = |line: &str| match line.strip_prefix("description = ") {
        Some(text) => format!("description = {}, measured on 2026-11-23\"", text.trim_end_matches('"')),
        None => line.replace("name = \"host\"", "name = \"measured\""),
    };
    let toml: Vec<String> = toml.lines().map(dated).collect();
    std::fs::create_dir_all(bench.join("lightfoot/machine")).unwrap();
    let file = bench.file("lightfoot/machine/measured.toml", toml.join("\n").as_bytes(), 0o600);
    let found = list(with(&["machines"])).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(found.contains("measured on 2026-11-23"), "{found}");
    let ran = with(&["cache", "--machine", "measured", "true"]);
    ran.ends_with(0).says("simulated        measured (");
    with(&["tile", "--no-measure", "--n", "48", "--machine", "measured"]).ends_with(0);
    // Another machine's description, of a home that both have.
    std::fs::write(&file, toml.join("\n").replace("description = \"", "description = \"Other ")).unwrap();
    with(&["cache", "--machine", "measured", "true"]).fails_with(125).says("describes another machine");
}

#[test]
fn a_report_names_the_machine_and_counts_its_records() {
    let bench = Bench::new();
    let ran = lightfoot().args(["cache", "--machine", "zen4", "true"]).run();
    ran.ends_with(0).says("simulated        zen4: L1D 32 KiB 8-way, L1I 32 KiB 8-way, L2 1 MiB 8-way,");
    let records = |words: &[&str]| {
        let out = bench.join("out.json");
        let options = ["--format", "json", "-o", out.to_str().unwrap(), "true"];
        lightfoot().arg("cache").args(words).args(options).run().ends_with(0);
        json(&std::fs::read(&out).unwrap())["machine"]["simulation"]["records"].clone()
    };
    // Zen 4's data TLB is kept beside the program, and only what misses it is recorded.
    let zen4 = records(&["--machine", "zen4"]);
    let of = |records: &Value, kind: &str| records[kind].as_u64().unwrap();
    assert!(of(&zen4, "data_pages") > 0 && of(&zen4, "loads") > of(&zen4, "data_pages"), "{zen4}");
    // Without TLBs no page is recorded; a full stream has blocks in place of lines of code.
    let plain = records(&["--machine", "cachegrind"]);
    assert_eq!((of(&plain, "data_pages"), of(&plain, "fetch_pages"), of(&plain, "blocks")), (0, 0, 0));
    let full = records(&["--machine", "cachegrind", "--l1d", "32K,8,64,stride"]);
    assert!(of(&full, "blocks") > 0 && of(&full, "loads") > of(&plain, "loads"), "{full} {plain}");
    // The analysis in the order of blocks simulates from the same records.
    let ordered = records(&["--machine", "cachegrind", "--branches"]);
    assert!(of(&ordered, "loads") > 0, "{ordered}");
}
