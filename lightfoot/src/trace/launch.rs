//! Starts and ends native runs, for all collectors.

use super::partial::Partial;
use super::request::{Collector, Request};
use super::signal;
use super::target::Targets;
use crate::run::engine::failure;
use anyhow::{anyhow, bail, Result};
use instrument::probe::{self, Held, ProbePlan, ProbeState, Running};
use instrument::{Children, Options};
use measure::counter::{find, Event, Group};
use measure::trace::{End, Header, Record, Trace, Unit, Value};
use present::exit;
use rustix::io::FdFlags;
use rustix::thread::CpuSet;

/// Events that every system has.
const KERNEL: &[&str] = &["task-clock", "page-faults", "context-switches", "cpu-migrations"];
/// Events that a processor has, if the system shows one.
const PROCESSOR: &[&str] =
    &["instructions", "cycles", "branches", "branch-misses", "cache-references", "cache-misses"];
/// The most functions that a note about failed probes lists.
const NAMED_MAX: usize = 20;

/// The event whose count is the interval; `None` if the interval is a time.
pub(super) fn paced_by(request: &Request) -> Result<Option<(&'static Event, u64)>> {
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

/// Starts the program and stops it behind its exec.
pub(super) fn launch(request: &Request, group: Option<&Group>, plan: Option<ProbePlan>) -> Result<Held> {
    let options = Options { aslr: request.aslr, children: Children::Released, ..Options::default() };
    let passed = group.filter(|_| request.collector == Collector::Signal);
    passed.map_or(Ok(()), |group| signal::inherited(group, FdFlags::empty()))?;
    let held = probe::launch(&request.command, &options, plan);
    passed.map_or(Ok(()), |group| signal::inherited(group, FdFlags::CLOEXEC))?;
    let held = held.map_err(failure)?;
    match request.pin.map_or(Ok(()), |cpu| pin(held.pid(), cpu)) {
        Ok(()) => Ok(held),
        Err(error) => {
            held.kill();
            Err(error)
        }
    }
}

/// Waits for the program, even if collecting has failed.
pub(super) fn finish(
    mut header: Header,
    running: Running,
    ended: Result<(Vec<Record>, End)>,
    partial: &Partial,
) -> Result<(Trace, Vec<ProbeState>)> {
    let ran = running.wait().map_err(failure)?;
    let (records, mut end) = ended?;
    end.interrupted = ran.interrupted;
    end.exit_status = Some(if ran.interrupted { exit::INTERRUPTED } else { ran.exit.status() });
    header.notes.extend(ran.warnings);
    header.notes.extend(ran.locked.map(|why| format!("probes increment locked, at some ns each: {why}")));
    header.notes.extend(partial.complaint());
    Ok((Trace { records, end: Some(end), ..Trace::new(header) }, ran.states))
}

/// Adds a note about metrics that are not counted: the first ones by name, the others by number.
pub(super) fn note_refused(notes: &mut Vec<String>, mut refused: Vec<String>) {
    let more = refused.len().saturating_sub(NAMED_MAX);
    refused.truncate(NAMED_MAX);
    notes.append(&mut refused);
    if more > 0 {
        notes.push(format!("{more} more functions are not counted"));
    }
}

/// Removes metrics that could not be counted, and adds a note about them.
pub(super) fn withdraw(trace: &mut Trace, targets: &Targets, numbers: &[Vec<usize>], states: &[ProbeState]) {
    let mut refused = Vec::new();
    for (column, numbers) in targets.columns.iter().zip(numbers) {
        let Some(metric) = trace.position(&column.name) else { continue };
        let why = numbers.iter().find_map(|&number| match states.get(number) {
            Some(ProbeState::Refused(reason)) => Some(reason),
            _ => None,
        });
        let Some(reason) = why else { continue };
        let one = if numbers.len() > 1 { "one of its functions is not probed: " } else { "" };
        refused.push(format!("{} is not counted: {one}{reason}", column.name));
        let none = Value { delta: None, share: None };
        trace.records.iter_mut().for_each(|record| record.values[metric] = none);
        trace.end.iter_mut().for_each(|end| end.totals[metric] = None);
    }
    note_refused(&mut trace.header.notes, refused);
}

/// Opens the requested events, or all that this system has; also returns a note about missing ones.
pub(super) fn chosen<T>(
    names: &[String],
    open: impl Fn(&[&'static Event]) -> Result<T>,
) -> Result<(T, Vec<String>)> {
    if !names.is_empty() {
        let events = names
            .iter()
            .map(|name| find(name))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| anyhow!("{error}"))?;
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
