//! What tests of rows of data share: the simulated machine, and how a report is read.

use crate::bench::{json, lightfoot, Bench};
use serde_json::Value;
use std::path::Path;

/// The misses whose rows add up to those of the run.
pub(crate) const MISSES: [&str; 6] =
    ["l1i_misses", "l1d_load_misses", "l1d_store_misses", "l2_misses", "l3_misses", "dtlb_misses"];

/// The machine: small caches and TLBs of LRU.
pub(crate) const MACHINE: [&str; 4] = ["--machine", "zen4", "--l1d", "32K,8,64"];

/// The report of a program under `lightfoot cache` with these options, on the machine.
pub(crate) fn report(bench: &Bench, program: &Path, options: &[&str]) -> Value {
    let lightfoot = lightfoot().within(bench.path()).arg("cache").args(MACHINE);
    let ran = lightfoot.args(["--format", "json"]).args(options).arg("--").arg(program).run();
    ran.ends_with(0);
    json(ran.said().as_bytes())
}

/// The rows of a table of objects.
pub(crate) fn rows<'a>(report: &'a Value, table: &str) -> &'a [Value] {
    report["objects"][table].as_array().unwrap()
}

/// The sum of a column.
pub(crate) fn sum<'a>(rows: impl IntoIterator<Item = &'a Value>, column: &str) -> u64 {
    rows.into_iter().map(|row| row[column].as_u64().unwrap_or(0)).sum()
}

/// Misses of the first level: loads and stores.
pub(crate) fn first_level(row: &Value) -> (u64, u64) {
    (row["l1d_load_misses"].as_u64().unwrap(), row["l1d_store_misses"].as_u64().unwrap())
}
