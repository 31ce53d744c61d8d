//! The parts of estimated cycles.

use serde::Serialize;

/// Estimated cycles, by what they are spent on; the total is their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// Dispatch, units and chains of arithmetic, where every reference hits.
    pub base: u64,
    /// Instructions that are not in the first-level cache.
    pub fetch: u64,
    /// Branches that the predictor gets wrong; 0 where none was run.
    pub branches: u64,
    /// Chains that wait for loads from the first level.
    pub l1: u64,
    /// Waiting for the second level.
    pub l2: u64,
    /// Waiting for the third level.
    pub l3: u64,
    /// Waiting for memory.
    pub memory: u64,
    /// Translations that the first-level TLB does not have.
    pub tlb: u64,
}

/// Names of the parts, in the order of [`Parts::values`].
pub const PART_NAMES: [&str; 8] = ["base", "fetch", "branches", "L1", "L2", "L3", "memory", "TLB"];

impl Parts {
    /// All parts, in the order of their names.
    pub fn values(&self) -> [u64; 8] {
        let Parts { base, fetch, branches, l1, l2, l3, memory, tlb } = *self;
        [base, fetch, branches, l1, l2, l3, memory, tlb]
    }

    /// The sum.
    pub fn total(&self) -> u64 {
        self.values().iter().sum()
    }

    /// Adds the parts of `other`.
    pub fn add(&mut self, other: &Parts) {
        let sums: Vec<u64> = self.values().iter().zip(other.values()).map(|(a, b)| a + b).collect();
        let [base, fetch, branches, l1, l2, l3, memory, tlb] = sums[..] else { return };
        *self = Parts { base, fetch, branches, l1, l2, l3, memory, tlb };
    }
}
