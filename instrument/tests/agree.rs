//! Holds the slow twin against hand-made truth, and the engine against the slow twin, on every
//! target.
//!
//! `cargo test -p lightfoot-instrument --test agree -- NAME` runs the targets whose name contains
//! NAME; `--twin` leaves the engine out. Without the standard harness, because the same program is
//! also the child in which a target runs. For every target: native output and ending are as the
//! table says; the twin's are the same, and so are its repeats; where the source states a count or
//! a sequence of references, the twin's are those. Source: systems notes of this project, "Exact".

mod targets;

use event::Access;
use std::ffi::OsString;
use std::fmt::Debug;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use targets::child::{self, Processor, Report, Seen};
use targets::{annotation, build, machines, Ends, Engine, How, Runs, Target, TARGETS};

/// Longer programs are not stepped through twice: a step costs 20 µs on a virtual machine.
const REPEATED_MAX: u64 = 50_000;

/// What is held against the truth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Twin,
    TwinAndEngine,
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|a| a == "--child") {
        be_a_child(&arguments[1..]);
        return ExitCode::SUCCESS;
    }
    if !child::fixed_addresses() {
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().filter_map(|a| a.to_str()).find(|a| !a.starts_with('-')).unwrap_or("");
    let scope = if arguments.iter().any(|a| a == "--twin") { Scope::Twin } else { Scope::TwinAndEngine };
    let chosen: Vec<&Target> = TARGETS.iter().filter(|t| t.name.contains(filter)).collect();
    let failed = check_all(&chosen, scope);
    println!("{} targets, {failed} failed", chosen.len());
    ExitCode::from(u8::from(failed > 0))
}

/// Checks the targets, one at a time on each processor; returns how many failed.
fn check_all(targets: &[&Target], scope: Scope) -> usize {
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = |processor| {
        while let Some(target) = targets.get(next.fetch_add(1, Relaxed)) {
            match check(target, processor, scope) {
                Ok(summary) => println!("{:24} {summary}", target.name),
                Err(complaint) => {
                    println!("{:24} FAILED: {complaint}", target.name);
                    failed.fetch_add(1, Relaxed);
                }
            }
        }
    };
    std::thread::scope(|threads| {
        for processor in child::processors() {
            let work = &work;
            threads.spawn(move || work(processor));
        }
    });
    failed.into_inner()
}

/// The child's whole life: run a program under a machine, leave a report.
fn be_a_child(arguments: &[OsString]) {
    let [machine, program, report_path] = arguments else { panic!("--child MACHINE PROGRAM REPORT") };
    let report = match machine.to_str() {
        Some("twin") => machines::twin(program.clone()),
        Some("engine") => machines::engine(program.clone()),
        Some("counting") => machines::counting_engine(program.clone(), None),
        Some("keeping") => {
            let folder = Path::new(program).with_extension("translations");
            machines::counting_engine(program.clone(), Some(folder))
        }
        _ => panic!("no such machine: {machine:?}"),
    };
    report.write(Path::new(report_path));
}

/// All that must hold for one target.
fn check(target: &Target, processor: Processor, scope: Scope) -> Result<String, String> {
    if !target.needs.met() {
        return Ok(format!("skipped: this processor lacks {:?}", target.needs));
    }
    let program = build::build(target);
    let native = child::native(&program)?;
    equal("native output", &native.stdout.as_str(), &target.stdout)?;
    equal("native ending", &native.ends, &target.ends)?;
    let (seen, report) = child::under("twin", &program, processor)?;
    equal("twin's output", &seen.stdout, &native.stdout)?;
    equal("twin's ending", &report.ends, &native.ends)?;
    equal("unmodelled instructions", &report.unmodelled, &0)?;
    equal("end of the twin itself", &seen.ends, &Ends::Code(0))?;
    if target.runs == Runs::Alike && report.instructions < REPEATED_MAX {
        let (_, again) = child::under("twin", &program, processor)?;
        same("a repeat", &again, &report)?;
    }
    if let Some(instructions) = target.instructions {
        equal("instructions worked out by hand", &report.instructions, &instructions)?;
    }
    if target.how == How::Annotated {
        as_stated(target, &report)?;
    }
    if scope == Scope::TwinAndEngine {
        match target.engine {
            Engine::Agrees => against_engine(target, &program, processor, &native, &report)?,
            Engine::Refuses(words) => refused(&program, processor, words)?,
            Engine::Limit => {}
        }
    }
    Ok(summary(&report))
}

/// The engine, twice with every reference, once only counting, and twice counting with translations
/// kept on disk, against the native run and the twin.
fn against_engine(
    target: &Target,
    program: &Path,
    processor: Processor,
    native: &Seen,
    twin: &Report,
) -> Result<(), String> {
    let counts = Report { references: Vec::new(), lines: Vec::new(), blocks: 0, ..twin.clone() };
    let one = |what: &str, machine: &str, wanted: &Report| -> Result<(), String> {
        let (seen, report) = child::under(machine, program, processor)?;
        equal("output", &seen.stdout, &native.stdout)?;
        equal("ending", &report.ends, &native.ends)?;
        match target.runs {
            Runs::Alike => same(what, &report, wanted),
            Runs::Unlike => Ok(()),
        }
    };
    let complaints: Vec<String> = [
        ("engine", "engine", twin),
        ("again", "engine", twin),
        ("counting", "counting", &counts),
        ("keeping", "keeping", &counts),
        ("warm", "keeping", &counts),
    ]
    .into_iter()
    .filter_map(|(what, machine, wanted)| one(what, machine, wanted).err().map(|e| format!("[{what}] {e}")))
    .collect();
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(complaints.join("\n    "))
    }
}

/// The engine says that it cannot run this, and why, instead of running it wrongly.
fn refused(program: &Path, processor: Processor, words: &str) -> Result<(), String> {
    match child::under("engine", program, processor) {
        Err(complaint) if complaint.contains(words) => Ok(()),
        other => Err(format!("a refusal with the words \"{words}\" expected, not {other:?}")),
    }
}

fn summary(report: &Report) -> String {
    let count = |access| report.references.iter().filter(|r| r.access == access).count();
    format!(
        "{:>8} instructions {:>6} repeats {:>7} blocks {:>7} loads {:>7} stores",
        report.instructions,
        report.repeats,
        report.blocks,
        count(Access::Load),
        count(Access::Store)
    )
}

/// Compares with the comments of an annotated source.
fn as_stated(target: &Target, report: &Report) -> Result<(), String> {
    let text = std::fs::read_to_string(build::source(target)).map_err(|e| e.to_string())?;
    let stated = annotation::read(&text);
    for (position, (line, wanted)) in stated.references.iter().enumerate() {
        let found = report.references.get(position);
        if found != Some(wanted) {
            return Err(format!("line {line} states {wanted:x?}, the twin saw {found:x?}"));
        }
    }
    equal("number of references", &report.references.len(), &stated.references.len())?;
    equal("instruction lines", &report.instructions, &stated.instructions)
}

/// Two reports agree in every figure and element by element; says all that differs.
fn same(what: &str, found: &Report, wanted: &Report) -> Result<(), String> {
    let results = [
        equal("instructions", &found.instructions, &wanted.instructions),
        equal("repeats", &found.repeats, &wanted.repeats),
        equal("blocks", &found.blocks, &wanted.blocks),
        sequence("reference", &found.references, &wanted.references, &wanted.owners),
        sequence("instruction line", &found.lines, &wanted.lines, &[]),
        equal("ending", &found.ends, &wanted.ends),
    ];
    let complaints: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(format!("{what}: {}", complaints.join("; ")))
    }
}

/// The first place where two sequences differ, with the instruction that is concerned.
fn sequence<T: PartialEq + Debug>(
    what: &str,
    found: &[T],
    wanted: &[T],
    owners: &[u64],
) -> Result<(), String> {
    let Some(at) = found.iter().zip(wanted).position(|(a, b)| a != b) else {
        return equal(&format!("number of {what}s"), &found.len(), &wanted.len());
    };
    let owner = owners.get(at).map(|ip| format!(" (by the instruction at {ip:#x})")).unwrap_or_default();
    Err(format!("{what} {at} of {} is {:x?}, not {:x?}{owner}", wanted.len(), found[at], wanted[at]))
}

fn equal<T: PartialEq + Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what}: {found:?}, not {wanted:?}"))
    }
}
