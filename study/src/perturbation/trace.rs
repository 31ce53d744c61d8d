//! Simulated runs: each a `lightfoot trace` of a program with some of its functions counted.
//!
//! The environment is fixed but for one variable, whose length is the layout: a different one for
//! every sample, and the same ones on both sides of a comparison. Nothing here is random: repeats
//! of a run are equal up to the few instructions with which a program prints the time.

use super::subject::Bench;
use crate::layout::{fix_environment, paddings};
use anyhow::{bail, Context, Result};
use measure::trace::{decode, Trace};
use present::order::SortRows;
use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The machine, of the paper's time.
pub(super) const MACHINE: &str = "xeon-dp";

/// What is recorded: the paper's five.
pub(super) const METRICS: &str = "instructions,l1d-misses,l2-misses,dtlb-misses,branch-misses";

/// Where counters lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    /// Eight to a line, as a compiler puts global variables.
    Packed,
    /// A page each: all in one set of the first level.
    Page,
}

impl Spacing {
    pub(super) fn name(self) -> &'static str {
        match self {
            Spacing::Packed => "packed",
            Spacing::Page => "page",
        }
    }
}

/// How a program runs.
#[derive(Clone, Debug)]
pub(super) struct Run<'a> {
    pub(super) bench: &'a Bench,
    pub(super) interval_cycles: u64,
    /// Functions that are counted, at the cost of a probe.
    pub(super) charged: Vec<String>,
    /// Functions that the simulator counts without a cost.
    pub(super) uncharged: Vec<String>,
    pub(super) spacing: Spacing,
    pub(super) padding_bytes: usize,
    /// Seed of simulated noise of an operating system.
    pub(super) noise: Option<u64>,
    /// Hardware metrics.
    pub(super) hardware: &'static str,
}

impl<'a> Run<'a> {
    /// A run without instrumentation, in the first layout.
    pub(super) fn plain(bench: &'a Bench, interval_cycles: u64) -> Run<'a> {
        Run {
            bench,
            interval_cycles,
            charged: Vec::new(),
            uncharged: Vec::new(),
            spacing: Spacing::Page,
            padding_bytes: 0,
            noise: None,
            hardware: METRICS,
        }
    }

    /// The run in each of `count` layouts.
    pub(super) fn in_layouts(&self, count: usize) -> Vec<Run<'a>> {
        paddings(count).into_iter().map(|padding_bytes| Run { padding_bytes, ..self.clone() }).collect()
    }

    /// Makes the run; `number` tells its folder from those of runs beside it.
    fn trace(&self, number: usize) -> Result<Trace> {
        let (subject, folder) = (self.bench.subject, self.bench.fresh(number)?);
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["trace", "--engine", "simulated", "--machine", MACHINE, "--hardware", self.hardware]);
        command.args(["-o", "trace.lft", &format!("--every={}cycles", self.interval_cycles)]);
        command.args(["--layout", self.spacing.name()]);
        for (option, metrics) in [("--software", &self.charged), ("--uncharged", &self.uncharged)] {
            if !metrics.is_empty() {
                command.args([option, &metrics.join(",")]);
            }
        }
        if let Some(seed) = self.noise {
            command.arg(format!("--noise={seed}"));
        }
        command.arg("--").arg(self.bench.program()).args(subject.arguments).current_dir(&folder);
        fix_environment(&mut command, self.padding_bytes);
        let output = command.stdin(input(self.bench)?).stdout(Stdio::null()).output()?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!("lightfoot trace of {} failed: {}", subject.name, stderr.trim());
        }
        let bytes = std::fs::read(folder.join("trace.lft")).context("the trace was not written")?;
        Ok(decode(&bytes)?)
    }
}

/// The standard input of a program.
pub(super) fn input(bench: &Bench) -> Result<Stdio> {
    match bench.subject.stdin {
        Some(name) => Ok(File::open(bench.folder.join(name))?.into()),
        None => Ok(Stdio::null()),
    }
}

/// The traces of runs, in their order; as many at a time as there are processors, since nothing in
/// them depends on time.
///
/// # Errors
/// When one cannot be run or read.
pub(super) fn traces(runs: &[Run<'_>]) -> Result<Vec<Trace>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = runs.get(index) else { return done };
            done.push((index, run.trace(index)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, Result<Trace>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        others.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).chain(own).collect()
    });
    done.sort_rows_by_key(|(index, _)| *index);
    if done.len() < runs.len() {
        bail!("{} of {} runs were not made", runs.len() - done.len(), runs.len());
    }
    done.into_iter().map(|(_, trace)| trace).collect()
}

/// The series of a metric; empty if the trace has none of that name.
pub(super) fn series(trace: &Trace, metric: &str) -> Vec<f64> {
    trace.position(metric).map_or_else(Vec::new, |index| trace.series(index))
}
