//! Figures 4.8 and 4.9: misses and instructions per lookup, from the compiled lookups under
//! `lightfoot cache`; and the cycles that the machines of Table 4.1 would take by their declared
//! costs.
//!
//! A trial's counts are the difference between a run with it and the run without it; the same
//! difference of an empty loop is subtracted. Every layout of memory has a trial of its own: of ten
//! layouts the median is the paper's median of ten trials, and verdicts are asked for in each.
//! Figure 4.8's cache is the paper's: direct-mapped, 8,192 bytes, stores that miss do not allocate;
//! the block size is a parameter of the cache and of the structure alike. Instructions are those of
//! the processor at hand, not of an Alpha.

use super::lookup::{EMPTY, TRIALS};
use super::simulated::SIMULATED;
use crate::layout::{fix_environment, paddings, Spread};
use anyhow::{anyhow, Context, Result};
use present::order::SortRows;
use search::paper::ALGORITHMS;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, Stdio};

/// Lookups of a trial at most: what a run costs must stay bounded. The paper looks n items up.
const LOOKUPS_MAX: usize = 1 << 16;

/// Lookups of a trial at least: what a run costs beside its lookups must stay small.
const LOOKUPS_MIN: usize = 1 << 12;

/// Runs at a time: counts do not depend on what else runs.
const WORKERS: usize = 2;

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// The simulated machine.
    pub(super) machine: &'static str,
    pub(super) items: usize,
    pub(super) block_bytes: usize,
    /// Layouts of memory, each with a trial of its own.
    pub(super) layouts: usize,
}

impl Setting {
    /// Seconds that all its runs are estimated to take: two of each search in each layout.
    pub(super) fn seconds(&self) -> f64 {
        let run = if self.machine == SIMULATED { 0.12 } else { 0.25 };
        run * (2 * (ALGORITHMS.len() + 1) * self.layouts).div_ceil(WORKERS) as f64
    }
}

/// One point of the figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) machine: String,
    pub(super) algorithm: String,
    pub(super) items: usize,
    pub(super) block_bytes: usize,
    pub(super) lookups: usize,
    /// By layout.
    pub(super) trials: Vec<Trial>,
}

/// One trial in one layout of memory, per lookup.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Trial {
    /// How much longer the environment was made.
    pub(super) padding_bytes: usize,
    /// Loads and stores that missed the first level.
    pub(super) misses: f64,
    pub(super) instructions: f64,
    /// By the machine's declared costs, where it declares any.
    pub(super) cycles: Option<f64>,
}

impl Counted {
    /// The middle and the ends of one figure over the layouts.
    pub(super) fn spread(&self, of: impl Fn(&Trial) -> f64) -> Spread {
        let values: Vec<f64> = self.trials.iter().map(of).collect();
        Spread::of(&values).unwrap_or(Spread { median: f64::NAN, least: f64::NAN, most: f64::NAN })
    }
}

/// Lookups of a trial among `items`.
pub(super) fn lookups_of(items: usize) -> usize {
    items.clamp(LOOKUPS_MIN, LOOKUPS_MAX)
}

/// All algorithms in one setting.
pub(super) fn measure(setting: &Setting, folder: &Path) -> Result<Vec<Counted>> {
    let names: Vec<&str> = [EMPTY].into_iter().chain(ALGORITHMS.iter().map(|a| a.name)).collect();
    let some = |worker: usize| -> Result<Vec<(usize, Vec<Trial>)>> {
        let own = names.iter().enumerate().skip(worker).step_by(WORKERS);
        own.map(|(place, name)| Ok((place, trials(name, setting, folder)?))).collect()
    };
    let parts = std::thread::scope(|scope| -> Vec<_> {
        let some = &some;
        let workers: Vec<_> = (0..WORKERS).map(|worker| scope.spawn(move || some(worker))).collect();
        workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut all = Vec::new();
    for part in parts {
        all.extend(part.map_err(|_| anyhow!("a thread that counts lookups ended early"))??);
    }
    all.sort_rows_by_key(|(place, _)| *place);
    let mut all = all.into_iter().map(|(_, trials)| trials);
    let empty = all.next().unwrap_or_default();
    let point = |(algorithm, own): (&search::paper::Algorithm, Vec<Trial>)| Counted {
        machine: setting.machine.to_owned(),
        algorithm: algorithm.name.to_owned(),
        items: setting.items,
        block_bytes: setting.block_bytes,
        lookups: lookups_of(setting.items),
        trials: own.iter().zip(&empty).map(|(own, empty)| own.less(empty)).collect(),
    };
    Ok(ALGORITHMS.iter().zip(all).map(point).collect())
}

impl Trial {
    /// What is left without `other`.
    fn less(&self, other: &Trial) -> Trial {
        Trial {
            padding_bytes: self.padding_bytes,
            misses: self.misses - other.misses,
            instructions: self.instructions - other.instructions,
            cycles: self.cycles.zip(other.cycles).map(|(own, other)| own - other),
        }
    }

    fn per(&self, lookups: f64) -> Trial {
        Trial {
            padding_bytes: self.padding_bytes,
            misses: self.misses / lookups,
            instructions: self.instructions / lookups,
            cycles: self.cycles.map(|cycles| cycles / lookups),
        }
    }
}

/// One trial in every layout: with it and without it.
fn trials(algorithm: &str, setting: &Setting, folder: &Path) -> Result<Vec<Trial>> {
    let lookups = lookups_of(setting.items);
    let one = |(layout, padding_bytes): (usize, usize)| {
        let words = |trials| command(algorithm, setting, trials, layout % TRIALS);
        let without = totals(setting, &words(1), padding_bytes, folder)?;
        Ok(totals(setting, &words(2), padding_bytes, folder)?.less(&without).per(lookups as f64))
    };
    paddings(setting.layouts).into_iter().enumerate().map(one).collect()
}

/// Runs the lookups under `lightfoot cache` and reads the totals.
fn totals(setting: &Setting, words: &[String], padding_bytes: usize, folder: &Path) -> Result<Trial> {
    let own = std::env::current_exe().context("cannot tell where lightfoot is")?;
    let report = folder.join(format!("{}.json", words[1]));
    let mut command = Command::new(&own);
    fix_environment(&mut command, padding_bytes);
    command.args(["cache", "--machine", setting.machine]);
    if setting.machine == SIMULATED {
        command.args(["--l1d", &format!("8192,1,{}", setting.block_bytes)]);
    } else {
        command.arg("--branches");
    }
    command.args(["--format", "json", "--top", "1", "-o"]).arg(&report).arg("--").arg(&own).args(words);
    let status = command.stdin(Stdio::null()).status().context("cannot run lightfoot cache")?;
    anyhow::ensure!(status.success(), "lightfoot cache -- lightfoot {} ended with {status}", words.join(" "));
    let text =
        std::fs::read_to_string(&report).with_context(|| format!("cannot read {}", report.display()))?;
    let report: serde_json::Value = serde_json::from_str(&text).context("lightfoot cache wrote no JSON")?;
    let field = |name: &str| {
        report["totals"][name].as_f64().with_context(|| format!("lightfoot cache reports no {name}"))
    };
    Ok(Trial {
        padding_bytes,
        misses: field("l1d_load_misses")? + field("l1d_store_misses")?,
        instructions: field("instructions")?,
        cycles: report["cycles"]["declared"]["total"].as_f64(),
    })
}

/// `lightfoot lookups` with `trials` trials, the second of them behind `skip` others.
fn command(algorithm: &str, setting: &Setting, trials: usize, skip: usize) -> Vec<String> {
    let pairs = [
        ("--items", setting.items),
        ("--block-bytes", setting.block_bytes),
        ("--lookups", lookups_of(setting.items)),
        ("--trials", trials),
        ("--skip", skip),
    ];
    let head = ["lookups".to_owned(), algorithm.to_owned()];
    head.into_iter()
        .chain(pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value.to_string()]))
        .collect()
}
