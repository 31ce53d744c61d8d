//! Quad-age LRU, a family of policies that keep an age of two bits for each way.
//!
//! **Definition.** [`machine::replacement::Qlru`] says what the parts of a name mean. All ways
//! begin with age 3. A hit changes the age of its way; a miss chooses a way and gives it the age of
//! new lines; then the ages grow as the name says. An empty way has the age that its last line had.
//! A set without a line of age 3 gives up way 0.
//!
//! ```text
//! ways      3  2  1  0        a set's word: two bits a way
//! word     11 01 00 10        word & word >> 1 & 01010101 marks the ways of age 3
//! low      01 01 01 01        adding it makes every line a step older
//! ```
//!
//! **Source.** Abel and Reineke 2020, section VI.

use super::definition::{Definition, Fill, Policy, Repeats, Replacement, Shape};
use super::draw::is_rare;
use machine::replacement::{Choice, Insertion, Moment, Qlru, Update};

/// The family; this member is the second level of Ice Lake (`QLRU_H00_M1_R0_U1`).
pub(super) const POLICY: Policy = Policy {
    name: "qlru",
    variant: ICE_LAKE_L2,
    repeats: Repeats::Count,
    fault: |shape| (shape.ways > Qlru::WAYS_MAX).then_some("ages of two bits: at most 32 ways"),
    new: |shape| {
        let rules = Qlru::of_code(shape.variant as u16);
        Box::new(Alone { rules, ages: Ages::new(shape) })
    },
    defined: |shape| {
        let rules = Qlru::of_code(shape.variant as u16);
        Box::new(AloneDefined { rules, ages: AgesDefined::new(shape) })
    },
};

/// The code of `QLRU_H00_M1_R0_U1`; a test compares.
const ICE_LAKE_L2: u64 = 1_850;

/// The member with these rules.
pub(super) fn policy(rules: Qlru) -> Policy {
    Policy { variant: rules.code().into(), ..POLICY }
}

/// The low bit of each way's age.
const LOW: u64 = 0x5555_5555_5555_5555;

/// Ages by set, two bits a way, and the number of lines that entered.
pub(super) struct Ages {
    words: Vec<u64>,
    /// The low bits of the ways that exist.
    low: u64,
    entries: u64,
}

impl Ages {
    pub(super) fn new(shape: Shape) -> Ages {
        let low = LOW & u64::MAX >> (64 - 2 * shape.ways.min(32));
        Ages { words: vec![3 * low; shape.sets], low, entries: 0 }
    }

    pub(super) fn hit(&mut self, rules: Qlru, set: usize, way: usize) {
        let age = self.words[set] >> (2 * way) & 3;
        let new = match age {
            3 => rules.hit.of_3,
            2 => rules.hit.of_2,
            _ => 0,
        };
        self.set_age(set, way, new);
        if rules.moment == Moment::Access {
            self.grow(rules.update, set, self.low & !(1 << (2 * way)));
        }
    }

    pub(super) fn miss(&mut self, rules: Qlru, set: usize) -> Fill {
        if rules.moment == Moment::Miss {
            self.grow(rules.update, set, self.low);
        }
        if rules.choice == Choice::LowestFilledFromTop {
            Fill::Highest
        } else {
            Fill::Lowest
        }
    }

    pub(super) fn enter(&mut self, rules: Qlru, set: usize, way: usize) {
        self.entries += 1;
        let age = match rules.insertion {
            Insertion::Age(age) => age,
            Insertion::Seldom { age, period } if is_rare(self.entries, period) => age,
            Insertion::Seldom { .. } => 3,
        };
        self.set_age(set, way, age);
        if rules.moment == Moment::Access {
            self.grow(rules.update, set, self.low & !(1 << (2 * way)));
        }
    }

    /// The lowest way of age 3, or way 0.
    pub(super) fn oldest(&self, set: usize) -> usize {
        let word = self.words[set];
        let oldest = word & word >> 1 & self.low;
        if oldest == 0 {
            0
        } else {
            oldest.trailing_zeros() as usize / 2
        }
    }

    fn set_age(&mut self, set: usize, way: usize, age: u8) {
        let word = &mut self.words[set];
        *word = *word & !(3 << (2 * way)) | u64::from(age) << (2 * way);
    }

    /// Updates all ages; `others` are the low bits of the ways that were not just used.
    fn grow(&mut self, update: Update, set: usize, others: u64) {
        let word = &mut self.words[set];
        let (growing, by_step) = match update {
            Update::All => (self.low, false),
            Update::AllOthers => (others, false),
            Update::Step => (self.low, true),
            Update::StepOthers => (others, true),
        };
        // An age of 3 anywhere ends a step; what grows to 3 at once looks at what grows only.
        let seen = *word & (3 * if by_step { self.low } else { growing });
        let lacks = if seen & seen >> 1 & LOW != 0 {
            0
        } else if by_step || seen >> 1 & LOW != 0 {
            1
        } else {
            3 - (seen & LOW).min(1)
        };
        *word += lacks * growing;
    }
}

struct Alone {
    rules: Qlru,
    ages: Ages,
}

impl Replacement for Alone {
    fn used(&mut self, set: usize, way: usize) {
        self.ages.hit(self.rules, set, way);
    }

    fn missed(&mut self, set: usize) -> Fill {
        self.ages.miss(self.rules, set)
    }

    fn entered(&mut self, set: usize, way: usize) {
        self.ages.enter(self.rules, set, way);
    }

    fn victim(&mut self, set: usize) -> usize {
        self.ages.oldest(set)
    }
}

/// The definition: the ages of each way of each set, as numbers.
pub(super) struct AgesDefined {
    sets: Vec<Vec<u8>>,
    entries: u64,
}

impl AgesDefined {
    pub(super) fn new(shape: Shape) -> AgesDefined {
        AgesDefined { sets: vec![vec![3; shape.ways as usize]; shape.sets], entries: 0 }
    }

    pub(super) fn hit(&mut self, rules: Qlru, set: usize, way: usize) {
        let age = &mut self.sets[set][way];
        *age = [0, 0, rules.hit.of_2, rules.hit.of_3][usize::from(*age)];
        if rules.moment == Moment::Access {
            self.update(rules.update, set, Some(way));
        }
    }

    pub(super) fn place(&mut self, rules: Qlru, set: usize, filled: &[bool]) -> usize {
        if rules.moment == Moment::Miss {
            self.update(rules.update, set, None);
        }
        let empty = match rules.choice {
            Choice::LowestFilledFromTop => filled.iter().rposition(|filled| !filled),
            Choice::Lowest | Choice::LowestOrFirst => filled.iter().position(|filled| !filled),
        };
        empty.or_else(|| self.sets[set].iter().position(|&age| age == 3)).unwrap_or(0)
    }

    pub(super) fn enter(&mut self, rules: Qlru, set: usize, way: usize) {
        self.entries += 1;
        self.sets[set][way] = match rules.insertion {
            Insertion::Age(age) => age,
            Insertion::Seldom { age, period } => {
                if is_rare(self.entries, period) {
                    age
                } else {
                    3
                }
            }
        };
        if rules.moment == Moment::Access {
            self.update(rules.update, set, Some(way));
        }
    }

    fn update(&mut self, update: Update, set: usize, used: Option<usize>) {
        let ages = &mut self.sets[set];
        let spares = matches!(update, Update::AllOthers | Update::StepOthers);
        let grows = |way: usize| !(spares && used == Some(way));
        let oldest = (0..ages.len()).filter(|&way| grows(way)).map(|way| ages[way]).max().unwrap_or(3);
        let step = match update {
            Update::All | Update::AllOthers => 3 - oldest,
            Update::Step | Update::StepOthers => u8::from(!ages.contains(&3)),
        };
        (0..ages.len()).filter(|&way| grows(way)).for_each(|way| ages[way] += step);
    }
}

struct AloneDefined {
    rules: Qlru,
    ages: AgesDefined,
}

impl Definition for AloneDefined {
    fn used(&mut self, set: usize, way: usize) {
        self.ages.hit(self.rules, set, way);
    }

    fn place(&mut self, set: usize, filled: &[bool]) -> usize {
        self.ages.place(self.rules, set, filled)
    }

    fn entered(&mut self, set: usize, way: usize) {
        self.ages.enter(self.rules, set, way);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listed_member_is_the_one_that_is_named() {
        let named: Qlru = "QLRU_H00_M1_R0_U1".parse().unwrap();
        assert_eq!(u64::from(named.code()), ICE_LAKE_L2);
    }

    /// A sequence worked out by hand from the published rules, four ways.
    #[test]
    fn the_definition_does_what_is_published() {
        let rules: Qlru = "QLRU_H11_M1_R0_U0".parse().unwrap();
        let mut ages = AgesDefined::new(Shape { sets: 1, ways: 4, variant: 0 });
        let mut filled = [false; 4];
        for way in 0..4 {
            assert_eq!(ages.place(rules, 0, &filled), way);
            ages.enter(rules, 0, way);
            filled[way] = true;
        }
        // The fourth entry left no age of 3: all grew by 2.
        assert_eq!(ages.sets[0], [3, 3, 3, 3]);
        ages.hit(rules, 0, 1);
        assert_eq!(ages.sets[0], [3, 1, 3, 3]);
        ages.hit(rules, 0, 1);
        assert_eq!(ages.sets[0], [3, 0, 3, 3]);
        assert_eq!(ages.place(rules, 0, &filled), 0);
        ages.enter(rules, 0, 0);
        assert_eq!(ages.sets[0], [1, 0, 3, 3]);
    }
}
