//! Measures the programs without a simulator. Probes and uprobes count functions; the host or a
//! signal handler in the program makes the records.
//!
//! Four ways to measure take turns, in the same layouts, with a run that only the kernel observes.
//! Where the machine has hardware counters, `measure::perturb` compares the relations between them.
//! On every machine the study compares the kernel's own metrics and the times.
//!
//! The relations between software metrics, as each mechanism sees them, address the paper's second
//! open problem. A disturbance that hardware metrics do not show would show there.
//!
//! **Leaves out** counters compiled into the source. The simulated runs charge those exactly.

use super::choice::Called;
use super::extent::Extent;
use super::findings::{Measured, Native, Point};
use super::subject::{Bench, Subject};
use super::trace::{input, series};
use crate::layout::{fix_environment, paddings, Spread};
use anyhow::{bail, Context, Result};
use measure::perturb::{perturb, Options};
use measure::rank::spearman;
use measure::trace::{decode, Trace};
use present::order::SortRows;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Whether a way of measuring counts software metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    Nothing,
    Functions,
}

/// A way to measure.
#[derive(Debug)]
struct Mechanism {
    name: &'static str,
    options: &'static [&'static str],
    counts: Counts,
}

/// The first is the baseline.
const MECHANISMS: &[Mechanism] = &[
    Mechanism { name: "kernel alone", options: &["--engine", "native"], counts: Counts::Nothing },
    Mechanism {
        name: "signal handler",
        options: &["--engine", "native", "--collector", "signal"],
        counts: Counts::Nothing,
    },
    Mechanism { name: "probes", options: &["--engine", "probe"], counts: Counts::Functions },
    Mechanism {
        name: "probes and signal handler",
        options: &["--engine", "probe", "--collector", "signal"],
        counts: Counts::Functions,
    },
    Mechanism { name: "uprobes", options: &["--engine", "uprobe"], counts: Counts::Functions },
];

/// The most calls that a run counts: an uprobe is a trap of up to 20 microseconds on a virtual
/// machine.
const CALLS_MAX: u64 = 100_000;

/// No record is shorter.
const INTERVAL_MIN_MICROSECONDS: u64 = 1000;

/// Measures a program in all ways; `chosen` are its metrics.
///
/// # Errors
/// When the program itself cannot be run.
pub(super) fn native(
    shop: &Path,
    subject: &'static Subject,
    extent: &Extent,
    chosen: &[Called],
) -> Result<Native> {
    let bench = Bench::new(shop, subject, extent.native_size(subject))?;
    let interval_microseconds = interval(&bench, extent.records)?;
    let metrics = counted(&bench, chosen, interval_microseconds);
    let mut traces: Vec<Result<Vec<Trace>>> = MECHANISMS.iter().map(|_| Ok(Vec::new())).collect();
    // Mechanisms take turns, so that a machine that slows down slows all of them.
    for padding_bytes in paddings(extent.rounds) {
        for (mechanism, traces) in MECHANISMS.iter().zip(&mut traces) {
            let Ok(known) = traces else { continue };
            match trace(&bench, mechanism, &metrics, interval_microseconds, padding_bytes) {
                Ok(trace) => known.push(trace),
                Err(error) => *traces = Err(error),
            }
        }
    }
    let baseline = match &traces[0] {
        Ok(baseline) => baseline.clone(),
        Err(error) => bail!("{error:#}"),
    };
    let measured = MECHANISMS.iter().zip(traces).map(|(mechanism, traces)| match traces {
        Ok(traces) => measured(mechanism, &metrics, &baseline, &traces),
        Err(error) => refused(mechanism, &format!("{error:#}")),
    });
    let measured = measured.collect();
    Ok(Native { interval_microseconds, rounds: extent.rounds, metrics, measured })
}

/// The metrics that all ways can count: from the rarest on, as long as a run has few calls of them.
///
/// A run with probes counts first: a larger input calls other functions more often, and a function
/// whose first bytes may be the target of a jump takes no probe, so its column has no sum. Where
/// there are no probes at all, the simulated run's calls decide.
fn counted(bench: &Bench, chosen: &[Called], interval_microseconds: u64) -> Vec<String> {
    let all: Vec<String> = chosen.iter().map(|called| called.metric.clone()).collect();
    let known = trace(bench, &MECHANISMS[2], &all, interval_microseconds, 0).ok();
    let calls = |called: &Called| match &known {
        Some(trace) => trace.sum(trace.position(&called.metric)?),
        None => Some(called.calls),
    };
    let mut by_calls: Vec<(u64, &String)> =
        chosen.iter().filter_map(|called| Some((calls(called)?, &called.metric))).collect();
    by_calls.sort_rows(Ord::cmp);
    let mut sum = 0;
    let few = by_calls.into_iter().take_while(|(calls, _)| {
        sum += calls;
        sum <= CALLS_MAX
    });
    few.map(|(_, metric)| metric.clone()).collect()
}

/// The interval at which a run has about this many records.
fn interval(bench: &Bench, records: u64) -> Result<u64> {
    let mut command = Command::new(bench.program());
    command.args(bench.subject.arguments).current_dir(bench.fresh(0)?);
    fix_environment(&mut command, 0);
    command.stdin(input(bench)?).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    command.status().with_context(|| format!("cannot run {}", bench.subject.name))?;
    let microseconds = started.elapsed().as_micros() as u64;
    Ok((microseconds / records).max(INTERVAL_MIN_MICROSECONDS))
}

fn trace(
    bench: &Bench,
    mechanism: &Mechanism,
    metrics: &[String],
    interval_microseconds: u64,
    padding_bytes: usize,
) -> Result<Trace> {
    let folder = bench.fresh(0)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("trace").args(mechanism.options).args(["-o", "native.lft"]);
    command.arg(format!("--every={interval_microseconds}us"));
    if mechanism.counts == Counts::Functions && !metrics.is_empty() {
        command.args(["--software", &metrics.join(","), "--layout", "page"]);
    }
    command.arg("--").arg(bench.program()).args(bench.subject.arguments).current_dir(&folder);
    fix_environment(&mut command, padding_bytes);
    let output = command.stdin(input(bench)?).stdout(Stdio::null()).output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{}", stderr.lines().next().unwrap_or("lightfoot trace failed"));
    }
    let bytes = std::fs::read(folder.join("native.lft")).context("the trace was not written")?;
    Ok(decode(&bytes)?)
}

/// Seconds from the first record to the end of the last.
fn seconds(trace: &Trace) -> f64 {
    trace.records.iter().map(|record| record.dt).sum::<u64>() as f64 / 1e9
}

fn measured(mechanism: &Mechanism, metrics: &[String], baseline: &[Trace], traces: &[Trace]) -> Measured {
    let times: Vec<f64> = traces.iter().map(seconds).collect();
    let first = traces.first();
    let has = |metric: &&String| first.is_some_and(|trace| trace.position(metric).is_some());
    // A mechanism may not count some metrics; calls and relations are those of the others.
    let present: Vec<&String> = metrics.iter().filter(has).collect();
    let calls = present.iter().filter_map(|&metric| {
        let trace = first?;
        Some((metric.clone(), trace.sum(trace.position(metric)?)?))
    });
    // The baseline is not compared with itself: it would be undisturbed by definition.
    let compared = match mechanism.name == MECHANISMS[0].name {
        true => Err("it is the baseline".into()),
        false => perturb(baseline, traces, &Options::default())
            .map(|report| Point::of(present.len(), "page", &report, Vec::new()))
            .map_err(|error| error.to_string()),
    };
    Measured {
        mechanism: mechanism.name.into(),
        refused: None,
        seconds: Spread::of(&times),
        records: first.map_or(0, |trace| trace.records.len()),
        missed_ticks: traces
            .iter()
            .flat_map(|trace| &trace.records)
            .map(|record| u64::from(record.missed_ticks))
            .sum(),
        calls: calls.collect(),
        relations: relations(&present, traces),
        compared,
    }
}

/// Correlations between the three most frequent metrics.
fn relations(metrics: &[&String], traces: &[Trace]) -> Vec<(String, Spread)> {
    let last = &metrics[metrics.len().saturating_sub(3)..];
    let pairs = (0..last.len()).flat_map(|i| (i + 1..last.len()).map(move |j| (last[i], last[j])));
    let relation = |(one, other): (&String, &String)| {
        let rho = |trace: &Trace| spearman(&series(trace, one), &series(trace, other));
        let known: Option<Vec<f64>> = traces.iter().map(rho).collect();
        Some((format!("{one} with {other}"), Spread::of(&known?)?))
    };
    pairs.filter_map(relation).collect()
}

fn refused(mechanism: &Mechanism, reason: &str) -> Measured {
    Measured {
        mechanism: mechanism.name.into(),
        refused: Some(reason.into()),
        seconds: None,
        records: 0,
        missed_ticks: 0,
        calls: BTreeMap::new(),
        relations: Vec::new(),
        compared: Err(reason.into()),
    }
}
