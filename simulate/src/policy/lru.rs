//! LRU: the line that was used least recently leaves.
//!
//! Up to sixteen ways stand in the order of their last use in one word of a set, four bits each,
//! the most recent lowest; more ways have times.

use super::definition::{Policy, Repeats, Replacement, SetHistory};

/// Least recently used.
pub(super) const POLICY: Policy = Policy {
    name: "lru",
    variant: 0,
    repeats: Repeats::ChangeNothing,
    fault: |_| None,
    new: |shape| match shape.ways {
        ..=16 => Box::new(Orders { ways: shape.ways, words: vec![IN_ORDER; shape.sets] }),
        _ => Box::new(LastUses::new(shape.sets, shape.ways)),
    },
    defined: |shape| SetHistory::definition(shape, |history, _| history.by_use[0]),
};

/// Way n at place n.
const IN_ORDER: u64 = 0xfedc_ba98_7654_3210;

/// The lowest bit of each place.
const ONES: u64 = 0x1111_1111_1111_1111;

/// The ways in the order of their last use.
struct Orders {
    ways: u32,
    words: Vec<u64>,
}

impl Replacement for Orders {
    fn used(&mut self, set: usize, way: usize) {
        let word = self.words[set];
        // The place of the way is the lowest one whose bits do not differ from it.
        let differs = word ^ (way as u64 * ONES);
        let equal = differs.wrapping_sub(ONES) & !differs & ONES << 3;
        let place = equal.trailing_zeros() / 4;
        // All that were used since move up by one place.
        let since = (1 << (4 * place)) - 1;
        self.words[set] = word & !(since << 4 | 15) | (word & since) << 4 | way as u64;
    }

    fn victim(&mut self, set: usize) -> usize {
        (self.words[set] >> (4 * (self.ways - 1)) & 15) as usize
    }
}

/// The time of each way's last use.
struct LastUses {
    ways: usize,
    times: Vec<u64>,
    clock: u64,
}

impl LastUses {
    fn new(sets: usize, ways: u32) -> LastUses {
        LastUses { ways: ways as usize, times: vec![0; sets * ways as usize], clock: 0 }
    }
}

impl Replacement for LastUses {
    fn used(&mut self, set: usize, way: usize) {
        self.clock += 1;
        self.times[set * self.ways + way] = self.clock;
    }

    fn victim(&mut self, set: usize) -> usize {
        let times = &self.times[set * self.ways..(set + 1) * self.ways];
        times.iter().enumerate().min_by_key(|(_, time)| **time).map_or(0, |(way, _)| way)
    }
}
