//! Native runs: the kernel's counters and the probes' counters, read at a regular interval by the host, or by a handler in the program ([`signal`]).
//!
//! Events are opened before the program starts and inherited by everything that it starts; probes are written while it is stopped behind its exec. Then it runs without a
//! tracer, and one group read and one look at shared memory per interval make a record. The same launch serves runs without probes, so that a baseline differs in nothing
//! but the probes. An interval in instructions or cycles needs a processor whose counters the system shows: the first of them sets the pace.

use super::finder::{counters, Functions};
use super::kernel;
use super::partial::Partial;
use super::signal::{self, Handler};
use super::target::Targets;
use super::{Collector, Engine, Request};
use crate::exit;
use anyhow::{anyhow, bail, Result};
use instrument::probe::{self, Counters as Words, Held, Placement, Plan, Running, State};
use instrument::{Children, Options};
use measure::collector::signal::Ticks;
use measure::collector::{Collector as HostCollector, Pace};
use measure::counter::{find, Counters, Entry, Event, Group, Period, Times, Uprobes, Whose};
use measure::trace::{End, Header, Layout, Metric, Record, Source, Trace, Unit, Value};
use measure::Error;
use rustix::io::FdFlags;
use rustix::thread::CpuSet;
use std::sync::Arc;
use std::time::Duration;

/// Events that every system has.
const KERNEL: &[&str] = &["task-clock", "page-faults", "context-switches", "cpu-migrations"];
/// Events that a processor has, if the system shows one.
const PROCESSOR: &[&str] =
    &["instructions", "cycles", "branches", "branch-misses", "cache-references", "cache-misses"];
/// Functions that are named when they cannot be probed.
const NAMED_MAX: usize = 20;

/// The probes' counters, in the order of the trace's columns.
struct Probes {
    words: Words,
    metrics: Vec<Metric>,
    counters: Vec<usize>,
}

impl Counters for Probes {
    fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    fn read(&mut self, totals: &mut [u64]) -> Result<Times, Error> {
        for (total, &counter) in totals.iter_mut().zip(&self.counters) {
            *total = self.words.read(counter);
        }
        Ok(Times::default())
    }
}

pub(super) fn run(request: &Request, header: impl FnOnce(Vec<Metric>) -> Header) -> Result<Trace> {
    let paced = paced_by(request)?;
    if request.collector == Collector::Kernel {
        return kernel::run(request, header);
    }
    let targets = Arc::new(Targets::new(&request.command.program, &request.software)?);
    let numbers = functions(&targets, targets.columns.len())?;
    let (mut group, mut notes) = group(&request.hardware, paced)?;
    let mut uprobes = match request.engine {
        Engine::Uprobe => Some(uprobes(&targets, &mut notes)?),
        _ => None,
    };
    let plan = (request.engine == Engine::Probe).then(|| plan(&targets, &numbers, request.layout));
    let held = launch(request, Some(&group), plan)?;
    let mut probes = held.counters().map(|words| Probes {
        words,
        metrics: targets.columns.iter().map(|c| Metric::new(&c.name, Source::Software, "probe")).collect(),
        counters: numbers.clone(),
    });
    let collected = match request.collector {
        Collector::Host => {
            let traps = uprobes.iter_mut().flat_map(|uprobes| &mut uprobes.groups);
            let mut sets: Vec<&mut dyn Counters> = traps.map(|group| group as &mut dyn Counters).collect();
            sets.extend(probes.as_mut().map(|probes| probes as &mut dyn Counters));
            by_host(request, held, &mut group, sets, header)
        }
        Collector::Signal | Collector::Kernel => {
            by_handler(request, held, &mut group, probes.as_mut(), &numbers, header)
        }
    };
    let (mut trace, states) = collected?;
    trace.header.notes.append(&mut notes);
    withdraw(&mut trace, &targets, &numbers, &states);
    Ok(trace)
}

/// The event whose count is the interval's; `None` where it is a time.
fn paced_by(request: &Request) -> Result<Option<(&'static Event, u64)>> {
    let name = match request.interval.unit {
        Unit::Nanoseconds => return Ok(None),
        Unit::Instructions => "instructions",
        Unit::Cycles => "cycles",
    };
    match request.collector {
        Collector::Signal => bail!("--collector signal has a timer: give a time, as --every 10ms"),
        Collector::Kernel => bail!("--collector kernel has a clock: give a time, as --every 10ms"),
        Collector::Host => {}
    }
    let event = find(name).map_err(|error| anyhow!("{error}"))?;
    Ok(Some((event, request.interval.length)))
}

/// The program, stopped behind its exec.
pub(super) fn launch(request: &Request, group: Option<&Group>, plan: Option<Plan>) -> Result<Held> {
    let options = Options { aslr: request.aslr, children: Children::Released, ..Options::default() };
    let passed = group.filter(|_| request.collector == Collector::Signal);
    passed.map_or(Ok(()), |group| signal::inherited(group, FdFlags::empty()))?;
    let held = probe::launch(&request.command, &options, plan);
    passed.map_or(Ok(()), |group| signal::inherited(group, FdFlags::CLOEXEC))?;
    let held = held.map_err(crate::engine::failure)?;
    match request.pin.map_or(Ok(()), |cpu| pin(held.pid(), cpu)) {
        Ok(()) => Ok(held),
        Err(error) => {
            held.kill();
            Err(error)
        }
    }
}

/// Reads from outside.
fn by_host<'a>(
    request: &Request,
    held: Held,
    group: &'a mut Group,
    others: Vec<&'a mut dyn Counters>,
    header: impl FnOnce(Vec<Metric>) -> Header,
) -> Result<(Trace, Vec<State>)> {
    let said = |error: Error| anyhow!("{error}");
    let length = request.interval.length;
    let pace = match request.interval.unit {
        Unit::Nanoseconds => Pace::Time(Duration::from_nanos(length)),
        _ => Pace::Counted(group.alarm().map_err(said)?, length),
    };
    let mut sets: Vec<&mut dyn Counters> = vec![group];
    sets.extend(others);
    let mut collector = HostCollector::new(sets, pace).map_err(said)?;
    let header = header(collector.metrics().to_vec());
    let mut partial = Partial::new(request.partial.as_deref(), &header)?;
    let running = held.release();
    let mut records = Vec::new();
    let take = |record| {
        partial.record(&record);
        records.push(record);
        Ok(())
    };
    let ended = collector.run(running.pid().unsigned_abs(), || false, take);
    let ended = ended.map(|(_, end)| (records, end)).map_err(said);
    finish(header, running, ended, &partial)
}

/// Has the program read by itself.
fn by_handler(
    request: &Request,
    mut held: Held,
    group: &mut Group,
    mut probes: Option<&mut Probes>,
    numbers: &[usize],
    header: impl FnOnce(Vec<Metric>) -> Header,
) -> Result<(Trace, Vec<State>)> {
    let mut metrics = group.metrics().to_vec();
    metrics.extend(probes.iter().flat_map(|probes| probes.metrics().to_vec()));
    metrics.push(Ticks::own_metric());
    let header = header(metrics);
    let mut partial = Partial::new(request.partial.as_deref(), &header)?;
    let words = probes.as_mut().map(|probes| &mut **probes as &mut dyn Counters);
    let handler = match Handler::new(&mut held, request.interval, group, words, numbers) {
        Ok(handler) => handler,
        Err(error) => {
            held.kill();
            return Err(error);
        }
    };
    let running = held.release();
    let words = probes.map(|probes| probes as &mut dyn Counters);
    let ended = handler.collect(&running, group, words, &mut partial);
    finish(header, running, ended, &partial)
}

/// Waits for the program, whatever became of collecting.
pub(super) fn finish(
    mut header: Header,
    running: Running,
    ended: Result<(Vec<Record>, End)>,
    partial: &Partial,
) -> Result<(Trace, Vec<State>)> {
    let interrupted = running.interrupted();
    let ran = running.wait().map_err(crate::engine::failure)?;
    let (records, mut end) = ended?;
    end.interrupted = interrupted;
    end.exit_status = Some(if interrupted { exit::INTERRUPTED } else { exit::of_program(ran.exit) });
    header.notes.extend(ran.warnings);
    header.notes.extend(ran.locked.map(|why| format!("probes increment locked, at some ns each: {why}")));
    header.notes.extend(partial.complaint());
    Ok((Trace { records, end: Some(end), ..Trace::new(header) }, ran.states))
}

/// The counter of each column; all of them must be functions.
pub(super) fn functions(targets: &Targets, columns: usize) -> Result<Vec<usize>> {
    let numbers = counters(targets, columns);
    let number = |(column, number): (&super::target::Column, &Option<usize>)| {
        match number {
        Some(number) if column.name.starts_with("fn:") => Ok(*number),
        _ => bail!("{}: probes count calls of functions; writes and lines are counted by --engine jit, or as --ghost metrics of a simulated run", column.name),
    }
    };
    targets.columns.iter().zip(&numbers).map(number).collect()
}

/// What probe mode is asked for.
pub(super) fn plan(targets: &Arc<Targets>, numbers: &[usize], layout: Layout) -> Plan {
    let counters = numbers.iter().max().map_or(0, |last| last + 1);
    let finder = Functions::new(targets.clone(), numbers.iter().copied().map(Some).collect());
    let placement = match layout {
        Layout::Packed => Placement::Packed,
        Layout::Line => Placement::Line,
        Layout::Page => Placement::Page,
        Layout::Seed(seed) => Placement::Seed(seed),
    };
    Plan { finder: Box::new(finder), counters, placement }
}

/// Opens the kernel's counter of each column; what it does not count is no metric of the trace, and said.
fn uprobes(targets: &Targets, notes: &mut Vec<String>) -> Result<Uprobes> {
    let entry = |column: &super::target::Column| {
        let super::target::Place::Code { file, addresses } = &column.place else { return None };
        let file = &targets.files[*file];
        let offset = file.file_offset(*addresses.first()?)?;
        Some(Entry { metric: column.name.clone(), path: file.path.clone(), offset })
    };
    let mut entries = Vec::new();
    for column in &targets.columns {
        match entry(column) {
            Some(entry) => entries.push(entry),
            None => notes.push(format!("{} is not counted: its file has no code there", column.name)),
        }
    }
    let opened = Uprobes::open(&entries, Whose::Children).map_err(|error| anyhow!("{error}"))?;
    let refused = opened.refused.iter();
    let refused = refused.map(|(index, why)| format!("{} is not counted: {why}", entries[*index].metric));
    say(notes, refused.collect());
    Ok(opened)
}

/// Names the first of what is not counted.
fn say(notes: &mut Vec<String>, mut refused: Vec<String>) {
    let more = refused.len().saturating_sub(NAMED_MAX);
    refused.truncate(NAMED_MAX);
    notes.append(&mut refused);
    if more > 0 {
        notes.push(format!("{more} more functions are not counted"));
    }
}

/// What could not be counted is absent, not 0, and said.
pub(super) fn withdraw(trace: &mut Trace, targets: &Targets, numbers: &[usize], states: &[State]) {
    let mut refused = Vec::new();
    for (column, &number) in targets.columns.iter().zip(numbers) {
        let Some(metric) = trace.position(&column.name) else { continue };
        let Some(State::Refused(reason)) = states.get(number) else { continue };
        refused.push(format!("{} is not counted: {reason}", column.name));
        let none = Value { delta: None, share: None };
        trace.records.iter_mut().for_each(|record| record.values[metric] = none);
        trace.end.iter_mut().for_each(|end| end.totals[metric] = None);
    }
    say(&mut trace.header.notes, refused);
}

/// The kernel's counters: those that were asked for, or all that this system has; first the one that sets the pace.
fn group(names: &[String], paced: Option<(&'static Event, u64)>) -> Result<(Group, Vec<String>)> {
    let period = paced.map_or(Period::None, |(_, length)| Period::Every(length));
    let open = |events: &[&'static Event]| {
        let first = paced.map(|(event, _)| event);
        let rest = events.iter().copied().filter(|event| Some(*event) != first);
        Group::open_paced(&first.into_iter().chain(rest).collect::<Vec<_>>(), Whose::Children, period)
    };
    let refused = |error: Error| {
        match (paced, error) {
        (Some((event, _)), Error::NoPmu { .. }) => anyhow!(
            "an interval in {} needs the processor's counter, and this machine shows no performance-monitoring unit: give a time, as --every 10ms, or count with \
             --engine jit or --engine simulated",
            event.name
        ),
        (_, error) => anyhow!("{error}"),
    }
    };
    chosen(names, |events| open(events).map_err(refused))
}

/// What opens with the events that were asked for, or with all that this system has; and a note about those it lacks.
pub(super) fn chosen<T>(
    names: &[String],
    open: impl Fn(&[&'static Event]) -> Result<T>,
) -> Result<(T, Vec<String>)> {
    if !names.is_empty() {
        let events =
            names.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>().map_err(|e| anyhow!("{e}"))?;
        return Ok((open(&events)?, Vec::new()));
    }
    let known = |names: &[&str]| names.iter().filter_map(|name| find(name).ok()).collect::<Vec<_>>();
    let (kernel, processor) = (known(KERNEL), known(PROCESSOR));
    match open(&[&kernel[..], &processor].concat()) {
        Ok(group) => Ok((group, Vec::new())),
        Err(error) => Ok((open(&kernel)?, vec![error.to_string()])),
    }
}

/// Binds the program to one processor.
fn pin(pid: i32, cpu: u32) -> Result<()> {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    let cpu = cpu as usize;
    if cpu >= CpuSet::MAX_CPU || !allowed.is_set(cpu) {
        let has = |cpu: &usize| allowed.is_set(*cpu);
        let known: Vec<String> = (0..CpuSet::MAX_CPU).filter(has).map(|cpu| cpu.to_string()).collect();
        bail!("--pin {cpu}: the program may not run there: give one of {}", known.join(", "));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    let bound = rustix::thread::sched_setaffinity(rustix::process::Pid::from_raw(pid), &set);
    bound.map_err(|error| anyhow!("cannot bind the program to CPU {cpu}: {error}"))
}
