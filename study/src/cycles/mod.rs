//! `lightfoot study cycles`: may a person compare two estimates of cycles?
//!
//! Variants of small kernels ([`kernel`]) are timed natively and counted by the engine, each in a
//! process of its own ([`child`], [`experiment`]). [`findings`] holds several rules that predict
//! time against what was measured: rank correlation over all variants, pairs of a family in the
//! right order, and the middle of the errors after one scale ([`statistics`]). No paper states
//! sentences about these kernels, so the study has no claims; its bar is on the page. **Left out:**
//! other processors than the one at hand, and whole programs.

mod child;
mod experiment;
mod findings;
mod page;
mod statistics;

pub use child::{kernel, Kernel};

use crate::host::host;
use crate::journal::Journal;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workshop::workshop;
use anyhow::{Context, Result};
use contenders::{variants, Variant};
use experiment::{counted, passes, timed, turn, Plan};
use findings::{verdicts, Findings, Half, Row};
use present::date;

/// Seconds that a pass takes under the engine, on average and with its preparation.
const COUNTED_SECONDS: f64 = 1.2;

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let (variants, plan) = (variants(), Plan::of(options.effort));
    let turn_seconds = plan.turn_seconds(variants.len());
    let seconds = (0.5 + plan.turns as f64) * turn_seconds + COUNTED_SECONDS * variants.len() as f64;
    let mut journal = Journal::open(options, "cycles", seconds)?;
    let passes = journal.step("passes of a round", 0.5 * turn_seconds, || passes(&variants, &plan))?;
    let folder = workshop()?;
    let mut counts = Vec::new();
    for variant in &variants {
        let step = format!("counting {}", variant.name);
        counts.push(journal.step(&step, COUNTED_SECONDS, || counted(variant, folder.path()))?);
    }
    let mut turns = Vec::new();
    for number in 1..=plan.turns {
        let step = format!("turn {number} of {}", plan.turns);
        turns.push(journal.step(&step, turn_seconds, || turn(&variants, &passes, &plan))?);
    }
    let mut rows = Vec::new();
    for (place, (variant, counted)) in variants.iter().zip(counts).enumerate() {
        rows.push(Row {
            name: variant.name.clone(),
            family: variant.family().to_owned(),
            operations: variant.operations,
            half: half(&variants, place),
            timed: timed(&turns, place).with_context(|| format!("{} was not timed", variant.name))?,
            counted,
        });
    }
    let findings = Findings {
        schema: 1,
        date: date::today(),
        effort: options.effort.shown(),
        version: env!("CARGO_PKG_VERSION"),
        host: host(),
        verdicts: verdicts(&rows),
        rows,
    };
    let (files, summary) = page::write(&findings, &options.folder)?;
    journal.finish()?;
    Ok(Outcome { summary, claims: Vec::new(), files })
}

/// The half of a variant, by its place in its family.
fn half(variants: &[Variant], place: usize) -> Half {
    let family = variants[place].family();
    Half::of(variants[..place].iter().filter(|variant| variant.family() == family).count())
}
