//! Private levels of one core: sets of ways with LRU.
//!
//! Nothing moves at a hit: ways have the times of their last uses, and only a miss looks for the
//! oldest one of its set. The lines of the first level that were found lately stand in a table by
//! their lowest bits, so that most hits look at no set. The second level, which sees only misses,
//! has times of its own. A search compares the lowest 32 bits of all lines of a set at once. What
//! both levels know of a line stands in the first one, so that a line that leaves it touches no
//! memory of its own. **Leaves out** other policies than LRU, and lines that another level moves
//! here.

use crate::copies::NONE;
use simulate::Geometry;
use std::hint::select_unpredictable;

/// Entries of the table of lines that were found lately.
pub(crate) const RECENT: usize = 512;

/// The first level of one core.
#[derive(Clone, Debug)]
pub(crate) struct FirstLevel {
    associativity: usize,
    sets: Sets,
    tags: Tags,
    ways: Vec<Held>,
    /// When the ways were used last, by the core's clock; 0 of an empty one.
    times: Vec<u64>,
    /// Whether the second level has the line of a way, too.
    in_second: Vec<bool>,
    /// Lines of the level by their lowest bits.
    recent: Box<[Held; RECENT]>,
}

/// A line that the first level holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// The line; [`EMPTY_LINE`] if none is held.
    pub(crate) line: u64,
    /// The number of the core's copy.
    pub(crate) copy: u32,
    /// The way.
    pub(crate) way: u32,
}

/// Bits of a line by which ways are searched.
const TAG_BITS: u32 = u32::BITS;

const EMPTY_LINE: u64 = u64::MAX;

const NOT_HELD: Held = Held { line: EMPTY_LINE, copy: NONE, way: 0 };

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

/// The lowest bits of the lines of all ways, side by side because a search reads those of a set.
#[derive(Clone, Debug)]
struct Tags(Vec<u32>);

impl Tags {
    fn new(ways: usize) -> Tags {
        Tags(vec![EMPTY_LINE as u32; ways])
    }

    /// Sets the tag of a way; returns the former one.
    fn set(&mut self, way: usize, line: u64) -> u32 {
        std::mem::replace(&mut self.0[way], line as u32)
    }

    /// The way of a row that has a line, if `has` says so of one.
    #[inline(always)]
    fn find(&self, row: std::ops::Range<usize>, line: u64, has: impl Fn(usize) -> bool) -> Option<usize> {
        match row.len() {
            // The usual numbers of ways, compared at once.
            8 => self.find_among::<8>(row.start, line, has),
            16 => self.find_among::<16>(row.start, line, has),
            _ => row.into_iter().find(|&way| self.0[way] == line as u32 && has(way)),
        }
    }

    #[inline(always)]
    fn find_among<const WAYS: usize>(
        &self,
        first: usize,
        line: u64,
        has: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let row = self.0[first..].first_chunk::<WAYS>()?;
        let mut equal = 0u32;
        for (way, &tag) in row.iter().enumerate() {
            equal |= u32::from(tag == line as u32) << way;
        }
        while equal != 0 {
            let way = first + equal.trailing_zeros() as usize;
            if has(way) {
                return Some(way);
            }
            equal &= equal - 1;
        }
        None
    }
}

/// The index of the least time. Which one it is cannot be foreseen, so there is no branch.
#[inline(always)]
fn least(times: impl Iterator<Item = u64>) -> usize {
    let mut least = (u64::MAX, 0);
    for (way, time) in times.enumerate() {
        let is_less = time < least.0;
        least = (select_unpredictable(is_less, time, least.0), select_unpredictable(is_less, way, least.1));
    }
    least.1
}

impl FirstLevel {
    /// An empty level.
    pub(crate) fn new(geometry: Geometry) -> FirstLevel {
        let associativity = geometry.ways as usize;
        let count = geometry.sets as usize * associativity;
        FirstLevel {
            associativity,
            sets: Sets::new(geometry.sets),
            tags: Tags::new(count),
            ways: vec![NOT_HELD; count],
            times: vec![0; count],
            in_second: vec![false; count],
            recent: Box::new([NOT_HELD; RECENT]),
        }
    }

    /// Uses a line at a time: the core's copy of it, if the level holds the line.
    #[inline(always)]
    pub(crate) fn find(&mut self, line: u64, now: u64) -> Option<u32> {
        let mut held = self.recent[line as usize % RECENT];
        if held.line != line {
            held = self.search(line)?;
        }
        self.times[held.way as usize] = now;
        Some(held.copy)
    }

    #[inline(never)]
    fn search(&mut self, line: u64) -> Option<Held> {
        let held = self.ways[self.position(line)?];
        self.recent[line as usize % RECENT] = held;
        Some(held)
    }

    #[inline(never)]
    fn position(&self, line: u64) -> Option<usize> {
        self.tags.find(self.row(line), line, |way| self.ways[way].line == line)
    }

    /// The ways of the set of a line.
    fn row(&self, line: u64) -> std::ops::Range<usize> {
        let first = self.sets.of(line) * self.associativity;
        first..first + self.associativity
    }

    /// Lines that were found lately, by their lowest bits, and the times of all ways.
    #[inline(always)]
    pub(crate) fn recent(&mut self) -> (&[Held; RECENT], &mut [u64]) {
        (&self.recent, &mut self.times)
    }

    /// Puts a line that the level does not hold into its set, used at a time. Returns the copy
    /// whose line left, and whether the second level has that.
    pub(crate) fn insert(&mut self, line: u64, copy: u32, now: u64, in_second: bool) -> Option<(u32, bool)> {
        let row = self.row(line);
        let way = row.start + least(self.times[row].iter().copied());
        let held = Held { line, copy, way: way as u32 };
        let left = std::mem::replace(&mut self.ways[way], held);
        let stays = std::mem::replace(&mut self.in_second[way], in_second);
        self.times[way] = now;
        self.tags.set(way, line);
        self.forget(left.line);
        self.recent[line as usize % RECENT] = held;
        (left.copy != NONE).then_some((left.copy, stays))
    }

    /// A line has left the second level; returns whether this one holds it.
    pub(crate) fn has_left_second(&mut self, line: u64) -> bool {
        let way = self.position(line);
        way.is_some_and(|way| std::mem::replace(&mut self.in_second[way], false))
    }

    /// Takes a line away.
    pub(crate) fn remove(&mut self, line: u64) {
        if let Some(way) = self.position(line) {
            self.tags.set(way, EMPTY_LINE);
            (self.ways[way], self.times[way]) = (NOT_HELD, 0);
            self.forget(line);
        }
    }

    /// A line is no longer among those found lately.
    fn forget(&mut self, line: u64) {
        let recent = &mut self.recent[line as usize % RECENT];
        // Whether it was is not foreseen, so there is no branch.
        *recent = if recent.line == line { NOT_HELD } else { *recent };
    }
}

/// A way of the second level.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// The bits of the line beyond those of its tag.
    high: u32,
    /// The number of the core's copy.
    copy: u32,
    /// When it was used last, by the level's own clock; 0 of an empty one.
    time: u64,
}

const EMPTY_WAY: Way = Way { high: high(EMPTY_LINE), copy: NONE, time: 0 };

/// The bits of a line beyond those of its tag.
const fn high(line: u64) -> u32 {
    (line >> TAG_BITS) as u32
}

/// The second level of one core.
#[derive(Clone, Debug)]
pub(crate) struct SecondLevel {
    associativity: usize,
    sets: Sets,
    tags: Tags,
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
            tags: Tags::new(count),
            ways: vec![EMPTY_WAY; count],
            time: 0,
        }
    }

    /// The ways of the set of a line.
    fn row(&self, line: u64) -> std::ops::Range<usize> {
        let first = self.sets.of(line) * self.associativity;
        first..first + self.associativity
    }

    #[inline(never)]
    fn position(&self, line: u64) -> Option<usize> {
        self.tags.find(self.row(line), line, |way| self.ways[way].high == high(line))
    }

    /// Uses a line: the core's copy of it, if the level holds the line.
    #[inline(always)]
    pub(crate) fn find(&mut self, line: u64) -> Option<u32> {
        let way = self.position(line)?;
        self.time += 1;
        self.ways[way].time = self.time;
        Some(self.ways[way].copy)
    }

    /// Puts a line that the level does not hold into its set; returns the line that left, and its
    /// copy.
    pub(crate) fn insert(&mut self, line: u64, copy: u32) -> Option<(u64, u32)> {
        let row = self.row(line);
        let way = row.start + least(self.ways[row].iter().map(|way| way.time));
        self.time += 1;
        let new = Way { high: high(line), copy, time: self.time };
        let left = std::mem::replace(&mut self.ways[way], new);
        let left_line = u64::from(left.high) << TAG_BITS | u64::from(self.tags.set(way, line));
        (left.copy != NONE).then_some((left_line, left.copy))
    }

    /// Takes a line away.
    pub(crate) fn remove(&mut self, line: u64) {
        if let Some(way) = self.position(line) {
            self.tags.set(way, EMPTY_LINE);
            self.ways[way] = EMPTY_WAY;
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
        assert_eq!((level.insert(12, 2), level.find(11)), (Some((11, 1)), None));
        level.remove(10);
        assert_eq!((level.find(10), level.insert(13, 3), level.find(12)), (None, None, Some(2)));
    }

    #[test]
    fn of_the_first_level_the_line_with_the_least_time_leaves() {
        let mut level = FirstLevel::new(Geometry::cache(2 * 64, 2, 64));
        let far = 10 + RECENT as u64;
        assert_eq!((level.insert(10, 0, 1, true), level.insert(far, 1, 2, true)), (None, None));
        assert_eq!((level.find(far, 3), level.find(12, 4), level.find(10, 5)), (Some(1), None, Some(0)));
        assert_eq!(level.insert(12, 2, 6, true), Some((1, true)), "of line `far`");
        let found = [(10, 7), (far, 8), (12, 9)].map(|(line, now)| level.find(line, now));
        assert_eq!(found, [Some(0), None, Some(2)]);
        assert_eq!((level.has_left_second(10), level.has_left_second(far)), (true, false));
        assert_eq!(level.insert(14, 3, 10, true), Some((0, false)), "nobody has line 10 any more");
        level.remove(12);
        assert_eq!(
            (level.find(12, 11), level.insert(16, 4, 12, true), level.find(14, 13)),
            (None, None, Some(3))
        );
    }

    #[test]
    fn lines_with_equal_lowest_bits_are_told_apart() {
        let mut level = SecondLevel::new(Geometry::cache(12 * 64, 12, 64));
        let lines: Vec<u64> = (0..12).map(|number| 7 | number << 32).collect();
        for (copy, &line) in lines.iter().enumerate() {
            assert_eq!((level.find(line), level.insert(line, copy as u32)), (None, None));
        }
        let found: Vec<_> = lines.iter().map(|&line| level.find(line)).collect();
        assert_eq!(found, (0..12).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn sets_need_not_be_a_power_of_two() {
        let mut level = SecondLevel::new(Geometry::cache(3 * 64, 1, 64));
        assert_eq!((level.insert(3, 0), level.insert(4, 1), level.insert(6, 2)), (None, None, Some((3, 0))));
    }
}
