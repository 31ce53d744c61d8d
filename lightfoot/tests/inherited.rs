//! A program under measurement inherits what it inherits natively: one program writes all of it
//! down, in itself and in its children, and the text of a measured run is compared with that of a
//! native one.
//!
//! What differs by design is named here and nowhere else: addresses are not randomised (the native
//! run goes without that too), and a collector that is a signal handler in the program has its
//! signal and two descriptors there.

mod bench;

use bench::{compile, Bench, BINARY};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: &str = include_str!("inherited/inherited.c");

/// What is special about what the program inherits: see the source.
const CASES: [&str; 8] = ["plain", "pipe", "ignored", "blocked", "both", "closed", "output", "settings"];

/// The engine in all its uses.
const TRANSLATING: &[&str] = &[
    "count",
    "count --follow-children",
    "cache --machine cachegrind",
    "cache --machine cachegrind --follow-children",
    "tool opcode-mix",
    "trace -o TRACE --every 1e6instructions",
    "trace -o TRACE --every 1e6instructions --engine jit --software fn:append",
];

/// The program by itself, patched or not.
const NATIVE: &[&str] = &[
    "trace -o TRACE --engine native --every 5ms",
    "trace -o TRACE --engine native --every 5ms --collector kernel",
    "trace -o TRACE --engine probe --software fn:append --every 5ms",
    "trace -o TRACE --engine uprobe --software fn:append --every 5ms",
];

/// Lines of a report, by whom they are about.
type Report = BTreeSet<String>;

struct Inherited {
    bench: Bench,
    program: PathBuf,
}

impl Inherited {
    fn new() -> Option<Inherited> {
        let bench = Bench::new();
        let program = compile(&bench, "inherited", &[], SOURCE)?;
        Some(Inherited { bench, program })
    }

    /// What the program wrote that `command` ran in a case; `None`, and said, where the case cannot
    /// be made here or the command cannot be run here.
    fn report(&self, case: &str, command: &[&str], program: &Path) -> Option<Report> {
        let (report, trace) = (self.bench.join("report"), self.bench.join("trace"));
        let _ = std::fs::remove_file(&report);
        let mut run = Command::new(&self.program);
        run.args(["prepare", case]);
        let trace = trace.to_str().unwrap();
        run.args(command.iter().map(|word| if *word == "TRACE" { trace } else { word }));
        run.arg(program).arg("report").arg(&report);
        run.env("LIGHTFOOT_TRANSLATIONS", "off").stdin(Stdio::null()).stdout(Stdio::null());
        let said = self.bench.join("said");
        let out = run.stderr(std::fs::File::create(&said).unwrap()).status().unwrap();
        let said = std::fs::read_to_string(said).unwrap();
        if out.code() == Some(99) {
            eprintln!("skipped: {case}: {said}");
            return None;
        }
        if out.code() == Some(125) && said.contains("uprobe") {
            eprintln!("skipped: {command:?}: {said}");
            return None;
        }
        assert_eq!(out.code(), Some(0), "{case}, {command:?}: {said}");
        Some(std::fs::read_to_string(report).unwrap().lines().map(str::to_owned).collect())
    }

    fn measured(&self, case: &str, words: &str) -> Option<Report> {
        let mut command = vec![BINARY];
        command.extend(words.split(' '));
        command.push("--");
        self.report(case, &command, &self.program)
    }

    fn compare(&self, cases: &[&str], commands: &[&str]) {
        for case in cases {
            let Some(natively) = self.report(case, &[], &self.program) else { continue };
            assert!(natively.len() > 400, "{case}: {}", natively.len());
            for words in commands {
                let Some(measured) = self.measured(case, words) else { continue };
                assert_eq!(difference(&natively, &measured), "", "{case}, {words}");
            }
        }
    }
}

/// The lines that only one of the reports has.
fn difference(natively: &Report, measured: &Report) -> String {
    let lost = natively.difference(measured).map(|line| format!("\n  natively {line}"));
    let new = measured.difference(natively).map(|line| format!("\n  measured {line}"));
    lost.chain(new).collect()
}

#[test]
fn a_translated_program_inherits_what_it_inherits_natively() {
    let Some(inherited) = Inherited::new() else { return };
    inherited.compare(&CASES, TRANSLATING);
}

#[test]
fn a_program_that_runs_by_itself_inherits_what_it_inherits_natively() {
    let Some(inherited) = Inherited::new() else { return };
    inherited.compare(&CASES, NATIVE);
}

#[test]
fn an_instrumented_program_inherits_what_it_inherits_natively() {
    let Some(inherited) = Inherited::new() else { return };
    let instrumented = inherited.bench.join("instrumented");
    let mut instrument = Command::new(BINARY);
    instrument.arg("instrument").arg(&inherited.program).arg("-o").arg(&instrumented);
    assert!(instrument.stdout(Stdio::null()).status().unwrap().success());
    for case in CASES {
        let Some(natively) = inherited.report(case, &[], &inherited.program) else { continue };
        let Some(measured) = inherited.report(case, &[], &instrumented) else { continue };
        assert_eq!(difference(&natively, &measured), "", "{case}");
    }
}

/// The handler of that collector is in the program, and nothing else of it.
#[test]
fn a_signal_collector_adds_its_handler_and_two_descriptors() {
    let Some(inherited) = Inherited::new() else { return };
    for case in ["plain", "settings", "closed"] {
        let Some(natively) = inherited.report(case, &[], &inherited.program) else { continue };
        let words = "trace -o TRACE --engine native --every 5ms --collector signal";
        let Some(measured) = inherited.measured(case, words) else { continue };
        let is_own = |line: &&String| {
            line.contains("signal 64: ")
                || line.contains("descriptor ")
                    && (line.contains("/memfd:lightfoot-ticks") || line.contains("anon_inode:"))
        };
        let rest = |report: &Report| report.iter().filter(|line| !is_own(line)).cloned().collect::<Report>();
        assert_eq!(difference(&rest(&natively), &rest(&measured)), "", "{case}");
        let own = measured.iter().filter(is_own).filter(|line| line.contains("descriptor "));
        let high = |line: &&String| {
            let number = line.split(' ').find_map(|word| word.strip_suffix(':')?.parse::<u32>().ok());
            number.is_some_and(|number| number > 200)
        };
        assert!(
            own.clone().count() >= 2 && own.clone().all(|line| high(&line)),
            "{:?}",
            own.collect::<Vec<_>>()
        );
    }
}

/// What a user sees of it.
#[test]
fn a_pipe_that_nobody_reads_ends_its_writer() {
    let script = "yes | head -1; echo ${PIPESTATUS[0]}";
    let natively = Command::new("bash").args(["-c", script]).output();
    if !natively.as_ref().is_ok_and(|out| out.stdout == b"y\n141\n") {
        return eprintln!("skipped: no bash, or SIGPIPE is ignored here");
    }
    for words in [&["count"][..], &["count", "--follow-children"], &["trace", "-o", "/dev/null"]] {
        let ran = bench::lightfoot().args(words).args(["--", "bash", "-c", script]).run();
        ran.ends_with(0);
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "y\n141\n", "{words:?}");
    }
}
