//! `lightfoot study validation`: simulated cache traffic beside what counters measured.
//!
//! Two public collections hold bytes per update between the levels of five processors, for a
//! matrix-vector product, stencils and streams ([`points`]). The kernels are rebuilt from their
//! description ([`kernel`]) and replayed in slices ([`slice`](mod@slice)) through the machines that
//! were measured ([`processor`]), by several models ([`experiment`]); [`findings`] holds each
//! prediction against its measurement. Which points count was decided before they were simulated,
//! by what the sources say of their figures. The collections state no sentences that are judged
//! here, so the study has no claims: its question is how large the errors are. **Left out:**
//! programs under the engine; the kernels' compiled code was never published with the figures.

mod error;
mod experiment;
mod findings;
mod kernel;
mod page;
mod plots;
mod points;
mod processor;
mod product;
mod slice;
mod stencil;
mod streams;

use crate::journal::Journal;
use crate::options::Options;
use crate::outcome::Outcome;
use anyhow::Result;
use experiment::Plan;
use findings::Findings;
use present::date;

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let plan = Plan::of(options.effort);
    let points = plan.points(points::points()?);
    let mut journal = Journal::open(options, "validation", experiment::all_seconds(&points, &plan)?)?;
    let simulated = experiment::simulate(&points, &plan, &mut journal)?;
    let mut findings = Findings {
        schema: 1,
        date: date::today(),
        effort: options.effort.shown(),
        version: env!("CARGO_PKG_VERSION"),
        points,
        simulated,
        rows: Vec::new(),
    };
    findings.rows = findings.summaries();
    let (files, summary) = page::write(&findings, &options.folder)?;
    journal.finish()?;
    Ok(Outcome { summary, claims: Vec::new(), files })
}
