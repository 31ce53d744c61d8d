//! The study's figures against the slow way to find them: the compiled lookup runs under the
//! engine, its data addresses are written to a file, and the naive simulator, which shares nothing
//! with the fast one but the definition of a reference, reads them back. The misses of a trial must
//! be equal, not close.

mod bench;

use event::{Record, Sink};
use instrument::tool::run_tool;
use instrument::tools::{find, Setting};
use instrument::{Command, Options};
use simulate::reference::Naive;
use simulate::{Geometry, Levels};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

const ITEMS: usize = 4096;
const LOOKUPS: usize = 256;

/// `lightfoot lookups` as the study runs it.
fn words(algorithm: &str, block_bytes: u32, trials: usize) -> Vec<String> {
    format!("lookups {algorithm} --items {ITEMS} --block-bytes {block_bytes} --lookups {LOOKUPS} --trials {trials}")
        .split(' ')
        .map(String::from)
        .collect()
}

/// Misses of a whole run in the paper's cache, from the dumped addresses.
fn misses_of_the_dump(words: &[String], block_bytes: u32, folder: &Path) -> u64 {
    let setting = Setting { output: Some(folder.join("trace")) };
    let command = Command {
        program: env!("CARGO_BIN_EXE_lightfoot").into(),
        arguments: words.iter().map(Into::into).collect(),
    };
    let stock = find("memory-trace").expect("a stock tool");
    let mut tool = (stock.new)(&setting).expect("a file to write to");
    run_tool(&command, &Options::default(), &mut *tool).expect("the lookups run");

    struct Twin(Naive);
    impl Sink for Twin {
        fn records(&mut self, thread: u32, records: &[Record]) {
            self.0.records(thread, records);
        }
    }
    let cache = Geometry::cache(8192, 1, block_bytes).bypassing();
    let mut twin = Twin(Naive::new(&Levels::data_only(cache)));
    let trace = BufReader::new(File::open(folder.join("trace")).expect("the trace"));
    event::file::Reader::new(trace).expect("a trace").replay(&mut twin).expect("a whole trace");
    let counts = twin.0.counts();
    assert_eq!(counts.damaged, 0);
    counts.cache(0).total()
}

/// Figures of `lightfoot cache`, as the study reads it.
fn misses_of_the_study(words: &[String], block_bytes: u32, folder: &Path) -> u64 {
    let report = folder.join("report.json");
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_lightfoot"))
        .args(["cache", "--machine", "ladner2002", "--l1d", &format!("8192,1,{block_bytes}")])
        .args(["--format", "json", "--top", "1", "-o"])
        .arg(&report)
        .arg("--")
        .arg(env!("CARGO_BIN_EXE_lightfoot"))
        .args(words)
        .status()
        .expect("lightfoot runs");
    assert!(status.success());
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(report).expect("a report")).expect("JSON");
    let field = |name: &str| report["totals"][name].as_u64().expect("a number");
    field("l1d_load_misses") + field("l1d_store_misses")
}

#[test]
fn figure_4_8_is_what_a_naive_simulator_finds_in_the_dumped_addresses() {
    if !bench::repeatable() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (algorithm, block_bytes) in [
        ("classic-implicit", 32),
        ("classic-explicit", 32),
        ("aware-implicit", 32),
        ("aware-explicit", 64),
        ("oblivious-implicit", 32),
        ("oblivious-explicit", 128),
        ("oblivious-brodal", 32),
        ("empty", 32),
    ] {
        // A trial is the difference between a run with it and the run without.
        let trial = |misses: fn(&[String], u32, &Path) -> u64| {
            let run = |trials| misses(&words(algorithm, block_bytes, trials), block_bytes, folder.path());
            run(2) - run(1)
        };
        let (dumped, studied) = (trial(misses_of_the_dump), trial(misses_of_the_study));
        assert_eq!(studied, dumped, "{algorithm}, blocks of {block_bytes} bytes");
        assert!(algorithm == "empty" || dumped > LOOKUPS as u64 / 4, "{algorithm} misses: {dumped}");
    }
}
