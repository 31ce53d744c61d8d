//! LRU: the line that was used least recently leaves.

use super::definition::{Policy, Repeats, Replacement, SetHistory};

/// Least recently used.
pub(super) const POLICY: Policy = Policy {
    name: "lru",
    variant: 0,
    repeats: Repeats::ChangeNothing,
    fault: |_| None,
    new: |shape| Box::new(LastUses::new(shape.sets, shape.ways)),
    defined: |shape| SetHistory::definition(shape, |history, _| history.by_use[0]),
};

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
