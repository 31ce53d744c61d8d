//! Private levels of one core: sets of ways with LRU.
//!
//! A way of the first level is a slot with all that a hit changes, so that a hit touches one line
//! of the host's memory. Nothing moves at a hit: slots have the times of their last uses, and only
//! a miss looks for the oldest one of its set. The slots that were found lately stand in a table by
//! the lowest bits of their lines, so that most hits look at no set. The second level, which sees
//! only misses, has times of its own. **Leaves out** other policies than LRU, and lines that
//! another level moves here.

use crate::copies::{Held, NONE};
use simulate::Geometry;

/// Entries of the table of slots that were found lately.
const RECENT: usize = 512;

/// The first level of one core.
#[derive(Clone, Debug)]
pub(crate) struct FirstLevel {
    ways: usize,
    sets: Sets,
    slots: Vec<Slot>,
    /// Slots by the lowest bits of their lines.
    recent: Box<[u32; RECENT]>,
}

/// A way of the first level.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Slot {
    /// What the core's copy of the line has while it is here; its time is 0 in an empty slot.
    pub(crate) held: Held,
    /// The line; [`EMPTY_LINE`] in an empty slot.
    line: u64,
    /// The number of the copy.
    pub(crate) copy: u32,
}

const EMPTY_LINE: u64 = u64::MAX;

const EMPTY_SLOT: Slot = Slot { held: Held::LOST, line: EMPTY_LINE, copy: NONE };

/// How the set of a line is found.
#[derive(Clone, Copy, Debug)]
enum Sets {
    /// By its lowest bits.
    Mask(u64),
    /// By the remainder of a division.
    Count(u64),
}

impl Sets {
    fn new(count: u64) -> Sets {
        match count.is_power_of_two() {
            true => Sets::Mask(count - 1),
            false => Sets::Count(count),
        }
    }

    #[inline(always)]
    fn of(self, line: u64) -> usize {
        match self {
            Sets::Mask(mask) => (line & mask) as usize,
            Sets::Count(count) => (line % count) as usize,
        }
    }
}

impl FirstLevel {
    /// An empty level.
    pub(crate) fn new(geometry: Geometry) -> FirstLevel {
        let ways = geometry.ways as usize;
        let slots = vec![EMPTY_SLOT; geometry.sets as usize * ways];
        FirstLevel { ways, sets: Sets::new(geometry.sets), slots, recent: Box::new([0; RECENT]) }
    }

    /// The slot of a line, if the level holds the line.
    #[inline(always)]
    pub(crate) fn find(&mut self, line: u64) -> Option<usize> {
        let slot = self.recent[line as usize % RECENT] as usize;
        if self.slots[slot].line == line {
            return Some(slot);
        }
        self.search(line)
    }

    #[inline(never)]
    fn search(&mut self, line: u64) -> Option<usize> {
        let row = self.row(line);
        let slot = row + self.slots[row..][..self.ways].iter().position(|slot| slot.line == line)?;
        self.recent[line as usize % RECENT] = slot as u32;
        Some(slot)
    }

    /// The first slot of the set of a line.
    fn row(&self, line: u64) -> usize {
        self.sets.of(line) * self.ways
    }

    /// The slot of a line, if it was found lately.
    #[inline(always)]
    pub(crate) fn recent(&mut self, line: u64) -> Option<&mut Slot> {
        let slot = self.recent[line as usize % RECENT] as usize;
        Some(&mut self.slots[slot]).filter(|slot| slot.line == line)
    }

    /// A slot.
    #[inline(always)]
    pub(crate) fn slot(&mut self, slot: usize) -> &mut Slot {
        &mut self.slots[slot]
    }

    /// All slots.
    pub(crate) fn slots(&mut self) -> &mut [Slot] {
        &mut self.slots
    }

    /// The slot for a line that the level does not hold: the one with the least time of its set.
    pub(crate) fn oldest(&self, line: u64) -> usize {
        let row = self.row(line);
        let times = self.slots[row..][..self.ways].iter().map(|slot| slot.held.time);
        let oldest = times.enumerate().min_by_key(|&(_, time)| time).expect("a set has ways");
        row + oldest.0
    }

    /// Puts a copy of a line into a slot of its set; returns what the slot had.
    pub(crate) fn fill(&mut self, slot: usize, line: u64, copy: u32, held: Held) -> Slot {
        self.recent[line as usize % RECENT] = slot as u32;
        std::mem::replace(&mut self.slots[slot], Slot { held, line, copy })
    }

    /// Empties a slot; returns what it had.
    pub(crate) fn empty(&mut self, slot: usize) -> Slot {
        std::mem::replace(&mut self.slots[slot], EMPTY_SLOT)
    }
}

/// A way of the second level, less its line.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// When it was used last, by the level's own clock; 0 of an empty one.
    time: u64,
    /// The number of the core's copy.
    copy: u32,
}

/// The second level of one core.
#[derive(Clone, Debug)]
pub(crate) struct SecondLevel {
    associativity: usize,
    sets: Sets,
    /// The lines of all ways, side by side because each search reads those of a set.
    lines: Vec<u64>,
    ways: Vec<Way>,
    /// Counts the uses of the level.
    time: u64,
}

impl SecondLevel {
    /// An empty level.
    pub(crate) fn new(geometry: Geometry) -> SecondLevel {
        let associativity = geometry.ways as usize;
        let count = geometry.sets as usize * associativity;
        SecondLevel {
            associativity,
            sets: Sets::new(geometry.sets),
            lines: vec![EMPTY_LINE; count],
            ways: vec![Way { time: 0, copy: NONE }; count],
            time: 0,
        }
    }

    /// The ways of the set of a line.
    fn row(&self, line: u64) -> std::ops::Range<usize> {
        let first = self.sets.of(line) * self.associativity;
        first..first + self.associativity
    }

    #[inline(always)]
    fn position(&self, line: u64) -> Option<usize> {
        let row = self.row(line);
        Some(row.start + self.lines[row].iter().position(|&other| other == line)?)
    }

    /// Uses a line: the core's copy of it, if the level holds the line.
    #[inline(always)]
    pub(crate) fn find(&mut self, line: u64) -> Option<u32> {
        let way = self.position(line)?;
        self.time += 1;
        self.ways[way].time = self.time;
        Some(self.ways[way].copy)
    }

    /// Puts a line that the level does not hold into its set; returns the copy whose line left.
    pub(crate) fn insert(&mut self, line: u64, copy: u32) -> Option<u32> {
        let row = self.row(line);
        let times = self.ways[row.clone()].iter().map(|way| way.time);
        let oldest = times.enumerate().min_by_key(|&(_, time)| time).expect("a set has ways");
        let way = row.start + oldest.0;
        self.time += 1;
        self.lines[way] = line;
        let left = std::mem::replace(&mut self.ways[way], Way { time: self.time, copy });
        (left.copy != NONE).then_some(left.copy)
    }

    /// Takes a line away.
    pub(crate) fn remove(&mut self, line: u64) {
        if let Some(way) = self.position(line) {
            self.lines[way] = EMPTY_LINE;
            self.ways[way] = Way { time: 0, copy: NONE };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_used_longest_ago_leaves() {
        let mut level = SecondLevel::new(Geometry::cache(2 * 64, 2, 64));
        assert_eq!((level.insert(10, 0), level.insert(11, 1), level.find(10)), (None, None, Some(0)));
        assert_eq!((level.insert(12, 2), level.find(11)), (Some(1), None));
        level.remove(10);
        assert_eq!((level.find(10), level.insert(13, 3), level.find(12)), (None, None, Some(2)));
    }

    fn used_at(time: u64) -> Held {
        Held { time, ..Held::LOST }
    }

    #[test]
    fn of_the_first_level_the_slot_with_the_least_time_is_the_next() {
        let mut level = FirstLevel::new(Geometry::cache(2 * 64, 2, 64));
        let far = 10 + RECENT as u64;
        for (copy, (line, time)) in [(10, 5), (far, 3)].into_iter().enumerate() {
            let slot = level.oldest(line);
            let left = level.fill(slot, line, copy as u32, used_at(time));
            assert_eq!(left.copy, NONE, "the slot is free");
        }
        let found = [10, far, 10, 12].map(|line| level.find(line));
        assert_eq!(found, [Some(0), Some(1), Some(0), None]);
        assert_eq!(level.oldest(12), 1);
        level.slot(1).held.time = 6;
        assert_eq!(level.oldest(12), 0);
        assert_eq!((level.empty(0).copy, level.find(10), level.find(far)), (0, None, Some(1)));
        level.fill(0, 12, 2, used_at(7));
        assert_eq!((level.find(12), level.oldest(14)), (Some(0), 1));
    }

    #[test]
    fn a_slot_fills_a_line_of_the_host() {
        assert_eq!(size_of::<Slot>(), 64);
    }

    #[test]
    fn sets_need_not_be_a_power_of_two() {
        let mut level = SecondLevel::new(Geometry::cache(3 * 64, 1, 64));
        assert_eq!((level.insert(3, 0), level.insert(4, 1), level.insert(6, 2)), (None, None, Some(0)));
    }
}
