//! `lightfoot bench`: counts benchmarks, compares them with a baseline, and says which limits they
//! exceed.
//!
//! ```text
//! cargo ─▶ programs ─▶ workers, several at a time ─▶ results ─▶ comparison ─▶ text, Markdown, …
//!                      program, marks, engine          ▲  │
//!                                                  baselines
//! ```
//!
//! Each benchmark runs in a copy of its program as it was after its start, so its counts depend
//! neither on other benchmarks nor on how many processes count. **Leaves out** time.

mod baseline;
mod compare;
mod json;
mod markdown;
mod marker;
mod pages;
mod programs;
mod results;
mod text;
mod work;
mod worker;

use super::complaint::complain;
use crate::cli::{Bench, BenchFormat, BenchWorker};
use crate::run::hierarchy::Hierarchy;
use crate::run::named;
use anyhow::{Context, Result};
use baseline::{check_name, Baselines, LAST};
use compare::{check_way, Chosen, Comparison};
use instrument::virtual_machine::Processor;
use present::exit::{Failure, NEGATIVE, USAGE};
use present::order::SortRows;
use present::output::{print, Destination};
use programs::{Found, Program};
use results::{Results, SCHEMA};
use std::path::{Path, PathBuf};
use work::Work;

/// The folder of baselines in cargo's folder for what it builds.
const FOLDER: &str = "lightfoot-bench";

/// Counts the benchmarks of one program, for a `bench` that has started this process.
pub(super) fn worker(options: &BenchWorker) -> Result<u8> {
    worker::run(options)
}

pub(super) fn run(options: &Bench) -> Result<u8> {
    if let Some(folder) = &options.headers {
        return write_headers(folder);
    }
    // What cannot be used is refused before anything is built, what cannot be compared before
    // anything is counted.
    let places = usable(places(options))?;
    options.save_baseline.as_deref().map(check_name).transpose()?;
    let machine = usable(machine(options))?;
    let Found { programs, target, skipped } = usable(programs::find(options))?;
    let folder = options.baselines.clone().unwrap_or_else(|| match target {
        Some(target) => target.join(FOLDER),
        None => Path::new("target").join(FOLDER),
    });
    let baselines = Baselines::new(folder);
    let base = base(options, &baselines)?;
    let listed = list(&programs, options)?;
    if options.list {
        return print_list(&listed);
    }
    let mut results = Results {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine.as_ref().map(|machine| machine.label.clone()),
        virtual_cpu: processor(options)?,
        cold: options.cold,
        benchmarks: Vec::new(),
    };
    if let Some((name, base)) = &base {
        check_way(&results, (name, base))?;
    }
    for name in &skipped {
        present::tell!("warning: {name} is no program of crate lightfoot-bench: its benchmarks are left out");
    }
    let argument = machine.as_ref().map(|machine| &*machine.argument);
    let Work { rows, failed } = work::count(&listed, options, argument)?;
    results.benchmarks = rows;
    let chosen = match options.filters.is_empty() && options.package.is_empty() && options.bench.is_empty() {
        true => Chosen::All,
        false => Chosen::Some,
    };
    let compared = match &base {
        Some((name, base)) => Comparison::new(&results, (name, base), &options.limit, chosen),
        None => Comparison::alone(&results),
    };
    for (format, place) in &places {
        write(place, &show(&compared, *format, &failed)?)?;
    }
    if let Some(folder) = &options.html {
        pages::write(folder, &listed, options, argument)?;
    }
    // What exceeds a limit does not become the measure of the next run.
    if compared.exceeded.is_empty() || options.save_baseline.is_some() {
        keep(options, &baselines, &results)?;
    }
    for sentence in &failed {
        complain(&anyhow::anyhow!("{sentence}"));
    }
    Ok(if failed.is_empty() && compared.exceeded.is_empty() { 0 } else { NEGATIVE })
}

/// Writes an answer to its place; standard error stands for standard output.
fn write(place: &Destination, text: &str) -> Result<()> {
    match place {
        Destination::Stderr => print(text),
        file => file.write(text),
    }
}

/// Prints the names of benchmarks, each behind that of its program.
fn print_list(listed: &[(&Program, Vec<String>)]) -> Result<u8> {
    let line = |program: &Program, name: &String| format!("{} {name}\n", program.name);
    let lines = listed.iter().flat_map(|(program, names)| names.iter().map(move |name| line(program, name)));
    print(&lines.collect::<String>())?;
    Ok(0)
}

/// What cannot be used ends with the status of a command line.
fn usable<T>(found: Result<T>) -> Result<T> {
    found.map_err(|error| match error.is::<Failure>() {
        true => error,
        false => Failure { status: USAGE, sentence: format!("{error:#}") }.into(),
    })
}

/// Writes the headers for C and C++.
fn write_headers(folder: &Path) -> Result<u8> {
    // If this fails, writing says why.
    let _ = std::fs::create_dir(folder);
    for (name, text) in region::HEADERS {
        let path = folder.join(name);
        present::output::replace(&path, text)
            .with_context(|| format!("cannot write {}: name a folder that exists", path.display()))?;
    }
    Ok(0)
}

/// The formats of the answer with their places; standard error stands for standard output.
fn places(options: &Bench) -> Result<Vec<(BenchFormat, Destination)>> {
    let first = (options.format, options.output.as_deref());
    let others = options.also.iter().map(|(format, file)| (*format, Some(file.as_path())));
    std::iter::once(first).chain(others).map(|(format, file)| Ok((format, Destination::new(file)?))).collect()
}

/// A machine that is simulated.
struct Simulated {
    /// What workers are told, wherever they run.
    argument: PathBuf,
    /// What results are compared by.
    label: String,
}

fn machine(options: &Bench) -> Result<Option<Simulated>> {
    if options.no_caches {
        return Ok(None);
    }
    let hierarchy = Hierarchy::of(named::machine(&options.machine)?)?;
    let path = PathBuf::from(&options.machine);
    let argument = path.canonicalize().ok().filter(|file| file.is_file()).unwrap_or(path);
    let name = &hierarchy.machine.name;
    // These two differ from machine to machine.
    let label = match options.machine == "host" || options.machine == named::MEASURED {
        true => format!("{name} ({})", hierarchy.machine.description),
        false => name.clone(),
    };
    Ok(Some(Simulated { argument, label }))
}

/// The processor that the programs are shown.
fn processor(options: &Bench) -> Result<Option<String>> {
    // A name that is unknown is refused before anything is counted.
    let known = options.virtual_cpu.as_deref().map(Processor::named).transpose();
    known.map_err(|error| Failure { status: USAGE, sentence: error.to_string() })?;
    Ok(options.virtual_cpu.clone())
}

/// The baseline to compare with.
fn base(options: &Bench, baselines: &Baselines) -> Result<Option<(String, Results)>> {
    if let Some(name) = &options.baseline {
        return Ok(Some((name.clone(), baselines.named(name)?)));
    }
    if options.save_baseline.is_some() && options.limit.is_empty() {
        return Ok(None);
    }
    let last = match options.limit.is_empty() {
        // Nobody asked for the comparison, so a file that cannot be read stands in nobody's way.
        true => baselines.read(LAST).ok().flatten(),
        false => baselines.read(LAST)?,
    };
    match last {
        None if !options.limit.is_empty() => {
            let folder = baselines.folder().display();
            let sentence = format!(
                "--limit compares with a baseline, and {folder} has none: save one with --save-baseline NAME, and name \
                 it with --baseline NAME"
            );
            Err(Failure { status: USAGE, sentence }.into())
        }
        found => Ok(found.map(|results| (LAST.to_owned(), results)).filter(|(_, last)| {
            !options.limit.is_empty()
                || last.cold == options.cold
                    && last.machine.is_none() == options.no_caches
                    && last.virtual_cpu == options.virtual_cpu
        })),
    }
}

/// The benchmarks of each program, in their order.
fn list<'p>(programs: &'p [Program], options: &Bench) -> Result<Vec<(&'p Program, Vec<String>)>> {
    let mut listed = Vec::new();
    for program in programs {
        let names = program.list(options)?;
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_rows(|one, other| one.cmp(other));
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let sentence = format!("two benchmarks of {} are called {}: rename one", program.name, twice[0]);
            return Err(Failure { status: USAGE, sentence }.into());
        }
        listed.push((program, names));
    }
    let has_regions = programs.iter().any(|program| program.kind == programs::Kind::Regions);
    if !has_regions && listed.iter().all(|(_, names)| names.is_empty()) {
        let sentence = match options.filters.as_slice() {
            [] => String::from("the programs have no benchmarks: name them in lightfoot_bench::main!"),
            filters => format!("no benchmark is called {}: --list shows all", filters.join(" or ")),
        };
        return Err(Failure { status: USAGE, sentence }.into());
    }
    Ok(listed)
}

fn show(compared: &Comparison<'_>, format: BenchFormat, failed: &[String]) -> Result<String> {
    Ok(match format {
        BenchFormat::Text => text::lines(compared),
        BenchFormat::Details => text::details(compared),
        BenchFormat::Json => json::json(compared, failed)?,
        BenchFormat::Markdown => markdown::markdown(compared, failed),
        BenchFormat::Github => text::lines(compared) + &markdown::annotations(compared, failed),
    })
}

/// Keeps the results: under the name that was given, and as the last run's.
fn keep(options: &Bench, baselines: &Baselines, results: &Results) -> Result<()> {
    match &options.save_baseline {
        Some(name) => baselines.save(name, results),
        None => baselines.save_last(results),
    }
}
