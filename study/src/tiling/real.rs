//! Counts of the real compiled loops: this program, run by itself under `lightfoot cache
//! --branches`, with the loops and without.

use super::findings::{Counted, Unified, LOOPS, PREDICTORS};
use crate::layout::fix_environment;
use crate::tile::simulation::Missed;
use crate::tile::POWERS;
use anyhow::{bail, Context, Result};
use present::temporary::Temporary;
use serde_json::Value;
use std::process::Command;

/// Which loops run on what.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) loops: &'a str,
    pub(super) n: usize,
    pub(super) tile: usize,
    /// Options of `lightfoot cache` beside the machine's.
    pub(super) options: &'a [&'a str],
}

impl Run<'_> {
    /// What the loops cost: a run that multiplies once less a run that does not.
    fn difference(&self, fields: &[&str]) -> Result<Vec<Option<u64>>> {
        let (with, without) = (self.report(1)?, self.report(0)?);
        let of = |field: &&str| Some(total(&with, field)?.saturating_sub(total(&without, field)?));
        Ok(fields.iter().map(of).collect())
    }

    /// The JSON report of one run.
    fn report(&self, repeat: usize) -> Result<Value> {
        let own = std::env::current_exe().context("cannot find lightfoot itself")?;
        Temporary::remove_abandoned("tiling");
        let folder = Temporary::new("tiling")?;
        let out = folder.path().join("report.json");
        let mut command = Command::new(&own);
        command.args(["cache", "--machine", "xeon-dp", "--format", "json"]).args(self.options);
        command.arg("-o").arg(&out).arg("--").arg(&own).args(["tile-loop", "--loop", self.loops]);
        command.args(["--type", "f32", "--n", &self.n.to_string(), "--tile", &self.tile.to_string()]);
        command.args(["--repeat", &repeat.to_string()]);
        fix_environment(&mut command, 0);
        let run = command.output().context("cannot run lightfoot cache")?;
        if !run.status.success() {
            let said = String::from_utf8_lossy(&run.stderr);
            bail!("lightfoot cache ended with {}: {}", run.status, said.trim());
        }
        let text = std::fs::read_to_string(&out).context("lightfoot cache wrote no report")?;
        Ok(serde_json::from_str(&text)?)
    }
}

/// Loops, predictor, N and T of every count: N = 256 where T fits it, for the mispredictions of an
/// end hardly depend on N, which two counts at N = 512 show.
pub(super) fn counts() -> Vec<(&'static str, &'static str, usize, usize)> {
    let mut counts = Vec::new();
    for loops in LOOPS {
        for predictor in PREDICTORS {
            counts.extend(POWERS.iter().map(|&tile| (loops, predictor, tile.max(256), tile)));
        }
    }
    counts.extend([32, 64].map(|tile| (LOOPS[0], PREDICTORS[0], 512, tile)));
    counts
}

/// Misses, instructions and mispredictions of the loops on the paper's machine.
///
/// # Errors
/// When lightfoot cannot run itself, or the report lacks a number.
pub(super) fn count(loops: &str, predictor: &str, n: usize, tile: usize) -> Result<Counted> {
    let run = Run { loops, n, tile, options: &["--branches", "--predictor", predictor] };
    let fields = [
        "l1d_load_misses",
        "l1d_store_misses",
        "l2_misses",
        "dtlb_misses",
        "instructions",
        "branch_mispredictions",
    ];
    let [loads, stores, l2, tlb, instructions, mispredictions] = run.difference(&fields)?[..] else {
        bail!("the report has other columns");
    };
    let needed = |value: Option<u64>, field| value.with_context(|| format!("the report has no {field}"));
    Ok(Counted {
        loops: loops.into(),
        predictor: predictor.into(),
        n,
        tile,
        missed: Missed { l1: needed(loads, fields[0])? + needed(stores, fields[1])?, l2, tlb },
        instructions: needed(instructions, fields[4])?,
        mispredictions: needed(mispredictions, fields[5])?,
    })
}

/// Misses of L2 without a first level of instructions, so that it holds data alone, and with one.
///
/// # Errors
/// When lightfoot cannot run itself, or the report lacks the second level.
pub(super) fn unified(n: usize, tile: usize) -> Result<Unified> {
    let misses = |options: &[&str]| -> Result<u64> {
        let run = Run { loops: "MBaLt", n, tile, options };
        run.difference(&["l2_misses"])?[0].context("the report has no l2_misses")
    };
    Ok(Unified { n, tile, data: misses(&[])?, both: misses(&["--l1i", "16K,8,64"])? })
}

/// A number of the report's totals.
fn total(report: &Value, field: &str) -> Option<u64> {
    report.get("totals")?.get(field)?.as_u64()
}
