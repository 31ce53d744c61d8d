//! Counts of the real compiled loops: this program, run by itself under `lightfoot cache`, with the
//! loops and without.

use super::findings::ELEMENT_BYTES;
use crate::tile::simulation::Missed;
use anyhow::{bail, Context, Result};
use present::temporary::Temporary;
use serde_json::Value;
use std::process::Command;

/// Misses of the loops on the paper's machine: a run that multiplies once less a run that does not.
///
/// # Errors
/// When lightfoot cannot run itself, or the report lacks a number.
pub(super) fn count(n: usize, tile: usize) -> Result<Missed> {
    debug_assert_eq!(ELEMENT_BYTES, 4);
    let (with, without) = (report(n, tile, 1)?, report(n, tile, 0)?);
    let difference = |fields: &[&str]| -> Result<u64> {
        let sum = |report: &Value| -> Result<u64> { fields.iter().map(|field| total(report, field)).sum() };
        Ok(sum(&with)?.saturating_sub(sum(&without)?))
    };
    Ok(Missed {
        l1: difference(&["l1d_load_misses", "l1d_store_misses"])?,
        l2: difference(&["l2_misses"]).ok(),
        tlb: difference(&["dtlb_misses"]).ok(),
    })
}

/// The JSON report of one run.
fn report(n: usize, tile: usize, repeat: usize) -> Result<Value> {
    let own = std::env::current_exe().context("cannot find lightfoot itself")?;
    let folder = Temporary::new("tiling")?;
    let out = folder.path().join("report.json");
    let run = Command::new(&own)
        .args(["cache", "--machine", "xeon-dp", "--format", "json", "-o"])
        .arg(&out)
        .arg("--")
        .arg(&own)
        .args(["tile-loop", "--type", "f32", "--n", &n.to_string(), "--tile", &tile.to_string()])
        .args(["--repeat", &repeat.to_string()])
        .output()
        .context("cannot run lightfoot cache")?;
    let text = std::fs::read_to_string(&out);
    if !run.status.success() {
        bail!("lightfoot cache ended with {}: {}", run.status, String::from_utf8_lossy(&run.stderr).trim());
    }
    Ok(serde_json::from_str(&text.context("lightfoot cache wrote no report")?)?)
}

/// A number of the report's totals.
fn total(report: &Value, field: &str) -> Result<u64> {
    let totals = report.get("totals").or_else(|| report.get("total")).unwrap_or(report);
    totals.get(field).and_then(Value::as_u64).with_context(|| format!("the report has no {field}"))
}
