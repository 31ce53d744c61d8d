//! Counts the benchmarks of one program, in a process that `bench` has started: the engine measures
//! one program in a process.
//!
//! The answer goes to standard output as JSON. What the program writes goes to standard error.

use super::marker::{Benchmarks, Named};
use super::results::{events, Answer, Counted};
use crate::cli::{BenchWorker, Rep};
use crate::command::measure::translations;
use crate::run::engine::{self, exit_signal};
use crate::run::hierarchy::Hierarchy;
use crate::run::named;
use crate::run::sections::{Recorded, Section, Sections};
use crate::run::simulation::Simulation;
use crate::run::tally::{Counts, Excerpts, Misses, Part};
use anyhow::{Context, Result};
use event::Stream;
use instrument::virtual_machine::{Processor, Repeats, VirtualMachine};
use instrument::{Children, Command, Exit, Options, Outcome, Process};
use present::order::SortRows;
use simulate::{plan_levels, WriteBacks};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;

pub(super) fn run(options: &BenchWorker) -> Result<u8> {
    // The program inherits standard output, so the answer's way out is another descriptor.
    let stdout = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3);
    let mut answer = File::from(stdout.context("cannot keep standard output")?);
    rustix::stdio::dup2_stdout(rustix::stdio::stderr()).context("cannot redirect standard output")?;
    let machine = options.machine.as_ref().map(|name| Hierarchy::of(named::machine(name)?)).transpose()?;
    let counted = count(options, machine.as_ref())?;
    answer.write_all(&serde_json::to_vec(&counted)?).context("cannot write the answer")?;
    Ok(0)
}

fn count(options: &BenchWorker, hierarchy: Option<&Hierarchy>) -> Result<Answer> {
    let command = Command { program: options.program[0].clone(), arguments: options.program[1..].to_vec() };
    let (stream, recorded) = match hierarchy {
        Some(hierarchy) => {
            let stream = plan_levels(&hierarchy.levels, WriteBacks::Ignored).stream;
            let simulation = Simulation::new(&hierarchy.levels, WriteBacks::Ignored)?.from_stream(stream);
            (stream, Recorded::Simulated(Box::new(simulation)))
        }
        None => (Stream::Counts, Recorded::Counted),
    };
    // Clocks and random bytes repeat; addresses are not randomised, which is the default.
    let translations = translations();
    let processor = options.virtual_cpu.as_deref().map(Processor::named).transpose();
    let processor = processor.map_err(engine::failure)?;
    let machine = VirtualMachine { processor, repeats: Repeats::Exactly, ..VirtualMachine::default() };
    let children = Children::Followed;
    let run = Options { stream, children, translations, machine, ..Options::default() };
    let marker = Benchmarks::new(options.cold);
    let mut observer = Sections::new(recorded);
    let outcome = engine::run_marked(&command, &run, &mut observer, marker.clone())?;
    let (sections, _) = observer.finish();
    let marker = marker.borrow();
    Ok(answer(&marker, outcome, &sections, hierarchy))
}

/// The answer of a run that has ended.
fn answer(
    marker: &Benchmarks,
    outcome: Outcome,
    sections: &[Section],
    hierarchy: Option<&Hierarchy>,
) -> Answer {
    let mut parts: HashMap<(u32, &str), (&Named, Vec<&Part>)> = HashMap::new();
    for section in sections {
        if let Some(named) = marker.benchmark(section.image, section.cut) {
            let key = (section.image, named.name.as_str());
            parts.entry(key).or_insert_with(|| (named, Vec::new())).1.push(&section.part);
        }
    }
    let seen: HashSet<u32> = parts.keys().map(|(image, _)| *image).collect();
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_rows_by_key(|((image, name), _)| (*image, *name));
    let ends: HashMap<u32, Option<Exit>> = outcome.processes.iter().flat_map(ends).collect();
    let excerpts = Excerpts::new(&outcome.profile);
    let mut benchmarks = Vec::new();
    for ((image, _), (named, parts)) in parts {
        let ended = ends.get(&image).copied().flatten();
        let failed = match marker.images()[&image].has_counted {
            // A program of plain regions may end as it likes, a benchmark may not.
            true if marker.images()[&image].announced.is_some() => ended.and_then(end_of),
            true => None,
            false => Some(ended.and_then(end_of).unwrap_or_else(|| "it ended before it was counted".into())),
        };
        let counts = counts(&Part::sum(&parts), &excerpts, hierarchy);
        benchmarks.push(counted(named, failed, Some(&counts)));
    }
    for (image, state) in marker.images().iter().filter(|(image, _)| !seen.contains(image)) {
        if let Some(named) = &state.announced {
            let ended = ends.get(image).copied().flatten().and_then(end_of);
            let why = ended.unwrap_or_else(|| "it calls no routine: call iter".into());
            benchmarks.push(counted(named, Some(why), None));
        }
    }
    let mut warnings = outcome.warnings;
    // Programs of benchmarks have a thread and processes of their own, which repeat.
    warnings.retain(|warning| !warning.starts_with("with --repeatable: "));
    warnings.extend(hierarchy.iter().flat_map(|hierarchy| hierarchy.warnings.clone()));
    Answer { benchmarks, warnings, ended: end_of(outcome.exit) }
}

fn counted(named: &Named, failed: Option<String>, counts: Option<&Counts>) -> Counted {
    let Named { name, file, line } = named.clone();
    Counted { name, file, line, events: counts.map(events).unwrap_or_default(), failed }
}

/// How the images of a process ended: all but the last became another program.
fn ends(process: &Process) -> impl Iterator<Item = (u32, Option<Exit>)> + '_ {
    let last = process.images.last().copied();
    process.images.iter().map(move |&image| (image, process.exit.filter(|_| Some(image) == last)))
}

/// The end of a process in words, where it was not status 0.
fn end_of(exit: Exit) -> Option<String> {
    match exit {
        Exit::Code(0) | Exit::RunsOn => None,
        Exit::Code(_) => Some(format!("it ended with status {}", exit.status())),
        Exit::Signal(_) => Some(format!("signal {} ended it", exit_signal(exit).unwrap_or(0))),
    }
}

/// The counts of a benchmark.
fn counts(part: &Part, excerpts: &Excerpts<'_>, hierarchy: Option<&Hierarchy>) -> Counts {
    let counts = part.total(excerpts.profile(), None, Rep::Once, Counts::default());
    let Some(hierarchy) = hierarchy else { return counts };
    let (profile, misses) = excerpts.of(part);
    let cycles = hierarchy.estimated(&profile, &misses, None).map(|estimated| estimated.total());
    let misses = Misses { cycles, ..hierarchy.attribution(&misses, None).total() };
    Counts { misses: Some(misses), ..counts }
}
