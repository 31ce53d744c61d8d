//! What a policy is: a name, a cache's bookkeeping, and a slow definition of the choice.

use super::draw::Draw;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Which line of a full set leaves.
#[derive(Clone, Copy)]
pub struct Policy {
    /// The name in descriptions of machines, by which policies are told apart.
    pub name: &'static str,
    /// The largest number of ways that it can choose among.
    pub ways_max: u32,
    /// Bookkeeping for an empty cache of `(sets, ways)`.
    pub new: fn(usize, u32) -> Box<dyn Replacement>,
    /// The definition: the way that leaves a full set with this past. Slow, and right at a glance.
    pub victim: fn(&SetHistory, &mut Draw) -> usize,
}

/// What a cache remembers of its sets in order to choose victims.
pub trait Replacement: Send {
    /// The line in `way` of `set` was used and was there.
    fn used(&mut self, set: usize, way: usize);

    /// A line entered `way` of `set`. By default a line that enters counts as one that is used.
    fn entered(&mut self, set: usize, way: usize) {
        self.used(set, way);
    }

    /// The way of `set`, all of whose ways hold lines, that is to make room.
    fn victim(&mut self, set: usize) -> usize;
}

/// The past of a full set, as definitions of policies see it.
#[derive(Clone, Debug)]
pub struct SetHistory {
    /// All ways in the order of their last use, the least recent first; entering is a use.
    pub by_use: Vec<usize>,
    /// All ways in the order in which their lines entered, the earliest first.
    pub by_entry: Vec<usize>,
}

impl SetHistory {
    /// The past of a set of `ways` ways that nobody has used.
    pub fn new(ways: usize) -> SetHistory {
        SetHistory { by_use: (0..ways).collect(), by_entry: (0..ways).collect() }
    }

    /// Notes that the line in `way` was used.
    pub fn used(&mut self, way: usize) {
        move_to_end(&mut self.by_use, way);
    }

    /// Notes that a line entered `way`.
    pub fn entered(&mut self, way: usize) {
        move_to_end(&mut self.by_entry, way);
        self.used(way);
    }
}

fn move_to_end(ways: &mut Vec<usize>, way: usize) {
    ways.retain(|&other| other != way);
    ways.push(way);
}

impl PartialEq for Policy {
    fn eq(&self, other: &Policy) -> bool {
        self.name == other.name
    }
}

impl Eq for Policy {}

impl Hash for Policy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
