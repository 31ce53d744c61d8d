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

    /// Adds a miss of caches.
    #[inline]
    pub(crate) fn missed_caches(&mut self, miss: &LocatedMiss) {
        for (level, misses) in self.caches.iter_mut().enumerate() {
            *of_side(misses, miss.side()) += u64::from(miss.missed(level));
        }
    }

    /// Adds a miss of TLBs.
    #[inline]
    pub(crate) fn missed_pages(&mut self, miss: &LocatedMiss) {
        let side = if miss.side() == MissSide::Fetch { MissSide::Fetch } else { MissSide::Load };
        for (level, misses) in self.tlbs.iter_mut().enumerate() {
            *of_side(misses, side) += u64::from(miss.missed(level));
        }
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
    misses: Vec<ObjectMisses>,
}

impl Tally {
    /// The number of an object.
    #[inline]
    pub(crate) fn number(&mut self, key: ObjectKey) -> u32 {
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
            self.misses.push(ObjectMisses::default());
        }
        number
    }

    /// The sums of the object with this number.
    #[inline]
    pub(crate) fn of(&mut self, number: u32) -> &mut ObjectMisses {
        &mut self.misses[number as usize]
    }

    /// All objects with their sums.
    pub(crate) fn finish(self) -> Vec<(ObjectKey, ObjectMisses)> {
        self.keys.into_iter().zip(self.misses).collect()
    }
}
