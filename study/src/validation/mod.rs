//! `lightfoot study validation`: simulated cache traffic beside what counters measured.

mod error;
mod experiment;
mod kernel;
mod pages;
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
use std::fmt::Write;

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let plan = Plan::of(options.effort);
    let points = points::points()?;
    let mut journal = Journal::open(options, "validation", experiment::all_seconds(&points, &plan)?)?;
    let simulated = experiment::simulate(&points, &plan, &mut journal)?;
    let mut out = String::new();
    for one in &simulated {
        let point = points.iter().find(|point| point.id == one.id).unwrap();
        for link in 0..3 {
            if let (Some(m), Some(s)) = (point.measured[link], one.moved(link)) {
                let (lo, hi) = one.range(link).unwrap();
                let _ = writeln!(out, "{}\t{}\t{}\t{}\t{:?}\t{}\t{}\t{:.3}\t{:.3}\t{:.3}\t{:.3}\t{lo:.3}\t{hi:.3}\t{}", one.id, point.machine, point.kernel, point.n, point.prefetchers, one.model, link, m.load, m.evict, s.load, s.evict, point.pycachesim[link].unwrap_or(f64::NAN));
            }
        }
    }
    std::fs::write(options.folder.join("raw.tsv"), out)?;
    Ok(Outcome::default())
}
