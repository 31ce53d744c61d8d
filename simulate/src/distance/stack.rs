//! The stacks of the data or instruction side: each set's lines in recency order, with the times of
//! their last uses.
//!
//! **The problem.** A reference's stack distance is its place in a list of all lines of its set in
//! recency order; a list of a hundred thousand lines cannot be walked at each reference.
//!
//! **The idea.** Most distances are small. The sixteen most recent lines of a set stand in a row,
//! in any order, with their ranks beside them; whatever is further back is in the set's [`Back`],
//! where a line's time says how far:
//!
//! ```text
//!   rank 0 ...                 15 | 16 ...
//!   +---------------------------+ | +-------------------------------------------+
//!   | row: 16 tags, 16 ranks    |-->| back: a bit for each time, counts of bits |
//!   +---------------------------+ | +-------------------------------------------+
//!        found: rank = distance   |    found: distance = 16 + bits behind its own
//! ```
//!
//! Most uses end in the row, with a compare and a change of sixteen bytes. What happens behind a
//! row changes nothing in it, so a sweep takes three steps, none of which waits for the one before:
//! the rows of all touches; the places of the times of lines that were not there, which memory
//! begins to fetch; their distances.
//!
//! **Invariants.** A line is in its row or behind it, never in both; a line behind has a time, any
//! other line has time 0. Touches are counted by the index of the smallest size in which they hit.

use super::back::Back;
use super::histogram::{Histogram, KINDS};
use super::line_times::LineTimes;
use super::sizes::{CurveSizes, SIZES_MAX};
use crate::kernel::{Kernel, Pass, Row, Vectors, EMPTY};
use std::ops::RangeInclusive;

/// Number of lines of a row.
pub(super) const NEAR: usize = 16;

/// Number of touches that are processed together.
pub(super) const BATCH: usize = 256;

/// Number of sizes, and one more for misses in all of them.
const SIZES: usize = SIZES_MAX + 1;

/// The smallest room for times, of all sets together.
const TIMES_MIN: u64 = 1 << 17;

/// The kind of a touch that is not the last of its reference: its size is passed on to the next
/// touch.
const JOINS: u8 = KINDS as u8;

/// The stacks of all sets.
#[derive(Clone)]
pub(super) struct Stack {
    /// Each set's most recent lines, in any order, and the place of each in their order.
    rows: Vec<Row<u64, NEAR>>,
    ranks: Vec<Ranks>,
    /// For each place in a row, the first size that reaches it; behind the last place, misses in
    /// every size.
    near: [u8; NEAR + 1],
    backs: Vec<Back>,
    set_count: u64,
    pages: LineTimes,
    far: Far,
    /// Sizes that end within the row.
    near_sizes: usize,
    /// The smallest room for the times of a set.
    times_min: u32,
    sweep: Box<SweepBuffer>,
    kernel: Kernel,
}

/// A flush from code that is compiled for any processor.
struct Flush<'a> {
    stack: &'a mut Stack,
    found: &'a mut Histogram,
}

impl Pass for Flush<'_> {
    type Output = ();

    #[inline(always)]
    fn run<K: Vectors>(self, kernel: K) {
        self.stack.flush(kernel, self.found);
    }
}

/// The order of a row's lanes, most recent first. Tags stay where they are: what one use of a row
/// leaves to the next is sixteen bytes, ready in a few cycles.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Ranks([u8; NEAR]);

impl Ranks {
    /// The lane of the least recent line.
    #[inline(always)]
    fn last(&self) -> usize {
        let last = u128::from_le_bytes([NEAR as u8 - 1; NEAR]);
        // Looks for the byte that holds the last rank, in all sixteen at once: that byte becomes 0,
        // and when 1 is taken from each byte, the lowest 0 is the first whose uppermost bit a
        // borrow sets.
        let zero = u128::from_le_bytes(self.0) ^ last;
        let ones = u128::from_le_bytes([1; NEAR]);
        let borrowed = zero.wrapping_sub(ones) & !zero & (ones << 7);
        (borrowed.trailing_zeros() as usize / 8) & (NEAR - 1)
    }

    /// Moves a lane to the front; returns its former rank.
    #[inline(always)]
    fn front(&mut self, lane: usize) -> u8 {
        let before = self.0[lane & (NEAR - 1)];
        // Ranks below the lane's own grow by one, and it gets rank 0: sixteen bytes, no branch.
        for (rank, other) in self.0.iter_mut().zip(0u8..) {
            let moved = *rank + u8::from(*rank < before);
            *rank = if other == lane as u8 { 0 } else { moved };
        }
        before
    }
}

/// The sizes that reach behind the row.
#[derive(Clone)]
struct Far {
    /// Lines of each behind the row, ascending; then one that holds all.
    ways: Vec<u32>,
    /// By the length of a distance in bits, the first that may hold it.
    first: [u8; u32::BITS as usize + 1],
}

/// Touches that are being processed, by column.
#[derive(Clone)]
pub(super) struct SweepBuffer {
    pub(super) lines: [u64; BATCH],
    /// Kind of each, or [`JOINS`].
    pub(super) kinds: [u8; BATCH],
    pub(super) len: usize,
    /// Bits of the touches that join the next one.
    joins: Vec<usize>,
    /// The size of the last touch of the sweep before, if the first touch continues its reference.
    carried: u8,
    sizes: [u8; BATCH],
    /// Touches whose lines were not in their rows, and the lines that made room.
    missing: [u32; BATCH],
    leaving: [u64; BATCH],
    /// Places of their times.
    comes: [usize; BATCH],
    goes: [usize; BATCH],
}

impl SweepBuffer {
    fn empty() -> Box<SweepBuffer> {
        Box::new(SweepBuffer {
            lines: [0; BATCH],
            kinds: [0; BATCH],
            len: 0,
            joins: Vec::new(),
            carried: 0,
            sizes: [0; BATCH],
            missing: [0; BATCH],
            leaving: [0; BATCH],
            comes: [0; BATCH],
            goes: [0; BATCH],
        })
    }

    /// Adds the results of the sweep to `found`.
    #[inline(always)]
    fn count(&mut self, found: &mut Histogram) {
        // A reference that began in the sweep before counts where its last line does.
        self.sizes[0] = self.sizes[0].max(std::mem::take(&mut self.carried));
        for &joins in &self.joins {
            // A reference misses where one of its lines does: the larger size is handed to the next
            // line.
            match self.sizes[..self.len].get(joins + 1) {
                Some(&next) => self.sizes[joins + 1] = next.max(self.sizes[joins]),
                None => self.carried = self.sizes[joins],
            }
        }
        self.joins.clear();
        // Alternate between two tables: an addition to a number in memory waits for the last one.
        let mut counts = [[0u16; (KINDS + 1) * SIZES]; 4];
        for (touch, (&kind, &size)) in self.kinds[..self.len].iter().zip(&self.sizes).enumerate() {
            // Masks instead of checks of bounds: both numbers are small.
            counts[touch % 4][(kind as usize & KINDS) * SIZES + (size as usize & (SIZES - 1))] += 1;
        }
        for (number, found) in found.as_flattened_mut().iter_mut().enumerate() {
            *found += counts.iter().map(|counts| u64::from(counts[number])).sum::<u64>();
        }
        self.len = 0;
    }
}

impl Far {
    fn new(ways: &[u64]) -> Far {
        let far = ways.iter().filter_map(|ways| ways.checked_sub(NEAR as u64)).filter(|&far| far > 0);
        let ways: Vec<u32> = far.map(|far| far as u32).chain([u32::MAX]).collect();
        let least = |length: u32| if length == 0 { 0 } else { 1 << (length - 1) };
        let holds = |length| ways.iter().position(|&ways| ways > least(length)).unwrap_or(ways.len() - 1);
        Far { first: std::array::from_fn(|length| holds(length as u32) as u8), ways }
    }

    /// Sizes that reach behind the row.
    fn sizes(&self) -> usize {
        self.ways.len() - 1
    }

    /// Lines behind the row of the largest one.
    fn most(&self) -> u32 {
        self.sizes().checked_sub(1).map_or(0, |last| self.ways[last])
    }

    /// The first that holds a distance.
    #[inline(always)]
    fn size(&self, distance: u32) -> usize {
        // The number of bits of the distance names a size near the right one; the next ones are
        // tried.
        let mut size = self.first[(u32::BITS - distance.leading_zeros()) as usize] as usize;
        // The last size holds everything, so this ends.
        while self.ways[size] <= distance {
            size += 1;
        }
        size
    }
}

impl Stack {
    pub(super) fn new(sizes: &CurveSizes, kernel: Kernel) -> Stack {
        Stack::with_times(sizes, kernel, (TIMES_MIN / sizes.sets()).max(1 << 10) as u32)
    }

    fn with_times(sizes: &CurveSizes, kernel: Kernel, times_min: u32) -> Stack {
        let far = Far::new(sizes.ways());
        let reaches = |place| sizes.ways().iter().position(|&ways| place < ways);
        let backs = if far.sizes() == 0 { 0 } else { sizes.sets() };
        Stack {
            rows: vec![Row([EMPTY; NEAR]); sizes.sets() as usize],
            ranks: vec![Ranks(std::array::from_fn(|lane| lane as u8)); sizes.sets() as usize],
            near: std::array::from_fn(|place| match place {
                NEAR => sizes.ways().len() as u8,
                _ => reaches(place as u64).unwrap_or(sizes.ways().len() - far.sizes()) as u8,
            }),
            backs: (0..backs).map(|_| Back::new(times_min)).collect(),
            set_count: sizes.sets(),
            pages: LineTimes::new(),
            near_sizes: sizes.ways().len() - far.sizes(),
            far,
            times_min,
            sweep: SweepBuffer::empty(),
            kernel,
        }
    }

    /// Adds the touches of a reference to `lines`.
    pub(super) fn push(&mut self, kind: usize, lines: RangeInclusive<u64>, found: &mut Histogram) {
        let last = *lines.end();
        for line in lines {
            if self.sweep.len == BATCH {
                let kernel = self.kernel;
                kernel.pass(Flush { stack: self, found });
            }
            let sweep = &mut self.sweep;
            sweep.lines[sweep.len] = line;
            sweep.kinds[sweep.len] = if line == last { kind as u8 } else { JOINS };
            if line != last {
                sweep.joins.push(sweep.len);
            }
            sweep.len += 1;
        }
    }

    /// The buffer, flushed if it was full.
    #[inline(always)]
    pub(super) fn sweep<K: Vectors>(&mut self, kernel: K, found: &mut Histogram) -> &mut SweepBuffer {
        if self.sweep.len == BATCH {
            self.flush(kernel, found);
        }
        &mut self.sweep
    }

    /// Processes and counts all touches in the buffer.
    #[inline(always)]
    pub(super) fn flush<K: Vectors>(&mut self, kernel: K, found: &mut Histogram) {
        if self.sweep.len == 0 {
            return;
        }
        // A division takes longer than all that follows.
        let missing = match self.set_count.is_power_of_two() {
            true => {
                let last = self.set_count - 1;
                self.rows(kernel, |line| (line & last) as usize)
            }
            false => {
                let sets = self.set_count;
                self.rows(kernel, |line| (line % sets) as usize)
            }
        };
        // Where all sizes end within the row, nothing is kept behind it.
        if self.far.sizes() > 0 {
            let missing = self.places(kernel, missing);
            self.distances(missing);
        }
        self.sweep.count(found);
    }

    /// Touches all rows; returns the number of lines that were not in theirs.
    #[inline(always)]
    fn rows<K: Vectors>(&mut self, kernel: K, set: impl Fn(u64) -> usize) -> usize {
        let SweepBuffer { lines, len, sizes, missing, leaving, .. } = &mut *self.sweep;
        let mut missed = 0;
        for (touch, (&line, size)) in lines[..*len].iter().zip(sizes).enumerate() {
            let set = set(line);
            // Step 1: the rows. Nothing here waits for what lies behind a row.
            let (row, ranks) = (&mut self.rows[set], &mut self.ranks[set]);
            let found = kernel.find(row, line);
            if found == 0 {
                // Not among the recent lines: it takes the place of the least recent one, which
                // leaves the row.
                let lane = ranks.last();
                missing[missed] = touch as u32;
                leaving[missed] = std::mem::replace(&mut row.0[lane], line);
                missed += 1;
                ranks.front(lane);
                *size = self.near[NEAR];
            } else {
                // Its rank is its distance, and says the first size that holds it.
                let rank = ranks.front(found.trailing_zeros() as usize & (NEAR - 1));
                *size = self.near[rank as usize & (NEAR - 1)];
            }
        }
        missed
    }

    /// Finds the times of lines that were not in their rows and of those that left; returns how
    /// many.
    #[inline(always)]
    fn places<K: Vectors>(&mut self, kernel: K, missed: usize) -> usize {
        let SweepBuffer { lines, missing, leaving, comes, goes, .. } = &mut *self.sweep;
        let mut left = 0;
        for number in 0..missed {
            // A row that had room: its set has nothing behind.
            if leaving[number] == EMPTY {
                continue;
            }
            // Step 2: where the times of both lines stand, the one that comes and the one that
            // goes.
            let touch = missing[number];
            missing[left] = touch;
            comes[left] = self.pages.place(lines[touch as usize]);
            goes[left] = self.pages.place(leaving[number]);
            left += 1;
        }
        // Memory begins to fetch all of them before the first is needed.
        for place in comes[..left].iter().chain(&goes[..left]) {
            kernel.prefetch(&self.pages.times()[*place]);
        }
        left
    }

    /// Finds distances, and adds the lines that left their rows to the sets' backs.
    #[inline(always)]
    fn distances(&mut self, missing: usize) {
        for number in 0..missing {
            let touch = self.sweep.missing[number] as usize;
            let line = self.sweep.lines[touch];
            let set = match self.set_count.is_power_of_two() {
                true => line & (self.set_count - 1),
                false => line % self.set_count,
            };
            let back = &mut self.backs[set as usize];
            let times = self.pages.times();
            // Step 3: a line with a time is behind the row, and its time says how far.
            let time = std::mem::take(&mut times[self.sweep.comes[number]]);
            if time > 0 {
                let size = self.near_sizes + self.far.size(back.leave(time));
                self.sweep.sizes[touch] = size as u8;
            }
            // The line that left the row is the most recent one behind it.
            times[self.sweep.goes[number]] = back.enter();
            if back.is_full() {
                self.renumber(set);
            }
        }
    }

    /// Gives the lines of a set new times from 1 on; lines that no size holds are dropped.
    #[cold]
    #[inline(never)]
    fn renumber(&mut self, set: u64) {
        let back = &mut self.backs[set as usize];
        let most = self.far.most();
        self.pages.of_set(set, self.set_count, |time| *time = back.renumbered(*time, most));
        // Numbering takes a look at every line: do it no more often than such a number of uses.
        let lines = self.pages.lines() as u64 / self.set_count;
        let left = u64::from(back.lines().min(most));
        let times = u64::from(self.times_min).max(4 * left).max(2 * lines).min(1 << 31);
        back.renumber(most, times as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::super::histogram::NOTHING_FOUND;
    use super::*;
    use proptest::prelude::*;

    /// Lines of a set in recency order.
    fn naive(sizes: &CurveSizes, stacks: &mut [Vec<u64>], line: u64) -> usize {
        let stack = &mut stacks[(line % sizes.sets()) as usize];
        let distance = stack.iter().position(|&other| other == line);
        distance.map(|distance| stack.remove(distance));
        stack.insert(0, line);
        let holds = |&ways: &u64| distance.is_some_and(|distance| (distance as u64) < ways);
        sizes.ways().iter().position(holds).unwrap_or(sizes.ways().len())
    }

    fn touch(stack: &mut Stack, lines: &[u64]) -> Histogram {
        let mut found = NOTHING_FOUND;
        for &line in lines {
            stack.push(0, line..=line, &mut found);
        }
        let kernel = stack.kernel;
        kernel.pass(Flush { stack, found: &mut found });
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn renumbering_changes_nothing(
            sets in prop_oneof![Just(1u64), Just(2), Just(64), Just(100), 1u64..8],
            ways in prop::collection::btree_set(1u64..80, 1..=SIZES_MAX),
            kernel in any::<prop::sample::Index>(),
            uses in prop::collection::vec((0u64..400, 0u64..30, 1u64..20), 1..100),
        ) {
            let bytes: Vec<u64> = ways.iter().map(|ways| ways * sets * 64).collect();
            let sizes = CurveSizes::new(64, sets, &bytes).unwrap();
                        let kernel = Kernel::all().nth(kernel.index(Kernel::all().count())).expect("one of them");
            let mut stack = Stack::with_times(&sizes, kernel, 1);
            let mut stacks = vec![Vec::new(); sets as usize];
            for (start, count, stride) in uses {
                let lines: Vec<u64> = (0..count).map(|n| (start + n * stride) % 500).collect();
                let mut expected = NOTHING_FOUND;
                for &line in &lines {
                    expected[0][naive(&sizes, &mut stacks, line)] += 1;
                }
                prop_assert_eq!(touch(&mut stack, &lines), expected);
            }
        }
    }

    #[test]
    fn a_reference_longer_than_a_sweep_counts_once() {
        for kernel in Kernel::all() {
            let sizes = CurveSizes::new(64, 1, &[4, 600, 2000].map(|ways| ways * 64)).unwrap();
            let mut stack = Stack::new(&sizes, kernel);
            let mut found = |lines| {
                let mut found = NOTHING_FOUND;
                stack.push(1, lines, &mut found);
                kernel.pass(Flush { stack: &mut stack, found: &mut found });
                found[1]
            };
            let once = |size| std::array::from_fn(|other| u64::from(other == size));
            assert_eq!(found(1..=999), once(3));
            assert_eq!(found(1..=999), once(2));
            assert_eq!(found(700..=999), once(1));
            // Its first line alone misses, a sweep before the last one.
            assert_eq!(found(0..=400), once(3));
            assert_eq!(found(398..=400), once(0));
        }
    }
}
