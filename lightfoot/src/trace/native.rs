//! Native runs: the host, or a handler in the program ([`signal`]), reads the counters of the
//! kernel and of probes at a regular interval.
//!
//! Events are opened before the program starts, and all its children inherit them; probes are
//! written while the program is stopped behind its exec. Then it runs without a tracer. One read of
//! the group and one of the shared memory per interval make a record. Runs without probes are
//! started in the same way, so a baseline differs in its probes only. An interval in instructions
//! or cycles needs a processor whose counters the system offers: the first counter sets the pace.

use super::finder::{self, Functions};
use super::launch::{chosen, finish, launch, note_refused, withdraw};
use super::partial::Partial;
use super::request::{Collector, Engine, Request};
use super::signal::Handler;
use super::summed::{Shape, Summed};
use super::target::Targets;
use anyhow::{anyhow, bail, Result};
use instrument::probe::{Held, Placement, ProbeCounters as Words, ProbePlan, ProbeState};
use measure::collector::signal::Ticks;
use measure::collector::{Collector as HostCollector, Pace};
use measure::counter::{Counters, Entry, Event, Group, Period, Times, Uprobes, Whose};
use measure::trace::{Header, Layout, Metric, Source, Trace, Unit};
use measure::Error;
use std::sync::Arc;
use std::time::Duration;

/// The probes' counters, in the order of the trace's columns: each is a sum of some counters.
struct Probes {
    words: Words,
    metrics: Vec<Metric>,
    counters: Vec<Vec<usize>>,
}

impl Counters for Probes {
    fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    fn read(&mut self, totals: &mut [u64]) -> Result<Times, Error> {
        for (total, counters) in totals.iter_mut().zip(&self.counters) {
            *total = counters.iter().map(|&counter| self.words.read(counter)).sum();
        }
        Ok(Times::default())
    }
}

pub(super) fn run(
    request: &Request,
    paced: Option<(&'static Event, u64)>,
    header: impl FnOnce(Vec<Metric>) -> Header,
) -> Result<Trace> {
    let targets = Arc::new(Targets::new(&request.command.program, &request.software)?);
    let counters = functions(&targets, targets.columns.len())?;
    // The probes' counters of each column. Names that denote several functions have several.
    let numbers: Vec<Vec<usize>> = counters.by_column.iter().flatten().cloned().collect();
    let (mut group, mut notes) = group(&request.hardware, paced)?;
    notes.extend(targets.notes.iter().cloned());
    let mut uprobes = match request.engine {
        Engine::Uprobe => Some(uprobes(&targets, &mut notes)?),
        _ => None,
    };
    let plan = (request.engine == Engine::Probe).then(|| plan(&targets, counters, request.layout));
    // The program is stopped behind its exec, with its probes written and no instruction run.
    let held = launch(request, Some(&group), plan)?;
    let mut probes = held.counters().map(|words| Probes {
        words,
        metrics: targets
            .columns
            .iter()
            .map(|column| Metric::new(&column.name, Source::Software, "probe"))
            .collect(),
        counters: numbers.clone(),
    });
    let collected = match request.collector {
        Collector::Host => {
            let mut sets: Vec<&mut dyn Counters> =
                uprobes.iter_mut().map(|summed| summed as &mut dyn Counters).collect();
            sets.extend(probes.as_mut().map(|probes| probes as &mut dyn Counters));
            by_host(request, held, &mut group, sets, header)
        }
        Collector::Signal | Collector::Kernel => {
            by_handler(request, held, &mut group, probes.as_mut(), &numbers, header)
        }
    };
    let (mut trace, states) = collected?;
    trace.header.notes.append(&mut notes);
    // Whether a function takes a probe is known only once its file is mapped. Columns of functions
    // that took none are withdrawn.
    withdraw(&mut trace, &targets, &numbers, &states);
    Ok(trace)
}

/// Runs with the host's collector.
fn by_host<'a>(
    request: &Request,
    held: Held,
    group: &'a mut Group,
    others: Vec<&'a mut dyn Counters>,
    header: impl FnOnce(Vec<Metric>) -> Header,
) -> Result<(Trace, Vec<ProbeState>)> {
    let explained = |error: Error| anyhow!("{error}");
    let length = request.interval.length;
    let pace = match request.interval.unit {
        Unit::Nanoseconds => Pace::Time(Duration::from_nanos(length)),
        _ => Pace::Counted(group.alarm().map_err(explained)?, length),
    };
    let mut sets: Vec<&mut dyn Counters> = vec![group];
    sets.extend(others);
    let mut collector = HostCollector::new(sets, pace).map_err(explained)?;
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
    let ended = ended.map(|(_, end)| (records, end)).map_err(explained);
    finish(header, running, ended, &partial)
}

/// Runs with a signal handler in the program as the collector.
fn by_handler(
    request: &Request,
    mut held: Held,
    group: &mut Group,
    mut probes: Option<&mut Probes>,
    numbers: &[Vec<usize>],
    header: impl FnOnce(Vec<Metric>) -> Header,
) -> Result<(Trace, Vec<ProbeState>)> {
    let mut metrics = group.metrics().to_vec();
    metrics.extend(probes.iter().flat_map(|probes| probes.metrics().to_vec()));
    metrics.push(Ticks::own_metric());
    let header = header(metrics);
    let mut partial = Partial::new(request.partial.as_deref(), &header)?;
    // The handler reads single counters; sums are computed from its records.
    let first = group.metrics().len();
    let shape = Shape { first, sums: numbers.iter().map(Vec::len).collect() };
    let words = numbers.concat();
    if let Some(probes) = &mut probes {
        probes.metrics =
            words.iter().map(|number| Metric::new(number.to_string(), Source::Software, "probe")).collect();
        probes.counters = words.iter().map(|&number| vec![number]).collect();
    }
    let read = probes.as_mut().map(|probes| &mut **probes as &mut dyn Counters);
    let handler = match Handler::new(&mut held, request.interval, group, read, &words) {
        Ok(handler) => handler,
        Err(error) => {
            held.kill();
            return Err(error);
        }
    };
    let running = held.release();
    let words = probes.map(|probes| probes as &mut dyn Counters);
    let ended = handler.collect(&running, group, words, &shape, &mut partial);
    finish(header, running, ended, &partial)
}

/// The counters of the first columns; all of them must be functions.
pub(super) fn functions(targets: &Targets, columns: usize) -> Result<finder::Counters> {
    let counters = finder::Counters::new(targets, columns);
    let other = counters.by_column.iter().position(Option::is_none);
    if let Some(column) = other.map(|other| &targets.columns[other]) {
        bail!("{}: probes count calls of functions; writes and lines are counted by --engine jit, or as --uncharged metrics of a simulated run", column.name)
    }
    Ok(counters)
}

/// The plan for probe mode.
pub(super) fn plan(targets: &Arc<Targets>, counters: finder::Counters, layout: Layout) -> ProbePlan {
    let count = counters.len();
    let finder = Functions::new(targets.clone(), counters);
    let placement = match layout {
        Layout::Packed => Placement::Packed,
        Layout::Line => Placement::Line,
        Layout::Page => Placement::Page,
        Layout::Seed(seed) => Placement::Seed(seed),
    };
    ProbePlan { finder: Box::new(finder), counters: count, placement }
}

/// Opens the kernel's counters of each column. A column that the kernel does not count is no metric
/// of the trace, and a note says so.
fn uprobes(targets: &Targets, notes: &mut Vec<String>) -> Result<Summed> {
    let entries = |column: &super::target::Column| -> Option<Vec<Entry>> {
        let super::target::MetricTarget::Code { file, addresses } = &column.place else { return None };
        let file = &targets.files[*file];
        let entry = |&address: &u64| {
            let (metric, path) = (column.name.clone(), file.path.clone());
            Some(Entry { metric, path, offset: file.file_offset(address)? })
        };
        addresses.iter().map(entry).collect()
    };
    let mut all = Vec::new();
    for column in &targets.columns {
        match entries(column) {
            Some(entries) => all.extend(entries),
            None => notes.push(format!("{} is not counted: its file has no code there", column.name)),
        }
    }
    let opened = Uprobes::open(&all, Whose::Children).map_err(|error| anyhow!("{error}"))?;
    let refused = opened.refused.iter();
    let refused = refused.map(|(index, why)| format!("{} is not counted: {why}", all[*index].metric));
    note_refused(notes, refused.collect());
    Ok(Summed::new(opened, &all))
}

/// Opens the kernel's counters: the requested ones, or all that this system has; the first sets the
/// pace.
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
