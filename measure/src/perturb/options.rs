//! What is asked of the statistics.

use crate::align::Band;

/// What is asked of the statistics.
#[derive(Clone, Debug)]
pub struct Options {
    /// Error of the family of comparisons: how often something undisturbed may be called disturbed.
    pub alpha: f64,
    /// Differences of correlation that are smaller do not matter.
    pub effect: f64,
    /// Where alignments may go.
    pub band: Band,
    /// Seed of the relabellings, where they are drawn.
    pub seed: u64,
    /// Threads that align.
    pub threads: usize,
    /// Whether traces are aligned at all.
    pub scope: Scope,
}

/// Which perturbation is looked for.
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
