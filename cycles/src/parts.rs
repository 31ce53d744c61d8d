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
        self.base += other.base;
        self.fetch += other.fetch;
        self.branches += other.branches;
        self.l1 += other.l1;
        self.l2 += other.l2;
        self.l3 += other.l3;
        self.memory += other.memory;
        self.tlb += other.tlb;
    }

    /// Writes the parts of a block's instructions by their place to `to`, which is emptied first:
    /// equal shares of what is its base, the branches with the last one, all others with the first.
    /// Instructions without any are left out.
    pub fn spread(&self, count: usize, to: &mut Vec<(usize, Parts)>) {
        to.clear();
        // The first ones have one more each where the division leaves a remainder.
        let divided = |whole: u64| (whole / count.max(1) as u64, whole % count.max(1) as u64);
        let (bases, waits) = (divided(self.base), divided(self.l1));
        let share = |(each, rest): (u64, u64), place: usize| each + u64::from((place as u64) < rest);
        for place in 0..count {
            let mut parts = if place == 0 { *self } else { Parts::default() };
            (parts.base, parts.l1) = (share(bases, place), share(waits, place));
            parts.branches = if place + 1 == count { self.branches } else { 0 };
            if !parts.is_empty() {
                to.push((place, parts));
            }
        }
    }

    /// Whether all parts are 0.
    pub fn is_empty(&self) -> bool {
        // One test of all bits: a comparison with an empty value would be a call.
        self.values().iter().fold(0, |bits, cycles| bits | cycles) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spread_adds_up() {
        let parts = Parts { base: 11, fetch: 5, branches: 7, l1: 2, l2: 1, l3: 3, memory: 4, tlb: 6 };
        let mut spread = Vec::new();
        for count in [1, 2, 3, 20] {
            let mut sum = Parts::default();
            parts.spread(count, &mut spread);
            for &(place, part) in &spread {
                assert!(place < count && part.base <= 11_u64.div_ceil(count as u64));
                assert_eq!(part.branches > 0, place + 1 == count);
                sum.add(&part);
            }
            assert_eq!(sum, parts, "{count}");
        }
        assert_eq!(parts.total(), 39);
    }
}
