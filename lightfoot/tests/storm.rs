//! The storm: sixteen threads under timers, with write barriers, jumps out of handlers, queued and
//! nested signals, children and deaths, that check their own answers (`storm/storm.c`), under
//! `count` and `cache`, children let go and followed.
//!
//! Seeds differ from run to run of the loop, not from one test to the next.
//! `LIGHTFOOT_STORM_RUNS=100 cargo test --release -p lightfoot --test storm` is the long version
//! (about four minutes on two cores); three runs of each command are the short one.

mod bench;

use bench::{compile, Bench};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const COMMANDS: [&[&str]; 4] =
    [&["count"], &["cache"], &["count", "--follow-children"], &["cache", "--follow-children"]];
const THREADS: &str = "16";
/// Tasks of each thread: all kinds once, then a random choice.
const TASKS: &str = "20";
/// A run takes a second or two.
const HANG: Duration = Duration::from_secs(900);

fn runs() -> u32 {
    std::env::var("LIGHTFOOT_STORM_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(3)
}

/// The output of a child that ends in time.
fn output(mut child: Child, what: &str) -> Output {
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > HANG {
            let _ = child.kill();
            panic!("{what} hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

fn weather(program: &Path, bench: &Bench, command: &[&str], seed: u32) {
    let seed = seed.to_string();
    let report = bench.join("report.json");
    let child = Command::new(bench::BINARY)
        .args(command)
        .args(["--format", "json", "-o"])
        .arg(&report)
        .arg("--")
        .arg(program)
        .args([THREADS, TASKS, &seed])
        .current_dir(bench.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let what = format!("{command:?}, seed {seed}");
    let output = output(child, &what);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(output.status.code(), Some(0), "{what}: {}", text(&output.stderr));
    assert_eq!(
        text(&output.stdout),
        format!("storm: {THREADS} threads, {TASKS} tasks each: right\n"),
        "{what}"
    );
    let report = bench::json(&std::fs::read(report).unwrap());
    assert_eq!(report["partial"], false);
}

#[test]
fn the_storm_is_weathered() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "storm", &[], include_str!("storm/storm.c")) else { return };
    for command in COMMANDS {
        let started = Instant::now();
        (1..=runs()).for_each(|seed| weather(&program, &bench, command, seed));
        println!("{command:?}: {} runs right, {:.1} s", runs(), started.elapsed().as_secs_f64());
    }
}
