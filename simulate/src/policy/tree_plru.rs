//! Tree-PLRU: a binary tree of bits over the ways points to one that was not used lately.
//!
//! **Definition.** The ways, rounded up to a power of two, are the leaves of a binary tree. The bit
//! at each inner node points to the half that was used longer ago; following the bits from the root
//! finds the victim. A half without ways is never pointed to.
//!
//! ```text
//!            node 1              bit n of a set's word is node n; 1 points to the upper half
//!           /      \
//!       node 2    node 3         children of node n: 2n (lower half) and 2n + 1 (upper half)
//!       /    \    /    \
//!     way 0  1   2     3         leaf of way w: node (leaves + w)
//! ```

use super::definition::{at_most_64_ways, Policy, Repeats, Replacement, SetHistory};
use super::draw::Draw;

/// A binary tree of bits; at most 64 ways, so that a set's bits fit into one word.
pub(super) const POLICY: Policy = Policy {
    name: "plru",
    variant: 0,
    repeats: Repeats::ChangeNothing,
    fault: at_most_64_ways,
    new: |shape| Box::new(Trees { ways: shape.ways as usize, trees: vec![0; shape.sets] }),
    defined: |shape| {
        let victim =
            |history: &SetHistory, _: &mut Draw| leaf(history, 0, history.by_use.len().next_power_of_two());
        SetHistory::definition(shape, victim)
    },
};

/// A word of node bits for each set.
struct Trees {
    ways: usize,
    trees: Vec<u64>,
}

impl Replacement for Trees {
    fn used(&mut self, set: usize, way: usize) {
        // From the leaf to the root, each node points to the half where the way is not.
        let mut node = self.ways.next_power_of_two() + way;
        while node > 1 {
            let lower = node & 1 == 0;
            node >>= 1;
            self.trees[set] = self.trees[set] & !(1 << node) | u64::from(lower) << node;
        }
    }

    fn victim(&mut self, set: usize) -> usize {
        // `count` leaves from way `first` on lie below `node`.
        let (mut node, mut first, mut count) = (1, 0, self.ways.next_power_of_two());
        while count > 1 {
            count /= 2;
            let upper = self.trees[set] >> node & 1 != 0 && first + count < self.ways;
            first += if upper { count } else { 0 };
            node = 2 * node + usize::from(upper);
        }
        first
    }
}

/// The way that the tree over `count` leaves from way `first` on points to, from the order of uses
/// alone.
pub(super) fn leaf(history: &SetHistory, first: usize, count: usize) -> usize {
    let half = count / 2;
    if count == 1 {
        return first;
    }
    let below = |way: &&usize| (first..first + count).contains(*way);
    // The node points away from the half that holds the way that was used last.
    let last = history.by_use.iter().rev().find(below).copied().unwrap_or(first + half);
    let upper_has_ways = first + half < history.by_use.len();
    if last < first + half && upper_has_ways {
        leaf(history, first + half, half)
    } else {
        leaf(history, first, half)
    }
}
