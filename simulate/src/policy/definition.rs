//! The definition of a replacement policy: a name, a cache's bookkeeping, and a slow, obvious
//! version of the choice.

use super::draw::Draw;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A replacement policy: which line of a full set is replaced.
#[derive(Clone, Copy)]
pub struct Policy {
    /// The name in descriptions of machines; it identifies the policy.
    pub name: &'static str,
    /// The largest number of ways that it can choose among.
    pub ways_max: u32,
    /// Bookkeeping for an empty cache of `(sets, ways)`.
    pub new: fn(usize, u32) -> Box<dyn Replacement>,
    /// The definition: the way that is replaced in a full set with this history. Slow, and
    /// obviously right.
    pub victim: fn(&SetHistory, &mut Draw) -> usize,
}

/// The data by which a cache chooses victims.
pub trait Replacement: Send {
    /// Notes that a touch has hit the line in `way` of `set`.
    fn used(&mut self, set: usize, way: usize);

    /// Notes that a line has entered `way` of `set`. By default this counts as a use.
    fn entered(&mut self, set: usize, way: usize) {
        self.used(set, way);
    }

    /// The way of `set` to replace; all ways of the set hold lines.
    fn victim(&mut self, set: usize) -> usize;
}

/// The history of a full set, on which definitions of policies are based.
#[derive(Clone, Debug)]
pub struct SetHistory {
    /// All ways in the order of their last use, the least recent first; entering is a use.
    pub by_use: Vec<usize>,
    /// All ways in the order in which their lines entered, the earliest first.
    pub by_entry: Vec<usize>,
}

impl SetHistory {
    /// The history of an unused set of `ways` ways.
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
