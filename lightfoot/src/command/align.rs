//! `lightfoot align`: aligns the records of two traces, and says how similar the traces are along
//! the alignment.
//!
//! Every metric is correlated along a path that the other metrics determined, because a metric that
//! took part would be fitted to itself. The path that is shown is that of all metrics.

use super::trace_file::{band, read};
use crate::cli::{Align, Format};
use anyhow::{Context, Result};
use measure::align::{align, normalised, Aligned, Band};
use measure::rank::spearman;
use measure::trace::{doubts, Trace};
use plot::curves::{curves, Curve, Curves};
use present::exit::{Failure, USAGE};
use present::output::{print, replace};
use present::terminal::printable_lines;
use serde::Serialize;
use std::fmt::Write;

/// The result of the command, as JSON has it.
#[derive(Debug, Serialize)]
struct Answer {
    schema: u32,
    records: [usize; 2],
    /// The distance over all metrics together, each scaled to standard deviation 1.
    distance: f64,
    /// The largest and the mean distance of the path from the straight line, as shares of the
    /// second trace.
    warp_largest: f64,
    warp_mean: f64,
    /// Number of pairs at the edge of the band.
    at_edge: usize,
    metrics: Vec<Row>,
    notes: Vec<String>,
    /// The path: pairs of record numbers, from 0.
    path: Vec<(u32, u32)>,
}

/// One metric, aligned by the others.
#[derive(Debug, Serialize)]
struct Row {
    metric: String,
    /// Spearman's correlation of the metric with itself along the path; null if it is constant.
    correlation: Option<f64>,
    distance: f64,
    warp_largest: f64,
}

pub(super) fn run(options: &Align) -> Result<u8> {
    let (first, second) = (read(&options.first)?, read(&options.second)?);
    let names = metrics(options, &first, &second)?;
    let mut answer = answer(&first, &second, &names, band(options.band)?);
    answer.notes.splice(0..0, doubts(&[&first, &second]));
    if let Some(path) = &options.plot {
        replace(path, plot(&answer)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let text = match options.format {
        Format::Json => serde_json::to_string_pretty(&answer)? + "\n",
        Format::Csv => {
            // CSV has no place for notes, so they go to standard error.
            answer.notes.iter().for_each(|note| present::tell!("lightfoot: {note}"));
            csv(&answer)
        }
        Format::Text => printable_lines(&text(&answer)),
    };
    match &options.output {
        Some(path) => replace(path, text).with_context(|| format!("cannot write {}", path.display()))?,
        None => print(&text)?,
    }
    Ok(0)
}

/// The metrics to align by: those that the user named, or all hardware metrics that both traces
/// have.
fn metrics(options: &Align, first: &Trace, second: &Trace) -> Result<Vec<String>> {
    let hardware = |trace: &Trace| -> Vec<String> {
        let metrics = trace.header.metrics.iter().filter(|metric| metric.source.is_hardware());
        metrics.map(|metric| metric.name.clone()).collect()
    };
    let refuse = |sentence: String| Err(Failure { status: USAGE, sentence }.into());
    let names = match &options.metrics {
        Some(list) => list.split(',').map(str::to_owned).collect(),
        None => {
            hardware(first).into_iter().filter(|name| hardware(second).contains(name)).collect::<Vec<_>>()
        }
    };
    for (trace, path) in [(first, &options.first), (second, &options.second)] {
        let all = || trace.header.metrics.iter().map(|metric| metric.name.as_str());
        if let Some(name) = names.iter().find(|name| trace.position(name).is_none()) {
            let candidates = measure::counter::nearest(name, all());
            // Without a similar name, all are listed.
            let candidates = if candidates.is_empty() { all().collect() } else { candidates };
            return refuse(format!(
                "{} has no metric {name}; it has {}",
                path.display(),
                candidates.join(", ")
            ));
        }
        // A trace without a whole interval has no series, so there would be nothing to align.
        if trace.whole().is_empty() {
            return refuse(format!("{} has no whole interval to align", path.display()));
        }
    }
    match names.len() {
        0 => refuse("the traces share no hardware metric: name some with --metrics".into()),
        _ => Ok(names),
    }
}

fn answer(first: &Trace, second: &Trace, names: &[String], band: Band) -> Answer {
    let series = |trace: &Trace| -> Vec<Vec<f64>> {
        names.iter().filter_map(|name| trace.position(name)).map(|index| trace.series(index)).collect()
    };
    let (raw_a, raw_b) = (series(first), series(second));
    // Distances add up over metrics, so every metric is scaled to standard deviation 1;
    // correlations are those of the raw series.
    let scaled = |raw: &[Vec<f64>]| raw.iter().map(|series| normalised(series)).collect::<Vec<_>>();
    let (a_all, b_all) = (scaled(&raw_a), scaled(&raw_b));
    let without = |all: &[Vec<f64>], left_out: usize| -> Vec<Vec<f64>> {
        (0..all.len()).filter(|&metric| metric != left_out).map(|metric| all[metric].clone()).collect()
    };
    let mut notes = Vec::new();
    if names.len() == 1 {
        notes.push("one metric alone aligns itself: its correlation says little".into());
    }
    let row = |(metric, name): (usize, &String)| {
        // The path comes from the other metrics: one that the metric itself had shaped would
        // correlate too well. A single metric has no others.
        let aligned = match names.len() {
            1 => align(&a_all, &b_all, band),
            _ => align(&without(&a_all, metric), &without(&b_all, metric), band),
        };
        let (x, y) = aligned.along(&raw_a[metric], &raw_b[metric]);
        let (metric, correlation) = (name.clone(), spearman(&x, &y));
        Row { metric, correlation, distance: aligned.distance(), warp_largest: aligned.warp().0 }
    };
    let all: Aligned = align(&a_all, &b_all, band);
    // More than one pair in twenty at the edge means that the band, not the data, shaped the path.
    if all.at_edge * 20 > all.path.len() {
        notes.push(format!(
            "{} of {} pairs lie at the band's edge: a wider band (--band) may align better",
            all.at_edge,
            all.path.len()
        ));
    }
    let (warp_largest, warp_mean) = all.warp();
    Answer {
        schema: 1,
        records: [raw_a[0].len(), raw_b[0].len()],
        distance: all.distance(),
        warp_largest,
        warp_mean,
        at_edge: all.at_edge,
        metrics: names.iter().enumerate().map(row).collect(),
        notes,
        path: all.path,
    }
}

fn text(answer: &Answer) -> String {
    let [n, m] = answer.records;
    let mut out = format!(
        "{n} records with {m}: distance {:.3}; the path leaves the straight line by {:.1} % at most, {:.1} % on average\n\n",
        answer.distance,
        100.0 * answer.warp_largest,
        100.0 * answer.warp_mean
    );
    let width = answer.metrics.iter().map(|row| row.metric.len()).max().unwrap_or(0).max(6);
    let _ = writeln!(out, "{:<width$}  outer correlation  warped", "metric");
    for row in &answer.metrics {
        let correlation = row.correlation.map_or("constant".into(), |rho| format!("{rho:.3}"));
        let _ =
            writeln!(out, "{:<width$}  {correlation:>17}  {:>5.1} %", row.metric, 100.0 * row.warp_largest);
    }
    answer.notes.iter().for_each(|note| out += &format!("note: {note}\n"));
    out
}

fn csv(answer: &Answer) -> String {
    let mut out = String::from("first,second\n");
    for (i, j) in &answer.path {
        let _ = writeln!(out, "{i},{j}");
    }
    out
}

fn plot(answer: &Answer) -> String {
    let point = |&(i, j): &(u32, u32)| (f64::from(i), f64::from(j));
    let points = answer.path.iter().map(point).collect();
    curves(&Curves {
        title: "Alignment of two traces".into(),
        axes: ["record of the first".into(), "of the second".into()],
        range: (0.0, answer.records[1].max(2) as f64 - 1.0),
        curves: vec![Curve { name: format!("warp {:.1} %", 100.0 * answer.warp_largest), points }],
    })
}
