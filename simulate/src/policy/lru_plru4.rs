//! LRU over trees of four ways: the first level of Ice Lake.
//!
//! **Definition.** The ways stand in groups of four, each a tree of three bits. The group that was
//! used least recently gives up the line that its tree points to. With twelve ways this is what
//! uops.info calls LRU3PLRU4 and finds in Ice Lake's L1D. **Source.** Abel and Reineke 2020;
//! `LRU_PLRU4` of nanoBench's simulator.

use super::definition::{Policy, Repeats, Replacement, SetHistory, Shape};
use super::draw::Draw;
use super::tree_plru::leaf;

/// Ways of a tree.
const TREE_WAYS: usize = 4;

/// Trees of four ways in the order of their last use.
pub(super) const POLICY: Policy = Policy {
    name: "lru_plru4",
    variant: 0,
    repeats: Repeats::ChangeNothing,
    fault: |shape| {
        let fits = shape.ways.is_multiple_of(4) && shape.ways <= 64;
        (!fits).then_some("lru_plru4 takes a multiple of 4 ways, at most 64")
    },
    new: |shape| Box::new(Groups::new(shape)),
    defined: |shape| SetHistory::definition(shape, victim),
};

/// By group: three bits of its tree, and the time of its last use.
struct Groups {
    count: usize,
    trees: Vec<u8>,
    times: Vec<u64>,
    clock: u64,
}

impl Groups {
    fn new(shape: Shape) -> Groups {
        let count = shape.ways as usize / TREE_WAYS;
        let groups = shape.sets * count;
        Groups { count, trees: vec![0; groups], times: vec![0; groups], clock: 0 }
    }
}

impl Replacement for Groups {
    fn used(&mut self, set: usize, way: usize) {
        let group = set * self.count + way / TREE_WAYS;
        self.clock += 1;
        self.times[group] = self.clock;
        // Bit 0 is the root, bits 1 and 2 are the nodes of the lower and the upper pair. Each is
        // set where the upper half is the older one.
        let (pair, upper) = (way % TREE_WAYS / 2, way % 2);
        let node = 1 + pair;
        let cleared = self.trees[group] & !(1 | 1 << node);
        self.trees[group] = cleared | u8::from(pair == 0) | u8::from(upper == 0) << node;
    }

    fn victim(&mut self, set: usize) -> usize {
        let times = &self.times[set * self.count..][..self.count];
        let group = times.iter().enumerate().min_by_key(|(_, time)| **time).map_or(0, |(group, _)| group);
        let tree = self.trees[set * self.count + group];
        let pair = usize::from(tree & 1);
        group * TREE_WAYS + 2 * pair + usize::from(tree >> (1 + pair) & 1)
    }
}

/// The definition, from the order of uses alone.
fn victim(history: &SetHistory, _: &mut Draw) -> usize {
    let groups = history.by_use.len() / TREE_WAYS;
    let last_use = |group: &usize| history.by_use.iter().rposition(|way| way / TREE_WAYS == *group);
    let oldest = (0..groups).min_by_key(last_use).unwrap_or(0);
    leaf(history, oldest * TREE_WAYS, TREE_WAYS)
}
