//! Figures 4.8 and 4.9: misses and instructions per lookup, from the compiled lookups under
//! `lightfoot cache`.
//!
//! A trial's counts are the difference between a run with it and the run without it (one trial
//! fewer); the same difference of an empty loop is subtracted. The simulated cache is the paper's:
//! direct-mapped, 8,192 bytes, stores that miss do not allocate; the block size is a parameter of
//! the cache and of the structure alike. Instructions are those of the processor at hand, not of an
//! Alpha.

use super::lookup::{EMPTY, TRIALS_MAX};
use crate::race::median;
use anyhow::{Context, Result};
use search::paper::ALGORITHMS;
use serde::Serialize;
use std::path::Path;
use std::process::{Command, Stdio};

/// Lookups of a trial at most: what a run costs must stay bounded. The paper looks n items up.
const LOOKUPS_MAX: usize = 1 << 16;

/// One point of the figures.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Counted {
    pub(super) algorithm: &'static str,
    pub(super) items: usize,
    pub(super) block_bytes: usize,
    pub(super) lookups: usize,
    pub(super) trials: usize,
    /// Loads and stores that missed, per lookup.
    pub(super) misses: f64,
    /// Per lookup.
    pub(super) instructions: f64,
}

/// Loads and stores that missed, and instructions, of one run.
#[derive(Clone, Copy, Debug)]
struct Totals {
    misses: f64,
    instructions: f64,
}

/// All algorithms at one number of items and one block size.
pub(super) fn measure(
    items: usize,
    block_bytes: usize,
    trials: usize,
    folder: &Path,
) -> Result<Vec<Counted>> {
    let lookups = items.clamp(1 << 12, LOOKUPS_MAX);
    let trials = trials.min(TRIALS_MAX - 1);
    let per_trial = |algorithm: &str| -> Result<Totals> {
        let runs: Result<Vec<Totals>> =
            (1..=trials + 1).map(|run| totals(algorithm, items, block_bytes, lookups, run, folder)).collect();
        let runs = runs?;
        let differences = |of: fn(&Totals) -> f64| -> f64 {
            let each: Vec<f64> = runs.windows(2).map(|pair| of(&pair[1]) - of(&pair[0])).collect();
            median(&each).unwrap_or_default() / lookups as f64
        };
        Ok(Totals {
            misses: differences(|totals| totals.misses),
            instructions: differences(|totals| totals.instructions),
        })
    };
    let empty = per_trial(EMPTY)?;
    ALGORITHMS
        .iter()
        .map(|algorithm| {
            let own = per_trial(algorithm.name)?;
            Ok(Counted {
                algorithm: algorithm.name,
                items,
                block_bytes,
                lookups,
                trials,
                misses: own.misses - empty.misses,
                instructions: own.instructions - empty.instructions,
            })
        })
        .collect()
}

/// Runs the lookups under `lightfoot cache` and reads the totals.
fn totals(
    algorithm: &str,
    items: usize,
    block_bytes: usize,
    lookups: usize,
    trials: usize,
    folder: &Path,
) -> Result<Totals> {
    let own = std::env::current_exe().context("cannot tell where lightfoot is")?;
    let report = folder.join("lookups.json");
    let words = command(algorithm, items, block_bytes, lookups, trials);
    let status = Command::new(&own)
        .args(["cache", "--machine", "ladner2002", "--l1d", &format!("8192,1,{block_bytes}")])
        .args(["--format", "json", "--top", "1", "-o"])
        .arg(&report)
        .arg("--")
        .arg(&own)
        .args(&words)
        .stdin(Stdio::null())
        .status()
        .context("cannot run lightfoot cache")?;
    anyhow::ensure!(status.success(), "lightfoot cache -- lightfoot {} ended with {status}", words.join(" "));
    let text =
        std::fs::read_to_string(&report).with_context(|| format!("cannot read {}", report.display()))?;
    let report: serde_json::Value = serde_json::from_str(&text).context("lightfoot cache wrote no JSON")?;
    let field = |name: &str| {
        report["totals"][name].as_f64().with_context(|| format!("lightfoot cache reports no {name}"))
    };
    Ok(Totals {
        misses: field("l1d_load_misses")? + field("l1d_store_misses")?,
        instructions: field("instructions")?,
    })
}

fn command(algorithm: &str, items: usize, block_bytes: usize, lookups: usize, trials: usize) -> Vec<String> {
    let pairs =
        [("--items", items), ("--block-bytes", block_bytes), ("--lookups", lookups), ("--trials", trials)];
    let head = ["lookups".to_owned(), algorithm.to_owned()];
    head.into_iter()
        .chain(pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value.to_string()]))
        .collect()
}
