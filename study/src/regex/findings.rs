//! What the study of regular expressions measures.

use super::{card, width};
use crate::outcome::Claim;
use serde::Serialize;

/// What a contender did with a pattern.
#[derive(Debug, Serialize)]
pub(super) struct Timing {
    pub(super) contender: &'static str,
    pub(super) command: String,
    pub(super) gigabytes_per_second: Option<f64>,
    pub(super) missing: Option<String>,
}

/// What a byte costs us.
#[derive(Debug, Default, Serialize)]
pub(super) struct PerByte {
    pub(super) instructions: Option<f64>,
    pub(super) branches: Option<f64>,
    pub(super) missing: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) family: &'static str,
    pub(super) pattern: &'static str,
    pub(super) engine: String,
    pub(super) lines: u64,
    pub(super) timings: Vec<Timing>,
    pub(super) per_byte: PerByte,
}

#[derive(Debug, Serialize)]
pub(super) struct Findings {
    pub(super) schema: u32,
    pub(super) date: String,
    pub(super) effort: &'static str,
    pub(super) version: &'static str,
    pub(super) corpus_bytes: usize,
    pub(super) counted_bytes: usize,
    pub(super) rows: Vec<Row>,
    pub(super) widths: Vec<width::Width>,
    pub(super) claims: Vec<Claim>,
    pub(super) card: card::OnCard,
}
