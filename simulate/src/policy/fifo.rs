//! FIFO: the line that entered first leaves, however often it was used since.

use super::definition::{Policy, Repeats, Replacement, SetHistory};

/// First in, first out.
pub(super) const POLICY: Policy = Policy {
    name: "fifo",
    variant: 0,
    repeats: Repeats::ChangeNothing,
    fault: |_| None,
    new: |shape| Box::new(Entries::new(shape.sets, shape.ways)),
    defined: |shape| SetHistory::definition(shape, |history, _| history.by_entry[0]),
};

/// The time at which each way's line entered.
struct Entries {
    ways: usize,
    times: Vec<u64>,
    clock: u64,
}

impl Entries {
    fn new(sets: usize, ways: u32) -> Entries {
        Entries { ways: ways as usize, times: vec![0; sets * ways as usize], clock: 0 }
    }
}

impl Replacement for Entries {
    fn used(&mut self, _set: usize, _way: usize) {}

    fn entered(&mut self, set: usize, way: usize) {
        self.clock += 1;
        self.times[set * self.ways + way] = self.clock;
    }

    fn victim(&mut self, set: usize) -> usize {
        let times = &self.times[set * self.ways..(set + 1) * self.ways];
        times.iter().enumerate().min_by_key(|(_, time)| **time).map_or(0, |(way, _)| way)
    }
}
