//! What a description may say beyond sizes and ways, from the command line to the report.

mod bench;

use bench::{json, lightfoot};
use serde_json::Value;

#[track_caller]
fn report(options: &[&str]) -> Value {
    let ran = lightfoot().arg("cache").args(options).args(["--format", "json", "true"]).run();
    ran.ends_with(0);
    json(&ran.stderr)
}

#[test]
fn the_report_says_how_the_machine_was_simulated() {
    let victim = report(&["--machine", "zen4-victim"]);
    let caches = victim["machine"]["cache"].as_array().unwrap();
    let inclusion: Vec<&str> = caches.iter().filter_map(|cache| cache["inclusion"].as_str()).collect();
    assert_eq!(inclusion, ["inclusive", "exclusive"]);
    assert!(victim["machine"]["simulation"]["stream"]
        .as_str()
        .unwrap()
        .starts_with("full stream: an inclusive"));
    let random = report(&["--machine", "cachegrind", "--l1d", "4K,4,64,random"]);
    assert!(random["totals"]["l1d_load_misses"].as_u64().unwrap() > 100);
}

#[test]
fn text_names_what_is_not_usual() {
    let plain = lightfoot().args(["cache", "--machine", "zen4", "true"]).run();
    assert!(!plain.ends_with(0).said().contains("simulated as"), "{}", plain.said());
    let options = ["--l1d", "32K,8,64,plru", "--l2", "1M,8,64,next-line", "--huge-pages", "2M"];
    let ran = lightfoot().args(["cache", "--machine", "zen4"]).args(options).arg("true").run();
    ran.ends_with(0).says("simulated as     L1D plru, L2 next-line, pages 2M");
}

#[test]
fn lines_that_move_are_told_from_demand_misses() {
    let options =
        ["--machine", "zen4-victim", "--l1d", "4K,4,64,streamer+adjacent-line,late:4", "--write-backs"];
    let moved = report(&options);
    let of = |level: &str, field: &str| moved["traffic"][level][field].as_u64().unwrap();
    let fetched = |field: &str| moved["prefetched"]["l1"][field].as_u64().unwrap();
    assert!(fetched("lines") > 0 && fetched("late") > 0, "{}", moved["prefetched"]);
    let missed =
        ["l1d_load_misses", "l1d_store_misses"].map(|field| moved["totals"][field].as_u64().unwrap());
    assert!(of("l1", "lines_in") > missed.iter().sum::<u64>(), "{}", moved["traffic"]);
    assert_eq!(of("l1", "dirty_out"), moved["write_backs"]["l1"].as_u64().unwrap());
    assert_eq!(of("l1", "clean_out"), 0, "the second level is not exclusive");
    // What enters the victim level is what the second level gave up.
    assert_eq!(of("l3", "lines_in"), of("l2", "dirty_out") + of("l2", "clean_out"));
    let text = lightfoot().arg("cache").args(options).arg("true").run();
    text.ends_with(0).says("lines moved      L1 ").says("prefetched lines L1 ");
}

#[test]
fn pages_at_random_change_outer_levels_and_repeat() {
    let of = |pages: &str| {
        let options = ["--machine", "cachegrind", "--l2", "64K,4,64", "--pages", pages];
        let report = report(&options);
        let misses = |field: &str| report["totals"][field].as_u64().unwrap();
        (misses("l1d_load_misses"), misses("l2_misses"))
    };
    if !bench::repeatable() {
        return;
    }
    let (virtually, one, two) = (of("virtual"), of("random:1"), of("random:2"));
    assert_eq!(one, of("random:1"));
    assert_eq!((one.0, two.0), (virtually.0, virtually.0), "the first level keeps its addresses");
    assert!(one.1 != virtually.1 && one.1 != two.1, "{virtually:?} {one:?} {two:?}");
}

#[test]
fn huge_pages_and_predictors_change_what_they_should() {
    let misses = |report: &Value, field: &str| report["totals"][field].as_u64().unwrap();
    let small = report(&["--machine", "zen4"]);
    let large = report(&["--machine", "zen4", "--huge-pages", "2M"]);
    assert!(misses(&large, "dtlb_misses") < misses(&small, "dtlb_misses"));
    assert_eq!(misses(&large, "l2_misses"), misses(&small, "l2_misses"));
    let options = |name| ["--machine", "cachegrind", "--branches", "--predictor", name];
    let (gshare, perceptron) = (report(&options("gshare")), report(&options("perceptron")));
    let wrong = |report: &Value| misses(report, "branch_mispredictions");
    assert_ne!(wrong(&gshare), wrong(&perceptron));
    assert_eq!(perceptron["machine"]["simulation"]["predictor"], "perceptron");
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let refused = |options: &[&str], words: &str| {
        lightfoot().arg("cache").args(options).arg("true").run().fails_with(125).says(words).in_one_line();
    };
    refused(&["--l1d", "32K,8,64,clock"], "\"clock\" is none of lru, fifo, plru, random");
    refused(&["--l2", "1M,16,64,QLRU_H00_M7_R0_U1"], "\"M7\" is none of M0 M1 M2 M3");
    refused(&["--pages", "physical"], "--pages physical: expected virtual, or random:SEED");
    refused(&["--l1d", "32K,8,64,inclusive"], "L1D has no level inside");
    refused(&["--huge-pages", "4K"], "--huge-pages 4K: expected 2M or 1G");
    refused(&["--machine", "cachegrind", "--huge-pages", "2M"], "large pages need a TLB");
    let trace = lightfoot().args(["trace", "-o", "trace.csv", "--machine", "zen4-victim", "true"]).run();
    trace.fails_with(125).says("only 'lightfoot cache' simulates").in_one_line();
    let usage = lightfoot().args(["cache", "--branches", "--predictor", "oracle", "true"]).run();
    usage.fails_with(125).says("gshare or perceptron");
}
