//! The power of the test: how small a disturbance it finds, with how many runs.
//!
//! Real runs without instrumentation, which differ in layout and noise, are drawn at random as
//! baselines and as runs. In the runs, the L2 misses of some consecutive records are shuffled: this
//! keeps their sum and destroys their relation to L1. The curve shows how often such a change is
//! called disturbed, over the change of the correlation. Where nothing changed, that is the rate of
//! false alarms.
//!
//! **Leaves out** changes of other shapes, such as a change of one phase alone.

use super::findings::{Power, PowerCurve, L1_L2};
use super::trace::series;
use anyhow::{Context, Result};
use measure::perturb::{perturb, Options, Scope, Verdict};
use measure::random::Random;
use measure::rank::spearman;
use measure::trace::Trace;

/// Shares of the records that lose their relation.
const SHARES: [f64; 7] = [0.0, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0];

/// Plants changes in `traces`, runs without instrumentation that differ in layout or noise.
///
/// # Errors
/// When the traces lack a metric.
pub(super) fn power(program: &str, traces: &[Trace], experiments: usize, seed: u64) -> Result<Power> {
    let baselines = traces.len() / 2;
    let mut numbers: Vec<usize> = [3, 5, 8, traces.len() - baselines]
        .into_iter()
        .filter(|runs| runs + baselines <= traces.len())
        .collect();
    numbers.dedup();
    let mut random = Random::new(seed);
    let mut curves = Vec::new();
    for runs in numbers {
        let points =
            SHARES.iter().map(|&share| found(traces, [baselines, runs], share, experiments, &mut random));
        curves.push(PowerCurve { runs, points: points.collect::<Result<_>>()? });
    }
    Ok(Power { program: program.into(), baselines, experiments, curves })
}

/// The mean change of L1 with L2, and how often it was called disturbed.
fn found(
    traces: &[Trace],
    [baselines, runs]: [usize; 2],
    share: f64,
    experiments: usize,
    random: &mut Random,
) -> Result<(f64, f64)> {
    let (mut change, mut flagged) = (0.0, 0);
    for _ in 0..experiments {
        let mut order: Vec<&Trace> = traces.iter().collect();
        random.shuffle(&mut order);
        let baseline: Vec<Trace> = order[..baselines].iter().map(|&trace| trace.clone()).collect();
        let mut run: Vec<Trace> =
            order[baselines..baselines + runs].iter().map(|&trace| trace.clone()).collect();
        for trace in &mut run {
            let before = correlation(trace)?;
            plant(trace, share, random)?;
            change += (correlation(trace)? - before).abs() / (experiments * runs) as f64;
            // Another build, as instrumentation in the source makes one: else a difference would be
            // called one of layout.
            trace.header.build_id = Some("instrumented".into());
        }
        let options = Options { scope: Scope::Inner, ..Options::default() };
        let report = perturb(&baseline, &run, &options)?;
        let pair = report.comparisons.iter().find(|comparison| comparison.metrics == L1_L2);
        flagged += usize::from(pair.is_some_and(|pair| pair.verdict == Verdict::Disturbed));
    }
    Ok((change, flagged as f64 / experiments as f64))
}

fn correlation(trace: &Trace) -> Result<f64> {
    spearman(&series(trace, L1_L2[0]), &series(trace, L1_L2[1])).context("L1 and L2 have a correlation")
}

/// Shuffles the L2 misses of a share of the records that lie next to each other.
fn plant(trace: &mut Trace, share: f64, random: &mut Random) -> Result<()> {
    let metric = trace.position(L1_L2[1]).context("the trace has L2 misses")?;
    let count = (trace.records.len() as f64 * share) as usize;
    let start = random.below(trace.records.len() - count + 1);
    let records = &mut trace.records[start..start + count];
    let mut values: Vec<_> = records.iter().map(|record| record.values[metric]).collect();
    random.shuffle(&mut values);
    records.iter_mut().zip(values).for_each(|(record, value)| record.values[metric] = value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::synthetic;
    use super::*;

    /// Traces whose first two metrics are correlated by .8.
    fn traces(count: usize) -> Vec<Trace> {
        let mut random = Random::new(3);
        let mut traces: Vec<Trace> = (0..count).map(|_| synthetic::trace(|_| 0.8, &mut random)).collect();
        for trace in &mut traces {
            trace.header.metrics[0].name = L1_L2[0].into();
            trace.header.metrics[1].name = L1_L2[1].into();
        }
        traces
    }

    #[test]
    fn what_is_planted_keeps_the_sum_and_changes_the_correlation() {
        let mut trace = traces(1).remove(0);
        let (sum, before) = (trace.sum(1), correlation(&trace).unwrap());
        plant(&mut trace, 0.0, &mut Random::new(1)).unwrap();
        assert_eq!(correlation(&trace).unwrap(), before);
        plant(&mut trace, 1.0, &mut Random::new(1)).unwrap();
        assert_eq!(trace.sum(1), sum);
        assert!(correlation(&trace).unwrap().abs() < 0.1);
    }

    #[test]
    fn large_changes_are_found_and_none_is_not() {
        let power = power("synthetic", &traces(12), 8, 5).unwrap();
        let last = power.curves.last().unwrap();
        assert_eq!((power.baselines, last.runs), (6, 6));
        assert!(last.points[0].1 <= 0.25, "{last:?}");
        assert!(last.points[6].1 >= 0.9 && last.points[6].0 > 0.6, "{last:?}");
    }
}
