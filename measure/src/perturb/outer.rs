//! Outer correlations: two traces are aligned by all metrics but one, and that metric is correlated
//! with itself along the path.
//!
//! Two runs of one program do not correlate perfectly even without instrumentation (a program
//! without phases reached .45 to .56), so a run is not compared with 1 but with the correlations
//! among baselines. A metric takes no part in its own alignment, because the alignment would be
//! fitted to it.

use super::options::Options;
use crate::align::{align, normalised};
use crate::rank::spearman;
use crate::trace::Trace;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Outer correlations of all pairs of samples.
#[derive(Clone, Debug)]
pub(super) struct Outer {
    samples: usize,
    /// `[metric][first · samples + second]`, symmetric.
    correlations: Vec<Vec<Option<f64>>>,
    /// The largest share of pairs at the band's edge in any alignment.
    pub(super) at_edge: f64,
}

impl Outer {
    /// The correlation of a metric between two samples.
    pub(super) fn get(&self, metric: usize, a: usize, b: usize) -> Option<f64> {
        self.correlations[metric][a * self.samples + b]
    }
}

/// The hardware metrics of a trace, as counted and as scaled for alignment.
struct Columns {
    raw: Vec<Vec<f64>>,
    scaled: Vec<Vec<f64>>,
}

/// Aligns every pair; `traces` are one per sample, `metrics` their columns by name.
pub(super) fn outer(traces: &[&Trace], metrics: &[String], options: &Options) -> Outer {
    let columns: Vec<Columns> = traces.iter().map(|trace| columns(trace, metrics)).collect();
    let samples = traces.len();
    let pairs: Vec<(usize, usize)> =
        (0..samples).flat_map(|a| (a + 1..samples).map(move |b| (a, b))).collect();
    // Threads take pairs one by one, because alignments take different times.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(&(a, b)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((a, b, pair(&columns[a], &columns[b], options)));
        }
        done
    };
    let mut out =
        Outer { samples, correlations: vec![vec![None; samples * samples]; metrics.len()], at_edge: 0.0 };
    let found: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..options.threads.max(1)).map(|_| scope.spawn(work)).collect();
        // The calling thread aligns too.
        let own = work();
        let others = threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default());
        others.chain(own).collect()
    });
    // Symmetric, whichever thread found it.
    for (a, b, (correlations, at_edge)) in found {
        for (metric, correlation) in correlations.into_iter().enumerate() {
            out.correlations[metric][a * samples + b] = correlation;
            out.correlations[metric][b * samples + a] = correlation;
        }
        out.at_edge = out.at_edge.max(at_edge);
    }
    out
}

fn columns(trace: &Trace, metrics: &[String]) -> Columns {
    let series = |name: &String| trace.position(name).map_or_else(Vec::new, |index| trace.series(index));
    let raw: Vec<Vec<f64>> = metrics.iter().map(series).collect();
    let scaled = raw.iter().map(|series| normalised(series)).collect();
    Columns { raw, scaled }
}

/// The outer correlation of every metric, and the largest share of pairs at the band's edge.
fn pair(first: &Columns, second: &Columns, options: &Options) -> (Vec<Option<f64>>, f64) {
    let mut at_edge = 0.0_f64;
    let of = |metric: usize| {
        // Align by every metric but the one that is correlated.
        let others = |columns: &Columns| -> Vec<Vec<f64>> {
            (0..columns.scaled.len())
                .filter(|&column| column != metric)
                .map(|column| columns.scaled[column].clone())
                .collect()
        };
        let (one, other) = (others(first), others(second));
        if one.is_empty() || one[0].is_empty() || other[0].is_empty() {
            return None;
        }
        let aligned = align(&one, &other, options.band);
        at_edge = at_edge.max(aligned.at_edge as f64 / aligned.path.len() as f64);
        let (values, partners) = aligned.along(&first.raw[metric], &second.raw[metric]);
        spearman(&values, &partners)
    };
    ((0..first.raw.len()).map(of).collect(), at_edge)
}
