//! Ranks where most lines are crowded: every query goes through a directory and a block, without a
//! branch.
//!
//! The pipeline of [`query`](super::query) lists crowded queries and finishes them later, which
//! costs each of them several nanoseconds. Where they are many, it is faster to take all queries
//! one step further:
//!
//! ```text
//! turn       t             t + a             t + 2a
//! group t    locate,       read the lines,   answer from
//!            ask for lines ask for blocks    the blocks
//! ```
//!
//! A query whose line is no directory is answered by its line. It takes the second step too, with
//! the digit 0, than which no digit is smaller, so the step adds nothing.

use core::hint::select_unpredictable;

use super::digit::{first_block, first_rank, head, Digit, DIRECTORY};
use super::plan::Split;
use super::query::{Locate, Located, PrefetchLevel, FAR_LINES, GROUP};
use crate::lane::Lane;
use crate::line::Line;
use crate::simd::Simd;

/// Blocks with room for one of so many keys let all queries take two steps. Half the keys of blocks
/// whose lines are just crowded are gaps.
const KEYS_PER_PLACE_IN_BLOCKS: usize = 2;

/// Groups on their way: twice the most turns from the request for a line to its use, and more.
const RING: usize = 16;

/// Where the queries of a group go from their lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Second<D> {
    lines: [u32; GROUP],
    ranks: [u32; GROUP],
    digits: [D; GROUP],
}

impl<D: Digit> Second<D> {
    const EMPTY: Second<D> = Second { lines: [0; GROUP], ranks: [0; GROUP], digits: [D::ZERO; GROUP] };
}

impl<L: Lane> Split<L> {
    /// Whether so many keys stand in blocks that all queries take two steps.
    #[inline(always)]
    pub(super) fn is_deep<D: Digit>(&self) -> bool {
        // Lines of shorter digits hold so many keys that few are crowded; directories of longer
        // ones bear few.
        size_of::<D>() == size_of::<L>() / 2
            && L::BITS >= 32
            && self.blocks * D::PER_LINE >= self.n.div_ceil(KEYS_PER_PLACE_IN_BLOCKS)
    }

    /// The pipeline of two steps. Returns how many queries were answered: all but a last few that
    /// do not fill a group.
    #[inline(always)]
    pub(super) fn ranks_in_depth<D: Digit, S: Simd, W: Locate<L, D>>(
        &self,
        simd: S,
        lines: &[Line],
        queries: &[L],
        out: &mut [usize],
        way: &W,
        ahead: usize,
    ) -> usize {
        let (groups, _) = queries.as_chunks::<GROUP>();
        let (outs, _) = out.as_chunks_mut::<GROUP>();
        let mut located = [Located::<D>::EMPTY; RING];
        let mut second = [Second::<D>::EMPTY; RING];
        let mut prepared = W::Prepared::default();
        if let Some(first) = groups.first() {
            prepared = way.prepare(first);
        }
        for turn in 0..groups.len() + 2 * ahead {
            if let Some(group) = groups.get(turn) {
                way.locate(group, &prepared, &mut located[turn % RING]);
                prepared = way.prepare(groups.get(turn + 1).unwrap_or(group));
            }
            // Requests for lines and for blocks take turns, so that they are spread evenly.
            let wanted = &located[turn % RING].buckets;
            match turn.checked_sub(ahead) {
                Some(now) => self.descend(simd, lines, &located[now % RING], wanted, &mut second[now % RING]),
                None => wanted.iter().for_each(|&line| simd.prefetch(lines, line as usize)),
            }
            if let Some(out) = turn.checked_sub(2 * ahead).and_then(|now| outs.get_mut(now)) {
                let Second { lines: at, ranks, digits } = &second[(turn - 2 * ahead) % RING];
                for place in 0..GROUP {
                    let line = &lines[at[place] as usize];
                    out[place] = ranks[place] as usize + D::less_in_block(simd, line, digits[place]);
                }
            }
        }
        groups.len() * GROUP
    }

    /// Reads the lines of a group, asks for the lines of another and for the blocks of this one.
    #[inline(always)]
    fn descend<D: Digit, S: Simd>(
        &self,
        simd: S,
        lines: &[Line],
        now: &Located<D>,
        wanted: &[u32; GROUP],
        second: &mut Second<D>,
    ) {
        let level = PrefetchLevel::of(simd, lines, FAR_LINES);
        for (place, &ahead) in wanted.iter().enumerate() {
            simd.prefetch(lines, ahead as usize);
            let (bucket, digit) = (now.buckets[place], now.digits[place]);
            let line = &lines[bucket as usize];
            let block = D::less_in_directory(simd, line, digit);
            let in_line = D::less_in_line(simd, line, digit);
            // Which lines are directories cannot be predicted, so nothing branches on it.
            let is_directory = head(line) & DIRECTORY != 0;
            // Of a line that is no directory the number means nothing.
            let in_blocks = first_block::<D>(line).wrapping_add(self.scale.buckets() + block);
            let at = select_unpredictable(is_directory, in_blocks as u32, bucket);
            let below = select_unpredictable(is_directory, block * D::PER_LINE, in_line);
            level.prefetch(simd, lines, at as usize);
            second.lines[place] = at;
            second.ranks[place] = (first_rank(line) + below) as u32;
            second.digits[place] = select_unpredictable(is_directory, digit, D::ZERO);
        }
    }
}
