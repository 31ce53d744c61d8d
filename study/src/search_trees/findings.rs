//! What the study of search trees measures.

use super::{counted, structure, timed};
use crate::outcome::Claim;
use serde::Serialize;

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
    pub(super) modern: Vec<contenders::IndexFigures>,
    pub(super) claims: Vec<Claim>,
}
