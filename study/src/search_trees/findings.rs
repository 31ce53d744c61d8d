//! What the study of search trees measures.

use super::{counted, modern, structure, timed};
use crate::outcome::Claim;
use serde::Serialize;

/// Block sizes of Figure 4.8: the paper's first, then others.
pub(super) const BLOCKS_BYTES: [usize; 3] = [32, 64, 128];

/// The machine whose misses Figure 4.8 shows.
pub(super) const SIMULATED: &str = "ladner2002";

/// The machines of Figures 4.10 and 4.11.
pub(super) const MACHINES: [&str; 2] = ["celeron", "pentium2"];

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Findings {
    pub(super) schema: u32,
    pub(super) date: String,
    pub(super) effort: &'static str,
    pub(super) version: &'static str,
    pub(super) host: String,
    pub(super) counted: Vec<counted::Counted>,
    pub(super) structural: Vec<structure::Structural>,
    pub(super) timed: Vec<timed::Timed>,
    pub(super) modern: Vec<modern::Modern>,
    pub(super) claims: Vec<Claim>,
}
