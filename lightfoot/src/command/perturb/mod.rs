//! `lightfoot perturb`: decides whether instrumentation disturbed the program, with a verdict and a
//! sentence for every pair of metrics.

mod page;
mod text;

use super::trace_file::{band, read};
use crate::cli::{FailOn, Perturb, PerturbFormat as Format};
use anyhow::{Context, Result};
use measure::perturb::{perturb, Comparison, Kind, Options, Report, Scope, Side, Verdict};
use measure::trace::Trace;
use plot::heat_map::{heat_map, Cell};
use present::csv::field;
use present::exit::{Failure, NEGATIVE, USAGE};
use present::output::{print, replace};
use present::terminal::printable_lines;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// The result of the command, as JSON has it.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    schema: u32,
    alpha: f64,
    effect: f64,
    verdict: Verdict,
    #[serde(flatten)]
    report: &'a Report,
}

pub(super) fn run(options: &Perturb) -> Result<u8> {
    let out_of_range = |what: &str, value: f64| {
        let sentence = format!("{what} {value} is not between 0 and 1");
        Err(Failure { status: USAGE, sentence }.into())
    };
    if !(options.alpha > 0.0 && options.alpha < 1.0) {
        return out_of_range("--alpha", options.alpha);
    }
    if !(0.0..=2.0).contains(&options.effect) {
        return out_of_range("--effect", options.effect);
    }
    let traces = |paths: &[PathBuf]| paths.iter().map(|path| read(path)).collect::<Result<Vec<Trace>>>();
    let (baseline, run) = (traces(&options.baseline)?, traces(&options.run)?);
    let wanted = Options {
        alpha: options.alpha,
        effect: options.effect,
        band: band(options.band)?,
        seed: options.seed,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        scope: if options.inner { Scope::Inner } else { Scope::InnerAndOuter },
    };
    let report = perturb(&baseline, &run, &wanted)
        .map_err(|error| Failure { status: USAGE, sentence: error.to_string() })?;
    if let Some(path) = &options.heat_map {
        replace(path, map(&report)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let shown = match options.format {
        Format::Json => {
            let (alpha, effect, verdict) = (options.alpha, options.effect, report.verdict());
            serde_json::to_string_pretty(&Answer { schema: 1, alpha, effect, verdict, report: &report })?
                + "\n"
        }
        Format::Csv => {
            // CSV has no place for notes, so they go to standard error.
            report.notes.iter().for_each(|note| present::tell!("lightfoot: {note}"));
            csv(&report)
        }
        Format::Text => printable_lines(&text::text(&report)),
        Format::Html => page::page(&report, &map(&report)),
    };
    match &options.output {
        Some(path) => replace(path, shown).with_context(|| format!("cannot write {}", path.display()))?,
        None => print(&shown)?,
    }
    let failed = match options.fail_on {
        None => false,
        Some(FailOn::Disturbed) => report.verdict() == Verdict::Disturbed,
        Some(FailOn::CannotTell) => report.verdict() != Verdict::Undisturbed,
    };
    Ok(if failed { NEGATIVE } else { 0 })
}

fn csv(report: &Report) -> String {
    let mut out = String::from(
        "kind,metric,with,baseline_mean,baseline_deviation,run_mean,run_deviation,difference,p,verdict\n",
    );
    for comparison in &report.comparisons {
        let kind = if comparison.kind == Kind::Inner { "inner" } else { "outer" };
        let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
        let side = |side: Option<Side>| {
            format!("{},{}", number(side.map(|side| side.mean)), number(side.map(|side| side.deviation)))
        };
        let [first, second] = [field(&comparison.metrics[0]), field(&comparison.metrics[1])];
        let (baseline, run, p) = (side(comparison.baseline), side(comparison.run), number(comparison.p));
        let (difference, verdict) = (number(comparison.difference()), comparison.verdict.words());
        let _ = writeln!(out, "{kind},{first},{second},{baseline},{run},{difference},{p},{verdict}");
    }
    out
}

/// A heat map: inner comparisons below the diagonal, outer ones on it.
fn map(report: &Report) -> String {
    let names = &report.metrics;
    let place = |name: &String| names.iter().position(|other| other == name);
    let mut cells = vec![vec![None; names.len()]; names.len()];
    for comparison in &report.comparisons {
        if let (Some(a), Some(b)) = (place(&comparison.metrics[0]), place(&comparison.metrics[1])) {
            cells[a.max(b)][a.min(b)] = Some(cell(comparison));
        }
    }
    heat_map(
        "Correlations, baseline and run: pairs of metrics, and outer ones on the diagonal",
        names,
        &cells,
    )
}

fn cell(comparison: &Comparison) -> Cell {
    let mut words = Vec::new();
    if let (Some(baseline), Some(run)) = (comparison.baseline, comparison.run) {
        words.push(format!("{:.2} → {:.2}", baseline.mean, run.mean));
    }
    words.push(comparison.verdict.words().into());
    if let Some(p) = comparison.p {
        words.push(format!("p = {p:.3}"));
    }
    let shade = comparison.difference().filter(|_| comparison.verdict != Verdict::CannotTell);
    Cell { shade, words }
}
