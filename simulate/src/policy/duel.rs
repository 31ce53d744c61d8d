//! Set dueling: each of two policies always governs its leader sets, and a counter of their misses
//! says which of both governs all other sets.
//!
//! **Definition.** A cache of S sets has L leaders of each policy. Its sets stand in L groups of
//! S / L neighbours. Group g has the first policy's leader at offset g modulo S / L, and the
//! second's half a group behind it. The counter has ten bits and starts just below its middle. A
//! line that enters a leader of the first policy adds 1, one that enters a leader of the second
//! takes 1 away. From the middle on the second policy governs the followers. Both policies work on
//! the same ages, as one circuit would.
//!
//! **Source.** Qureshi, Jaleel, Patt, Steely and Emer 2007, with the leaders at fixed offsets.

use super::definition::{Definition, Fill, Policy, Repeats, Replacement, Shape};
use super::qlru::{Ages, AgesDefined};
use machine::replacement::{Duel, Qlru};

/// Two members of the family of ages. As listed: `QLRU_H11_M1_R1_U2` and `QLRU_H11_MR161_R1_U2`
/// (the last level of Ivy Bridge) with one leader each.
pub(super) const POLICY: Policy = Policy {
    name: "duel",
    variant: IVY_BRIDGE_L3,
    repeats: Repeats::Count,
    fault: |shape| {
        let (leaders, sets) = (of_code(shape.variant).leaders as usize, shape.sets);
        if shape.ways > Qlru::WAYS_MAX {
            Some("ages of two bits: at most 32 ways")
        } else if leaders == 0 || !sets.is_multiple_of(leaders) || sets / leaders < 2 {
            Some("leader sets divide the sets, and are at most half as many")
        } else {
            None
        }
    },
    new: |shape| Box::new(Dueling::new(shape)),
    defined: |shape| Box::new(DuelDefined::new(shape)),
};

/// The code of the listed duel; a test compares.
const IVY_BRIDGE_L3: u64 = 1 << 32 | 1_188 << 16 | 948;

/// Half of the counter's range, from which on the second policy governs.
const MIDDLE: u16 = 512;

/// The policy of these rivals.
pub(super) fn policy(duel: Duel) -> Policy {
    let variant =
        u64::from(duel.leaders) << 32 | u64::from(duel.second.code()) << 16 | u64::from(duel.first.code());
    Policy { variant, ..POLICY }
}

fn of_code(variant: u64) -> Duel {
    let (first, second) = (Qlru::of_code(variant as u16), Qlru::of_code((variant >> 16) as u16));
    Duel { first, second, leaders: (variant >> 32) as u32 }
}

/// The policy that governs a set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    First,
    Second,
    Follower,
}

/// Ages, the role of each set, and the counter.
struct Dueling {
    rivals: [Qlru; 2],
    roles: Vec<Role>,
    counter: u16,
    ages: Ages,
}

impl Dueling {
    fn new(shape: Shape) -> Dueling {
        let Duel { first, second, leaders } = of_code(shape.variant);
        let group_sets = shape.sets / leaders.max(1) as usize;
        let mut roles = vec![Role::Follower; shape.sets];
        for (group, roles) in roles.chunks_mut(group_sets).enumerate() {
            roles[group % group_sets] = Role::First;
            roles[(group + group_sets / 2) % group_sets] = Role::Second;
        }
        Dueling { rivals: [first, second], roles, counter: MIDDLE - 1, ages: Ages::new(shape) }
    }

    fn rules(&self, set: usize) -> Qlru {
        match self.roles[set] {
            Role::First => self.rivals[0],
            Role::Second => self.rivals[1],
            Role::Follower => self.rivals[usize::from(self.counter >= MIDDLE)],
        }
    }
}

impl Replacement for Dueling {
    fn used(&mut self, set: usize, way: usize) {
        self.ages.hit(self.rules(set), set, way);
    }

    fn missed(&mut self, set: usize) -> Fill {
        match self.roles[set] {
            Role::First => self.counter = (self.counter + 1).min(2 * MIDDLE - 1),
            Role::Second => self.counter = self.counter.saturating_sub(1),
            Role::Follower => {}
        }
        self.ages.miss(self.rules(set), set)
    }

    fn entered(&mut self, set: usize, way: usize) {
        self.ages.enter(self.rules(set), set, way);
    }

    fn victim(&mut self, set: usize) -> usize {
        self.ages.oldest(set)
    }
}

/// The definition: the counter as a number, and roles found anew for each set.
struct DuelDefined {
    duel: Duel,
    sets: usize,
    counter: i32,
    ages: AgesDefined,
}

impl DuelDefined {
    fn new(shape: Shape) -> DuelDefined {
        let (duel, ages) = (of_code(shape.variant), AgesDefined::new(shape));
        DuelDefined { duel, sets: shape.sets, counter: 511, ages }
    }

    /// The leader sets of the first policy, or of the second.
    fn leads(&self, set: usize, behind: usize) -> bool {
        let group_sets = self.sets / self.duel.leaders as usize;
        let leader = |group: usize| group * group_sets + (group + behind) % group_sets;
        (0..self.duel.leaders as usize).any(|group| leader(group) == set)
    }

    fn leads_first(&self, set: usize) -> bool {
        self.leads(set, 0)
    }

    fn leads_second(&self, set: usize) -> bool {
        self.leads(set, self.sets / self.duel.leaders as usize / 2)
    }

    fn rules(&self, set: usize) -> Qlru {
        if self.leads_first(set) || !self.leads_second(set) && self.counter < 512 {
            self.duel.first
        } else {
            self.duel.second
        }
    }
}

impl Definition for DuelDefined {
    fn used(&mut self, set: usize, way: usize) {
        self.ages.hit(self.rules(set), set, way);
    }

    fn place(&mut self, set: usize, filled: &[bool]) -> usize {
        self.counter += i32::from(self.leads_first(set)) - i32::from(self.leads_second(set));
        self.counter = self.counter.clamp(0, 1023);
        self.ages.place(self.rules(set), set, filled)
    }

    fn entered(&mut self, set: usize, way: usize) {
        self.ages.enter(self.rules(set), set, way);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listed_duel_is_the_one_that_is_named() {
        let named: Duel = "duel:QLRU_H11_M1_R1_U2:QLRU_H11_MR161_R1_U2:1".parse().unwrap();
        assert_eq!(policy(named).variant, IVY_BRIDGE_L3);
        assert_eq!(of_code(IVY_BRIDGE_L3), named);
    }
}
