//! What the study of tile sizes measures.

use crate::outcome::Claim;
use crate::tile::simulation::Missed;
use crate::tile::timing::Timed;
use serde::Serialize;

/// The paper's data: its T = 64 for 16 KB means elements of 4 bytes.
pub(super) const ELEMENT_BYTES: usize = 4;

/// One N and T on the paper's machine.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    pub(super) n: usize,
    pub(super) tile: usize,
    /// Section 3: misses of L1, L2, TLB, and cycles without the branch term.
    pub(super) formula: [f64; 3],
    pub(super) formula_cycles: f64,
    /// Cycles with p = 1, every end of an innermost loop mispredicted.
    pub(super) formula_cycles_branches: f64,
    pub(super) simulated: Option<Missed>,
    /// Two threads that share the core's caches.
    pub(super) simulated_shared: Option<Missed>,
    /// The compiled loops, run under `lightfoot cache`.
    pub(super) counted: Option<Missed>,
}

/// Times of one version for one N.
#[derive(Debug, Serialize)]
pub(super) struct Times {
    pub(super) figure: &'static str,
    pub(super) version: &'static str,
    pub(super) threads: usize,
    pub(super) n: usize,
    pub(super) times: Vec<Timed>,
}

#[derive(Debug, Serialize)]
pub(super) struct Findings {
    pub(super) schema: u32,
    pub(super) date: String,
    pub(super) effort: &'static str,
    pub(super) version: &'static str,
    pub(super) machine: String,
    pub(super) points: Vec<Point>,
    pub(super) times: Vec<Times>,
    pub(super) missing: Vec<String>,
    pub(super) claims: Vec<Claim>,
}
