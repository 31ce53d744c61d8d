//! `cache --coherence`: known cases of false sharing are found with their object and both source
//! lines, their mended versions are clean, and two runs are equal.

mod bench;

use bench::{compile, json, lightfoot, repeatable, Bench};
use serde_json::Value;
use std::path::{Path, PathBuf};

const KERNELS: &str = include_str!("coherence/kernels.c");
/// A small machine of two private levels of each core and a shared one.
const MACHINE: &[&str] = &["--machine", "skylake-sp"];

struct Kernels {
    _bench: Bench,
    shared: PathBuf,
    mended: PathBuf,
}

impl Kernels {
    fn new() -> Option<Kernels> {
        let bench = Bench::new();
        let shared = compile(&bench, "kernels", &["-O1", "-g", "-pthread"], KERNELS)?;
        let mended = compile(&bench, "mended", &["-O1", "-g", "-pthread", "-DMENDED"], KERNELS)?;
        Some(Kernels { _bench: bench, shared, mended })
    }
}

fn report(program: &Path, kernel: &str, options: &[&str]) -> Value {
    let ran = lightfoot()
        .args(["cache", "--coherence", "--format", "json"])
        .args(MACHINE)
        .args(options)
        .arg("--")
        .arg(program)
        .arg(kernel)
        .run();
    ran.ends_with(0);
    json(&ran.stderr)
}

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// Where in its line a field begins, and its bytes.
fn number_of(field: &Value, line: &Value) -> (u64, u64) {
    (number(field, "address") - number(line, "address"), number(field, "size_bytes"))
}

/// The number of the line of the kernels' source that has these words in its comment.
fn line_of(words: &str) -> u64 {
    let at = KERNELS.lines().position(|line| line.contains(&format!("/* {words}")));
    at.unwrap_or_else(|| panic!("no line says {words}")) as u64 + 1
}

/// The source lines of the innermost frames of both sides of a pair.
fn sides(pair: &Value) -> [Option<u64>; 2] {
    ["missed", "took"].map(|side| pair[side][0]["line"].as_u64())
}

/// Misses of false and of true sharing of the lines in which an object of this name lies.
fn of_object(report: &Value, name: &str) -> (u64, u64) {
    let all = report["objects"].as_array().unwrap();
    let named = all.iter().filter(|object| object["name"].as_str().unwrap().contains(name));
    named.fold((0, 0), |sum, object| {
        let counts = &object["counts"];
        (sum.0 + number(counts, "false_sharing"), sum.1 + number(counts, "true_sharing"))
    })
}

#[test]
fn known_cases_are_found_and_their_mended_versions_are_clean() {
    let Some(kernels) = Kernels::new() else { return };
    for (kernel, object, missed, took) in [
        ("near", "near_counts", "near: counts", "near: counts"),
        ("regression", "heap block from room", "regression: adds", "regression: adds"),
        ("histogram", "heap block from room", "histogram: counts", "histogram: counts"),
        ("reverse_index", "heap block from room", "reverse_index: counts", "reverse_index: counts"),
        ("streamcluster", "heap block from room", "streamcluster: adds", "streamcluster: adds"),
        ("spin", "pool", "spin: takes", "spin: gives"),
    ] {
        let found = report(&kernels.shared, kernel, &[]);
        let (false_sharing, true_sharing) = of_object(&found, object);
        assert!(false_sharing > 1000, "{kernel}: {false_sharing} in {}", found["objects"]);
        assert!(false_sharing > 20 * true_sharing, "{kernel}: {true_sharing} true");
        let pairs = found["pairs"].as_array().unwrap();
        let known = |words: &str| -> Vec<u64> {
            // A statement that the compiler spreads has several lines.
            let line = line_of(words);
            (line.saturating_sub(4)..=line + 1).collect()
        };
        let is_known = |pair: &&Value| {
            let [a, b] = sides(pair);
            known(missed).contains(&a.unwrap_or(0)) && known(took).contains(&b.unwrap_or(0))
        };
        let of_pair: u64 = pairs.iter().filter(is_known).map(|pair| number(pair, "false_sharing")).sum();
        assert!(of_pair * 3 > false_sharing, "{kernel}: {of_pair} of {false_sharing} in {:?}", pairs.first());
        let mended = report(&kernels.mended, kernel, &[]);
        let (false_sharing, _) = of_object(&mended, object);
        assert!(false_sharing <= 8, "{kernel}, mended: {false_sharing} in {}", mended["objects"]);
    }
}

#[test]
fn a_word_that_two_threads_count_in_is_shared_truly() {
    let Some(kernels) = Kernels::new() else { return };
    let found = report(&kernels.shared, "ping", &[]);
    let (false_sharing, true_sharing) = of_object(&found, "ping_count");
    assert!(true_sharing > 1000 && false_sharing == 0, "{true_sharing} true, {false_sharing} false");
    let totals = &found["totals"];
    assert!(number(totals, "atomics") >= 40_000 && number(totals, "atomic_transfers") >= true_sharing);
    let pairs = found["pairs"].as_array().unwrap();
    assert_eq!(sides(&pairs[0]), [Some(line_of("ping: counts")); 2]);
    // Of the 20 writes all but the first find copies; each of three readers misses once for each.
    let mostly = report(&kernels.shared, "mostly", &[]);
    let (false_sharing, true_sharing) = of_object(&mostly, "mostly");
    assert!((10..=60).contains(&true_sharing) && false_sharing == 0, "{true_sharing} true");
}

#[test]
fn bytes_and_cores_stand_beside_the_line() {
    let Some(kernels) = Kernels::new() else { return };
    let found = report(&kernels.shared, "near", &[]);
    let line = &found["lines"][0];
    assert_eq!(line["objects"][0]["name"], "near_counts");
    assert_eq!(line["address"], line["objects"][0]["address"]);
    let touched = line["touched"].as_array().unwrap();
    let written: Vec<&Value> = touched.iter().map(|core| &core["written"]).collect();
    assert!(written.contains(&&json(b"[[0,7]]")) && written.contains(&&json(b"[[8,15]]")), "{touched:?}");
    // The structure has one field, and the line has two of its values.
    let fields = line["objects"][0]["fields"].as_array().unwrap();
    let field = |number: usize| (&fields[number]["name"], number_of(&fields[number], line));
    assert_eq!(field(0), (&"[0].count".into(), (0, 8)));
    assert_eq!(field(1), (&"[1].count".into(), (8, 8)));
    let totals = &found["totals"];
    let parts = ["cold", "capacity", "conflict", "true_sharing", "false_sharing"];
    let sum: u64 = parts.iter().map(|part| number(totals, part)).sum();
    assert_eq!(sum, number(totals, "l1d_misses"));
    let of_cores = |field: &str| -> u64 {
        found["cores"].as_array().unwrap().iter().map(|core| number(&core["counts"], field)).sum()
    };
    for field in parts.iter().chain(&["loads", "stores", "upgrades", "invalidations"]) {
        assert_eq!(of_cores(field), number(totals, field), "{field}");
    }
    let pairs: u64 =
        found["pairs"].as_array().unwrap().iter().map(|pair| number(pair, "false_sharing")).sum();
    assert_eq!(pairs, number(totals, "false_sharing"));
}

#[test]
fn two_runs_are_equal() {
    let Some(kernels) = Kernels::new() else { return };
    if !repeatable() {
        return;
    }
    let run = |kernel: &str| {
        let mut found = report(&kernels.shared, kernel, &["--quantum", "3000", "--repeatable"]);
        found["wall_s"] = Value::Null;
        found
    };
    for kernel in ["regression", "spin", "ping"] {
        assert_eq!(run(kernel), run(kernel), "{kernel}");
    }
}

#[test]
fn threads_share_cores() {
    let Some(kernels) = Kernels::new() else { return };
    // On one core nothing is taken from anybody.
    let one = report(&kernels.shared, "near", &["--cores", "1"]);
    let totals = &one["totals"];
    assert_eq!(["invalidations", "true_sharing", "false_sharing"].map(|field| number(totals, field)), [0; 3]);
    assert_eq!(
        (&one["placed"], one["cores"].as_array().unwrap().len()),
        (&json(b"{\"cores\":1,\"migrations\":0}"), 1)
    );
    assert_eq!(one["cores"][0]["threads"].as_array().unwrap().len(), 3);
    // Two threads on two cores take the line from each other as often as with cores of their own.
    let two = of_object(&report(&kernels.shared, "near", &["--cores", "2"]), "near_counts");
    assert!(two.0 > 10_000 && two.1 * 20 < two.0, "{two:?}");
    // Four threads on two cores: fewer than on four, since two of them share each cache.
    let [few, many] =
        ["2", "8"].map(|cores| of_object(&report(&kernels.shared, "spin", &["--cores", cores]), "pool"));
    assert!(0 < few.0 && few.0 < many.0, "{few:?} {many:?}");
}

#[test]
fn with_a_core_for_each_thread_the_report_is_that_of_own_cores() {
    let Some(kernels) = Kernels::new() else { return };
    if !repeatable() {
        return;
    }
    let run = |more: &[&str]| {
        let mut found = report(&kernels.shared, "regression", &[&["--repeatable"], more].concat());
        let report = found.as_object_mut().unwrap();
        ["wall_s", "placed"].iter().for_each(|field| _ = report.remove(*field));
        // Cores without a thread have nothing to say.
        report["cores"].as_array_mut().unwrap().retain(|core| core["threads"] != json(b"[]"));
        found
    };
    assert_eq!(run(&[]), run(&["--cores", "64"]));
}

#[test]
fn a_program_of_one_thread_misses_what_plain_cache_says() {
    let Some(kernels) = Kernels::new() else { return };
    // Without an argument the program ends at once.
    let words = ["cache", "--format", "json"];
    let of = |more: &[&str]| {
        let ran = lightfoot().args(words).args(MACHINE).args(more).arg("--").arg(&kernels.shared).run();
        json(&ran.ends_with(2).stderr)
    };
    let (plain, coherent) = (of(&[]), of(&["--coherence"]));
    let misses = number(&plain["totals"], "l1d_load_misses") + number(&plain["totals"], "l1d_store_misses");
    let found = &coherent["totals"];
    // A reference over two lines misses twice here, and counts once there.
    let more = number(found, "l1d_misses") - misses;
    assert!(more * 100 <= misses, "{more} more than {misses}: {found}");
    assert_eq!((number(found, "true_sharing"), number(found, "invalidations")), (0, 0));
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    for (options, words) in [
        (&["--coherence", "--branches"][..], "--coherence does not go with --branches"),
        (&["--coherence", "--by", "line"], "its rows are chosen by --coherence=line, object or source"),
        (&["--coherence", "--format", "html"], "--coherence has no --format html: use text, json or csv"),
        (&["--coherence", "--follow-children"], "--coherence does not go with --follow-children"),
        (&["--coherence", "--repeatable", "--turns"], "turns of --quantum instructions"),
        (&["--coherence", "--quantum", "7"], "--quantum: expected 100"),
        (&["--coherence", "--l1d", "32K,8,64,fifo"], "--coherence needs LRU"),
        (
            &["--coherence", "--l1d", "32K,8,256", "--l2", "1M,16,256", "--l3", "8M,16,256"],
            "lines of up to 128 bytes",
        ),
        (&["--coherence", "--cores", "0"], "--cores: expected 1"),
        (&["--cores", "4"], "add --coherence"),
        (&["--coherence=lines"], "expected line, object or source"),
    ] {
        let ran = lightfoot().arg("cache").args(options).args(["--", "/bin/true"]).run();
        assert!(ran.fails_with(125).says(words).said().lines().count() < 4, "{options:?}");
    }
}
