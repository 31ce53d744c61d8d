//! The options of a comparison.

use crate::align::Band;

/// The options of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Error rate of the family of comparisons: the share of undisturbed experiments that may be
    /// called disturbed.
    pub alpha: f64,
    /// The smallest difference of correlations that matters.
    pub effect: f64,
    /// The band of alignments.
    pub band: Band,
    /// Seed of the relabellings if these are drawn at random.
    pub seed: u64,
    /// Number of threads that align traces.
    pub threads: usize,
    /// Whether outer perturbation is computed, which needs alignments.
    pub scope: Scope,
}

/// The kinds of perturbation to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Inner only.
    Inner,
    /// Inner and outer.
    InnerAndOuter,
}

impl Default for Options {
    fn default() -> Options {
        let (alpha, effect, band) = (0.05, 0.1, Band::Slanted(0.1));
        Options { alpha, effect, band, seed: 1, threads: 1, scope: Scope::InnerAndOuter }
    }
}
