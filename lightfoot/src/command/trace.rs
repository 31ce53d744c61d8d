//! `lightfoot trace`: runs a program, or enters one that runs, and records metrics at a regular
//! interval.

use crate::cli::{Trace, TraceEngine};
use crate::run::hierarchy::Hierarchy;
use crate::trace::format::write;
use crate::trace::metric::Spec;
use crate::trace::{self, By, Noise, Request};
use anyhow::Result;
use instrument::{Aslr, Command, Running};
use measure::trace::{decode, Trace as Recorded, Unit};
use present::exit;
use present::output::Destination;
use present::terminal::Page;
use std::path::{Path, PathBuf};

pub(super) fn run(options: &Trace) -> Result<u8> {
    let runs = options.runs.max(1);
    let outputs: Vec<PathBuf> = (1..=runs).map(|run| numbered(&options.output, run, runs)).collect();
    let destinations = outputs.iter().map(|path| Destination::new(Some(path))).collect::<Result<Vec<_>>>()?;
    let request = request(options)?;
    let mut status = 0;
    let interrupts = instrument::interrupts();
    for (destination, path) in destinations.iter().zip(&outputs) {
        let recorded = record(&Request { partial: partial(destination), ..request.clone() }, |recorded| {
            destination.write(write(recorded, options.format)?)
        })?;
        show_summary(&recorded, path)?;
        let end = recorded.end.unwrap_or_default();
        status = end.exit_status.unwrap_or(exit::FAILURE);
        // A program that handles Ctrl-C ends only its own run, but the user means all runs.
        if end.interrupted || instrument::interrupts() > interrupts {
            break;
        }
    }
    Ok(status)
}

/// Runs the program and writes the trace. If that fails, the partial file stays if it holds
/// records.
fn record(request: &Request, write: impl FnOnce(&Recorded) -> Result<()>) -> Result<Recorded> {
    let recorded = trace::run(request).and_then(|recorded| write(&recorded).map(|()| recorded));
    // Only a regular file is a partial file of this run: anything else was refused.
    let partial =
        request.partial.as_ref().filter(|path| path.symlink_metadata().is_ok_and(|it| it.is_file()));
    let Some(partial) = partial else { return recorded };
    let read = || decode(&std::fs::read(partial).ok()?).ok();
    let kept = if recorded.is_err() { read().map_or(0, |trace| trace.records.len()) } else { 0 };
    if kept > 0 {
        present::tell!("lightfoot trace: {kept} records are in {}", partial.display());
    } else {
        // The file holds nothing, so a failure to remove it is not reported.
        let _ = std::fs::remove_file(partial);
    }
    recorded
}

/// The path of the partial file; `None` for a device, beside which no file can be created.
fn partial(destination: &Destination) -> Option<PathBuf> {
    let Destination::File(path) = destination else { return None };
    Some(trace::partial::partial(path))
}

fn request(options: &Trace) -> Result<Request> {
    let machine = Hierarchy::plain(&options.hierarchy)?;
    let names = |text: &Option<String>| -> Vec<String> {
        let text = text.as_deref().unwrap_or_default();
        text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    Ok(Request {
        command: match (options.pid, &options.program[..]) {
            (None, [program, arguments @ ..]) => {
                Command { program: program.clone(), arguments: arguments.to_vec() }
            }
            (pid, _) => super::running::command_of(pid.unwrap_or_default()),
        },
        running: options.pid.map(|pid| Running { pid, window: options.window }),
        interval: options.every,
        engine: engine(options).into(),
        by: if options.by.is_some() { By::Function } else { By::Metric },
        hardware: names(&options.hardware),
        software: Spec::list(options.software.as_deref().unwrap_or_default())?,
        uncharged: Spec::list(options.uncharged.as_deref().unwrap_or_default())?,
        layout: options.layout,
        machine: Some(machine),
        noise: options.noise.map(Noise::seeded),
        pin: options.pin,
        aslr: if options.aslr { Aslr::On } else { Aslr::Off },
        collector: options.collector.into(),
        partial: None,
    })
}

/// The engine that the user chose, or the one that the other options imply.
fn engine(options: &Trace) -> TraceEngine {
    let default_engine = match (options.every.unit, &options.software) {
        (Unit::Instructions | Unit::Cycles, _) => TraceEngine::Simulated,
        (Unit::Nanoseconds, Some(_)) => TraceEngine::Probe,
        (Unit::Nanoseconds, None) => TraceEngine::Native,
    };
    options.engine.unwrap_or(default_engine)
}

/// The path of a run's file: if there are several runs, the number comes before the extension.
fn numbered(path: &Path, run: u32, runs: u32) -> PathBuf {
    if runs == 1 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}.{run}.{}", extension.to_string_lossy()),
        None => format!("{stem}.{run}"),
    };
    path.with_file_name(name)
}

/// Prints the numbers of records and metrics, and the notes of the trace as warnings.
fn show_summary(recorded: &Recorded, path: &Path) -> Result<()> {
    let missed: u64 = recorded.records.iter().map(|record| u64::from(record.missed_ticks)).sum();
    let late = if missed > 0 { format!(", {missed} ticks missed") } else { String::new() };
    let (records, metrics) = (recorded.records.len(), recorded.header.metrics.len());
    let mut text =
        format!("lightfoot trace: {records} records of {metrics} metrics in {}{late}\n", path.display());
    let page = Page::of_stderr();
    recorded.header.notes.iter().for_each(|note| text += &page.sentence("warning: ", note));
    Destination::Stderr.write(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_numbered_before_the_extension() {
        assert_eq!(numbered(Path::new("a/b.lft"), 1, 1), Path::new("a/b.lft"));
        assert_eq!(numbered(Path::new("a/b.lft"), 2, 3), Path::new("a/b.2.lft"));
        assert_eq!(numbered(Path::new("b"), 3, 3), Path::new("b.3"));
    }
}
