//! One private level: sets of ways in the order of their last use.
//!
//! A way has the number of a line and the number of the core's copy of it, so that a hit needs no
//! other look-up. The most recent way of a set stands first. **Leaves out** other policies than LRU,
//! and lines that another level moves here.

use simulate::Geometry;

/// The way of no line.
const EMPTY: Way = Way { line: u64::MAX, copy: 0 };

/// A line and the core's copy of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    line: u64,
    copy: u32,
}

/// A level of one core.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    ways: usize,
    sets: u64,
    /// The sets less one, if they are a power of two.
    mask: Option<u64>,
    rows: Vec<Way>,
}

impl Level {
    /// An empty level.
    pub(crate) fn new(geometry: Geometry) -> Level {
        let (sets, ways) = (geometry.sets, geometry.ways as usize);
        let mask = sets.is_power_of_two().then(|| sets - 1);
        Level { ways, sets, mask, rows: vec![EMPTY; sets as usize * ways] }
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
        let mut level = Level::new(Geometry::cache(2 * 64, 2, 64));
        assert_eq!((level.insert(10, 0), level.insert(11, 1), level.find(10)), (None, None, Some(0)));
        assert_eq!((level.insert(12, 2), level.find(11)), (Some(1), None));
        level.remove(10);
        assert_eq!((level.find(10), level.insert(13, 3), level.find(12)), (None, None, Some(2)));
    }

    #[test]
    fn sets_need_not_be_a_power_of_two() {
        let mut level = Level::new(Geometry::cache(3 * 64, 1, 64));
        assert_eq!((level.insert(3, 0), level.insert(4, 1), level.insert(6, 2)), (None, None, Some(0)));
    }
}
