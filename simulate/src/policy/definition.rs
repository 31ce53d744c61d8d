//! The definition of a replacement policy: a name, a cache's bookkeeping, and a slow, obvious
//! version of the choice.

use super::draw::Draw;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A replacement policy: which line of a full set is replaced.
#[derive(Clone, Copy)]
pub struct Policy {
    /// The name of the policy, or of its family.
    pub name: &'static str,
    /// Which member of a family this is; 0 for a policy alone. With the name it identifies the
    /// policy.
    pub variant: u64,
    /// What a second use in a row of one line does.
    pub repeats: Repeats,
    /// Why a cache of this shape cannot have the policy; `None` if it can.
    pub fault: fn(Shape) -> Option<&'static str>,
    /// Bookkeeping for an empty cache.
    pub new: fn(Shape) -> Box<dyn Replacement>,
    /// The definition for an empty cache. Slow, and obviously right.
    pub defined: fn(Shape) -> Box<dyn Definition>,
}

/// The cache that a policy works in.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Number of sets.
    pub sets: usize,
    /// Lines of a set.
    pub ways: u32,
    /// The policy's `variant`.
    pub variant: u64,
}

/// What it does to a set when the line that was used last there is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Nothing: such references may be left out of a stream.
    ChangeNothing,
    /// It may change what leaves next, so every reference counts.
    Count,
}

/// Which empty way of a set a line enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The lowest one.
    Lowest,
    /// The highest one.
    Highest,
}

/// The data by which a cache chooses victims.
pub trait Replacement: Send {
    /// Notes that a touch has hit the line in `way` of `set`.
    fn used(&mut self, set: usize, way: usize);

    /// Notes that a line is about to enter `set`. Returns which empty way it takes if there is one;
    /// by default the lowest.
    fn missed(&mut self, set: usize) -> Fill {
        let _ = set;
        Fill::Lowest
    }

    /// Notes that a line has entered `way` of `set`. By default this counts as a use.
    fn entered(&mut self, set: usize, way: usize) {
        self.used(set, way);
    }

    /// The way of `set` to replace; all ways of the set hold lines.
    fn victim(&mut self, set: usize) -> usize;
}

/// The rules of a policy, without regard to speed.
pub trait Definition: Send {
    /// A touch hits the line in `way` of `set`.
    fn used(&mut self, set: usize, way: usize);

    /// A line is about to enter `set`; `filled` says which of its ways hold lines. Returns the way
    /// that it takes.
    fn place(&mut self, set: usize, filled: &[bool]) -> usize;

    /// The line enters the way that was chosen.
    fn entered(&mut self, set: usize, way: usize);
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

    /// The definition of a policy that takes the lowest empty way, and in a full set the way that
    /// `victim` finds from the set's history.
    pub fn definition(shape: Shape, victim: Victim) -> Box<dyn Definition> {
        let sets = vec![SetHistory::new(shape.ways as usize); shape.sets];
        Box::new(ByHistory { sets, draw: Draw::new(), victim })
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

/// The way that leaves a full set with this history.
pub type Victim = fn(&SetHistory, &mut Draw) -> usize;

/// The definition of a policy whose choice depends on orders of uses and entries alone.
struct ByHistory {
    sets: Vec<SetHistory>,
    draw: Draw,
    victim: Victim,
}

impl Definition for ByHistory {
    fn used(&mut self, set: usize, way: usize) {
        self.sets[set].used(way);
    }

    fn place(&mut self, set: usize, filled: &[bool]) -> usize {
        let empty = filled.iter().position(|filled| !filled);
        empty.unwrap_or_else(|| (self.victim)(&self.sets[set], &mut self.draw))
    }

    fn entered(&mut self, set: usize, way: usize) {
        self.sets[set].entered(way);
    }
}

/// The fault of a set with more than 64 ways, whose bits do not fit into a word.
pub(super) fn at_most_64_ways(shape: Shape) -> Option<&'static str> {
    (shape.ways > 64).then_some("more ways than its policy can choose among: at most 64 ways")
}

fn move_to_end(ways: &mut Vec<usize>, way: usize) {
    ways.retain(|&other| other != way);
    ways.push(way);
}

impl PartialEq for Policy {
    fn eq(&self, other: &Policy) -> bool {
        (self.name, self.variant) == (other.name, other.variant)
    }
}

impl Eq for Policy {}

impl Hash for Policy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.name, self.variant).hash(state);
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.variant {
            0 => f.write_str(self.name),
            variant => write!(f, "{} {variant}", self.name),
        }
    }
}
