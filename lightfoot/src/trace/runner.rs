//! Runs a request: refuses metrics that the chosen engine cannot count, and records the trace.

use super::launch::{paced_by, withdraw};
use super::partial::Partial;
use super::request::{By, Collector, Engine, Request};
use super::simulated::{Caches, Event, Simulated, Traced, Tracer, EVENTS};
use super::target::Targets;
use super::{attached, kernel, native};
use crate::run::engine;
use crate::run::hierarchy::Hierarchy;
use anyhow::{bail, Result};
use event::Stream;
use instrument::{Children, Options};
use measure::trace::{End, Header, Metric, Source, Trace, Unit};
use present::exit;
use simulate::{plan_levels, WriteBacks};
use std::sync::Arc;

/// Runs a program and records it.
///
/// # Errors
/// One sentence about what cannot be measured or run; for unknown names with the nearest ones.
pub fn run(request: &Request) -> Result<Trace> {
    // The first arms refuse what an engine cannot count, and say which engine can. The order
    // matters: an arm that refuses stands before the arm that runs its engine.
    if request.running.is_some() {
        attached::check(request)?;
    }
    match request.engine {
        Engine::Probe | Engine::Uprobe | Engine::Jit | Engine::Simulated
            if request.collector == Collector::Kernel =>
        {
            bail!(
                "the kernel samples its own counters only: --collector kernel is for --engine native; software metrics take --collector host"
            )
        }
        Engine::Uprobe if request.collector == Collector::Signal => {
            bail!("a handler in the program does not read uprobes: --collector signal is for --engine native and --engine probe")
        }
        Engine::Simulated | Engine::Jit if request.collector == Collector::Signal => {
            bail!("under the engine nobody needs a timer in the program: --collector signal is for --engine native and --engine probe")
        }
        Engine::Native | Engine::Probe | Engine::Uprobe if request.by == By::Function => {
            bail!(
                "--by function counts what the engine executes: give --engine simulated or jit, and an interval such as --every 1e6instructions"
            )
        }
        Engine::Simulated | Engine::Jit => run_simulated(request),
        Engine::Native if !request.software.is_empty() => {
            bail!(
                "software metrics need code in the program: count them with --engine probe, or --engine jit"
            )
        }
        Engine::Native | Engine::Probe | Engine::Uprobe
            if request.noise.is_some() || !request.uncharged.is_empty() =>
        {
            bail!("uncharged metrics and noise exist in a simulated machine only: give --engine simulated")
        }
        Engine::Native | Engine::Probe | Engine::Uprobe => {
            if let Some(running) = request.running {
                return attached::run(request, running, |metrics| header(request, metrics));
            }
            // A counted interval needs a hardware counter, which may be missing on this machine.
            let paced = paced_by(request)?;
            let header = |metrics| header(request, metrics);
            match request.collector {
                Collector::Kernel => kernel::run(request, header),
                Collector::Host | Collector::Signal => native::run(request, paced, header),
            }
        }
    }
}

fn run_simulated(request: &Request) -> Result<Trace> {
    if request.interval.unit == Unit::Nanoseconds {
        bail!("a simulated run has no clock: give the interval in instructions or cycles, as --every 1e6instructions");
    }
    let Some(machine) = &request.machine else { bail!("a simulated run needs a machine") };
    let caches = if request.engine == Engine::Jit { Caches::Absent } else { Caches::Simulated };
    // Charged metrics come first in `targets`, so their columns are the first `charged` ones.
    let specs = [&request.software[..], &request.uncharged].concat();
    let targets = Arc::new(Targets::of(request, &specs)?);
    let charged = Targets::of(request, &request.software)?.columns.len();
    // The narrowest stream that the metrics allow: watched writes and noise need every reference.
    let stream = match caches {
        _ if request.noise.is_some() || targets.has_data() => Stream::Full,
        Caches::Simulated => plan_levels(&machine.levels, WriteBacks::Ignored).stream,
        Caches::Absent => Stream::Counts,
    };
    let simulated = Simulated::new(machine, stream, caches);
    let events = events(request, &simulated, machine)?;
    let mut header = header(request, metrics(request.engine, &events, &targets, charged));
    header.notes.extend(targets.notes.iter().cloned());
    let partial = Partial::new(request.partial.as_deref(), &header)?;
    let mut tracer = Tracer::new(
        simulated,
        events,
        targets.clone(),
        (request.interval, request.by),
        request.noise,
        partial,
    );
    let (aslr, running) = (request.aslr, request.running);
    let options = Options { aslr, stream, children: Children::Released, running, ..Options::default() };
    let mut probed = None;
    // Charged metrics are real probes in the program, which the simulated machine executes and pays
    // for. The other metrics are counted without adding an instruction.
    let ran = if caches == Caches::Simulated && charged > 0 {
        let counters = native::functions(&targets, charged)?;
        let numbers: Vec<Vec<usize>> = counters.by_column.iter().flatten().cloned().collect();
        let plan = native::plan(&targets, counters, request.layout);
        let ran = engine::run_probed(&request.command, &options, &mut tracer, plan);
        ran.map(|(outcome, found)| {
            probed = Some((numbers, found));
            outcome
        })
    } else {
        engine::run_tool(&request.command, &options, &mut tracer).map(|ran| ran.0)
    };
    let traced = tracer.finish();
    let outcome = ran?;
    header.notes.extend(outcome.warnings);
    header
        .notes
        .extend(running.zip(outcome.standstill).map(|(running, still)| attached::note(running, still)));
    header.notes.extend(traced.complaint);
    // The trace counts whole blocks; the profile knows which ones were cut short.
    let retired = outcome.profile.instructions_retired();
    if retired != traced.instructions {
        let more = traced.instructions.abs_diff(retired);
        header.notes.push(format!(
            "{more} instructions of blocks that a signal or fault cut short count as if they had run"
        ));
    }
    if traced.hidden > 0 {
        header.notes.push(format!(
            "{} branches were followed by a signal handler or an end: not predicted",
            traced.hidden
        ));
    }
    if traced.lost > 0 {
        header.notes.push(format!("{} records could not be read: metrics are lower bounds", traced.lost));
    }
    let exit_status = Some(if outcome.interrupted { exit::INTERRUPTED } else { outcome.exit.status() });
    let totals = traced.totals.into_iter().map(Some).collect();
    let end = End { totals, exit_status, interrupted: outcome.interrupted };
    let Traced { records, functions, .. } = traced;
    let mut trace = Trace { records, functions, end: Some(end), ..Trace::new(header) };
    if let Some((numbers, found)) = probed {
        withdraw(&mut trace, &targets, &numbers, &found.states);
    }
    Ok(trace)
}

/// The requested events, or all that the machine has.
fn events(request: &Request, simulated: &Simulated, machine: &Hierarchy) -> Result<Vec<&'static Event>> {
    if request.hardware.is_empty() {
        return Ok(EVENTS.iter().filter(|event| simulated.has(event)).collect());
    }
    let find = |name: &String| {
        let Some(event) = EVENTS.iter().find(|event| event.name == name) else {
            let names: Vec<&str> = EVENTS.iter().map(|event| event.name).collect();
            // An unknown name: similar ones if there are any, else all.
            let suggestions = measure::counter::nearest(name, names.iter().copied());
            match suggestions.is_empty() {
                true => {
                    bail!("the simulated machine has no event {name}: the events are {}", names.join(", "))
                }
                false => {
                    bail!(
                        "the simulated machine has no event {name}: did you mean {}?",
                        suggestions.join(" or ")
                    )
                }
            }
        };
        if !simulated.has(event) {
            bail!(
                "machine {} has nothing that {name} could count: choose another with --machine",
                machine.machine.name
            );
        }
        Ok(event)
    };
    request.hardware.iter().map(find).collect()
}

/// The columns of a run under the engine; the first `charged` software metrics are code in the
/// program.
fn metrics(engine: Engine, events: &[&Event], targets: &Targets, charged: usize) -> Vec<Metric> {
    let hardware = events.iter().map(|event| Metric::new(event.name, Source::Simulated, engine.name()));
    let software = targets.columns.iter().enumerate().map(|(index, column)| match engine {
        Engine::Simulated if index < charged => Metric::new(&column.name, Source::Software, "probe"),
        Engine::Simulated => Metric::new(&column.name, Source::UnchargedMetric, "jit"),
        _ => Metric::new(&column.name, Source::Software, "jit"),
    });
    hardware.chain(software).collect()
}

fn header(request: &Request, metrics: Vec<Metric>) -> Header {
    let words = std::iter::once(&request.command.program).chain(&request.command.arguments);
    let argv = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let simulates = request.engine == Engine::Simulated;
    let probes = simulates || request.engine == Engine::Probe;
    let collector = match request.engine {
        Engine::Native | Engine::Probe if request.collector == Collector::Signal => "signal",
        Engine::Native if request.collector == Collector::Kernel => "kernel",
        Engine::Native | Engine::Probe | Engine::Uprobe => "host",
        Engine::Jit | Engine::Simulated => "simulated",
    };
    let machine = request.machine.as_ref().filter(|_| simulates);
    Header {
        engine: request.engine.name().into(),
        collector: collector.into(),
        build_id: build_id(request),
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().into()),
        cpu_pin: request.pin,
        machine: machine.map(|machine| machine.machine.name.clone()),
        noise_seed: request.noise.map(|noise| noise.seed),
        counter_layout: (probes && !request.software.is_empty()).then_some(request.layout),
        environment_bytes: match request.running {
            Some(running) => attached::environment_bytes(running),
            None => Some(environment_bytes()),
        },
        ..Header::new(argv, request.interval, metrics)
    }
}

/// The build id of the program's file, in hexadecimal.
fn build_id(request: &Request) -> Option<String> {
    let path = match request.running {
        Some(running) => std::fs::read_link(format!("/proc/{}/exe", running.pid)).ok()?,
        None => instrument::locate(&request.command.program).ok()?,
    };
    let listing = symbol::Listing::read(&path)?;
    listing.build_id().map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Size in bytes of the environment that the program inherits, with terminating zeros.
fn environment_bytes() -> u64 {
    std::env::vars_os().map(|(name, value)| (name.len() + value.len() + 2) as u64).sum()
}
