//! Sums by object: misses of each level.

use crate::map::ObjectKey;
use simulate::{LocatedMiss, MissSide, Misses, Totals, CACHES_MAX, TLBS_MAX};
use symbol::ByNumber;

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

    /// The same numbers in the form that models of cycles take.
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
    numbers: ByNumber<u64, u32>,
    keys: Vec<ObjectKey>,
    misses: Vec<ObjectMisses>,
    /// The key that was looked up last.
    last: Option<(ObjectKey, u32)>,
}

/// A key as a number; addresses of programs have 47 bits.
fn word(key: ObjectKey) -> u64 {
    let (kind, value) = match key {
        ObjectKey::Blocks(site) => (1, site.into()),
        ObjectKey::Variable(number) => (2, number.into()),
        ObjectKey::Frame(address) => (3, address),
        ObjectKey::Code(page) => (4, page),
        ObjectKey::Allocator => (5, 0),
        ObjectKey::Unknown => (6, 0),
    };
    (kind << 56) ^ value
}

impl Tally {
    /// The number of an object.
    #[inline]
    pub(crate) fn number(&mut self, key: ObjectKey) -> u32 {
        if let Some((_, number)) = self.last.filter(|last| last.0 == key) {
            return number;
        }
        let next = self.keys.len() as u32;
        let number = *self.numbers.entry(word(key)).or_insert(next);
        if number == next {
            self.keys.push(key);
            self.misses.push(ObjectMisses::default());
        }
        self.last = Some((key, number));
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
