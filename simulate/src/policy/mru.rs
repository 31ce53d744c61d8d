//! One bit for each way says whether its line was used lately: MRU (also called bit-PLRU), its
//! variant that ignores the filling of a set, and NRU.
//!
//! **Definitions.** A use clears the bit of its way; the lowest way whose bit is set leaves.
//!
//! | name | when all bits are clear |
//! |---|---|
//! | `mru` | the use that cleared the last one sets all others |
//! | `mru_n` | as `mru`, but entries into empty ways change no bits, nor do hits before the set was full |
//! | `nru` | the next miss in a full set sets all before it chooses |
//!
//! **Source.** nanoBench's simulator, which calls them MRU (Nehalem's last level), MRU_N (Sandy
//! Bridge's) and NRU; Jaleel et al. 2010 for NRU.

use super::definition::{at_most_64_ways, Definition, Fill, Policy, Repeats, Replacement, Shape};

/// Bits that are set again by the use that cleared the last one.
pub(super) const POLICY: Policy = Policy {
    name: "mru",
    variant: 0,
    repeats: Repeats::ChangeNothing,
    fault: at_most_64_ways,
    new: |shape| Box::new(Bits::new(shape, Rule::Mru)),
    defined: |shape| Box::new(Unused::new(shape, Rule::Mru)),
};

/// Bits that wait until a set has filled. The use after the filling is the first that counts, so
/// repeats matter.
pub(super) const SLOW_TO_START: Policy = Policy {
    name: "mru_n",
    repeats: Repeats::Count,
    new: |shape| Box::new(Bits::new(shape, Rule::MruN)),
    defined: |shape| Box::new(Unused::new(shape, Rule::MruN)),
    ..POLICY
};

/// Bits that are set again by a miss.
pub(super) const NRU: Policy = Policy {
    name: "nru",
    new: |shape| Box::new(Bits::new(shape, Rule::Nru)),
    defined: |shape| Box::new(Unused::new(shape, Rule::Nru)),
    ..POLICY
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Mru,
    MruN,
    Nru,
}

/// For each set a word whose bits are set for ways that were not used lately, and the number of
/// lines that have entered it through an empty way.
struct Bits {
    rule: Rule,
    all: u64,
    words: Vec<u64>,
    /// Whether the entry that is under way finds a full set.
    full: bool,
    filled: Vec<u8>,
}

impl Bits {
    fn new(shape: Shape, rule: Rule) -> Bits {
        let all = u64::MAX >> (64 - shape.ways.min(64));
        Bits { rule, all, words: vec![all; shape.sets], full: false, filled: vec![0; shape.sets] }
    }

    fn clear(&mut self, set: usize, way: usize) {
        let word = &mut self.words[set];
        *word &= !(1 << way);
        if *word == 0 && self.rule != Rule::Nru {
            *word = self.all & !(1 << way);
        }
    }
}

impl Replacement for Bits {
    fn used(&mut self, set: usize, way: usize) {
        if self.rule != Rule::MruN || u32::from(self.filled[set]) == self.all.count_ones() {
            self.clear(set, way);
        }
    }

    fn missed(&mut self, _set: usize) -> Fill {
        self.full = false;
        Fill::Lowest
    }

    fn entered(&mut self, set: usize, way: usize) {
        if self.full || self.rule != Rule::MruN {
            self.clear(set, way);
        }
        if !self.full && u32::from(self.filled[set]) < self.all.count_ones() {
            self.filled[set] += 1;
        }
    }

    fn victim(&mut self, set: usize) -> usize {
        self.full = true;
        if self.words[set] == 0 {
            self.words[set] = self.all;
        }
        self.words[set].trailing_zeros() as usize
    }
}

/// The definition: for each set, which ways were not used lately, and how many have filled.
struct Unused {
    rule: Rule,
    sets: Vec<Vec<bool>>,
    fills: Vec<usize>,
    enters_full: bool,
}

impl Unused {
    fn new(shape: Shape, rule: Rule) -> Unused {
        let sets = vec![vec![true; shape.ways as usize]; shape.sets];
        Unused { rule, sets, fills: vec![0; shape.sets], enters_full: false }
    }

    fn use_way(&mut self, set: usize, way: usize) {
        let unused = &mut self.sets[set];
        unused[way] = false;
        if self.rule != Rule::Nru && !unused.contains(&true) {
            unused.fill(true);
            unused[way] = false;
        }
    }
}

impl Definition for Unused {
    fn used(&mut self, set: usize, way: usize) {
        if self.rule != Rule::MruN || self.fills[set] >= self.sets[set].len() {
            self.use_way(set, way);
        }
    }

    fn place(&mut self, set: usize, filled: &[bool]) -> usize {
        self.enters_full = !filled.contains(&false);
        if !self.enters_full {
            return filled.iter().position(|filled| !filled).expect("one is empty");
        }
        if !self.sets[set].contains(&true) {
            self.sets[set].fill(true);
        }
        self.sets[set].iter().position(|unused| *unused).expect("one is unused")
    }

    fn entered(&mut self, set: usize, way: usize) {
        if self.enters_full || self.rule != Rule::MruN {
            self.use_way(set, way);
        }
        if !self.enters_full {
            self.fills[set] += 1;
        }
    }
}
