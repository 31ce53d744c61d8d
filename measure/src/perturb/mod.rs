//! Decides whether instrumentation disturbed the program, by relations between metrics with and
//! without it.
//!
//! *Inner* perturbation compares, for every pair of hardware metrics, their Spearman correlation
//! within instrumented runs with that within baseline runs. *Outer* perturbation aligns traces and
//! compares, for every hardware metric, its correlation with itself between runs and baselines with
//! that among baselines. Both are tested against the variation between baselines, by relabelling
//! (`permute`), over the whole family of comparisons, and both need a minimal effect. ρ is signed,
//! because the paper's |ρ| hides a change of sign.
//!
//! All inner and outer comparisons of one call are one family: the error rate holds for all of them
//! together.
//!
//! Samples are determined first (`design`); verdicts are chosen last (`verdict`). **Leaves out**
//! z-scores, which mislead if the spread is tiny, and tests that treat the records of one trace as
//! independent (Fisher's), which find differences between any two runs. Source: Mytkowicz et al.
//! 2007, sections 2 and 3.

mod design;
mod options;
mod outer;
mod permute;
mod quantile;
mod remedy;
mod report;
mod verdict;

pub use options::{Options, Scope};
pub use report::{Comparison, Kind, Report, Side, Verdict};

use crate::rank;
use crate::trace::{doubts, Trace};
use crate::Error;
use design::Arrangement;
use remedy::Remedy;
use verdict::{decide, Evidence, Test};

/// Compares instrumented runs with baselines.
///
/// # Errors
/// When there is no baseline or no run, or the traces are of different programs, intervals or
/// machines, or share fewer than two hardware metrics.
pub fn perturb(baseline: &[Trace], run: &[Trace], options: &Options) -> Result<Report, Error> {
    let metrics = comparable(baseline, run)?;
    // Samples are determined before any number is compared.
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
    // A difference of builds gets a note of its own; other differences were refused before.
    report.notes.extend(doubts(&traces).into_iter().filter(|doubt| !doubt.contains("builds of the program")));
    report.notes.extend(builds_note(&traces));
    report.notes.extend(small_counts(&traces, &report.metrics));
    // Inner and outer comparisons are tested together, against the same relabellings.
    let relabellings = permute::relabellings(&plan.design, options.seed);
    let mut family = inner(&traces, &plan, &relabellings, &report.metrics);
    if options.scope == Scope::InnerAndOuter {
        family.extend(outer_comparisons(&traces, &plan, &relabellings, options, &mut report));
    }
    report.comparisons = compare(family, &plan, options);
    Ok(report)
}

/// A note if the traces are of different builds: programs that were instrumented in their source,
/// or that were changed otherwise.
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

/// The least median of a record's count at which ranks tell more than ties do.
const MEDIAN_MIN: f64 = 10.0;

/// A note for each metric that counts little in most records: its ranks are ties and accidents, so
/// any change of a few events looks like a disturbance.
fn small_counts(traces: &[&Trace], metrics: &[String]) -> Vec<String> {
    let median = |name: &String| -> Option<f64> {
        let medians = traces.iter().filter_map(|trace| {
            let mut series = trace.series(trace.position(name)?);
            series.sort_unstable_by(f64::total_cmp);
            series.get(series.len() / 2).copied()
        });
        medians.min_by(f64::total_cmp)
    };
    let note = |name: &String| {
        let median = median(name).filter(|median| *median < MEDIAN_MIN)?;
        Some(format!(
            "half of the records of a trace count at most {median:.0} {name}: correlations over counts below {MEDIAN_MIN:.0} are mostly chance; trace with a longer interval"
        ))
    };
    metrics.iter().filter_map(note).collect()
}

/// The hardware metrics that all traces have; an error if the traces must not be compared.
fn comparable(baseline: &[Trace], run: &[Trace]) -> Result<Vec<String>, Error> {
    let (Some(first), Some(_)) = (baseline.first(), run.first()) else {
        return Err(Error::TooFewTraces { baselines: baseline.len(), runs: run.len() });
    };
    // All must be of one program, interval and machine.
    for trace in baseline.iter().chain(run) {
        let differ = |what, first: String, other: String| Error::Different { what, first, other };
        let (one, other) = (&first.header, &trace.header);
        if one.argv != other.argv {
            return Err(differ("programs", one.argv.join(" "), other.argv.join(" ")));
        }
        if one.interval != other.interval {
            let text =
                |interval: crate::trace::Interval| format!("{} {}", interval.length, interval.unit.name());
            return Err(differ("intervals", text(one.interval), text(other.interval)));
        }
        if one.machine != other.machine {
            let name = |machine: &Option<String>| machine.clone().unwrap_or_else(|| "the host".into());
            return Err(differ("machines", name(&one.machine), name(&other.machine)));
        }
    }
    // Metrics that exist without instrumentation, in every trace.
    let everywhere = |name: &str| {
        let has = |trace: &Trace| {
            trace.header.metrics.iter().any(|metric| metric.name == name && metric.source.is_hardware())
        };
        baseline.iter().chain(run).all(has)
    };
    // In the order of the first baseline.
    let names = first.header.metrics.iter().map(|metric| &metric.name).filter(|name| everywhere(name));
    let metrics: Vec<String> = names.cloned().collect();
    match metrics.len() {
        0 | 1 => Err(Error::TooFewMetrics { metrics }),
        _ => Ok(metrics),
    }
}

/// How many more instructions runs execute than baselines, as a share.
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

/// A comparison before it is tested together with its family.
struct Candidate {
    kind: Kind,
    metrics: [String; 2],
    correlations: Vec<Option<f64>>,
    /// One number per sample, baselines first; `None` where a sample has none.
    column: Option<Vec<f64>>,
    /// For each relabelling the statistic: larger means that runs differ more from the rest. Empty
    /// if there is no column.
    statistics: Vec<f64>,
}

fn inner(
    traces: &[&Trace],
    plan: &Arrangement,
    relabellings: &[Vec<usize>],
    metrics: &[String],
) -> Vec<Candidate> {
    let of_trace = |trace: &&Trace| -> Vec<Option<f64>> {
        let series = |name: &String| trace.position(name).map_or_else(Vec::new, |index| trace.series(index));
        rank::matrix(&metrics.iter().map(series).collect::<Vec<_>>())
    };
    // By trace, the correlation of each pair of metrics.
    let rows: Vec<Vec<Option<f64>>> = traces.iter().map(of_trace).collect();
    let pairs: Vec<(usize, usize)> =
        (0..metrics.len()).flat_map(|i| (i + 1..metrics.len()).map(move |j| (i, j))).collect();
    // By sample: traces at one layout are averaged.
    let column = |pair: usize| -> Vec<Option<f64>> {
        plan.samples.iter().map(|sample| average(sample.iter().map(|&trace| rows[trace][pair]))).collect()
    };
    let candidate = |(pair, &(i, j)): (usize, &(usize, usize))| {
        let correlations = column(pair);
        // A pair is tested only if every sample has its correlation.
        let known: Option<Vec<f64>> = correlations.iter().copied().collect();
        let statistics = known.iter().flat_map(|known| {
            relabellings.iter().map(|runs| statistic(known, runs, plan)).collect::<Vec<f64>>()
        });
        let statistics = statistics.collect();
        let metrics = [metrics[i].clone(), metrics[j].clone()];
        Candidate { kind: Kind::Inner, metrics, correlations, column: known, statistics }
    };
    pairs.iter().enumerate().map(candidate).collect()
}

fn average(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Option<Vec<f64>> = values.collect();
    let values = values?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Tests all comparisons of a call as one family.
fn compare(family: Vec<Candidate>, plan: &Arrangement, options: &Options) -> Vec<Comparison> {
    // Comparisons without a number in some sample are not tested and get no p.
    let tested: Vec<&Candidate> = family.iter().filter(|one| one.column.is_some()).collect();
    let relabellings = tested.first().map_or(0, |one| one.statistics.len());
    let row = |relabelling: usize| tested.iter().map(|one| one.statistics[relabelling]).collect();
    let mut statistics: Vec<Vec<f64>> = (0..relabellings).map(row).collect();
    // Metrics with small and with large variation get the same weight before the largest statistic
    // counts.
    permute::standardise(&mut statistics);
    let critical = permute::critical(&statistics, options.alpha);
    let mut tests = permute::adjusted(&statistics)
        .into_iter()
        .zip(statistics.first().into_iter().flatten())
        .map(|(p, &statistic)| Test { p, statistic, critical });
    let mut out = Vec::with_capacity(family.len());
    for one in family.iter() {
        let test = one.column.as_ref().and_then(|_| tests.next());
        out.push(conclude(one, test, plan, options));
    }
    out
}

/// The absolute difference of means, in units of a spread that relabelling does not change.
fn statistic(column: &[f64], runs: &[usize], plan: &Arrangement) -> f64 {
    let total: f64 = column.iter().sum();
    let of_runs: f64 = runs.iter().map(|&sample| column[sample]).sum();
    let design = &plan.design;
    // Compares the runs with the rest according to this relabelling.
    let difference = of_runs / design.runs as f64 - (total - of_runs) / design.baselines as f64;
    // For pairs the spread is that of their differences, else that of all samples together.
    let scale = match &design.pairs {
        Some(pairs) => pairs.iter().map(|&(b, r)| (column[r] - column[b]).powi(2)).sum::<f64>(),
        None => {
            let mean = total / column.len() as f64;
            column.iter().map(|x| (x - mean) * (x - mean)).sum()
        }
    };
    // Rounding errors are not a spread: deterministic repeats differ by nothing.
    if scale < 1e-24 {
        0.0
    } else {
        difference.abs() / scale.sqrt()
    }
}

fn sides(column: &[f64], plan: &Arrangement) -> (Side, Side) {
    let (baseline, run) = column.split_at(plan.design.baselines);
    (side(baseline), side(run))
}

fn side(values: &[f64]) -> Side {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    Side { mean, deviation: (squares / (n - 1.0).max(1.0)).sqrt(), samples: values.len() }
}

/// The standard error of the difference of means, and its degrees of freedom (those of the smaller
/// side, which is conservative).
fn standard_error(column: &[f64], plan: &Arrangement) -> Option<(f64, usize)> {
    if let Some(pairs) = &plan.design.pairs {
        let differences: Vec<f64> = pairs.iter().map(|&(b, r)| column[r] - column[b]).collect();
        let n = differences.len();
        return Some((side(&differences).deviation / (n as f64).sqrt(), n - 1));
    }
    let (baseline, run) = sides(column, plan);
    let part = |side: Side| side.deviation * side.deviation / side.samples as f64;
    match (baseline.samples, run.samples) {
        (0 | 1, _) => None,
        // One run has no spread of its own: that of the baselines is used.
        (n, 1) => Some((baseline.deviation * (1.0 + 1.0 / n as f64).sqrt(), n - 1)),
        (n, m) => Some(((part(baseline) + part(run)).sqrt(), n.min(m) - 1)),
    }
}

fn outer_comparisons(
    traces: &[&Trace],
    plan: &Arrangement,
    relabellings: &[Vec<usize>],
    options: &Options,
    report: &mut Report,
) -> Vec<Candidate> {
    // The traces of one sample have the same layout: the first represents all.
    let first: Vec<&Trace> = plan.samples.iter().map(|sample| traces[sample[0]]).collect();
    let metrics = report.metrics.clone();
    let outer = outer::outer(&first, &metrics, options);
    if outer.at_edge > 0.05 {
        report.notes.push(format!(
            "an alignment ran along the band's edge for {:.0} % of its way: a wider band may align better",
            100.0 * outer.at_edge
        ));
    }
    let (samples, baselines) = (plan.design.samples(), plan.design.baselines);
    let partners = plan.design.partners();
    // The mean outer correlation of each sample with the other baselines. In paired designs only
    // baselines of other layouts count, so that both sides have the same distance in layout.
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
    let observed: Vec<usize> = (baselines..samples).collect();
    let candidate = |(metric, name): (usize, &String)| {
        let column = if baselines > 1 { likeness(metric, &observed) } else { None };
        let statistics = column.iter().flat_map(|_| relabellings.iter().map(|runs| drop(metric, runs)));
        let correlations =
            column.clone().map_or(vec![None; samples], |column| column.into_iter().map(Some).collect());
        let metrics = [name.clone(), name.clone()];
        Candidate { kind: Kind::Outer, metrics, correlations, statistics: statistics.collect(), column }
    };
    metrics.iter().enumerate().map(candidate).collect()
}

fn conclude(one: &Candidate, test: Option<Test>, plan: &Arrangement, options: &Options) -> Comparison {
    let sides = one.column.as_ref().map(|column| sides(column, plan));
    let error = one.column.as_ref().and_then(|column| standard_error(column, plan));
    let (baseline, run) = sides.unzip();
    let evidence = Evidence {
        baseline,
        run,
        error,
        test,
        smallest_p: permute::smallest_p(&plan.design),
        remedy: Remedy::new(&plan.design, options.alpha),
        layout_bias: plan.layout_bias.as_deref(),
    };
    let (verdict, reason, would_tell) = decide(&evidence, options);
    let name = match one.kind {
        Kind::Inner => one.metrics.join(" and "),
        Kind::Outer => format!("{} with itself", one.metrics[0]),
    };
    let sentence = format!("{name}: {}: {reason}", verdict.words());
    let p = test.map(|test| test.p);
    let (kind, metrics, correlations) = (one.kind, one.metrics.clone(), one.correlations.clone());
    Comparison { kind, metrics, baseline, run, p, verdict, sentence, would_tell, correlations }
}
