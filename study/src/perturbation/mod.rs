//! `lightfoot study perturbation`: Figures 3 to 8 and Table 1 of Mytkowicz et al. 2007, on a
//! simulated machine and therefore repeatable.
//!
//! Four programs ([`program`]) with up to sixteen software metrics, compiled in one more at a time;
//! traces of five hardware metrics of a simulated machine of that time ([`experiment`]), every
//! number of counters in several layouts; verdicts by `measure::perturb`. The configuration was
//! fixed before the results were seen, and they are reported whichever way they come out. Two
//! controls that the paper lacks: all counters packed into two lines, and environments of other
//! sizes without any instrumentation. The statistics are tried on synthetic runs with a fresh seed
//! ([`synthetic`]). Deliberately absent: the paper's machine, its programs and its timer.

mod experiment;
mod findings;
mod page;
mod program;
mod synthetic;

use crate::options::{Effort, Options};
use crate::outcome::Outcome;
use crate::workshop::{workshop, Workshop};
use anyhow::{Context, Result};
use experiment::{curve, traces, traces_of, Run};
use findings::{Findings, Spread};
use measure::perturb::{perturb, Scope};
use measure::rank::spearman;
use measure::trace::Trace;
use present::date;
use present::output::replace;
use program::{Size, Spacing, Subject, COUNTERS, SUBJECTS};
use std::path::PathBuf;

/// How much is measured.
struct Extent {
    /// Numbers of counters.
    counters: Vec<usize>,
    /// Layouts of every number of counters: at least six, or no pairwise verdict is possible.
    paddings: usize,
    /// Baselines of Figure 3, which differ by noise.
    noises: u64,
    /// Environments of the second control.
    environments: usize,
    /// Experiments on synthetic runs, of each kind.
    experiments: usize,
}

impl Extent {
    fn of(effort: Effort) -> Extent {
        match effort {
            Effort::Quick => Extent {
                counters: vec![4, 8, 12, 14, 16],
                paddings: 6,
                noises: 6,
                environments: 8,
                experiments: 200,
            },
            Effort::Full => Extent {
                counters: (1..=COUNTERS).collect(),
                paddings: 8,
                noises: 26,
                environments: 26,
                experiments: 1000,
            },
        }
    }
}

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let extent = Extent::of(options.effort);
    let shop = workshop()?;
    let size = |subject: &Subject| match options.effort {
        Effort::Quick => subject.quick,
        Effort::Full => subject.full,
    };
    let mut curves = Vec::new();
    for subject in SUBJECTS {
        present::tell!("lightfoot: {} for {}", subject.name, subject.stands_for);
        curves.push(curve(&shop, subject, size(subject), &extent.counters, extent.paddings)?);
    }
    let subject = &SUBJECTS[SUBJECTS.len() - 1];
    present::tell!("lightfoot: {} without instrumentation", subject.name);
    let spread = spread(&shop, subject, size(subject), &extent)?;
    let synthetic = synthetic::flagged(extent.experiments, synthetic::fresh_seed())?;
    let findings = Findings { date: date::today(), effort: options.effort, curves, spread, synthetic };
    write(options, &findings)
}

/// L1 with L2, L1 with the TLB.
fn correlations(trace: &Trace) -> [Option<f64>; 2] {
    let series = |name| trace.position(name).map(|index| trace.series(index));
    let pair = |a, b| spearman(&series(a)?, &series(b)?);
    [pair("l1d-misses", "l2-misses"), pair("l1d-misses", "dtlb-misses")]
}

fn spread(shop: &Workshop, subject: &'static Subject, size: Size, extent: &Extent) -> Result<Spread> {
    let plain = Run { subject, size, counters: 0, spacing: Spacing::Page, padding: 0, noise: None };
    let noisy = |padding, seeds: u64| -> Result<Vec<Trace>> {
        let run = |seed| Run { padding, noise: Some(seed), ..plain };
        traces_of(shop, &(1..=seeds).map(run).collect::<Vec<_>>())
    };
    let noise = noisy(0, extent.noises)?;
    let environment: Vec<[Option<f64>; 2]> =
        traces(shop, &plain, extent.environments)?.iter().map(correlations).collect();
    let first = environment[0][0].unwrap_or(0.0);
    let distance = |padding: &usize| (environment[*padding][0].unwrap_or(first) - first).abs();
    let farthest = (1..extent.environments).max_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(1);
    let other = noisy(farthest, extent.noises.min(6))?;
    let inner = measure::perturb::Options { scope: Scope::Inner, ..Default::default() };
    let layout = perturb(&noise, &other, &inner)?;
    let noise = noise.iter().map(correlations).collect();
    Ok(Spread { subject, noise, environment, layout })
}

fn write(options: &Options, findings: &Findings) -> Result<Outcome> {
    std::fs::create_dir_all(&options.folder)
        .with_context(|| format!("cannot make {}", options.folder.display()))?;
    let claims = page::claims(findings);
    let mut files: Vec<(String, String)> = page::plots(findings);
    let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
    let text = page::page(findings, &claims, &names);
    files.push((format!("perturbation-{}.md", findings.date), text.clone()));
    files.push((format!("perturbation-{}.csv", findings.date), page::csv(findings)));
    let json = serde_json::to_string_pretty(&page::json(findings))? + "\n";
    files.push((format!("perturbation-{}.json", findings.date), json));
    let mut written: Vec<PathBuf> = Vec::new();
    for (name, contents) in files {
        let path = options.folder.join(name);
        replace(&path, contents).with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path);
    }
    written.reverse();
    Ok(Outcome { summary: text, claims, files: written })
}
