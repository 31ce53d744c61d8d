//! What the study of perturbation measures.

use super::experiment::Curve;
use super::program::Subject;
use super::synthetic;
use crate::options::Effort;
use measure::perturb::Report;

/// A program without instrumentation, again and again.
pub(super) struct Spread {
    pub(super) subject: &'static Subject,
    /// L1 with L2, and L1 with the TLB, by noise in one layout.
    pub(super) noise: Vec<[Option<f64>; 2]>,
    /// Correlations by size of the environment, without noise.
    pub(super) environment: Vec<[Option<f64>; 2]>,
    /// The two environments that differ most, tested against each other.
    pub(super) layout: Report,
}

pub(super) struct Findings {
    pub(super) date: String,
    pub(super) effort: Effort,
    pub(super) curves: Vec<Curve>,
    pub(super) spread: Spread,
    pub(super) synthetic: synthetic::Flagged,
}
