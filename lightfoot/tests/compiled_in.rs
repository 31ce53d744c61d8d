//! Counters that are compiled into a program, as Mytkowicz et al. 2007 put them there: four small
//! programs of ours, traced with none and with sixteen of them.
//!
//! The simulator's uncharged metrics say how often the counters are written and how often functions
//! are called, whichever build runs; `lightfoot perturb` compares the builds.

mod bench;

use bench::{lightfoot, Bench};
use measure::trace::{decode, Trace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name, argument, and a function that only the optimiser could make disappear.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("blocks", "1", "compare"),
    ("simplex", "2", "reduced"),
    ("processor", "1", "look"),
    ("game", "4", "flips"),
];

/// Compiles a program with its first `counters` counters; `None`, and said, without a compiler.
fn build(bench: &Bench, name: &str, counters: usize) -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compiled_in");
    let program = bench.join(&format!("{name}-{counters:02}"));
    let mut command = Command::new("cc");
    command.args(["-O2", "-Wl,--build-id=sha1", &format!("-DMETRICS={counters}"), "-DSTRIDE=4096", "-o"]);
    match command.arg(&program).arg(sources.join(format!("{name}.c"))).output() {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => panic!("{name} does not compile: {}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => {
            eprintln!("skipped: there is no C compiler (cc) here to compile {name}");
            None
        }
    }
}

fn trace(program: &Path, argument: &str, function: &str) -> (PathBuf, Trace) {
    let file = program.with_extension("lft");
    let uncharged = format!("var:counters,fn:{function}");
    let ran = lightfoot()
        .args(["trace", "--engine", "simulated", "--machine", "xeon-dp", "--every=100000cycles"])
        .args(["--uncharged", &uncharged, "-o"])
        .arg(&file)
        .arg("--")
        .arg(program)
        .arg(argument)
        .run();
    assert_eq!(ran.status, 0, "{}", String::from_utf8_lossy(&ran.stderr));
    let trace = decode(&std::fs::read(&file).unwrap()).unwrap();
    (file, trace)
}

fn sum(trace: &Trace, metric: &str) -> u64 {
    trace.sum(trace.position(metric).unwrap()).unwrap()
}

#[test]
fn counters_in_the_source_cost_an_instruction_an_event_and_change_no_call() {
    let bench = Bench::new();
    for (name, argument, function) in PROGRAMS {
        let (Some(plain), Some(counted)) = (build(&bench, name, 0), build(&bench, name, 16)) else { return };
        let (_, before) = trace(&plain, argument, function);
        let (_, after) = trace(&counted, argument, function);
        let events = sum(&after, "var:counters");
        assert_eq!(sum(&before, "var:counters"), 0, "{name}");
        assert!(events > 10_000, "{name}: {events}");
        let calls = format!("fn:{function}");
        assert_eq!(sum(&before, &calls), sum(&after, &calls), "{name}");
        // An increment is an instruction; the compiler may need others around it.
        let added = sum(&after, "instructions").saturating_sub(sum(&before, "instructions"));
        assert!((events..8 * events).contains(&added), "{name}: {events} events add {added} instructions");
    }
}

#[test]
fn builds_are_compared_and_said_to_differ() {
    let bench = Bench::new();
    let (name, argument, function) = PROGRAMS[0];
    let (Some(plain), Some(counted)) = (build(&bench, name, 0), build(&bench, name, 16)) else { return };
    // The same command line for both: a comparison is of one program.
    let program = bench.join("program");
    let mut files = Vec::new();
    for build in [&plain, &counted] {
        std::fs::copy(build, &program).unwrap();
        let (file, _) = trace(&program, argument, function);
        let kept = build.with_extension("lft");
        std::fs::rename(file, &kept).unwrap();
        files.push(kept);
    }
    let ran = lightfoot().args(["perturb", "--baseline"]).arg(&files[0]).arg("--run").arg(&files[1]).run();
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(
        ran.status == 0 && said.contains("different builds of the program"),
        "{said}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert!(said.contains("cannot tell"), "one run of each build is no evidence: {said}");
}
