//! Sums by object: misses of each level.

use crate::map::ObjectKey;
use simulate::{LocatedMiss, MissSide, Misses, Totals, CACHES_MAX, TLBS_MAX};
use std::collections::HashMap;

/// Misses of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectMisses {
    /// Of caches, by level.
    pub caches: [Misses; CACHES_MAX],
    /// Of TLBs, by level; loads and stores are both loads.
    pub tlbs: [Misses; TLBS_MAX],
}

impl ObjectMisses {
    /// Adds other misses.
    pub fn add(&mut self, other: &ObjectMisses) {
        let pairs = self.caches.iter_mut().zip(&other.caches);
        for (sum, more) in pairs.chain(self.tlbs.iter_mut().zip(&other.tlbs)) {
            sum.loads += more.loads;
            sum.stores += more.stores;
            sum.instructions += more.instructions;
        }
    }

    /// These misses in the form that models of cycles take.
    pub fn totals(&self) -> Totals {
        Totals { caches: self.caches, tlbs: self.tlbs }
    }
}

/// Misses of an object while the program runs: how many missed which levels. Each miss changes one
/// number, however many levels it missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missed {
    /// By side, and by the levels as bits.
    caches: [[u64; 1 << CACHES_MAX]; SIDES],
    tlbs: [[u64; 1 << TLBS_MAX]; SIDES],
}

/// Fetches, loads, stores.
const SIDES: usize = 3;

impl Missed {
    /// Adds a miss of caches.
    #[inline(always)]
    pub(crate) fn missed_caches(&mut self, miss: &LocatedMiss) {
        self.caches[miss.side() as usize][usize::from(miss.levels()) % (1 << CACHES_MAX)] += 1;
    }

    /// Adds a miss of TLBs.
    #[inline(always)]
    pub(crate) fn missed_pages(&mut self, miss: &LocatedMiss) {
        self.tlbs[miss.side() as usize][usize::from(miss.levels()) % (1 << TLBS_MAX)] += 1;
    }

    /// The misses of each level. Of TLBs, stores are loads.
    pub(crate) fn by_level(&self) -> ObjectMisses {
        let mut sums = ObjectMisses::default();
        let sides = [MissSide::Fetch, MissSide::Load, MissSide::Store];
        for (side, (caches, tlbs)) in sides.into_iter().zip(self.caches.iter().zip(&self.tlbs)) {
            let page_side = if side == MissSide::Store { MissSide::Load } else { side };
            add(&mut sums.caches, side, caches);
            add(&mut sums.tlbs, page_side, tlbs);
        }
        sums
    }
}

/// Adds counts by the levels that were missed to the levels' sums.
fn add(levels: &mut [Misses], side: MissSide, counts: &[u64]) {
    for (level, misses) in levels.iter_mut().enumerate() {
        let missed = counts.iter().enumerate().filter(|(levels, _)| levels >> level & 1 == 1);
        *of_side(misses, side) += missed.map(|(_, count)| count).sum::<u64>();
    }
}

fn of_side(misses: &mut Misses, side: MissSide) -> &mut u64 {
    match side {
        MissSide::Load => &mut misses.loads,
        MissSide::Store => &mut misses.stores,
        MissSide::Fetch => &mut misses.instructions,
    }
}

/// Sums by key.
#[derive(Default)]
pub(crate) struct Tally {
    /// Numbers of objects by places of allocation, variables, calls and variables of functions,
    /// plus one; 0 is none yet.
    sites: Vec<u32>,
    variables: Vec<u32>,
    calls: Vec<u32>,
    locals: Vec<u32>,
    /// Numbers of all others.
    others: HashMap<ObjectKey, u32>,
    keys: Vec<ObjectKey>,
    misses: Vec<Missed>,
    /// The object that was looked up last.
    last: Option<(ObjectKey, u32)>,
}

impl Tally {
    /// The number of an object.
    #[inline(always)]
    pub(crate) fn number(&mut self, key: ObjectKey) -> u32 {
        match self.last {
            Some((last, number)) if last == key => number,
            _ => {
                let number = self.look_up(key);
                self.last = Some((key, number));
                number
            }
        }
    }

    fn look_up(&mut self, key: ObjectKey) -> u32 {
        let (table, index) = match key {
            ObjectKey::Blocks(site) => (&mut self.sites, site),
            ObjectKey::Variable(number) => (&mut self.variables, number),
            ObjectKey::Call(call) => (&mut self.calls, call),
            ObjectKey::Local(number) => (&mut self.locals, number),
            _ => {
                let next = self.keys.len() as u32;
                let number = *self.others.entry(key).or_insert(next);
                return self.known(key, number);
            }
        };
        if let Some(&number) = table.get(index as usize).filter(|&&number| number > 0) {
            return number - 1;
        }
        let number = self.keys.len() as u32;
        if table.len() <= index as usize {
            table.resize((index as usize + 1).next_power_of_two(), 0);
        }
        table[index as usize] = number + 1;
        self.known(key, number)
    }

    /// Makes room for an object that may be new.
    fn known(&mut self, key: ObjectKey, number: u32) -> u32 {
        if number as usize == self.keys.len() {
            self.keys.push(key);
            self.misses.push(Missed::default());
        }
        number
    }

    /// The sums of the object with this number.
    #[inline]
    pub(crate) fn of(&mut self, number: u32) -> &mut Missed {
        &mut self.misses[number as usize]
    }

    /// All objects with their sums.
    pub(crate) fn finish(self) -> Vec<(ObjectKey, ObjectMisses)> {
        self.keys.into_iter().zip(self.misses.iter().map(Missed::by_level)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_count_for_each_level_that_they_missed() {
        let mut missed = Missed::default();
        missed.caches[MissSide::Load as usize][0b111] = 5;
        missed.caches[MissSide::Load as usize][0b001] = 7;
        missed.caches[MissSide::Store as usize][0b011] = 2;
        missed.tlbs[MissSide::Store as usize][0b01] = 3;
        missed.tlbs[MissSide::Load as usize][0b11] = 4;
        missed.tlbs[MissSide::Fetch as usize][0b10] = 6;
        let sums = missed.by_level();
        let loads = sums.caches.map(|misses| (misses.loads, misses.stores, misses.instructions));
        assert_eq!(loads, [(12, 2, 0), (5, 2, 0), (5, 0, 0)]);
        let pages = sums.tlbs.map(|misses| (misses.loads, misses.stores, misses.instructions));
        assert_eq!(pages, [(7, 0, 0), (4, 0, 6)]);
    }
}
