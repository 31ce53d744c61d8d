//! Numbers that a program forges in memory that lightfoot keeps in it (`forged/forge.c`), one at a
//! time: each ends with one sentence that says so, status 1, and no numbers. `scribble.rs` does the
//! same at random.

mod bench;

use bench::{compile, Bench};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A run takes less than a second; a forged number that is believed takes years.
const HANG: Duration = Duration::from_secs(120);

const COUNT: &[&str] = &["count"];
const CACHE: &[&str] = &["cache", "--machine", "cachegrind"];
const CACHE_PAGES: &[&str] = &["cache", "--machine", "zen4"];
const CURVES: &[&str] = &["cache", "--curves"];
const WORKING_SET: &[&str] = &["tool", "working-set"];
const TRACE: &[&str] = &["trace", "--engine", "simulated", "--every", "1e5instructions", "-o", "trace.json"];

fn forge(bench: &Bench) -> Option<PathBuf> {
    compile(bench, "forge", &["-O1"], include_str!("forged/forge.c"))
}

/// Runs a command on the program that forges `what`.
fn run(bench: &Bench, command: &[&str], what: &str) -> Option<Output> {
    let program = forge(bench)?;
    let mut child = Command::new(bench::BINARY)
        .args(command)
        .arg("--")
        .arg(program)
        .arg(what)
        .current_dir(bench.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > HANG {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{command:?} of {what} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(child.wait_with_output().unwrap())
}

/// The commands say in one sentence what was forged, and nothing else.
fn is_found_out(commands: &[&[&str]], what: &str, because: &str) {
    let bench = Bench::new();
    for command in commands {
        let Some(out) = run(&bench, command, what) else { return };
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{command:?} of {what}: {said}");
        assert!(
            said.contains("the program changed memory that lightfoot keeps in it"),
            "{command:?}: {said}"
        );
        assert!(said.contains(because), "{command:?} of {what}: {said}");
        // A trace says besides where its first records are.
        let lines = said.lines().filter(|line| !line.ends_with(".partial"));
        assert_eq!(lines.count(), 1, "{command:?} of {what}: {said}");
        assert!(out.stdout.is_empty(), "{command:?} of {what} shows numbers");
    }
}

#[test]
fn an_honest_program_has_its_report() {
    let bench = Bench::new();
    for command in [COUNT, CACHE, CURVES, WORKING_SET, TRACE] {
        let Some(out) = run(&bench, command, "nothing") else { return };
        assert_eq!(out.status.code(), Some(0), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

#[test]
fn a_string_as_long_as_half_the_addresses() {
    is_found_out(&[COUNT, CACHE, CURVES, WORKING_SET, TRACE], "string", "lightfoot never writes the record");
}

#[test]
fn a_site_that_there_is_not() {
    is_found_out(&[COUNT, CACHE, CURVES, WORKING_SET], "site", "lightfoot never writes the record");
}

#[test]
fn a_kind_of_record_that_there_is_not() {
    is_found_out(&[COUNT, CACHE, WORKING_SET], "kind", "lightfoot never writes the record");
}

#[test]
fn a_position_before_the_ring_and_one_behind_it() {
    for what in ["position", "far-position"] {
        is_found_out(&[COUNT, CACHE, WORKING_SET], what, "lies outside the buffer of records");
    }
}

#[test]
fn an_exit_that_there_is_not() {
    is_found_out(&[COUNT, CACHE], "exit", "there is no exit 2147483647");
}

/// Nothing tells such words from true ones, but a search that they mislead ends.
#[test]
fn least_times_of_pages_that_go_in_circles() {
    let bench = Bench::new();
    let Some(out) = run(&bench, CACHE_PAGES, "least") else { return };
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn counters_that_there_was_no_time_for() {
    is_found_out(&[COUNT, CACHE], "counters", "more than the program had time for");
}

#[test]
fn counters_that_do_not_hang_together() {
    is_found_out(&[COUNT, CACHE, CURVES, WORKING_SET], "small-counters", "a block that ran");
}

#[test]
fn counters_that_were_taken_back() {
    is_found_out(&[CACHE], "no-counters", "");
    is_found_out(&[WORKING_SET, TRACE], "no-counters", "references were recorded");
}
