//! `lightfoot study tiling`: the figures of Athanasaki et al. 2006, each three ways.
//!
//! Figures 1 to 4 (misses of the first level, the second, the TLB, and the total cost, over N and
//! T, on the paper's Xeon) as formula, as simulation, and as counts of the real compiled loops:
//! `lightfoot cache` runs this very program on them, once with the loops and once without, and the
//! difference is theirs. Figures 5 to 8 (times over T, serial and with threads) are measured here.
//! Where the host's cores run one thread each, two threads that share one simulated first level
//! show the shift of the best tile, and the page says that they are simulated.

mod claim;
mod findings;
mod page;
mod real;

use crate::options::{Effort, Options};
use crate::outcome::Outcome;
use crate::tile::simulation::{replay, Loops};
use crate::tile::timing::{grid, Subject};
use crate::tile::{powers, timing};
use anyhow::{anyhow, Context, Result};
use findings::{Findings, Point, Times, ELEMENT_BYTES};
use machine::Machine;
use matrix::paper::{cost, Branches, Loop};
use matrix::Tiling;
use present::date;
use simulate::Modelled;

/// How much is done.
struct Plan {
    formula: &'static [usize],
    simulated: usize,
    counted: usize,
    timed: &'static [usize],
    effort: timing::Effort,
}

const QUICK: Plan = Plan {
    formula: &[128, 256, 512, 1024, 2048, 4096],
    simulated: 256,
    counted: 128,
    timed: &[256, 512],
    effort: timing::Effort { passes: 3, seconds: 0.005 },
};
const FULL: Plan = Plan {
    formula: &[128, 256, 512, 1024, 2048, 4096],
    simulated: 1024,
    counted: 512,
    timed: &[256, 512, 1024, 2048],
    effort: timing::Effort { passes: 5, seconds: 0.05 },
};

/// Runs the study and writes its results.
pub(super) fn run(options: &Options) -> Result<Outcome> {
    let quick = options.effort == Effort::Quick;
    let plan = if quick { QUICK } else { FULL };
    let machine = Machine::preset("xeon-dp")?;
    let mut findings = Findings {
        schema: 1,
        date: date::today(),
        effort: if quick { "quick" } else { "full" },
        version: env!("CARGO_PKG_VERSION"),
        machine: machine.description.clone(),
        points: Vec::new(),
        times: Vec::new(),
        missing: Vec::new(),
        claims: Vec::new(),
    };
    misses(&plan, machine, &mut findings)?;
    times(&plan, &mut findings)?;
    findings.claims = claim::check(&findings);
    let files = page::write(&findings, &options.folder)?;
    Ok(Outcome { summary: page::summary(&findings), claims: findings.claims, files })
}

/// Figures 1 to 4.
fn misses(plan: &Plan, machine: Machine, findings: &mut Findings) -> Result<()> {
    let modelled = Modelled::of(&machine).map_err(|error| anyhow!("{error}"))?;
    let levels = modelled.context("the paper's machine has no first-level data cache")?.levels;
    for &n in plan.formula {
        present::tell!("lightfoot: misses for N = {n}");
        for tile in powers(n) {
            let branches = |p| Branches { mispredicted_exits: p };
            let without = cost(&machine, n, tile, ELEMENT_BYTES, branches(0.0))?;
            let with = cost(&machine, n, tile, ELEMENT_BYTES, branches(1.0))?;
            let replayed = |threads| {
                let loops = Loops { n, tile, element_bytes: ELEMENT_BYTES, threads };
                (n <= plan.simulated).then(|| replay(&levels, loops)).transpose()
            };
            let counted = (n <= plan.counted).then(|| real::count(n, tile)).transpose();
            let counted = counted.unwrap_or_else(|error| {
                let reason = format!("counts of the real loops: {error:#}");
                if !findings.missing.contains(&reason) {
                    findings.missing.push(reason);
                }
                None
            });
            findings.points.push(Point {
                n,
                tile,
                formula: [without.l1.total(), without.l2.total(), without.tlb.total()],
                formula_cycles: without.total(),
                formula_cycles_branches: with.total(),
                simulated: replayed(1)?,
                simulated_shared: replayed(2)?,
                counted,
            });
        }
    }
    Ok(())
}

/// Figures 5 to 8.
fn times(plan: &Plan, findings: &mut Findings) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let named = |name: &str| Loop::named(name).expect("the name stands in the list");
    let rows: &[(&str, &str, usize)] =
        &[("5, 6", "MBaLt", 1), ("5", "LaLt", 1), ("7", "MBaLt", 2), ("8", "MBaLt", 4)];
    for &(figure, name, threads) in rows {
        if threads > cpus {
            findings.missing.push(format!("figure {figure}, {threads} threads: this host has {cpus} CPUs"));
            continue;
        }
        for &n in plan.timed {
            present::tell!("lightfoot: times of {name}, {threads} threads, N = {n}");
            let tiles: Vec<Tiling> = powers(n).map(|tile| Tiling { tile, rows: tile, cols: tile }).collect();
            let version = named(name);
            let times = grid::<f32>(Subject::Loops(version, threads), n, &tiles, plan.effort)?;
            findings.times.push(Times { figure, version: version.name, threads, n, times });
        }
    }
    if Machine::host().threads_per_core < 2 {
        findings.missing.push(
            "two threads on one core (Figure 7 as the paper has it): this host's cores run one thread each; measured are two cores, \
             and the columns \"two threads, one core\" are simulated"
                .into(),
        );
    }
    Ok(())
}
