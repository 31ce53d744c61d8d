//! `lightfoot cache`: misses in a simulated hierarchy (ATOM's second tool).

use super::measure::{self, Measured, Prepared, Simulated};
use crate::branches::{BranchSimulator, Predicted};
use crate::cli::Cache;
use crate::engine;
use crate::hierarchy::Hierarchy;
use crate::observe::{complete, Simulator};
use crate::report::Kind;
use crate::simulation::{join, Simulation};
use anyhow::Result;
use instrument::Outcome;
use simulate::{plan_levels, Counts, WriteBacks};
use std::ffi::OsString;

pub(super) fn run(options: &Cache, all: &[OsString]) -> Result<u8> {
    let prepared = measure::prepare(&options.run, all)?;
    if options.branches && options.run.follow_children {
        anyhow::bail!("--branches follows the program alone: leave out --follow-children, or --branches");
    }
    let hierarchy = Hierarchy::new(&options.hierarchy)?;
    let Found { mut outcome, counts, predicted } = simulate(options, &prepared, &hierarchy)?;
    complete(&mut outcome.profile, &counts.complex);
    outcome.warnings.extend(hierarchy.warnings.iter().cloned());
    if counts.damaged > 0 {
        outcome
            .warnings
            .push(format!("{} records could not be read: misses are lower bounds", counts.damaged));
    }
    if let Some(hidden) = predicted.as_ref().map(|p| p.hidden).filter(|&hidden| hidden > 0) {
        let said = format!("{hidden} branches were followed by a signal handler or an end: not predicted");
        outcome.warnings.push(said);
    }
    let machine = serde_json::to_value(&hierarchy.machine)?;
    let simulated = Simulated { hierarchy, counts, predicted };
    prepared.finish(&Measured { kind: Kind::Cache, outcome, simulated: Some(simulated), machine })
}

/// What a run gave.
struct Found {
    outcome: Outcome,
    counts: Counts,
    predicted: Option<Predicted>,
}

fn simulate(options: &Cache, prepared: &Prepared<'_>, hierarchy: &Hierarchy) -> Result<Found> {
    let write_backs = if options.write_backs { WriteBacks::Counted } else { WriteBacks::Ignored };
    let stream = plan_levels(&hierarchy.levels, write_backs).stream;
    let simulation = Simulation::new(&hierarchy.levels, write_backs)?;
    let (command, engine_options) = (&prepared.command, prepared.options(stream));
    if options.branches {
        let mut tool = BranchSimulator::new(simulation, stream);
        let ran = engine::run_tool(command, &engine_options, &mut tool);
        let (images, predicted) = tool.finish();
        return Ok(Found { outcome: ran?.0, counts: join(&images, |_| (0, 0)), predicted: Some(predicted) });
    }
    let mut simulator = Simulator::new(simulation);
    let outcome = engine::run(command, &engine_options, &mut simulator);
    let images = simulator.finish();
    let outcome = outcome?;
    let first = |image: u32| {
        let (site, block) = outcome.profile.images.get(image as usize).copied().unwrap_or_default();
        (site as usize, block as usize)
    };
    let counts = join(&images, first);
    Ok(Found { outcome, counts, predicted: None })
}
