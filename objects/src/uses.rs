//! What a program does with its data beyond missing it: accesses, bytes used of each line that was
//! fetched, and fields that are used together. It takes every reference.
//!
//! **Bytes used.** A first-level miss fetches a line for the object that missed. The bytes that the
//! thread touches in the line until it misses the line again, or ends, are the bytes used of that
//! fetch. **Visits.** A value of a structure is visited from the first use of one of its fields
//! until sixteen other values of structures were visited meanwhile, about; the fields that a visit
//! used are used together.
//!
//! A line that the first level has dropped cannot be touched again before it is missed again. So
//! the lines of a thread are kept as its first level keeps them, by set in the order of their last
//! use, with some ways more; what leaves a set is done. **Leaves out** the second line of a
//! reference across two lines that misses both, whose bytes count for the fetch before, if the line
//! is still known.

use crate::order::{Visits, FIELDS_MAX};
use event::Access;
use simulate::Geometry;
use std::collections::HashMap;

/// Accesses of an object or field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Bytes of lines that first-level misses fetched.
    pub fetched_bytes: u64,
    /// Bytes of these that were touched before the line was missed again.
    pub used_bytes: u64,
}

impl Uses {
    /// Counts an access.
    pub(crate) fn count(&mut self, access: Access) {
        match access {
            Access::Load => self.loads += 1,
            Access::Store => self.stores += 1,
            Access::Prefetch => {}
        }
    }

    /// Adds other uses.
    pub fn add(&mut self, other: &Uses) {
        self.loads += other.loads;
        self.stores += other.stores;
        self.fetched_bytes += other.fetched_bytes;
        self.used_bytes += other.used_bytes;
    }
}

/// A line that was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fetched {
    /// The object whose miss fetched it.
    object: u32,
    /// Bytes that were touched, by bit.
    touched: u64,
}

/// Ways that a set of [`Lines`] has beyond those of the first level.
const MORE_WAYS: usize = 4;

/// The object of a fetch that does not count.
pub(crate) const NOBODY: u32 = u32::MAX;

/// The number of no line.
const NO_LINE: u64 = u64::MAX;

/// Bytes used of the lines that a thread has fetched and may still have: sets of ways, in the
/// order of their last use.
#[derive(Clone, Debug)]
struct Lines {
    sets: u64,
    ways: usize,
    numbers: Vec<u64>,
    fetched: Vec<Fetched>,
}

impl Lines {
    fn new(sets: u64, ways: usize) -> Lines {
        let slots = sets as usize * ways;
        let none = Fetched { object: 0, touched: 0 };
        Lines { sets, ways, numbers: vec![NO_LINE; slots], fetched: vec![none; slots] }
    }

    /// Makes a line the one of its set that was used last, if it is known. Returns its slot.
    #[inline]
    fn used(&mut self, line: u64) -> Option<usize> {
        let first = (line % self.sets) as usize * self.ways;
        if self.numbers[first] == line {
            return Some(first);
        }
        let way = self.numbers[first..first + self.ways].iter().position(|&number| number == line)?;
        self.numbers[first..=first + way].rotate_right(1);
        self.fetched[first..=first + way].rotate_right(1);
        Some(first)
    }

    /// Notes that a line was fetched. Returns the fetch that is over: its former one, or that of
    /// the line that leaves the set.
    fn fetch(&mut self, line: u64, fetched: Fetched) -> Option<Fetched> {
        let slot = self.used(line);
        let first = (line % self.sets) as usize * self.ways;
        if slot.is_none() {
            self.numbers[first..first + self.ways].rotate_right(1);
            self.fetched[first..first + self.ways].rotate_right(1);
        }
        let before = std::mem::replace(&mut self.numbers[first], line);
        let over = std::mem::replace(&mut self.fetched[first], fetched);
        (before != NO_LINE).then_some(over)
    }

    /// All fetches that are not over.
    fn finish(&self) -> impl Iterator<Item = Fetched> + '_ {
        self.numbers.iter().zip(&self.fetched).filter(|(number, _)| **number != NO_LINE).map(|slot| *slot.1)
    }
}

/// Visits that are open, by a hash of the value's address.
const OPEN: usize = 16;

/// A value that is being visited.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    start: u64,
    layout: u32,
    /// 0: none.
    fields: u128,
}

struct Thread {
    lines: Lines,
    open: [Open; OPEN],
}

/// Uses of all objects.
pub(crate) struct AllUses {
    line_bytes: u64,
    /// What a thread begins with.
    lines: Lines,
    threads: HashMap<u32, Thread>,
    objects: Vec<Uses>,
    visits: HashMap<(u32, u128, u64), u64>,
}

/// The uses of one thread, while a batch of it is read.
pub(crate) struct ThreadUses {
    thread: Thread,
}

impl AllUses {
    /// No uses of a first level; of longer lines, the bytes used are those of each 64 bytes.
    pub(crate) fn new(first: Geometry) -> AllUses {
        let line_bytes = u64::from(first.line_bytes).min(64);
        let parts = u64::from(first.line_bytes) / line_bytes;
        let lines = Lines::new(first.sets * parts, first.ways as usize + MORE_WAYS);
        let (objects, visits) = (Vec::new(), HashMap::new());
        AllUses { line_bytes, lines, threads: HashMap::new(), objects, visits }
    }

    /// Takes a thread's state; [`AllUses::put_back`] ends that.
    pub(crate) fn take(&mut self, thread: u32) -> ThreadUses {
        let new = || Thread { lines: self.lines.clone(), open: [Open::default(); OPEN] };
        ThreadUses { thread: self.threads.remove(&thread).unwrap_or_else(new) }
    }

    /// Puts a thread's state back.
    pub(crate) fn put_back(&mut self, number: u32, uses: ThreadUses) {
        self.threads.insert(number, uses.thread);
    }

    /// The uses of an object by number.
    #[inline]
    pub(crate) fn of(&mut self, object: u32) -> &mut Uses {
        let at = object as usize;
        if self.objects.len() <= at {
            self.objects.resize(at + 1, Uses::default());
        }
        &mut self.objects[at]
    }

    /// A miss fetches the line at an address for an object.
    pub(crate) fn fetch(&mut self, uses: &mut ThreadUses, address: u64, object: u32) {
        let fetched = Fetched { object, touched: 0 };
        let over = uses.thread.lines.fetch(address / self.line_bytes, fetched);
        over.into_iter().for_each(|line| self.evicted(line));
    }

    /// Counts the bytes of a line that is fetched no longer.
    fn evicted(&mut self, line: Fetched) {
        if line.object == NOBODY {
            return;
        }
        let line_bytes = self.line_bytes;
        let uses = self.of(line.object);
        uses.fetched_bytes += line_bytes;
        uses.used_bytes += u64::from(line.touched.count_ones());
    }

    /// Notes that a thread touches bytes.
    #[inline]
    pub(crate) fn touch(&mut self, uses: &mut ThreadUses, address: u64, size_bytes: u64) {
        let end = address.saturating_add(size_bytes.max(1));
        let mut at = address;
        while at < end {
            let offset = at % self.line_bytes;
            let bytes = (self.line_bytes - offset).min(end - at);
            if let Some(slot) = uses.thread.lines.used(at / self.line_bytes) {
                uses.thread.lines.fetched[slot].touched |= (u64::MAX >> (64 - bytes)) << offset;
            }
            at += bytes;
        }
    }

    /// Notes the use of a field of the value that begins at an address.
    #[inline]
    pub(crate) fn visit(&mut self, uses: &mut ThreadUses, layout: u32, start: u64, field: usize) {
        if field >= FIELDS_MAX {
            return;
        }
        let slot = (start.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % OPEN;
        let open = &mut uses.thread.open[slot];
        if (open.start, open.layout) == (start, layout) {
            open.fields |= 1 << field;
            return;
        }
        let fields = 1 << field;
        let before = std::mem::replace(open, Open { start, layout, fields });
        self.close(before);
    }

    fn close(&mut self, visit: Open) {
        if visit.fields != 0 {
            let key = (visit.layout, visit.fields, visit.start % self.line_bytes);
            *self.visits.entry(key).or_default() += 1;
        }
    }

    /// Ends the lines and visits of a thread, whose image has ended.
    pub(crate) fn end(&mut self, thread: u32) {
        if let Some(thread) = self.threads.remove(&thread) {
            thread.lines.finish().for_each(|line| self.evicted(line));
            thread.open.into_iter().for_each(|visit| self.close(visit));
        }
    }

    /// The uses of each object, and the visits of each layout.
    pub(crate) fn finish(mut self) -> (Vec<Uses>, HashMap<u32, Vec<Visits>>) {
        let threads: Vec<u32> = self.threads.keys().copied().collect();
        threads.into_iter().for_each(|thread| self.end(thread));
        let mut visits: HashMap<u32, Vec<Visits>> = HashMap::new();
        for ((layout, fields, start), count) in self.visits {
            visits.entry(layout).or_default().push(Visits { fields, start, count });
        }
        for list in visits.values_mut() {
            list.sort_unstable_by_key(|visit| (std::cmp::Reverse(visit.count), visit.fields, visit.start));
        }
        (self.objects, visits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn bytes_count_for_the_fetch_of_their_line() {
        let mut all = AllUses::new(Geometry::cache(32 << 10, 8, 64));
        let mut thread = all.take(1);
        all.touch(&mut thread, 0x1000, 8);
        all.fetch(&mut thread, 0x1008, 3);
        all.touch(&mut thread, 0x1008, 8);
        all.touch(&mut thread, 0x100c, 8);
        all.fetch(&mut thread, 0x1040, 3);
        // The last bytes of one line and the first of the next one.
        all.touch(&mut thread, 0x103c, 8);
        all.fetch(&mut thread, 0x1000, 4);
        all.put_back(1, thread);
        let (uses, _) = all.finish();
        assert_eq!((uses[3].fetched_bytes, uses[3].used_bytes), (128, 12 + 4 + 4));
        assert_eq!((uses[4].fetched_bytes, uses[4].used_bytes), (64, 0));
    }

    proptest! {
        #[test]
        fn what_a_first_level_has_dropped_is_not_touched_again(
            (sets, ways) in (1u64..4, 1usize..4),
            references in prop::collection::vec((0u64..24, 0u64..64), 1..300),
        ) {
            let mut lines = Lines::new(sets, ways + MORE_WAYS);
            // The cache: lines of each set, the one used last first.
            let mut cache: Vec<Vec<u64>> = vec![Vec::new(); sets as usize];
            // The slow twin keeps each line until it is missed again.
            let mut naive: BTreeMap<u64, Fetched> = BTreeMap::new();
            let (mut over, mut over_naive) = (Vec::new(), Vec::new());
            for (number, (line, byte)) in references.into_iter().enumerate() {
                let set = &mut cache[(line % sets) as usize];
                if !set.contains(&line) {
                    let fetched = Fetched { object: number as u32, touched: 0 };
                    over.extend(lines.fetch(line, fetched));
                    over_naive.extend(naive.insert(line, fetched));
                }
                set.retain(|other| *other != line);
                set.insert(0, line);
                set.truncate(ways);
                let slot = lines.used(line).unwrap();
                lines.fetched[slot].touched |= 1 << byte;
                naive.get_mut(&line).unwrap().touched |= 1 << byte;
            }
            over.extend(lines.finish());
            over_naive.extend(naive.into_values());
            let sorted = |mut list: Vec<Fetched>| {
                list.sort_by_key(|fetched| fetched.object);
                list
            };
            prop_assert_eq!(sorted(over), sorted(over_naive));
        }
    }

    #[test]
    fn fields_of_a_value_are_used_together() {
        let mut all = AllUses::new(Geometry::cache(32 << 10, 8, 64));
        let mut thread = all.take(1);
        for start in [0x1000, 0x1040, 0x1080] {
            all.visit(&mut thread, 2, start, 0);
            all.visit(&mut thread, 2, start, 5);
        }
        all.visit(&mut thread, 2, 0x20c8, FIELDS_MAX);
        all.put_back(1, thread);
        let (_, visits) = all.finish();
        assert_eq!(visits[&2], [Visits { fields: 0b10_0001, start: 0, count: 3 }]);
    }
}
