//! Did instrumentation disturb the program? Relations between metrics, with and without it.
//!
//! *Inner* perturbation compares, for every pair of hardware metrics, their Spearman correlation within instrumented runs with that within baseline runs. *Outer*
//! perturbation aligns traces and compares, for every hardware metric, its correlation with itself between runs and baselines with that among baselines. Both are tested
//! against the variation between baselines, by relabelling (`permute`), over the whole family of comparisons, and both need an effect of a size. ρ is signed: the
//! paper's |ρ| hides a change of sign.
//!
//! What counts as a sample is decided first (`design`); the words are chosen last (`verdict`). Deliberately absent: z-scores, which mislead where the
//! spread is tiny, and tests that take the records of one trace for independent (Fisher's), which find differences between any two runs.
//! Source: Mytkowicz et al. 2007, sections 2 and 3.

mod design;
mod outer;
mod permute;
mod verdict;

use crate::align::Band;
use crate::rank;
use crate::trace::Trace;
use crate::Error;
use design::Plan;
use serde::Serialize;
use verdict::{decide, Evidence};

/// What is asked of the statistics.
#[derive(Clone, Debug)]
pub struct Options {
    /// Error of the family of comparisons: how often something undisturbed may be called disturbed.
    pub alpha: f64,
    /// Differences of correlation that are smaller do not matter.
    pub effect: f64,
    /// Where alignments may go.
    pub band: Band,
    /// Of relabellings, when they are drawn.
    pub seed: u64,
    /// Threads that align.
    pub threads: usize,
    /// Whether traces are aligned at all.
    pub scope: Scope,
}

/// Which perturbation is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Inner only.
    Inner,
    /// Inner and outer.
    InnerAndOuter,
}

impl Default for Options {
    fn default() -> Options {
        let (alpha, effect, band) = (0.05, 0.1, Band::Slanted(0.1));
        Options { alpha, effect, band, seed: 1, threads: 1, scope: Scope::InnerAndOuter }
    }
}

/// The word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Not by as much as the effect.
    Undisturbed,
    /// Significantly, and by at least the effect.
    Disturbed,
    /// Neither can be said.
    CannotTell,
}

impl Verdict {
    /// As people say it.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Undisturbed => "undisturbed",
            Verdict::Disturbed => "disturbed",
            Verdict::CannotTell => "cannot tell",
        }
    }
}

/// Inner or outer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Two metrics within a trace.
    Inner,
    /// A metric with itself across two traces.
    Outer,
}

/// Correlations of one side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Side {
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation; 0 for one sample.
    pub deviation: f64,
    /// Samples.
    pub samples: usize,
}

/// One comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Inner or outer.
    pub kind: Kind,
    /// The metrics; twice the same for outer.
    pub metrics: [String; 2],
    /// Correlations within, or among, baselines.
    pub baseline: Option<Side>,
    /// Correlations within runs, or between runs and baselines.
    pub run: Option<Side>,
    /// Adjusted for the family.
    pub p: Option<f64>,
    /// The word.
    pub verdict: Verdict,
    /// Why, in one sentence.
    pub sentence: String,
    /// The correlation in each sample, baselines first; of outer, the mean with the (other) baselines, of pairs with those of other layouts.
    pub correlations: Vec<Option<f64>>,
}

impl Comparison {
    /// `run - baseline`.
    pub fn difference(&self) -> Option<f64> {
        Some(self.run?.mean - self.baseline?.mean)
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Hardware metrics that all traces have.
    pub metrics: Vec<String>,
    /// Samples of baselines and of runs.
    pub samples: [usize; 2],
    /// No p can be smaller.
    pub smallest_p: f64,
    /// Instructions of runs over those of baselines, less 1; where a metric `instructions` exists.
    pub added_instructions: Option<f64>,
    /// All pairs, then all metrics.
    pub comparisons: Vec<Comparison>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

impl Report {
    /// The word for the whole: disturbed when one comparison is, undisturbed when all are.
    pub fn verdict(&self) -> Verdict {
        let any = |verdict| self.comparisons.iter().any(|comparison| comparison.verdict == verdict);
        if any(Verdict::Disturbed) {
            Verdict::Disturbed
        } else if any(Verdict::CannotTell) || self.comparisons.is_empty() {
            Verdict::CannotTell
        } else {
            Verdict::Undisturbed
        }
    }
}

/// Compares instrumented runs with baselines.
///
/// # Errors
/// When there is no baseline or no run, or the traces are of different programs, intervals or machines, or share fewer than two hardware metrics.
pub fn perturb(baseline: &[Trace], run: &[Trace], options: &Options) -> Result<Report, Error> {
    let metrics = comparable(baseline, run)?;
    let plan = design::plan(baseline, run, options.alpha);
    let traces: Vec<&Trace> = baseline.iter().chain(run).collect();
    let smallest_p = permute::smallest_p(&plan.design);
    let mut report = Report {
        added_instructions: added(baseline, run),
        samples: [plan.design.baselines, plan.design.runs],
        smallest_p,
        comparisons: Vec::new(),
        notes: plan.notes.clone(),
        metrics,
    };
    report.notes.extend(traces.iter().filter_map(|trace| cut_note(trace)));
    report.notes.extend(builds_note(&traces));
    inner(&traces, &plan, options, &mut report);
    if options.scope == Scope::InnerAndOuter {
        outer_comparisons(&traces, &plan, options, &mut report);
    }
    Ok(report)
}

fn cut_note(trace: &Trace) -> Option<String> {
    let cut = trace.cut.as_ref()?;
    let records = trace.records.len();
    Some(format!(
        "a trace was cut at byte {} ({}): its first {records} records are used",
        cut.at_byte, cut.why
    ))
}

/// Programs that were instrumented in their source are other builds, and so are programs that were changed.
fn builds_note(traces: &[&Trace]) -> Option<String> {
    let mut builds: Vec<&String> = traces.iter().filter_map(|trace| trace.header.build_id.as_ref()).collect();
    builds.sort_unstable();
    builds.dedup();
    let [first, second, ..] = builds[..] else { return None };
    let short = |id: &String| id.chars().take(12).collect::<String>();
    Some(format!(
        "these are different builds of the program ({} and {}): whatever else was changed between them counts as instrumentation",
        short(first),
        short(second)
    ))
}

/// The hardware metrics that all traces have, once they may be compared at all.
fn comparable(baseline: &[Trace], run: &[Trace]) -> Result<Vec<String>, Error> {
    let (Some(first), Some(_)) = (baseline.first(), run.first()) else {
        return Err(Error::TooFewTraces { baselines: baseline.len(), runs: run.len() });
    };
    for trace in baseline.iter().chain(run) {
        let differ = |what, a: String, b: String| Error::Different { what, a, b };
        let (a, b) = (&first.header, &trace.header);
        if a.argv != b.argv {
            return Err(differ("programs", a.argv.join(" "), b.argv.join(" ")));
        }
        if a.interval != b.interval {
            let said =
                |interval: crate::trace::Interval| format!("{} {}", interval.length, interval.unit.name());
            return Err(differ("intervals", said(a.interval), said(b.interval)));
        }
        if a.machine != b.machine {
            let said = |machine: &Option<String>| machine.clone().unwrap_or_else(|| "the host".into());
            return Err(differ("machines", said(&a.machine), said(&b.machine)));
        }
    }
    let everywhere = |name: &str| {
        let has =
            |trace: &Trace| trace.header.metrics.iter().any(|m| m.name == name && m.source.is_hardware());
        baseline.iter().chain(run).all(has)
    };
    let names = first.header.metrics.iter().map(|metric| &metric.name).filter(|name| everywhere(name));
    let metrics: Vec<String> = names.cloned().collect();
    match metrics.len() {
        0 | 1 => Err(Error::TooFewMetrics { metrics }),
        _ => Ok(metrics),
    }
}

/// By how much runs execute more instructions, as a share.
fn added(baseline: &[Trace], run: &[Trace]) -> Option<f64> {
    let mean = |side: &[Trace]| -> Option<f64> {
        let totals: Option<Vec<u64>> =
            side.iter().map(|trace| trace.sum(trace.position("instructions")?)).collect();
        let totals = totals?;
        Some(totals.iter().map(|&total| total as f64).sum::<f64>() / totals.len() as f64)
    };
    let before = mean(baseline)?;
    (before > 0.0).then_some(mean(run)? / before - 1.0)
}

fn inner(traces: &[&Trace], plan: &Plan, options: &Options, report: &mut Report) {
    let metrics = report.metrics.clone();
    let of_trace = |trace: &&Trace| -> Vec<Option<f64>> {
        let series = |name: &String| trace.position(name).map_or_else(Vec::new, |index| trace.series(index));
        rank::matrix(&metrics.iter().map(series).collect::<Vec<_>>())
    };
    let rows: Vec<Vec<Option<f64>>> = traces.iter().map(of_trace).collect();
    let pairs: Vec<(usize, usize)> =
        (0..metrics.len()).flat_map(|i| (i + 1..metrics.len()).map(move |j| (i, j))).collect();
    let column = |pair: usize| -> Vec<Option<f64>> {
        plan.samples.iter().map(|sample| average(sample.iter().map(|&trace| rows[trace][pair]))).collect()
    };
    let columns: Vec<Vec<Option<f64>>> = (0..pairs.len()).map(column).collect();
    let names: Vec<[String; 2]> =
        pairs.iter().map(|&(i, j)| [metrics[i].clone(), metrics[j].clone()]).collect();
    report.comparisons.extend(compare_means(&columns, names, plan, options));
}

fn average(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Option<Vec<f64>> = values.collect();
    let values = values?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Tests the difference of means of each column: one number per sample, baselines first.
fn compare_means(
    columns: &[Vec<Option<f64>>],
    names: Vec<[String; 2]>,
    plan: &Plan,
    options: &Options,
) -> Vec<Comparison> {
    let known: Vec<Option<Vec<f64>>> =
        columns.iter().map(|column| column.iter().copied().collect()).collect();
    let tested: Vec<&Vec<f64>> = known.iter().flatten().collect();
    let relabellings = permute::relabellings(&plan.design, options.seed);
    let statistics: Vec<Vec<f64>> = relabellings
        .iter()
        .map(|runs| tested.iter().map(|column| statistic(column, runs, plan)).collect())
        .collect();
    let mut ps = permute::adjusted(&statistics).into_iter();
    let mut out = Vec::with_capacity(columns.len());
    for ((column, metrics), correlations) in known.iter().zip(names).zip(columns) {
        let p = column.as_ref().and_then(|_| ps.next());
        let sides = column.as_ref().map(|column| sides(column, plan));
        let error = column.as_ref().and_then(|column| standard_error(column, plan));
        out.push(conclude(Kind::Inner, metrics, sides, (error, p), correlations.clone(), plan, options));
    }
    out
}

/// |difference of means| in units that no relabelling changes.
fn statistic(column: &[f64], runs: &[usize], plan: &Plan) -> f64 {
    let total: f64 = column.iter().sum();
    let of_runs: f64 = runs.iter().map(|&sample| column[sample]).sum();
    let design = &plan.design;
    let difference = of_runs / design.runs as f64 - (total - of_runs) / design.baselines as f64;
    let scale = match &design.pairs {
        Some(pairs) => pairs.iter().map(|&(b, r)| (column[r] - column[b]).powi(2)).sum::<f64>(),
        None => {
            let mean = total / column.len() as f64;
            column.iter().map(|x| (x - mean) * (x - mean)).sum()
        }
    };
    // Rounding is no spread: deterministic repeats differ by nothing.
    if scale < 1e-24 {
        0.0
    } else {
        difference.abs() / scale.sqrt()
    }
}

fn sides(column: &[f64], plan: &Plan) -> (Side, Side) {
    let (baseline, run) = column.split_at(plan.design.baselines);
    (side(baseline), side(run))
}

fn side(values: &[f64]) -> Side {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    Side { mean, deviation: (squares / (n - 1.0).max(1.0)).sqrt(), samples: values.len() }
}

/// Of the difference of means, and its degrees of freedom (the smaller side's: conservative).
fn standard_error(column: &[f64], plan: &Plan) -> Option<(f64, usize)> {
    if let Some(pairs) = &plan.design.pairs {
        let differences: Vec<f64> = pairs.iter().map(|&(b, r)| column[r] - column[b]).collect();
        let n = differences.len();
        return Some((side(&differences).deviation / (n as f64).sqrt(), n - 1));
    }
    let (baseline, run) = sides(column, plan);
    let part = |side: Side| side.deviation * side.deviation / side.samples as f64;
    match (baseline.samples, run.samples) {
        (0 | 1, _) => None,
        // One run tells nothing of its own spread: that of the baselines stands for it.
        (n, 1) => Some((baseline.deviation * (1.0 + 1.0 / n as f64).sqrt(), n - 1)),
        (n, m) => Some(((part(baseline) + part(run)).sqrt(), n.min(m) - 1)),
    }
}

fn outer_comparisons(traces: &[&Trace], plan: &Plan, options: &Options, report: &mut Report) {
    // Traces of one sample lie alike: the first stands for all.
    let first: Vec<&Trace> = plan.samples.iter().map(|sample| traces[sample[0]]).collect();
    let metrics = report.metrics.clone();
    let outer = outer::outer(&first, &metrics, options);
    if outer.at_edge > 0.05 {
        report.notes.push(format!(
            "an alignment ran along the band's edge for {:.0} % of its way: a wider band may align better",
            100.0 * outer.at_edge
        ));
    }
    let relabellings = permute::relabellings(&plan.design, options.seed);
    let (samples, baselines) = (plan.design.samples(), plan.design.baselines);
    let partners = plan.design.partners();
    // A metric's mean outer correlation of each sample with the (other) baselines; of pairs, with those of other layouts, so that what is
    // compared is as far apart in layout on both sides.
    let likeness = |metric: usize, runs: &[usize]| -> Option<Vec<f64>> {
        let others: Vec<usize> = (0..samples).filter(|sample| !runs.contains(sample)).collect();
        let of = |sample: usize| {
            let with = others.iter().filter(|&&other| other != sample && Some(other) != partners[sample]);
            average(with.map(|&other| outer.get(metric, sample, other)))
        };
        (0..samples).map(of).collect::<Option<Vec<f64>>>().filter(|all| all.iter().all(|x| x.is_finite()))
    };
    let drop = |metric: usize, runs: &[usize]| -> f64 {
        let Some(all) = likeness(metric, runs) else { return 0.0 };
        let of_runs: f64 = runs.iter().map(|&sample| all[sample]).sum();
        let of_rest: f64 = all.iter().sum::<f64>() - of_runs;
        of_rest / (all.len() - runs.len()) as f64 - of_runs / runs.len() as f64
    };
    let mut statistics: Vec<Vec<f64>> = relabellings
        .iter()
        .map(|runs| (0..metrics.len()).map(|metric| drop(metric, runs)).collect())
        .collect();
    studentise(&mut statistics);
    let ps = permute::adjusted(&statistics);
    let observed: Vec<usize> = (baselines..samples).collect();
    for (metric, name) in metrics.iter().enumerate() {
        let column = if baselines > 1 { likeness(metric, &observed) } else { None };
        let sides = column.as_ref().map(|column| sides(column, plan));
        let error = column.as_ref().and_then(|column| standard_error(column, plan));
        let p = column.as_ref().map(|_| ps[metric]);
        let correlations =
            column.map_or(vec![None; samples], |column| column.into_iter().map(Some).collect());
        let names = [name.clone(), name.clone()];
        report.comparisons.push(conclude(Kind::Outer, names, sides, (error, p), correlations, plan, options));
    }
}

/// Divides each column by its standard deviation over all relabellings, so that comparisons weigh alike.
fn studentise(statistics: &mut [Vec<f64>]) {
    for column in 0..statistics.first().map_or(0, Vec::len) {
        let values: Vec<f64> = statistics.iter().map(|row| row[column]).collect();
        let deviation = side(&values).deviation;
        for row in statistics.iter_mut() {
            row[column] = if deviation > 1e-12 { row[column] / deviation } else { 0.0 };
        }
    }
}

fn conclude(
    kind: Kind,
    metrics: [String; 2],
    sides: Option<(Side, Side)>,
    (error, p): (Option<(f64, usize)>, Option<f64>),
    correlations: Vec<Option<f64>>,
    plan: &Plan,
    options: &Options,
) -> Comparison {
    let (baseline, run) = sides.unzip();
    let remedy = remedy(&plan.design, options.alpha);
    let evidence = Evidence {
        baseline,
        run,
        error,
        p,
        smallest_p: permute::smallest_p(&plan.design),
        remedy: &remedy,
        layout_bias: plan.layout_bias.as_deref(),
    };
    let (verdict, reason) = decide(&evidence, options);
    let name = match kind {
        Kind::Inner => metrics.join(" and "),
        Kind::Outer => format!("{} with itself", metrics[0]),
    };
    let sentence = format!("{name}: {}: {reason}", verdict.words());
    Comparison { kind, metrics, baseline, run, p, verdict, sentence, correlations }
}

/// How many runs would make a verdict possible.
fn remedy(design: &design::Design, alpha: f64) -> String {
    let enough = |runs: usize| {
        let more = design::Design { runs, pairs: None, ..design.clone() };
        permute::smallest_p(&more) <= alpha
    };
    match (design.runs..40).find(|&runs| enough(runs)) {
        Some(runs) if design.baselines == 1 => format!("{runs} runs beside this one baseline would do"),
        Some(runs) => format!("{runs} runs beside these {} baselines would do", design.baselines),
        None => "five runs beside five baselines would do".into(),
    }
}
