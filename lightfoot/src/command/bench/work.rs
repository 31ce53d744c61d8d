//! Counts programs with several workers at a time.
//!
//! A worker is a process of this executable that counts a part of a program's benchmarks. Which
//! part a benchmark is in changes nothing about it, and the answer has the order of the programs.

use super::programs::{Kind, Program};
use super::results::{Answer, Counted, Row};
use crate::cli::Bench;
use anyhow::{bail, Context, Result};
use present::order::{set_of, SortRows};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// Fewer benchmarks than these are not worth another start of their program.
const PART_MIN: usize = 32;

/// What the workers found.
pub(super) struct Work {
    pub(super) rows: Vec<Row>,
    /// Sentences about benchmarks that were not counted.
    pub(super) failed: Vec<String>,
}

/// A part of the benchmarks of a program.
struct Task<'p> {
    program: &'p Program,
    part: usize,
    parts: usize,
}

/// Counts the chosen benchmarks of all programs; `machine` is the one whose caches are simulated.
///
/// # Errors
/// When a program cannot be run under the engine.
pub(super) fn count(
    listed: &[(&Program, Vec<String>)],
    options: &Bench,
    machine: Option<&Path>,
) -> Result<Work> {
    // A program is started as often as there are parts of its benchmarks.
    let jobs = options.jobs.map_or_else(processors, usize::from);
    let mut tasks = Vec::new();
    for (program, names) in listed {
        let parts = match program.kind {
            Kind::Benchmarks if names.is_empty() => continue,
            Kind::Benchmarks => names.len().div_ceil(PART_MIN).min(jobs),
            Kind::Regions => 1,
        };
        tasks.extend((0..parts).map(|part| Task { program, part, parts }));
    }
    let answers = run_all(&tasks, jobs, &|task| run(task, options, machine))?;
    let mut work = Work { rows: Vec::new(), failed: Vec::new() };
    let mut warnings = BTreeSet::new();
    for (program, names) in listed {
        let own: Vec<&Answer> = tasks
            .iter()
            .zip(&answers)
            .filter(|(task, _)| std::ptr::eq(task.program, *program))
            .map(|(_, answer)| answer)
            .collect();
        warnings.extend(own.iter().flat_map(|answer| answer.warnings.clone()));
        work.add(program, names, &own)?;
    }
    for warning in warnings {
        present::tell!("warning: {warning}");
    }
    Ok(work)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The answers to all tasks, `jobs` of which run at a time.
fn run_all<T: Sync>(
    tasks: &[T],
    jobs: usize,
    run: &(dyn Fn(&T) -> Result<Answer> + Sync),
) -> Result<Vec<Answer>> {
    let next = AtomicUsize::new(0);
    let answers: Vec<Mutex<Option<Result<Answer>>>> = tasks.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        let take = || {
            let index = next.fetch_add(1, Ordering::Relaxed);
            tasks.get(index).zip(answers.get(index))
        };
        while let Some((task, slot)) = take() {
            let answer = run(task);
            *slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(answer);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.min(tasks.len()) {
            scope.spawn(work);
        }
        work();
    });
    let answer = |slot: Mutex<Option<Result<Answer>>>| {
        let answer = slot.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        answer.context("a task was left out")?
    };
    answers.into_iter().map(answer).collect()
}

/// Runs a worker.
fn run(task: &Task<'_>, options: &Bench, machine: Option<&Path>) -> Result<Answer> {
    let Task { program, part, parts } = task;
    let this = std::env::current_exe().context("cannot find this executable")?;
    let mut command = Command::new(this);
    command.arg("bench-worker");
    if let Some(machine) = machine {
        command.arg("--machine").arg(machine);
    }
    if let Some(processor) = &options.virtual_cpu {
        command.args(["--virtual-cpu", processor]);
    }
    command.args(options.cold.then_some("--cold"));
    command.arg("--").arg(&program.file).args(program.choice(options));
    if *parts > 1 {
        command.arg(format!("--part={part}/{parts}"));
    }
    program.place(&mut command);
    let ran = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let ran = ran.with_context(|| format!("cannot count {}", program.file.display()))?;
    if !ran.status.success() {
        bail!("{} was not counted: see above", program.file.display());
    }
    serde_json::from_slice(&ran.stdout).with_context(|| format!("cannot read what counted {}", program.name))
}

impl Work {
    /// Adds the benchmarks of a program.
    fn add(&mut self, program: &Program, names: &[String], answers: &[&Answer]) -> Result<()> {
        let order: HashMap<&str, usize> =
            names.iter().zip(0..).map(|(name, place)| (&**name, place)).collect();
        let mut counted: Vec<&Counted> = answers.iter().flat_map(|answer| &answer.benchmarks).collect();
        // The regions of a program that lists nothing stay in the order in which they opened.
        counted.sort_rows_by_key(|one| order.get(&*one.name).copied().unwrap_or(usize::MAX));
        if counted.is_empty() && program.kind == Kind::Regions {
            bail!(
                "{} passes no mark of a region: see docs/continuous-integration.md",
                program.file.display()
            );
        }
        for one in &counted {
            match &one.failed {
                Some(why) => self.failed.push(format!("benchmark {} of {}: {why}", one.name, program.name)),
                None => self.rows.push(Row {
                    package: program.package.clone(),
                    program: program.name.clone(),
                    name: one.name.clone(),
                    file: one.file.clone(),
                    line: one.line,
                    events: one.events.clone(),
                }),
            }
        }
        let seen = set_of(counted.iter().map(|one| &*one.name));
        for name in names.iter().filter(|name| !seen.contains(&***name)) {
            let why = answers.iter().find_map(|answer| answer.ended.clone());
            let why = why.unwrap_or_else(|| "its program did not run it".into());
            self.failed.push(format!("benchmark {name} of {}: {why}", program.name));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_order_of_tasks() {
        let tasks: Vec<u64> = (0..50).collect();
        let run = |task: &u64| Ok(Answer { ended: Some(task.to_string()), ..Answer::default() });
        for jobs in [1, 4, 100] {
            let answers = run_all(&tasks, jobs, &run).unwrap();
            let ends: Vec<String> = answers.into_iter().filter_map(|answer| answer.ended).collect();
            assert_eq!(ends, tasks.iter().map(u64::to_string).collect::<Vec<_>>());
        }
        assert!(run_all(&tasks, 2, &|_| bail!("no")).is_err());
    }

    #[test]
    fn rows_have_the_order_of_the_list_and_what_is_missing_fails() {
        let program = Program {
            file: "/p".into(),
            package: String::new(),
            name: "p".into(),
            kind: Kind::Benchmarks,
            folder: None,
        };
        let counted = |name: &str, failed: Option<&str>| Counted {
            name: name.into(),
            failed: failed.map(str::to_owned),
            ..Counted::default()
        };
        let first = Answer { benchmarks: vec![counted("c", None), counted("a", None)], ..Answer::default() };
        let second = Answer { benchmarks: vec![counted("b", Some("it panicked"))], ..Answer::default() };
        let mut work = Work { rows: Vec::new(), failed: Vec::new() };
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        work.add(&program, &names, &[&first, &second]).unwrap();
        assert_eq!(work.rows.iter().map(|row| &*row.name).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(
            work.failed,
            ["benchmark b of p: it panicked", "benchmark d of p: its program did not run it"]
        );
        let regions = Program { kind: Kind::Regions, ..program };
        assert!(work.add(&regions, &[], &[]).unwrap_err().to_string().contains("no mark"));
    }
}
