//! The simulated experiment: calibration, baselines, one point for every number of metrics, and the
//! signals of Figure 5.
//!
//! Each step of the journal takes minutes; a typical step is one point of one program. When a study
//! is resumed, the baselines of a program are traced again only if one of its points is missing.
//! They are not stored, because traces are large and these runs repeat exactly.

use super::choice::{called, choose};
use super::extent::Extent;
use super::findings::{Baseline, Calibration, Curve, Kind, Point, Relation, Signals, L1_L2, L1_TLB};
use super::subject::{Bench, Subject};
use super::trace::{series, traces, Run, Spacing, METRICS};
use crate::journal::Journal;
use anyhow::{Context, Result};
use measure::perturb::{perturb, Options};
use measure::rank::spearman;
use measure::trace::Trace;
use std::cell::OnceCell;
use std::path::Path;

/// An interval that no run fills: one record, the program's sums.
const WHOLE_RUN_CYCLES: u64 = 1_000_000_000_000;

/// A program, its calibration, and its baselines as soon as a step needs them.
struct Experiment<'a> {
    bench: &'a Bench,
    calibration: Calibration,
    layouts: usize,
    baselines: OnceCell<Vec<Trace>>,
}

/// Measures a program.
///
/// # Errors
/// When it is not installed, or a run fails.
pub(super) fn curve(
    shop: &Path,
    subject: &'static Subject,
    extent: &Extent,
    journal: &mut Journal,
) -> Result<Curve> {
    let name = subject.name;
    let (size, seconds) = extent.size(subject);
    let bench = Bench::new(shop, subject, size)?;
    let calibration = journal.step(&format!("{name}: calls of all functions"), 2.0 * seconds, || {
        calibrate(&bench, extent.records)
    })?;
    let (layouts, baselines) = (extent.layouts, OnceCell::new());
    let experiment = Experiment { bench: &bench, calibration, layouts, baselines };
    // Baselines differ by layout or by noise. Two runs at a time take two thirds of the time of one
    // after the other.
    let runs = (extent.baselines * 2) as f64 * seconds / 1.5;
    let baseline =
        journal.step(&format!("{name}: baselines"), runs, || experiment.baseline(extent.baselines))?;
    let point_seconds = extent.point_seconds(seconds);
    // Every number of metrics is one step: a study that is interrupted continues at the next
    // number.
    let mut points = Vec::new();
    for metrics in extent.counters(experiment.calibration.chosen.len()) {
        let step = format!("{name}: {metrics} metrics");
        points.push(journal.step(&step, point_seconds, || experiment.point(metrics, Spacing::Page))?);
    }
    let all = experiment.calibration.chosen.len();
    // The counters of the other points lie a page apart, in one set of L1. This point shows the
    // spacing of a compiler, eight counters to a line.
    let packed = match all {
        0 => None,
        _ => Some(journal.step(&format!("{name}: {all} metrics, packed"), point_seconds, || {
            experiment.point(all, Spacing::Packed)
        })?),
    };
    // Figure 5 shows the signals on both sides of the largest change. Without any change it has
    // nothing to show.
    let signals = match largest_step(&points) {
        Some(step) => {
            Some(journal.step(&format!("{name}: signals"), 2.0 * seconds, || experiment.signals(step))?)
        }
        None => None,
    };
    let calibration = experiment.calibration;
    Ok(Curve { subject, size, calibration, baseline, points, packed, signals, native: None })
}

/// Counts the calls of all functions and decides the metrics and the interval.
fn calibrate(bench: &Bench, records: u64) -> Result<Calibration> {
    let run = Run {
        uncharged: vec![bench.every_function()],
        hardware: "instructions,cycles",
        ..Run::plain(bench, WHOLE_RUN_CYCLES)
    };
    let trace = traces(&[run])?.into_iter().next().context("there is one run")?;
    let sum = |metric: &str| trace.position(metric).and_then(|index| trace.sum(index));
    let (instructions, cycles) =
        sum("instructions").zip(sum("cycles")).context("the machine counts instructions and cycles")?;
    let chosen = choose(called(&trace), instructions, records);
    Ok(Calibration { instructions, interval_cycles: cycles / records, chosen })
}

/// L1 with L2, L1 with the TLB.
fn correlations(trace: &Trace) -> [Option<f64>; 2] {
    [L1_L2, L1_TLB].map(|[a, b]| spearman(&series(trace, a), &series(trace, b)))
}

impl Experiment<'_> {
    /// A run with the first `metrics` metrics.
    fn run(&self, metrics: usize, spacing: Spacing) -> Run<'_> {
        let charged = self.calibration.chosen[..metrics].iter().map(|called| called.metric.clone());
        let plain = Run::plain(self.bench, self.calibration.interval_cycles);
        Run { charged: charged.collect(), uncharged: self.uncharged(), spacing, ..plain }
    }

    /// Metrics that all runs count without a charge, the truth about relations with software
    /// metrics: the most frequent of the chosen ones, and the one in the middle.
    ///
    /// A column has another name if it is not charged, so the file of the function is left out.
    fn uncharged(&self) -> Vec<String> {
        let chosen = &self.calibration.chosen;
        let places = [chosen.len() / 2, chosen.len().wrapping_sub(1)];
        let mut names: Vec<String> =
            places.iter().filter_map(|&at| chosen.get(at)).map(|called| renamed(&called.metric)).collect();
        names.dedup();
        names
    }

    fn baselines(&self) -> Result<&[Trace]> {
        if self.baselines.get().is_none() {
            let run = Run { charged: Vec::new(), ..self.run(0, Spacing::Page) };
            let traces = traces(&run.in_layouts(self.layouts))?;
            return Ok(self.baselines.get_or_init(|| traces));
        }
        Ok(self.baselines.get().map_or(&[], Vec::as_slice))
    }

    fn baseline(&self, count: usize) -> Result<Baseline> {
        let plain = Run::plain(self.bench, self.calibration.interval_cycles);
        let layouts = traces(&plain.in_layouts(count))?;
        let noisy: Vec<Run> =
            (1..=count as u64).map(|seed| Run { noise: Some(seed), ..plain.clone() }).collect();
        let noise = traces(&noisy)?;
        let first = layouts.first().context("there is at least one layout")?;
        let median = |name: &str| {
            let mut values = series(first, name);
            values.sort_unstable_by(f64::total_cmp);
            (name.to_owned(), values.get(values.len() / 2).copied().unwrap_or(0.0))
        };
        Ok(Baseline {
            records: first.records.len(),
            medians: METRICS.split(',').map(median).collect(),
            layouts: layouts.iter().map(correlations).collect(),
            noise: noise.iter().map(correlations).collect(),
        })
    }

    fn point(&self, metrics: usize, spacing: Spacing) -> Result<Point> {
        let baselines = self.baselines()?;
        let runs = traces(&self.run(metrics, spacing).in_layouts(self.layouts))?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let report = perturb(baselines, &runs, &Options { threads, ..Options::default() })?;
        let relations = self.relations(baselines, &runs);
        Ok(Point::of(metrics, spacing.name(), &report, relations))
    }

    /// All relations of uncharged metrics with hardware metrics; those that are constant somewhere
    /// are left out.
    fn relations(&self, baselines: &[Trace], runs: &[Trace]) -> Vec<Relation> {
        let mean = |traces: &[Trace], software: &str, hardware: &str| -> Option<f64> {
            let one = |trace: &Trace| spearman(&series(trace, software), &series(trace, hardware));
            let all: Option<Vec<f64>> = traces.iter().map(one).collect();
            all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
        };
        let uncharged = self.uncharged();
        let pairs = uncharged.iter().flat_map(|software| METRICS.split(',').map(move |hw| (software, hw)));
        let relation = |(software, hardware): (&String, &str)| {
            let (baseline, run) = (mean(baselines, software, hardware)?, mean(runs, software, hardware)?);
            Some(Relation { software: software.clone(), hardware: hardware.into(), baseline, run })
        };
        pairs.filter_map(relation).collect()
    }

    /// Traces the two runs of Figure 5.
    fn signals(&self, ([before, after], correlations): ([usize; 2], [f64; 2])) -> Result<Signals> {
        let both = traces(&[self.run(before, Spacing::Page), self.run(after, Spacing::Page)])?;
        let added = self.calibration.chosen[after - 1].metric.clone();
        let of = |metric: &str| [series(&both[0], metric), series(&both[1], metric)];
        let software = series(&both[1], &added);
        Ok(Signals {
            metrics: [before, after],
            correlations,
            added,
            l1: of(L1_L2[0]),
            l2: of(L1_L2[1]),
            software,
        })
    }
}

/// The metric with a name that a charged column has not: `fn:FILE!NAME` and `fn:NAME` are the same
/// function.
fn renamed(metric: &str) -> String {
    let name = metric.strip_prefix("fn:").unwrap_or(metric);
    format!("fn:{}", name.split_once('!').map_or(name, |(_, name)| name))
}

/// The numbers of metrics between which L1 with L2 changes most, and that correlation at both.
fn largest_step(points: &[Point]) -> Option<([usize; 2], [f64; 2])> {
    let first = points.first()?.find(Kind::Inner, L1_L2)?.baseline?;
    let rest = points.iter().filter_map(|point| Some((point.metrics, point.find(Kind::Inner, L1_L2)?.run?)));
    let all: Vec<(usize, f64)> = std::iter::once((0, first)).chain(rest).collect();
    let size = |pair: &&[(usize, f64)]| (pair[1].1 - pair[0].1).abs();
    let pair = all.windows(2).max_by(|a, b| size(a).total_cmp(&size(b)))?;
    Some(([pair[0].0, pair[1].0], [pair[0].1, pair[1].1]))
}

#[cfg(test)]
mod tests {
    use super::super::findings::{Answer, Comparison};
    use super::*;

    fn point(metrics: usize, baseline: f64, run: f64) -> Point {
        let comparison = Comparison {
            kind: Kind::Inner,
            metrics: L1_L2.map(String::from),
            baseline: Some(baseline),
            run: Some(run),
            differences: None,
            p: None,
            answer: Answer::Disturbed,
            sentence: String::new(),
        };
        Point {
            metrics,
            spacing: "page".into(),
            added_percent: 0.0,
            comparisons: vec![comparison],
            relations: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_largest_step_may_lie_before_the_first_point() {
        let points = [point(3, 0.8, 0.4), point(5, 0.8, 0.3)];
        assert_eq!(largest_step(&points), Some(([0, 3], [0.8, 0.4])));
        let points = [point(3, 0.8, 0.7), point(5, 0.8, 0.2)];
        assert_eq!(largest_step(&points), Some(([3, 5], [0.7, 0.2])));
        assert_eq!(largest_step(&[]), None);
    }

    #[test]
    fn an_uncharged_column_has_another_name() {
        assert_eq!(renamed("fn:libbz2!BZ2_bzWrite"), "fn:BZ2_bzWrite");
        assert_eq!(renamed("fn:vax+0x10"), "fn:vax+0x10");
    }
}
