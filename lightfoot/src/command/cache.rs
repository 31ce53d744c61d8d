//! `lightfoot cache`: misses in a simulated hierarchy (ATOM's second tool).

use super::measure::{self, Measured, Simulated};
use crate::cli::Cache;
use crate::engine;
use crate::hierarchy::Hierarchy;
use crate::observe::{complete, Simulator};
use crate::report::Kind;
use anyhow::Result;
use simulate::{plan_levels, WriteBacks};
use std::ffi::OsString;

pub(super) fn run(options: &Cache, all: &[OsString]) -> Result<u8> {
    let prepared = measure::prepare(&options.run, all)?;
    let hierarchy = Hierarchy::new(&options.hierarchy)?;
    let stream = plan_levels(&hierarchy.levels, WriteBacks::Ignored).stream;
    let simulation =
        simulate::Hierarchy::new(&hierarchy.levels).map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut simulator = Simulator::new(simulation);
    let outcome = engine::run(&prepared.command, &prepared.options(stream), &mut simulator);
    let counts = simulator.finish();
    let mut outcome = outcome?;
    complete(&mut outcome.profile, &counts.complex);
    outcome.warnings.extend(hierarchy.warnings.iter().cloned());
    if counts.damaged > 0 {
        outcome
            .warnings
            .push(format!("{} records could not be read: misses are lower bounds", counts.damaged));
    }
    let simulated =
        Simulated { attribution: hierarchy.attribution(&counts), null_reasons: hierarchy.null_reasons() };
    let machine = serde_json::to_value(&hierarchy.machine)?;
    prepared.finish(&Measured { kind: Kind::Cache, outcome, simulated: Some(simulated), machine })
}
