//! Every variant natively and under the engine: the steps of the study.

use super::child::REGION;
use crate::options::Effort;
use anyhow::{Context, Result};
use contenders::Variant;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Processes of each variant; they take turns with those of the other variants.
    pub(super) turns: usize,
    /// Rounds of a process.
    pub(super) rounds: usize,
    /// A round lasts at least so long. Short rounds find the stretches in which nothing else runs.
    pub(super) round_ns: f64,
}

impl Plan {
    pub(super) fn of(effort: Effort) -> Plan {
        match effort {
            Effort::Quick => Plan { turns: 2, rounds: 6, round_ns: 1e7 },
            Effort::Full => Plan { turns: 6, rounds: 8, round_ns: 1e7 },
        }
    }

    /// Seconds of one turn over so many variants: preparation, a round of each, and those after it.
    pub(super) fn turn_seconds(&self, variants: usize) -> f64 {
        variants as f64 * (0.1 + self.rounds as f64 * 1.3 * self.round_ns / 1e9)
    }
}

/// The native times of one variant: nanoseconds of a pass, the least and the middle of the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Timed {
    pub(super) least_ns: f64,
    pub(super) median_ns: f64,
}

/// What the engine counted in one pass, and what it estimated from that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) instructions: f64,
    pub(super) l1_misses: f64,
    /// Misses of the last level.
    pub(super) last_misses: f64,
    /// The declared cost of every event, which every miss pays in full.
    pub(super) declared: f64,
    /// The estimated cycles and their parts.
    pub(super) estimated: f64,
    pub(super) parts: Vec<(String, f64)>,
}

/// One turn: every variant once, natively; nanoseconds of a pass in each round.
pub(super) fn turn(variants: &[Variant], passes: &[usize], plan: &Plan) -> Result<Vec<Vec<f64>>> {
    let one = |(variant, &passes): (&Variant, &usize)| natively(&variant.name, passes, plan.rounds);
    variants.iter().zip(passes).map(one).collect()
}

/// Passes of a round of each variant, from one pass alone.
pub(super) fn passes(variants: &[Variant], plan: &Plan) -> Result<Vec<usize>> {
    let one = |variant: &Variant| {
        let rounds = natively(&variant.name, 1, 2)?;
        let least = rounds.into_iter().fold(f64::INFINITY, f64::min);
        Ok((plan.round_ns / least.max(1.0)).ceil().clamp(1.0, 1e5) as usize)
    };
    variants.iter().map(one).collect()
}

fn natively(name: &str, passes: usize, rounds: usize) -> Result<Vec<f64>> {
    let own = std::env::current_exe().context("cannot tell where lightfoot is")?;
    let output = Command::new(own)
        .args(words(name, passes, rounds))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run lightfoot kernel")?;
    let text = String::from_utf8_lossy(&output.stdout);
    anyhow::ensure!(output.status.success(), "lightfoot kernel {name} ended with {}", output.status);
    let pass = |line: &str| line.parse::<f64>().map(|round| round / passes as f64);
    text.lines().map(pass).collect::<Result<_, _>>().context("lightfoot kernel printed no times")
}

fn words(name: &str, passes: usize, rounds: usize) -> [String; 6] {
    let [passes, rounds] = [passes, rounds].map(|number| number.to_string());
    ["kernel".into(), name.into(), "--passes".into(), passes, "--rounds".into(), rounds]
}

/// The least and the middle of the rounds of all turns, for each variant.
pub(super) fn timed(turns: &[Vec<Vec<f64>>], variant: usize) -> Option<Timed> {
    let mut all: Vec<f64> =
        turns.iter().flat_map(|turn| turn.get(variant).into_iter().flatten()).copied().collect();
    all.sort_unstable_by(f64::total_cmp);
    Some(Timed { least_ns: *all.first()?, median_ns: crate::race::median(&all)? })
}

/// The command that counts a pass, as a user would type it.
pub(super) const COMMAND: &str =
    "lightfoot cache --branches --region kernel --format json -- lightfoot kernel NAME --passes 1 --rounds 1";

/// Runs one pass under the engine.
pub(super) fn counted(variant: &Variant, folder: &Path) -> Result<Counted> {
    let own = std::env::current_exe().context("cannot tell where lightfoot is")?;
    let report = folder.join("report.json");
    let status = Command::new(&own)
        .args(["cache", "--branches", "--region", REGION, "--format", "json", "-o"])
        .arg(&report)
        .arg("--")
        .arg(&own)
        .args(words(&variant.name, 1, 1))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("cannot run lightfoot cache")?;
    anyhow::ensure!(
        status.success(),
        "lightfoot cache -- lightfoot kernel {} ended with {status}",
        variant.name
    );
    let text =
        std::fs::read_to_string(&report).with_context(|| format!("cannot read {}", report.display()))?;
    let report: Value = serde_json::from_str(&text).context("lightfoot cache wrote no JSON")?;
    read(&report)
}

/// The figures of a report.
fn read(report: &Value) -> Result<Counted> {
    let total = |name: &str| report["totals"][name].as_f64();
    let needed =
        |value: Option<f64>, name: &str| value.with_context(|| format!("lightfoot cache reports no {name}"));
    let l1 = ["l1d_load_misses", "l1d_store_misses", "l1i_misses"];
    let cycles = &report["cycles"];
    let parts = cycles["parts"].as_object().into_iter().flatten();
    Ok(Counted {
        instructions: needed(total("instructions"), "instructions")?,
        l1_misses: l1.iter().filter_map(|name| total(name)).sum(),
        last_misses: needed(total("l3_misses").or_else(|| total("l2_misses")), "last-level misses")?,
        declared: needed(cycles["declared"]["total"].as_f64(), "declared costs")?,
        estimated: needed(cycles["total"].as_f64(), "estimated cycles")?,
        parts: parts.filter_map(|(name, part)| Some((name.clone(), part.as_f64()?))).collect(),
    })
}
