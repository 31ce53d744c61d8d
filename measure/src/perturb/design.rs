//! Decides which traces form a sample, before any number is compared.
//!
//! **The problem.** Layout alone changes correlations (Mytkowicz et al. 2009): ten runs at one
//! layout are not ten independent samples of the effect of instrumentation.
//!
//! **The idea.** Runs at one layout (same layout seed and environment) are one sample; they are
//! averaged. Then:
//!
//! ```text
//! baselines at 1 2 3, runs at 1 2 3    compared pair by pair, at equal layouts
//! baselines at 1 2 3, runs at 4 5 6    compared as two groups
//! baselines at 1 1 1, runs at 1 1 1    each run a sample; the verdict holds for that layout alone
//! baselines at 1 1 1, runs at 2 2 2    instrumentation and layout cannot be told apart: said so
//! ```
//!
//! **Invariant.** Baselines come before runs in every list of samples.

use crate::trace::{Source, Trace};

/// The memory layout of a run, as far as its header states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunLayout {
    seed: Option<u64>,
    environment_bytes: Option<u64>,
    /// The layout of a trace. Without a seed a kernel chooses addresses at random; in a simulated
    /// run nothing is random.
    chance: bool,
}

impl RunLayout {
    fn of(trace: &Trace) -> RunLayout {
        let (seed, environment_bytes) = (trace.header.layout_seed, trace.header.environment_bytes);
        RunLayout { seed, environment_bytes, chance: seed.is_none() && trace.header.engine != "simulated" }
    }
}

/// The number of samples and their pairing; baselines come before runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Design {
    pub(super) baselines: usize,
    pub(super) runs: usize,
    /// Pairs of baseline and run at the same layout, if all samples have a partner and the pairs
    /// are enough for a verdict.
    pub(super) pairs: Option<Vec<(usize, usize)>>,
}

impl Design {
    pub(super) fn samples(&self) -> usize {
        self.baselines + self.runs
    }

    /// For each sample the other one of its pair; `None` if samples are not paired.
    pub(super) fn partners(&self) -> Vec<Option<usize>> {
        let mut partners = vec![None; self.samples()];
        for &(baseline, run) in self.pairs.iter().flatten() {
            (partners[baseline], partners[run]) = (Some(run), Some(baseline));
        }
        partners
    }
}

/// The unit of sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleUnit {
    Layout,
    Trace,
}

/// The indices of the traces that form one sample.
pub(super) type TraceGroup = Vec<usize>;

/// The design of an experiment, and notes for the reader of its report.
#[derive(Debug)]
pub(super) struct Arrangement {
    pub(super) design: Design,
    /// The samples: those of baselines, then those of runs. Indices count through both lists of
    /// traces.
    pub(super) samples: Vec<TraceGroup>,
    /// Why a difference may have another cause than instrumentation, if it may.
    pub(super) layout_bias: Option<String>,
    pub(super) notes: Vec<String>,
}

/// Arranges traces into samples.
pub(super) fn plan(baseline: &[Trace], run: &[Trace], alpha: f64) -> Arrangement {
    let mut notes = Vec::new();
    // The layout of each run, as far as its header states it.
    let places: Vec<RunLayout> = baseline.iter().chain(run).map(RunLayout::of).collect();
    let same = |places: &[RunLayout]| places.windows(2).all(|pair| pair[0] == pair[1]);
    let one_place = same(&places) && places.len() > 1;
    // With one layout on each side only repeats are left as samples; if the two layouts differ, the
    // report says that the comparison is biased.
    let repeats = same(&places[..baseline.len()]) && same(&places[baseline.len()..]);
    let unit = if repeats { SampleUnit::Trace } else { SampleUnit::Layout };
    // Baselines and runs are grouped by themselves.
    let (first, second): (Vec<usize>, Vec<usize>) = (0..places.len()).partition(|&i| i < baseline.len());
    let [baselines, runs] = [first, second].map(|side| group(&side, &places, unit));
    if one_place && !places[0].chance {
        notes.push(
            "all traces are of one layout: the verdict holds for it alone; trace with several layout seeds or environments to include that spread"
                .into(),
        );
    }
    let pairs = if repeats { None } else { pair(&baselines, &runs, &places) };
    // Too few pairs can never be significant: then the sides are compared as two groups.
    let pairs = pairs.filter(|pairs| 2.0 / 2_f64.powi(pairs.len() as i32) <= alpha);
    let design = Design { baselines: baselines.len(), runs: runs.len(), pairs };
    if design.pairs.is_some() {
        notes.push("baselines and runs are compared pair by pair, at the same layout".into());
    }
    let layout_bias = layout_bias(baseline, run);
    Arrangement { design, samples: baselines.into_iter().chain(runs).collect(), layout_bias, notes }
}

/// Groups the traces of one side into samples: traces at one known layout are one sample. A trace
/// is a sample of its own if its layout is unknown, or if `unit` says that repeats are samples.
fn group(side: &[usize], places: &[RunLayout], unit: SampleUnit) -> Vec<TraceGroup> {
    let mut samples: Vec<TraceGroup> = Vec::new();
    for &index in side {
        let same = |sample: &&mut TraceGroup| places[sample[0]] == places[index];
        match samples.iter_mut().find(same) {
            Some(sample) if !places[index].chance && unit == SampleUnit::Layout => sample.push(index),
            _ => samples.push(vec![index]),
        }
    }
    samples
}

/// Every baseline's partner at the same known layout.
fn pair(baselines: &[TraceGroup], runs: &[TraceGroup], places: &[RunLayout]) -> Option<Vec<(usize, usize)>> {
    let partner = |(index, baseline): (usize, &TraceGroup)| {
        let place = places[baseline[0]];
        let run = runs.iter().position(|run| !place.chance && places[run[0]] == place)?;
        Some((index, baselines.len() + run))
    };
    (baselines.len() == runs.len()).then(|| baselines.iter().enumerate().map(partner).collect()).flatten()
}

/// The reason why a difference between the sides may be an effect of layout, if there is one.
fn layout_bias(baseline: &[Trace], run: &[Trace]) -> Option<String> {
    let software =
        |trace: &Trace| trace.header.metrics.iter().any(|metric| metric.source == Source::Software);
    if let Some(sentence) = only_place(baseline, run) {
        return Some(sentence);
    }
    // Instrumentation in the source changes the build and appears in no metric.
    let build = |trace: &Trace| trace.header.build_id.clone();
    let one_build = baseline.iter().chain(run).all(|trace| Some(build(trace)) == baseline.first().map(build));
    let none = one_build && !run.iter().any(software) && !baseline.iter().any(software);
    none.then(|| "no run carries instrumentation, so what differs is layout or noise".into())
}

fn only_place(baseline: &[Trace], run: &[Trace]) -> Option<String> {
    let single = |side: &[Trace]| {
        let first = RunLayout::of(side.first()?);
        side.iter().all(|trace| RunLayout::of(trace) == first).then_some(first)
    };
    let has = |side: &[Trace], place: RunLayout| side.iter().any(|trace| RunLayout::of(trace) == place);
    let (of_baselines, of_runs) = (single(baseline), single(run));
    let lonely = of_baselines.is_some_and(|place| !has(run, place))
        || of_runs.is_some_and(|place| !has(baseline, place));
    if !lonely {
        return None;
    }
    let bytes = |side: &[Trace]| describe(side.iter().map(|trace| trace.header.environment_bytes));
    let seeds = |side: &[Trace]| describe(side.iter().map(|trace| trace.header.layout_seed));
    Some(match bytes(baseline) == bytes(run) {
        false => format!(
            "baselines ran with an environment of {} bytes and runs with {}, which alone can do this (layout bias): trace both with the same",
            bytes(baseline),
            bytes(run)
        ),
        true => format!(
            "baselines ran at layout {} and runs at layout {}, which alone can do this (layout bias): trace both at the same layouts",
            seeds(baseline),
            seeds(run)
        ),
    })
}

fn describe(values: impl Iterator<Item = Option<u64>>) -> String {
    let mut values: Vec<Option<u64>> = values.collect();
    values.sort_unstable();
    values.dedup();
    let shown: Vec<String> =
        values.iter().map(|value| value.map_or("unknown".into(), |value| value.to_string())).collect();
    shown.join(", ")
}
