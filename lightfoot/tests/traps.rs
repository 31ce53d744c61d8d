//! SIGTRAP belongs to the program: breakpoints of its own, blocked and ignored signals, handlers,
//! and the trap flag, each as natively, with and without kept translations, again and again.

mod bench;

use bench::{compile, lightfoot, Bench};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: &str = include_str!("traps/traps.c");
const RUNS: usize = 20;

const WAYS: [&str; 17] = [
    "twice",
    "once",
    "deferred",
    "works",
    "raise",
    "blocked-first",
    "blocked-then",
    "blocked-int3",
    "ignored-int3",
    "default",
    "waits",
    "nested",
    "threads",
    "steps",
    "few-steps",
    "children",
    "ignored-child",
];

/// Status, as a shell says it, and output.
fn natively(program: &Path, way: &str) -> (i32, String) {
    let out = Command::new(program).arg(way).stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
    let status = out.status.code().or_else(|| out.status.signal().map(|signal| 128 + signal));
    (status.unwrap(), String::from_utf8(out.stdout).unwrap())
}

fn compare(words: &[&str], translations: &Path, runs: usize, (program, way): (&PathBuf, &str)) {
    let expected = natively(program, way);
    for run in 0..runs {
        let ran = lightfoot()
            .args(words)
            .arg("--")
            .arg(program)
            .arg(way)
            .env("LIGHTFOOT_TRANSLATIONS", translations)
            .run();
        let got = (ran.status, String::from_utf8_lossy(&ran.stdout).into_owned());
        assert_eq!(got, expected, "{words:?} {way}, run {run}: {}", ran.said());
    }
}

#[test]
fn traps_are_the_programs_own() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "traps", &[], SOURCE) else { return };
    for way in WAYS {
        compare(&["count"], Path::new("off"), RUNS, (&program, way));
    }
}

#[test]
fn traps_are_the_programs_own_with_kept_translations() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "traps", &[], SOURCE) else { return };
    let folder = bench.join("translations");
    for way in WAYS {
        compare(&["count"], &folder, RUNS, (&program, way));
    }
}

#[test]
fn traps_are_the_programs_own_in_every_engine() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "traps", &[], SOURCE) else { return };
    let commands: [&[&str]; 6] = [
        &["count", "--follow-children"],
        &["cache", "--machine", "cachegrind", "--follow-children"],
        &["tool", "opcode-mix"],
        &["trace", "-o", "/dev/null", "--every", "1e6instructions"],
        &["trace", "-o", "/dev/null", "--engine", "native"],
        &["trace", "-o", "/dev/null", "--engine", "probe", "--software", "fn:work"],
    ];
    for words in commands {
        for way in WAYS {
            compare(words, Path::new("off"), 2, (&program, way));
        }
    }
}
