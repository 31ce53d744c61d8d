//! `lightfoot study perturbation`: Table 1 and Figures 3 to 8 of Mytkowicz et al. 2007, on real
//! programs.
//!
//! Four programs of Debian run unmodified ([`subject`]). Up to sixteen of their functions are
//! counted by probes, one more at a time ([`choice`]). Traces hold five hardware metrics of a
//! simulated machine of that time; every number of counters is traced in several layouts
//! ([`experiment`]). `measure::perturb` gives the verdicts.
//!
//! Three more parts check the method: runs without a simulator ([`native`]), the power of the test
//! ([`power`]), and its error rates on synthetic runs with a fresh seed ([`synthetic`]). The
//! undisturbed program alone decides which functions are counted, before any result is known.
//!
//! **Leaves out** the paper's machine, its programs and its timer.

mod choice;
mod claim;
mod experiment;
mod extent;
mod figures;
mod findings;
mod input;
mod native;
mod page;
mod power;
mod subject;
mod synthetic;
mod trace;

use crate::host::dated;
use crate::journal::Journal;
use crate::layout::paddings;
use crate::options::Options;
use crate::outcome::{write_files, Outcome};
use crate::workshop::{workshop, Workshop};
use anyhow::{bail, Result};
use experiment::curve;
use extent::Extent;
use findings::{Curve, Findings, Power};
use present::date;
use subject::{Bench, Subject, SUBJECTS};
use trace::{traces, Run};

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let extent = Extent::of(options.effort);
    let shop = workshop()?;
    let mut journal = Journal::open(options, "perturbation", extent.seconds())?;
    let (mut curves, mut missing) = (Vec::new(), Vec::new());
    for subject in SUBJECTS {
        // Only the sentences of a missing program stay unmeasured. Any other error ends the study;
        // its journal keeps the finished steps.
        match subject.installed() {
            Ok(_) => curves.push(whole(&shop, subject, &extent, &mut journal)?),
            Err(error) => {
                present::tell!("lightfoot: {error}");
                missing.push(error.to_string());
            }
        }
    }
    if curves.is_empty() {
        bail!("no program could be measured: {}", missing.join("; "));
    }
    let power = power_of(&shop, &curves, &extent, &mut journal)?;
    let synthetic = journal.step("statistics on synthetic runs", extent.synthetic_seconds(), || {
        synthetic::flagged(extent.experiments, synthetic::fresh_seed())
    })?;
    let layouts = extent.layouts;
    let findings =
        Findings { date: date::today(), effort: options.effort, layouts, curves, missing, power, synthetic };
    let outcome = write(options, &findings)?;
    journal.finish()?;
    Ok(outcome)
}

/// A program, simulated and not.
fn whole(
    shop: &Workshop,
    subject: &'static Subject,
    extent: &Extent,
    journal: &mut Journal,
) -> Result<Curve> {
    present::tell!("lightfoot: {} for {}", subject.name, subject.stands_for);
    let mut curve = curve(shop.path(), subject, extent, journal)?;
    let step = format!("{}: without a simulator", subject.name);
    curve.native = Some(journal.step(&step, extent.native_seconds(), || {
        native::native(shop.path(), subject, extent, &curve.calibration.chosen)
    })?);
    Ok(curve)
}

/// The power curve, on the program that the paper shows most of.
fn power_of(
    shop: &Workshop,
    curves: &[Curve],
    extent: &Extent,
    journal: &mut Journal,
) -> Result<Option<Power>> {
    let Some(curve) = curves.iter().find(|curve| curve.subject.stands_for == "sjeng").or(curves.first())
    else {
        return Ok(None);
    };
    let seconds = extent.power_seconds() + extent.drawn_from as f64 * extent.size(curve.subject).1 / 1.5;
    journal.step("power", seconds, || {
        let bench = Bench::new(shop.path(), curve.subject, curve.size)?;
        let plain = Run::plain(&bench, curve.calibration.interval_cycles);
        let one = |(padding_bytes, seed)| Run { padding_bytes, noise: Some(seed), ..plain.clone() };
        let runs: Vec<Run> = paddings(extent.drawn_from).into_iter().zip(1..).map(one).collect();
        let power = power::power(curve.subject.name, &traces(&runs)?, extent.draws, 1)?;
        Ok(Some(power))
    })
}

fn write(options: &Options, findings: &Findings) -> Result<Outcome> {
    let claims = claim::claims(findings);
    let stem = format!("perturbation-{}", dated(&findings.date));
    let mut files: Vec<(String, String)> = figures::plots(findings, &stem);
    let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
    let text = page::page(findings, &claims, &names);
    files.push((format!("{stem}.md"), text.clone()));
    files.push((format!("{stem}.csv"), page::csv(findings)));
    let json = serde_json::to_string_pretty(&page::json(findings))? + "\n";
    files.push((format!("{stem}.json"), json));
    let mut written = write_files(&options.folder, "", files)?;
    written.reverse();
    Ok(Outcome { summary: text, claims, files: written })
}
