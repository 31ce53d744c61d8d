//! Estimates cycles from misses by a declared linear model.
//!
//! cycles ← instructions · base + Σ level misses · penalty + mispredictions · penalty
//!
//! **Units.** Cycles of the simulated machine; a penalty is what a miss of that level costs beyond
//! a hit in it. **Why this way.** It is the model of the source papers (Athanasaki et al. 2006 give
//! such penalties), printed with every estimate so that a reader can object. **Leaves out**
//! overlap: misses that a real processor hides behind each other or behind work count in full, so
//! the estimate is an upper bound where memory parallelism is high.

use crate::{Counts, Misses, Totals, CACHES_MAX, TLBS_MAX};

/// The costs of events, in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CycleModel {
    /// Cycles of an instruction whose references all hit.
    pub per_instruction: f64,
    /// By cache level: cycles of a miss. Behind the last level this is memory.
    pub cache_miss: [f64; CACHES_MAX],
    /// Cycles of a miss of the first-level instruction cache.
    pub fetch_miss: f64,
    /// Cycles of a miss of a load or store, for each TLB level.
    pub tlb_miss: [f64; TLBS_MAX],
    /// Cycles of a miss of an instruction fetch, for each TLB level.
    pub fetch_tlb_miss: [f64; TLBS_MAX],
    /// Cycles of a mispredicted branch.
    pub misprediction: f64,
}

/// The terms of an estimate; [`Cycles::total`] is their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cycles {
    /// Cycles of instructions that hit everywhere.
    pub base: f64,
    /// Cycles of the misses of each cache level.
    pub caches: [f64; CACHES_MAX],
    /// Cycles of the misses of each TLB level.
    pub tlbs: [f64; TLBS_MAX],
    /// Cycles of mispredicted branches.
    pub branches: f64,
}

impl Cycles {
    /// The sum of all terms.
    pub fn total(&self) -> f64 {
        self.base + self.caches.iter().sum::<f64>() + self.tlbs.iter().sum::<f64>() + self.branches
    }
}

impl Default for CycleModel {
    /// Rounded costs for a server of the 2020s.
    fn default() -> CycleModel {
        CycleModel {
            per_instruction: 0.5,
            cache_miss: [12.0, 40.0, 200.0],
            fetch_miss: 12.0,
            tlb_miss: [7.0, 30.0],
            fetch_tlb_miss: [7.0, 30.0],
            misprediction: 17.0,
        }
    }
}

impl CycleModel {
    /// Estimates the cycles of `instructions` with the misses of `counts` and with `mispredictions`
    /// mispredicted branches.
    pub fn estimate(&self, instructions: u64, counts: &Counts, mispredictions: u64) -> Cycles {
        self.cycles(instructions, &counts.totals(), mispredictions)
    }

    /// Estimates cycles from misses that are already summed over sites.
    pub fn cycles(&self, instructions: u64, totals: &Totals, mispredictions: u64) -> Cycles {
        let cost = |misses: u64, penalty: f64| misses as f64 * penalty;
        let both = |misses: Misses, data: f64, fetch: f64| {
            cost(misses.loads + misses.stores, data) + cost(misses.instructions, fetch)
        };
        let cache = |level: usize| {
            let each = self.cache_miss[level];
            both(totals.caches[level], each, if level == 0 { self.fetch_miss } else { each })
        };
        let tlb = |level: usize| both(totals.tlbs[level], self.tlb_miss[level], self.fetch_tlb_miss[level]);
        Cycles {
            base: cost(instructions, self.per_instruction),
            caches: std::array::from_fn(cache),
            tlbs: std::array::from_fn(tlb),
            branches: cost(mispredictions, self.misprediction),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockMisses, SiteMisses};

    #[test]
    fn every_term_counts() {
        let model = CycleModel {
            per_instruction: 1.0,
            cache_miss: [10.0, 100.0, 1000.0],
            fetch_miss: 20.0,
            tlb_miss: [0.5, 0.25],
            fetch_tlb_miss: [1.5, 0.25],
            misprediction: 7.0,
        };
        let counts = Counts {
            sites: vec![SiteMisses { loads: [3, 2, 1], stores: [1, 0, 0], tlbs: [2, 4] }],
            blocks: vec![BlockMisses { fetches: [1, 0, 1], tlbs: [2, 0] }],
            ..Counts::default()
        };
        let cycles = model.estimate(5, &counts, 2);
        let expected = Cycles { base: 5.0, caches: [60.0, 200.0, 2000.0], tlbs: [4.0, 1.0], branches: 14.0 };
        assert_eq!(cycles, expected);
        assert_eq!(cycles.total(), 2284.0);
    }
}
