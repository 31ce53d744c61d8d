//! What the study of regular expressions measures.

use super::{analysis, card};
use crate::outcome::Claim;
use serde::{Deserialize, Serialize};

/// What a contender needs for a byte of text, start-up subtracted.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Cost {
    pub(super) contender: String,
    pub(super) command: String,
    pub(super) gigabytes_per_second: Option<f64>,
    /// Cycles of the time stamp counter.
    pub(super) cycles_per_byte: Option<f64>,
    pub(super) instructions_per_byte: Option<f64>,
    /// Mispredicted conditional branches, by a simulated predictor.
    pub(super) branch_misses_per_byte: Option<f64>,
    /// Why something is missing.
    pub(super) missing: Option<String>,
}

/// One pattern.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Row {
    pub(super) family: String,
    pub(super) pattern: String,
    /// What `lightfoot grep` runs for it.
    pub(super) engine: String,
    pub(super) lines: u64,
    pub(super) costs: Vec<Cost>,
    pub(super) analysis: Option<analysis::Analysis>,
}

impl Row {
    /// What a contender needs, if it took part.
    pub(super) fn cost(&self, contender: &str) -> Option<&Cost> {
        self.costs.iter().find(|cost| cost.contender == contender)
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Findings {
    pub(super) schema: u32,
    pub(super) date: String,
    pub(super) effort: &'static str,
    pub(super) version: &'static str,
    pub(super) host: String,
    pub(super) corpus_bytes: usize,
    pub(super) counted_bytes: usize,
    /// Cycles of the time stamp counter in a second; none where the kernel does not say.
    pub(super) stamp_hertz: Option<f64>,
    pub(super) rows: Vec<Row>,
    pub(super) claims: Vec<Claim>,
    pub(super) card: card::OnCard,
}
