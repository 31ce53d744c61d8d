//! Private levels of one core: sets of ways with LRU.
//!
//! A way has the number of a line and the number of the core's copy of it, so that a hit needs no
//! other look-up. In the first level nothing moves at a hit: copies have the times of their last
//! uses, and only a miss looks for the oldest one of its set. Lines that were found lately stand in
//! a table by their lowest bits, so that most hits look at no set. In the second level, which sees
//! only misses, the most recent way of a set stands first. **Leaves out** other policies than LRU,
//! and lines that another level moves here.

use simulate::Geometry;

/// Lines of the table of those that were found lately.
const RECENT: usize = 512;

/// The first level of one core.
#[derive(Clone, Debug)]
pub(crate) struct FirstLevel {
    ways: usize,
    sets: u64,
    rows: Vec<Way>,
    /// Lines of the level, by their lowest bits.
    recent: Vec<Way>,
}

impl FirstLevel {
    /// An empty level.
    pub(crate) fn new(geometry: Geometry) -> FirstLevel {
        let (sets, ways) = (geometry.sets, geometry.ways as usize);
        FirstLevel { ways, sets, rows: vec![EMPTY; sets as usize * ways], recent: vec![EMPTY; RECENT] }
    }

    /// The core's copy of a line, if the level holds the line.
    #[inline(always)]
    pub(crate) fn find(&mut self, line: u64) -> Option<u32> {
        let recent = self.recent[line as usize % RECENT];
        if recent.line == line {
            return Some(recent.copy);
        }
        self.search(line)
    }

    fn search(&mut self, line: u64) -> Option<u32> {
        let found = *self.row(line).iter().find(|way| way.line == line)?;
        self.recent[line as usize % RECENT] = found;
        Some(found.copy)
    }

    fn row(&mut self, line: u64) -> &mut [Way] {
        let set = match self.sets.is_power_of_two() {
            true => line & (self.sets - 1),
            false => line % self.sets,
        };
        &mut self.rows[set as usize * self.ways..][..self.ways]
    }

    /// Puts a line that the level does not hold into its set; returns the copy whose line left: the
    /// one with the least time.
    pub(crate) fn insert(&mut self, line: u64, copy: u32, time_of: impl Fn(u32) -> u64) -> Option<u32> {
        let oldest = |way: &&mut Way| if **way == EMPTY { 0 } else { 1 + time_of(way.copy) };
        let way = self.row(line).iter_mut().min_by_key(oldest).expect("a set has ways");
        let left = std::mem::replace(way, Way { line, copy });
        self.forget(left.line);
        self.recent[line as usize % RECENT] = Way { line, copy };
        (left != EMPTY).then_some(left.copy)
    }

    /// Takes a line away.
    pub(crate) fn remove(&mut self, line: u64) {
        self.row(line).iter_mut().filter(|way| way.line == line).for_each(|way| *way = EMPTY);
        self.forget(line);
    }

    fn forget(&mut self, line: u64) {
        let recent = &mut self.recent[line as usize % RECENT];
        if recent.line == line {
            *recent = EMPTY;
        }
    }
}

/// The way of no line.
const EMPTY: Way = Way { line: u64::MAX, copy: 0 };

/// A line and the core's copy of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    line: u64,
    copy: u32,
}

/// The second level of one core.
#[derive(Clone, Debug)]
pub(crate) struct SecondLevel {
    ways: usize,
    sets: u64,
    /// The sets less one, if they are a power of two.
    mask: Option<u64>,
    rows: Vec<Way>,
}

impl SecondLevel {
    /// An empty level.
    pub(crate) fn new(geometry: Geometry) -> SecondLevel {
        let (sets, ways) = (geometry.sets, geometry.ways as usize);
        let mask = sets.is_power_of_two().then(|| sets - 1);
        SecondLevel { ways, sets, mask, rows: vec![EMPTY; sets as usize * ways] }
    }

    #[inline(always)]
    fn row(&mut self, line: u64) -> &mut [Way] {
        let set = self.mask.map_or_else(|| line % self.sets, |mask| line & mask) as usize;
        &mut self.rows[set * self.ways..][..self.ways]
    }

    /// Uses a line: the core's copy of it, if the level holds the line.
    #[inline(always)]
    pub(crate) fn find(&mut self, line: u64) -> Option<u32> {
        let row = self.row(line);
        if row[0].line == line {
            return Some(row[0].copy);
        }
        let at = row.iter().position(|way| way.line == line)?;
        let found = row[at];
        row.copy_within(..at, 1);
        row[0] = found;
        Some(found.copy)
    }

    /// Puts a line that the level does not hold first in its set; returns the copy whose line left.
    pub(crate) fn insert(&mut self, line: u64, copy: u32) -> Option<u32> {
        let row = self.row(line);
        // A free way stands behind all others.
        let last = row[row.len() - 1];
        let end = row.len() - 1;
        row.copy_within(..end, 1);
        row[0] = Way { line, copy };
        (last != EMPTY).then_some(last.copy)
    }

    /// Takes a line away.
    pub(crate) fn remove(&mut self, line: u64) {
        let row = self.row(line);
        if let Some(at) = row.iter().position(|way| way.line == line) {
            row.copy_within(at + 1.., at);
            row[row.len() - 1] = EMPTY;
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

    #[test]
    fn of_the_first_level_the_copy_with_the_least_time_leaves() {
        let mut level = FirstLevel::new(Geometry::cache(2 * 64, 2, 64));
        let mut times = [5, 3, 8, 9];
        let far = 10 + RECENT as u64;
        assert_eq!(level.insert(10, 0, |_| unreachable!("ways are free")), None);
        assert_eq!(level.insert(far, 1, |copy| times[copy as usize]), None);
        assert_eq!((level.find(10), level.find(far), level.find(10)), (Some(0), Some(1), Some(0)));
        assert_eq!(level.insert(12, 2, |copy| times[copy as usize]), Some(1));
        times[0] = 10;
        level.remove(12);
        assert_eq!((level.find(12), level.find(far), level.find(10)), (None, None, Some(0)));
        assert_eq!(level.insert(14, 3, |copy| times[copy as usize]), None);
        assert_eq!((level.insert(16, 2, |copy| times[copy as usize]), level.find(14)), (Some(3), None));
    }

    #[test]
    fn sets_need_not_be_a_power_of_two() {
        let mut level = SecondLevel::new(Geometry::cache(3 * 64, 1, 64));
        assert_eq!((level.insert(3, 0), level.insert(4, 1), level.insert(6, 2)), (None, None, Some(0)));
    }
}
