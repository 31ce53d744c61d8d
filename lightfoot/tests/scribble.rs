//! A program that is not trusted: one that scribbles over every mapping that lightfoot keeps in it
//! (`scribble/scribble.c`), in each command that runs programs under the engine. Whatever it
//! writes, lightfoot ends: with the program's status and a report, or with a sentence; never by a
//! panic, never by a signal, never hanging.
//!
//! Each run has its own seed, so that a failure can be repeated. `LIGHTFOOT_SCRIBBLE_RUNS=10000
//! cargo test --release -p lightfoot --test scribble` is the long version;
//! `LIGHTFOOT_SCRIBBLE_SEED` is the first seed.

mod bench;

use bench::{compile, Bench};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What runs the program. `OUT` stands for a file.
const COMMANDS: [&[&str]; 10] = [
    &["count"],
    &["cache", "--machine", "cachegrind"],
    &["cache"],
    &["cache", "--machine", "zen4"],
    &["cache", "--curves"],
    &["count", "--follow-children"],
    &["cache", "--follow-children"],
    &["tool", "memory-trace", "-o", "OUT"],
    &["tool", "working-set"],
    &["trace", "--engine", "simulated", "--every", "1e5instructions", "-o", "OUT"],
];

/// The program ends itself after a second; a run takes a few tenths.
const HANG: Duration = Duration::from_secs(60);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// How a run ended.
struct Ran {
    status: Option<i32>,
    said: String,
    took: Duration,
}

fn run(program: &Path, bench: &Bench, seed: u64) -> Ran {
    let command = COMMANDS[seed as usize % COMMANDS.len()];
    let out = bench.join(&format!("out-{seed}"));
    let said = bench.join(&format!("said-{seed}"));
    let words = command.iter().map(|&word| if word == "OUT" { out.as_os_str() } else { word.as_ref() });
    let started = Instant::now();
    let mut child = Command::new(bench::BINARY)
        .args(words)
        .arg("--")
        .arg(program)
        .arg(seed.to_string())
        .current_dir(bench.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&said).unwrap())
        .process_group(0)
        .spawn()
        .unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if started.elapsed() > HANG {
            let _ = child.kill();
            let _ = child.wait();
            panic!("seed {seed} ({command:?}) hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = started.elapsed();
    let text = String::from_utf8_lossy(&std::fs::read(&said).unwrap()).into_owned();
    for file in [out, said] {
        let _ = std::fs::remove_file(file);
    }
    Ran { status, said: text, took }
}

/// What is wrong with how a run ended.
fn complaint(ran: &Ran) -> Option<String> {
    if ran.said.contains("panicked") {
        return Some("it panics".into());
    }
    let Some(status) = ran.status else { return Some("a signal ended it".into()) };
    let sentence = ran.said.lines().any(|line| line.starts_with("lightfoot: "));
    let refused = ran.said.contains("changed memory that lightfoot keeps");
    match status {
        // The program's own end, by a signal or not.
        0 | 129..=192 if !refused => None,
        1 if refused => None,
        125 if sentence => None,
        _ => Some("its status and its words do not fit".into()),
    }
}

#[test]
fn a_program_that_scribbles_over_our_memory_ends_with_a_sentence() {
    let bench = Bench::new();
    let source = include_str!("scribble/scribble.c");
    let Some(program) = compile(&bench, "scribble", &["-O1", "-pthread"], source) else { return };
    let (runs, first) = (setting("LIGHTFOOT_SCRIBBLE_RUNS", 270), setting("LIGHTFOOT_SCRIBBLE_SEED", 1));
    let next = AtomicU64::new(first);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    let work = || {
        let (mut refused, mut slowest, mut complaints) = (0, (Duration::ZERO, 0), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::SeqCst);
            if seed >= first + runs {
                return (refused, slowest, complaints);
            }
            let ran = run(&program, &bench, seed);
            refused += u64::from(ran.status == Some(1));
            slowest = slowest.max((ran.took, seed));
            if let Some(what) = complaint(&ran) {
                let command = COMMANDS[seed as usize % COMMANDS.len()];
                complaints.push(format!("seed {seed} ({command:?}): {what}: {:?}: {}", ran.status, ran.said));
            }
        }
    };
    let (mut refused, mut slowest, mut complaints) = (0, (Duration::ZERO, 0), Vec::new());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let (more, slow, complained) = worker.join().unwrap();
            (refused, slowest) = (refused + more, slowest.max(slow));
            complaints.extend(complained);
        }
    });
    eprintln!("{runs} runs, {refused} refused, the slowest took {:?} (seed {})", slowest.0, slowest.1);
    assert!(complaints.is_empty(), "{} of {runs} runs:\n{}", complaints.len(), complaints.join("\n"));
    assert!(runs < 100 || refused > runs / 50, "only {refused} of {runs} runs were found out");
}
