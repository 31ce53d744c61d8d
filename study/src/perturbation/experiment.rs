//! Runs of the study: each a `lightfoot trace` of a build in an environment of a chosen size.
//!
//! The environment holds one variable and nothing else, so that a run is the same whoever starts
//! it. Its size is the layout: a different one for every sample, and the same ones on both sides of
//! a comparison. Nothing here is random: repeats of a run would be equal.

use super::program::{build, Size, Spacing, Subject};
use crate::workshop::Workshop;
use anyhow::{bail, Context, Result};
use measure::perturb::{perturb, Options, Report};
use measure::rank::spearman;
use measure::trace::{decode, Trace};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The machine, of the paper's time.
pub(super) const MACHINE: &str = "xeon-dp";

/// What is recorded: the paper's five.
pub(super) const METRICS: &str = "instructions,l1d-misses,l2-misses,dtlb-misses,branch-misses";

/// Bytes by which one environment is larger than the one before it: no multiple of a line or a
/// page.
const PADDING_BYTES: usize = 528;

/// A run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    pub(super) subject: &'a Subject,
    pub(super) size: Size,
    pub(super) counters: usize,
    pub(super) spacing: Spacing,
    /// How often the environment is padded.
    pub(super) padding: usize,
    /// Seed of simulated noise of an operating system.
    pub(super) noise: Option<u64>,
}

/// The traces of runs, in their order; as many at a time as there are processors, since nothing in
/// them depends on time.
///
/// # Errors
/// When one cannot be compiled, run or read.
pub(super) fn traces_of(shop: &Workshop, runs: &[Run<'_>]) -> Result<Vec<Trace>> {
    let folders: Vec<PathBuf> =
        runs.iter().map(|run| build(shop, run.subject, run.counters, run.spacing)).collect::<Result<_>>()?;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let (Some(run), Some(folder)) = (runs.get(index), folders.get(index)) else { return done };
            done.push((index, trace(folder, run, index)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, Result<Trace>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        others.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).chain(own).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    if done.len() < runs.len() {
        bail!("{} of {} runs were not made", runs.len() - done.len(), runs.len());
    }
    done.into_iter().map(|(_, trace)| trace).collect()
}

/// The trace of a run of the program in `folder`.
fn trace(folder: &Path, run: &Run<'_>, number: usize) -> Result<Trace> {
    let file = format!("trace-{number}.lft");
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["trace", "--engine", "simulated", "--machine", MACHINE, "--hardware", METRICS]);
    command.args(["-o", &file, &format!("--every={}cycles", run.size.interval_cycles)]);
    command.args(["--uncharged", &run.subject.uncharged.join(",")]);
    if let Some(seed) = run.noise {
        command.arg(format!("--noise={seed}"));
    }
    command.args(["--", "./program", &run.size.argument.to_string()]).current_dir(folder);
    command.env_clear().env("PADDING", "x".repeat(run.padding * PADDING_BYTES));
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("lightfoot trace of {} failed: {}", run.subject.name, stderr.trim());
    }
    let bytes = std::fs::read(folder.join(&file)).context("the trace was not written")?;
    Ok(decode(&bytes)?)
}

/// One run for each of `paddings` environments.
pub(super) fn traces(shop: &Workshop, run: &Run<'_>, paddings: usize) -> Result<Vec<Trace>> {
    traces_of(shop, &(0..paddings).map(|padding| Run { padding, ..*run }).collect::<Vec<_>>())
}

/// A software metric with a hardware metric, the former counted without a charge: means over all
/// layouts.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    pub(super) software: &'static str,
    pub(super) hardware: String,
    pub(super) baseline: f64,
    pub(super) run: f64,
}

/// All relations of a program's uncharged metrics; those that are constant somewhere are left out.
fn relations(subject: &'static Subject, baseline: &[Trace], runs: &[Trace]) -> Vec<Relation> {
    let correlation = |trace: &Trace, software: &str, hardware: &str| {
        spearman(&trace.series(trace.position(software)?), &trace.series(trace.position(hardware)?))
    };
    let mean = |traces: &[Trace], software: &str, hardware: &str| -> Option<f64> {
        let all: Option<Vec<f64>> =
            traces.iter().map(|trace| correlation(trace, software, hardware)).collect();
        all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
    };
    let pairs = subject.uncharged.iter().flat_map(|&software| METRICS.split(',').map(move |h| (software, h)));
    let relation = |(software, hardware): (&'static str, &str)| {
        let (baseline, run) = (mean(baseline, software, hardware)?, mean(runs, software, hardware)?);
        Some(Relation { software, hardware: hardware.into(), baseline, run })
    };
    pairs.filter_map(relation).collect()
}

/// A number of counters, and what it did.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) counters: usize,
    pub(super) report: Report,
    /// What hardware metrics do not show: relations with software metrics.
    pub(super) relations: Vec<Relation>,
    /// The run in the smallest environment.
    pub(super) first: Trace,
}

impl Point {
    /// Added instructions in percent.
    pub(super) fn added(&self) -> f64 {
        100.0 * self.report.added_instructions.unwrap_or(0.0)
    }
}

/// A program over growing numbers of counters.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) subject: &'static Subject,
    pub(super) size: Size,
    pub(super) baseline: Vec<Trace>,
    pub(super) points: Vec<Point>,
    /// All counters, packed.
    pub(super) packed: Point,
}

/// Measures a curve at `counters`, with as many layouts as `paddings`.
pub(super) fn curve(
    shop: &Workshop,
    subject: &'static Subject,
    size: Size,
    counters: &[usize],
    paddings: usize,
) -> Result<Curve> {
    let run = Run { subject, size, counters: 0, spacing: Spacing::Page, padding: 0, noise: None };
    let baseline = traces(shop, &run, paddings)?;
    let point = |counters: usize, spacing| -> Result<Point> {
        let runs = traces(shop, &Run { counters, spacing, ..run }, paddings)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let report = perturb(&baseline, &runs, &Options { threads, ..Options::default() })?;
        let relations = relations(subject, &baseline, &runs);
        let first = runs.into_iter().next().context("there is at least one layout")?;
        Ok(Point { counters, report, relations, first })
    };
    let points = counters.iter().map(|&counters| point(counters, Spacing::Page)).collect::<Result<_>>()?;
    let packed = point(super::program::COUNTERS, Spacing::Packed)?;
    Ok(Curve { subject, size, baseline, points, packed })
}
