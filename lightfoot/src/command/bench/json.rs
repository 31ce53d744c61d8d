//! Results for programs: everything, beside the baseline.

use super::compare::Comparison;
use super::results::SCHEMA;
use anyhow::Result;
use serde_json::{json, Value};

/// The answer as JSON; `docs/report-schema.json` describes it as `bench`.
pub(super) fn json(compared: &Comparison<'_>, failed: &[String]) -> Result<String> {
    let results = compared.results;
    let rows = results.benchmarks.iter().map(|row| {
        let mut value = serde_json::to_value(row)?;
        if compared.baseline.is_some() {
            value["before"] = serde_json::to_value(compared.before(row))?;
        }
        Ok(value)
    });
    let exceeded: Vec<&str> = compared.exceeded.iter().map(|exceeded| &*exceeded.sentence).collect();
    let gone: Vec<&str> = compared.gone.iter().map(|row| &*row.name).collect();
    let answer = json!({
        "schema": SCHEMA,
        "version": results.version,
        "machine": results.machine,
        "virtual_cpu": results.virtual_cpu,
        "cold": results.cold,
        "baseline": compared.baseline,
        "benchmarks": rows.collect::<Result<Vec<Value>>>()?,
        "gone": gone,
        "worse": exceeded,
        "failed": failed,
    });
    Ok(serde_json::to_string_pretty(&answer)? + "\n")
}
