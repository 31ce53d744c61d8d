//! The stacks of one side: each set's lines in recency order, known by the times of their last uses.
//!
//! **What.** [`Stack::touch`] answers with the index of the smallest size in which a line hits. A set's most recent lines stand in a row, as in a simulated
//! cache; the others in its *back*. Each line that leaves the row has a time, one after the other; a bit says whether the line that left at that
//! time is still behind. So the lines that left from time `t` on are the bits from `t` on, and for each size there is a *mark*: the time from which on
//! there are as many bits as it has ways behind the row. A line hits where its time is not before the mark.
//!
//! **Why this way.** Most uses end in the row, with a compare and a shift of registers. A use that misses a size moves its mark past one bit; marks
//! only ever move forward, over words that lie side by side. No list or tree is walked, and what is touched beside the line's own time is little and
//! near. Moves are *owed* until a time comes that the mark could decide: a use behind a mark stays behind it, so a scan through memory
//! never settles. When times run out the bits that are left are numbered anew, and lines behind the last mark forgotten.
//!
//! **Source.** Times and bits: Bennett and Kruskal 1975; bounds at chosen sizes instead of distances: Kim, Hill and Wood 1991.

use super::pages::{Pages, Use};
use super::sizes::{CurveSizes, SIZES_MAX};
use crate::kernel::{Enters, Row, TouchRow, EMPTY};

/// Lines of a row.
pub(super) const NEAR: usize = 16;

/// Lanes of marks: a size each, and one behind the last.
const LANES: usize = SIZES_MAX + 1;

/// Least room for times, of all sets together.
const TIMES_MIN: u64 = 1 << 17;

/// All sets.
#[derive(Clone)]
pub(super) struct Stack {
    rows: Vec<Row<u64, NEAR>>,
    /// For each place in a row, the first size that reaches it.
    near: [usize; NEAR],
    backs: Vec<Back>,
    set_count: u64,
    pages: Pages,
    /// Sizes that end within the row, and those that reach behind it.
    near_sizes: usize,
    far_sizes: usize,
    /// Least room for times of a set.
    times_min: u32,
}

/// The lines of a set behind its row.
#[derive(Clone)]
struct Back {
    /// A bit for each time whose line is still behind, from time 1 on.
    left: Vec<u64>,
    /// The latest time.
    now: u32,
    marks: Marks,
}

/// Where sizes end.
#[derive(Clone)]
#[repr(align(64))]
struct Marks {
    /// What left the row from this time on is in the size; 0 behind the last size.
    from: [u32; LANES],
    /// Bits that the mark still has to pass; less than 0 while the size has room.
    owed: [i32; LANES],
}

impl Stack {
    pub(super) fn new(sizes: &CurveSizes) -> Stack {
        Stack::with_times(sizes, (TIMES_MIN / sizes.sets()).max(1 << 10) as u32)
    }

    fn with_times(sizes: &CurveSizes, times_min: u32) -> Stack {
        let far: Vec<u64> = sizes
            .ways()
            .iter()
            .filter_map(|ways| ways.checked_sub(NEAR as u64))
            .filter(|&far| far > 0)
            .collect();
        let near_sizes = sizes.ways().len() - far.len();
        let reaches = |place| sizes.ways().iter().position(|&ways| place < ways);
        let back = || Back { left: words(times_min), now: 0, marks: Marks::new(&far) };
        let backs = if far.is_empty() { 0 } else { sizes.sets() };
        Stack {
            rows: vec![Row([EMPTY; NEAR]); sizes.sets() as usize],
            near: std::array::from_fn(|place| reaches(place as u64).unwrap_or(near_sizes)),
            backs: (0..backs).map(|_| back()).collect(),
            set_count: sizes.sets(),
            pages: Pages::new(),
            near_sizes,
            far_sizes: far.len(),
            times_min,
        }
    }

    /// Uses a line; the index of the smallest size in which it hits, the number of sizes where it misses all.
    #[inline(always)]
    pub(super) fn touch<K: TouchRow<u64, NEAR>>(&mut self, kernel: K, line: u64) -> usize {
        // A division takes longer than all that follows.
        let set = if self.set_count.is_power_of_two() {
            line & (self.set_count - 1)
        } else {
            line % self.set_count
        };
        let row = &mut self.rows[set as usize];
        let last = row.0[NEAR - 1];
        let found = kernel.touch_row(row, line, Enters { last: 1 << (NEAR - 1) });
        match found {
            0 => self.near_sizes + self.behind(set, line, last),
            _ => self.near[found.trailing_zeros() as usize & (NEAR - 1)],
        }
    }

    /// A line that is not in its row takes the place of `last` there, which goes behind: the first far size that held it.
    #[inline(always)]
    fn behind(&mut self, set: u64, line: u64, last: u64) -> usize {
        if last == EMPTY || self.far_sizes == 0 {
            return self.far_sizes;
        }
        let back = &mut self.backs[set as usize];
        let time = std::mem::take(self.pages.time(line, Use::Comes));
        let size = back.marks.size(&back.left, time);
        back.left[(time / 64) as usize] &= !(1 << (time % 64));
        back.now += 1;
        *self.pages.time(last, Use::Goes) = back.now;
        back.left[(back.now / 64) as usize] |= 1 << (back.now % 64);
        if back.now as usize + 1 == back.left.len() * 64 {
            self.renumber(set);
        }
        size
    }

    /// Numbers what is left of a set's times anew, from 1.
    #[cold]
    #[inline(never)]
    fn renumber(&mut self, set: u64) {
        let back = &mut self.backs[set as usize];
        let oldest = back.settle(self.far_sizes);
        let mut before = Vec::with_capacity(back.left.len());
        let mut left = 0;
        for &word in &back.left {
            before.push(left);
            left += word.count_ones();
        }
        let new = |time: u32| {
            let word = (time / 64) as usize;
            1 + before[word] + (back.left[word] & ((1 << (time % 64)) - 1)).count_ones()
        };
        self.pages.of_set(set, self.set_count, |time| *time = if *time < oldest { 0 } else { new(*time) });
        back.marks.from[..self.far_sizes].iter_mut().for_each(|from| *from = new(*from));
        back.now = left;
        // Numbering takes a look at every line: do it no more often than such a number of uses.
        let lines = self.pages.lines() as u64 / self.set_count;
        let times = u64::from(self.times_min).max(4 * u64::from(left)).max(2 * lines).min(1 << 31);
        back.left = words(times as u32);
        (1..=left).for_each(|time| back.left[(time / 64) as usize] |= 1 << (time % 64));
    }
}

impl Back {
    /// Moves all marks to where they belong, forgets what lies before the last one, and answers with its time.
    fn settle(&mut self, sizes: usize) -> u32 {
        for lane in 0..sizes {
            self.marks.settle(&self.left, lane);
        }
        let oldest = self.marks.from[sizes - 1];
        let word = (oldest / 64) as usize;
        self.left[..word].fill(0);
        self.left[word] &= u64::MAX << (oldest % 64);
        oldest
    }
}

impl Marks {
    fn new(ways: &[u64]) -> Marks {
        let mut marks = Marks { from: [0; LANES], owed: [0; LANES] };
        for (lane, &ways) in ways.iter().enumerate() {
            marks.from[lane] = 1;
            marks.owed[lane] = -(ways as i32);
        }
        marks
    }

    /// The first size that holds what left at `time` (0: never); the smaller ones take the line in, so each loses its oldest.
    #[inline(always)]
    fn size(&mut self, left: &[u64], time: u32) -> usize {
        if time >= self.from[0] && !self.settle(left, 0) {
            return 0;
        }
        let mut size = self.first(time);
        while self.settle(left, size & (LANES - 1)) {
            size = self.first(time);
        }
        for lane in 0..LANES {
            self.owed[lane] += i32::from(lane < size);
        }
        size
    }

    /// The first lane whose mark is not behind `time`.
    #[inline(always)]
    fn first(&self, time: u32) -> usize {
        // A loop, so that a minimum over lanes is seen, with the instructions of the kernel: a closure's code may stand elsewhere.
        let mut first = LANES as u32;
        for lane in 0..LANES {
            let holds = if time >= self.from[lane] { lane as u32 } else { LANES as u32 };
            first = first.min(holds);
        }
        first as usize
    }

    /// Moves a mark past the bits it owes; answers whether there were any.
    #[inline(always)]
    fn settle(&mut self, left: &[u64], lane: usize) -> bool {
        let owed = self.owed[lane];
        if owed > 0 {
            self.from[lane] = behind(left, self.from[lane], owed as u32);
            self.owed[lane] = 0;
        }
        owed > 0
    }
}

/// The time behind the next `count` bits from `time` on; there are as many.
#[inline(always)]
fn behind(left: &[u64], time: u32, mut count: u32) -> u32 {
    let mut word = (time / 64) as usize;
    let mut bits = left[word] & (u64::MAX << (time % 64));
    loop {
        let ones = bits.count_ones();
        if count <= ones {
            break;
        }
        count -= ones;
        word += 1;
        bits = left[word];
    }
    for _ in 1..count {
        bits &= bits - 1;
    }
    word as u32 * 64 + bits.trailing_zeros() + 1
}

/// Room for times below `times`, none of which has a line.
fn words(times: u32) -> Vec<u64> {
    vec![0; times.div_ceil(64).max(1) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Kernel, Work};
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

    struct Touch<'a> {
        stack: &'a mut Stack,
        line: u64,
    }

    impl Work<u64, NEAR> for Touch<'_> {
        type Output = usize;

        fn run<K: TouchRow<u64, NEAR>>(self, kernel: K) -> usize {
            self.stack.touch(kernel, self.line)
        }
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
            let mut stack = Stack::with_times(&sizes, 70);
            let kernel = Kernel::all().nth(kernel.index(Kernel::all().count())).expect("one of them");
            let mut stacks = vec![Vec::new(); sets as usize];
            for (start, count, stride) in uses {
                for line in (0..count).map(|n| (start + n * stride) % 500) {
                    let size = kernel.run(Touch { stack: &mut stack, line });
                    prop_assert_eq!(size, naive(&sizes, &mut stacks, line));
                }
            }
        }
    }
}
