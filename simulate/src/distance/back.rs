//! The lines of one set that have left its row: in what order they left, and how many left after a
//! given time.
//!
//! **The problem.** A stack distance beyond the row is the number of lines that left the row after
//! a given one and are still behind it. A list or a tree would be walked for each distance.
//!
//! **The idea.** Each line that leaves the row gets a time, one after the other; a bit says whether
//! the line that left at that time is still behind. The answer is the number of bits after its own,
//! from counts that are kept:
//!
//! ```text
//! times    | block 0 (256 bits) | block 1 | ... | block 31 |  one chunk = 32 blocks = 8192 times
//! before   | 0                  | 17      | ... | 301      |  bits of the chunk before each block
//! starts   | bits of all chunks before this chunk          |
//!
//! rank(time) = starts[chunk] + before[block] + bits of the block below the time
//! distance   = all bits − rank − 1
//! ```
//!
//! A line that returns to the row decrements each count from its time to the present: 32 lanes of
//! one register, and one number for each later chunk. So a recently used line costs least, a line
//! that comes for the first time nothing, and no branch depends on the distance.
//!
//! **Invariants.** Time 0 has no line. Counts are right for all blocks up to the present one; a
//! block that is to come is counted when it starts.
//!
//! **Source.** Times and bits: Bennett and Kruskal 1975; counts of blocks instead of their tree.

/// Number of times of a block.
const BLOCK_TIMES: u32 = 256;
const WORD_TIMES: u32 = 64;
const BLOCK_WORDS: usize = (BLOCK_TIMES / WORD_TIMES) as usize;

/// Number of blocks of a chunk: the lanes of a register, whose 16 bits can count all its times.
const CHUNK_BLOCKS: usize = 32;
const CHUNK_TIMES: u32 = BLOCK_TIMES * CHUNK_BLOCKS as u32;

/// The lines of a set behind its row.
#[derive(Clone)]
pub(super) struct Back {
    /// Bits of times, of which 0 has no line.
    bits: Vec<[u64; BLOCK_WORDS]>,
    /// Bits of a chunk before each of its blocks, up to the latest.
    before: Vec<Before>,
    /// Bits before each chunk, up to the latest.
    starts: Vec<u32>,
    /// The latest time.
    now: u32,
    /// Number of all bits that are set.
    total: u32,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Before([u16; CHUNK_BLOCKS]);

impl Back {
    /// A set behind whose row there are no lines, with room for `times` times.
    pub(super) fn new(times: u32) -> Back {
        let blocks = times.div_ceil(BLOCK_TIMES).max(1) as usize;
        let chunks = blocks.div_ceil(CHUNK_BLOCKS);
        Back {
            bits: vec![[0; BLOCK_WORDS]; blocks],
            before: vec![Before([0; CHUNK_BLOCKS]); chunks],
            starts: vec![0; chunks],
            now: 0,
            total: 0,
        }
    }

    /// Whether all times are used.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.now as usize + 1 == self.bits.len() * BLOCK_TIMES as usize
    }

    /// The number of lines behind the row.
    pub(super) fn lines(&self) -> u32 {
        self.total
    }

    /// Adds a line that leaves the row; returns its time.
    #[inline(always)]
    pub(super) fn enter(&mut self) -> u32 {
        self.now += 1;
        let now = self.now;
        // The first time of a block: what lies before it is known now, and will only shrink.
        if now.is_multiple_of(BLOCK_TIMES) {
            self.open(now);
        }
        self.bits[(now / BLOCK_TIMES) as usize][word(now)] |= bit(now);
        self.total += 1;
        now
    }

    /// Starts the block of time `now`.
    #[inline(never)]
    fn open(&mut self, now: u32) {
        let chunk = (now / CHUNK_TIMES) as usize;
        if now.is_multiple_of(CHUNK_TIMES) {
            self.starts[chunk] = self.total;
        }
        self.before[chunk].0[block(now)] = (self.total - self.starts[chunk]) as u16;
    }

    /// Removes the line that left at `time`, because it returns to the row; returns how many lines
    /// have left after it and are still behind.
    #[inline(always)]
    pub(super) fn leave(&mut self, time: u32) -> u32 {
        // The lines before it left earlier; all others left later.
        let rank = self.rank(time);
        self.bits[(time / BLOCK_TIMES) as usize][word(time)] ^= bit(time);
        // Every count of what lies before a later place loses this line: 32 lanes of one register,
        // then one number for each later chunk.
        let chunk = (time / CHUNK_TIMES) as usize;
        let block = block(time) as u16;
        for (lane, before) in (0..).zip(&mut self.before[chunk].0) {
            // Blocks to come are counted when they start.
            *before = before.wrapping_sub(u16::from(lane > block));
        }
        let last = (self.now / CHUNK_TIMES) as usize;
        if chunk < last {
            self.starts[chunk + 1..=last].iter_mut().for_each(|start| *start -= 1);
        }
        self.total -= 1;
        self.total - rank
    }

    /// The number of lines behind the row that left before `time`.
    #[inline(always)]
    fn rank(&self, time: u32) -> u32 {
        let chunk = (time / CHUNK_TIMES) as usize;
        let words = &self.bits[(time / BLOCK_TIMES) as usize];
        let (word, below) = (word(time), bit(time) - 1);
        let mut rank = self.starts[chunk] + u32::from(self.before[chunk].0[block(time)]);
        for (number, &bits) in words.iter().enumerate() {
            // Whole words before the time's own, and of its own the bits below; all words of the
            // block are counted, so that nothing depends on which one it is.
            let mask = if number < word { u64::MAX } else { 0 };
            let mask = if number == word { below } else { mask };
            rank += (bits & mask).count_ones();
        }
        rank
    }

    /// The new time of the line with time `time` if all lines get new times from 1 on and only the
    /// `most` latest are kept; 0 for the others.
    #[inline(always)]
    pub(super) fn renumbered(&self, time: u32, most: u32) -> u32 {
        match time {
            0 => 0,
            _ => (self.rank(time) + 1).saturating_sub(self.total.saturating_sub(most)),
        }
    }

    /// Gives all kept lines new times, with room for `times` times.
    pub(super) fn renumber(&mut self, most: u32, times: u32) {
        let lines = self.total.min(most);
        *self = Back::new(times);
        // Whole blocks at once would be faster, but not where it matters.
        for _ in 0..lines {
            self.enter();
        }
    }
}

/// Number of a time's block in its chunk.
#[inline(always)]
fn block(time: u32) -> usize {
    (time / BLOCK_TIMES) as usize % CHUNK_BLOCKS
}

/// Number of a time's word in its block.
#[inline(always)]
fn word(time: u32) -> usize {
    (time / WORD_TIMES) as usize % BLOCK_WORDS
}

#[inline(always)]
fn bit(time: u32) -> u64 {
    1 << (time % WORD_TIMES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn distances_are_places_in_a_list(
            steps in prop::collection::vec((1usize..900, any::<prop::sample::Index>(), any::<bool>()), 1..60),
            most in 1u32..2000,
        ) {
            let mut back = Back::new(40_000);
            let mut times: Vec<u32> = Vec::new();
            for (enters, at, renumbers) in steps {
                for _ in 0..enters {
                    if back.is_full() {
                        break;
                    }
                    times.push(back.enter());
                    prop_assert_eq!(*times.last().unwrap(), back.now);
                }
                if !times.is_empty() {
                    let at = at.index(times.len());
                    prop_assert_eq!(back.leave(times[at]) as usize, times.len() - 1 - at);
                    times.remove(at);
                }
                if renumbers && times.len() > 30 {
                    let new: Vec<u32> = times.iter().map(|&time| back.renumbered(time, most)).collect();
                    back.renumber(most, 40_000);
                    times = new.into_iter().filter(|&time| time > 0).collect();
                    prop_assert!(times.iter().copied().eq(1..=back.lines()));
                }
            }
        }
    }
}
