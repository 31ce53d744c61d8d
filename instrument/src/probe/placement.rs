//! The offsets of counters, which influence the perturbation as much as their number does.
//!
//! Offsets count from the start of the counters' memory, which is the start of a page. Source:
//! Mytkowicz et al. 2007 on interactions that depend on more than the number of metrics; our own
//! measurements of counters that share a set of a cache.

use std::collections::HashSet;

const LINE_BYTES: u32 = 64;
const PAGE_BYTES: u32 = 4096;

/// How counters are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Counters follow each other without gaps.
    Packed,
    /// Each counter has a line of 64 bytes.
    Line,
    /// Each counter lies at the beginning of a page, so that all share one set of a cache.
    Page,
    /// Counters are scattered pseudo-randomly with this seed, over as many lines as there are
    /// counters (at least 64 KiB).
    Seed(u64),
}

impl Placement {
    /// Offsets of `count` counters of eight bytes.
    pub fn offsets(self, count: usize) -> Vec<u32> {
        let numbers = 0..count as u32;
        match self {
            Placement::Packed => numbers.map(|number| number * 8).collect(),
            Placement::Line => numbers.map(|number| number * LINE_BYTES).collect(),
            Placement::Page => numbers.map(|number| number * PAGE_BYTES).collect(),
            Placement::Seed(seed) => scattered(seed, count),
        }
    }
}

/// Pseudo-random offsets, all different.
fn scattered(mut seed: u64, count: usize) -> Vec<u32> {
    let slots = (count as u64 * 8).next_power_of_two().max(8192);
    let mut taken = HashSet::new();
    let mut offsets = Vec::with_capacity(count);
    while offsets.len() < count {
        // SplitMix64. Source: Steele, Lea, Flood 2014.
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let slot = ((mixed ^ (mixed >> 31)) & (slots - 1)) as u32;
        if taken.insert(slot) {
            offsets.push(slot * 8);
        }
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_counters_share_a_word() {
        for placement in [Placement::Packed, Placement::Line, Placement::Page, Placement::Seed(3)] {
            let offsets = placement.offsets(1000);
            assert_eq!(offsets.iter().collect::<HashSet<_>>().len(), 1000, "{placement:?}");
            assert!(offsets.iter().all(|offset| offset % 8 == 0));
        }
        assert_eq!(Placement::Seed(1).offsets(9), Placement::Seed(1).offsets(9));
        assert_ne!(Placement::Seed(1).offsets(9), Placement::Seed(2).offsets(9));
        assert_eq!(Placement::Page.offsets(3), [0, 4096, 8192]);
    }
}
