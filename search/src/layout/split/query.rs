//! Ranks in a split layout: one query, and the pipeline of many.
//!
//! **Problem.** A query needs one line of memory. Beyond the near caches, reading it takes a
//! hundred times as long as the rest of the query, and queries that run one after another wait for
//! each line in turn.
//!
//! **Idea.** Queries go through in groups of [`GROUP`], and each step of a group is done while the
//! lines that a later step needs are on their way:
//!
//! ```text
//! turn       t             t + 1   t + 2           t + 3              t + 4
//! group t    locate,       wait    answer from     find directories,  finish from
//!            ask for lines         the lines       ask for blocks     the blocks
//! ```
//!
//! So in one turn group t is located while group t − 2 is answered, and so on. Locating is vector
//! arithmetic only. A query whose line is a directory is answered as if it were a line, which
//! leaves the directory's mark in the answer: crowded queries are found later by one compare of all
//! answers, never by a branch where they are met, which would wait for memory.
//!
//! **Invariants.** `located[t % 4]` holds group t from turn t to turn t + 3, when its directories
//! are looked at last. `deferred` holds the crowded queries of one group only: `finish` empties it
//! before `defer` fills it. An answer with the mark is replaced before the pipeline ends.
//!
//! Words that were stored one by one are read as vectors only some turns later, when they have left
//! the store buffer: a load that overlaps younger, narrower stores would wait for them.

use super::digit::{first_block, first_rank, head, Digit, DIRECTORY};
use super::plan::Split;
use crate::lane::Lane;
use crate::line::{Line, LINE_BYTES};
use crate::scale::Scale;
use crate::simd::{Simd, MARKS};

/// Queries that are located together. Their lines are prefetched one group before they are read.
pub(in crate::layout) const GROUP: usize = MARKS;

/// Lines read per turn of the inner loop.
const UNROLLED: usize = 8;

/// Up to this many lines no line is prefetched: out-of-order execution hides how long the
/// second-level cache takes, and a prefetch costs a fifth of an answer's instructions.
const NEAR_LINES: usize = (3 << 18) / LINE_BYTES;

/// Where the queries of a group go.
#[derive(Clone, Copy)]
pub(in crate::layout) struct Located<D> {
    pub(in crate::layout) buckets: [u32; GROUP],
    pub(in crate::layout) digits: [D; GROUP],
}

/// A way to locate queries: a trait and not a closure, because all of it must be inlined where the
/// instruction set is known.
pub(in crate::layout) trait Locate<L: Lane, D: Digit> {
    /// Whether locating takes so little that lines which are near need no prefetch.
    const IS_QUICK: bool;
    /// What is found out about a group a turn before it is located.
    type Prepared: Copy + Default;
    /// Looks at a group a turn before it is located.
    fn prepare(&self, queries: &[L; GROUP]) -> Self::Prepared;
    /// Finds the lines and digits of a group.
    fn locate(&self, queries: &[L; GROUP], prepared: &Self::Prepared, located: &mut Located<D>);
}

impl<L: Lane, D: Digit> Locate<L, D> for Scale<L> {
    const IS_QUICK: bool = true;
    type Prepared = ();

    #[inline(always)]
    fn prepare(&self, _queries: &[L; GROUP]) {}

    #[inline(always)]
    fn locate(&self, queries: &[L; GROUP], _prepared: &(), located: &mut Located<D>) {
        located.locate(self, queries);
    }
}

impl<D: Digit> Located<D> {
    const EMPTY: Located<D> = Located { buckets: [0; GROUP], digits: [D::ZERO; GROUP] };

    #[inline(always)]
    fn locate<L: Lane>(&mut self, scale: &Scale<L>, queries: &[L; GROUP]) {
        for ((&query, bucket), digit) in queries.iter().zip(&mut self.buckets).zip(&mut self.digits) {
            let (at, fraction) = scale.locate_abreast(query);
            *bucket = at as u32;
            *digit = D::of(fraction);
        }
    }
}

/// Queries of the previous group that wait for their blocks: place in the group, block, rank of the
/// block's first key, and digit.
struct DeferredBlocks<D> {
    queries: [(u32, u32, usize, D); GROUP],
    count: usize,
}

impl<D: Digit> DeferredBlocks<D> {
    const EMPTY: DeferredBlocks<D> = DeferredBlocks { queries: [(0, 0, 0, D::ZERO); GROUP], count: 0 };

    /// Answers the waiting queries.
    #[inline(always)]
    fn finish<S: Simd>(&mut self, simd: S, lines: &[Line], out: &mut [usize; GROUP]) {
        for &(place, block, first, digit) in &self.queries[..self.count.min(GROUP)] {
            out[place as usize % GROUP] = first + D::less_in_block(simd, &lines[block as usize], digit);
        }
        self.count = 0;
    }
}

/// Answers a group whose lines are near, and treats directories as lines.
#[inline(always)]
fn answer_near<D: Digit, S: Simd>(simd: S, lines: &[Line], now: &Located<D>, out: &mut [usize; GROUP]) {
    for ((&bucket, &digit), out) in now.buckets.iter().zip(&now.digits).zip(out) {
        let line = &lines[bucket as usize];
        *out = head(line) as usize + D::less_in_line(simd, line, digit);
    }
}

impl<L: Lane> Split<L> {
    /// The rank of a query that was located.
    #[inline(always)]
    pub(in crate::layout) fn rank_at<D: Digit, S: Simd>(
        &self,
        simd: S,
        lines: &[Line],
        bucket: usize,
        digit: D,
    ) -> usize {
        let line = &lines[bucket];
        let first = head(line);
        if first & DIRECTORY != 0 {
            return self.rank_in_crowd(simd, lines, line, digit);
        }
        first as usize + D::less_in_line(simd, line, digit)
    }

    #[inline(always)]
    fn rank_in_crowd<D: Digit, S: Simd>(&self, simd: S, lines: &[Line], line: &Line, digit: D) -> usize {
        let (block, first) = self.block(simd, line, digit);
        first + D::less_in_block(simd, &lines[block], digit)
    }

    /// The block that a directory sends `digit` to, and the rank of the block's first key.
    #[inline(always)]
    fn block<D: Digit, S: Simd>(&self, simd: S, line: &Line, digit: D) -> (usize, usize) {
        let block = D::less_in_directory(simd, line, digit);
        (self.scale.buckets() + first_block::<D>(line) + block, first_rank(line) + block * D::PER_LINE)
    }

    /// The pipeline of groups that the module's text shows. Queries that do not fill a group are
    /// answered one by one.
    #[inline(always)]
    pub(super) fn ranks_as<D: Digit, S: Simd>(
        &self,
        simd: S,
        lines: &[Line],
        queries: &[L],
        out: &mut [usize],
    ) {
        let done = self.ranks_of_groups::<D, S, _>(simd, lines, queries, out, &self.scale);
        for (&query, rank) in queries[done..].iter().zip(&mut out[done..]) {
            let (bucket, fraction) = self.scale.locate(query);
            *rank = self.rank_at::<D, S>(simd, lines, bucket, D::of(fraction));
        }
    }

    /// The pipeline with the caller's way to locate a group. Returns how many queries were
    /// answered: all but a last few that do not fill a group.
    #[inline(always)]
    pub(in crate::layout) fn ranks_of_groups<D: Digit, S: Simd, W: Locate<L, D>>(
        &self,
        simd: S,
        lines: &[Line],
        queries: &[L],
        out: &mut [usize],
        way: &W,
    ) -> usize {
        let (groups, _) = queries.as_chunks::<GROUP>();
        let (answers, _) = out.as_chunks_mut::<GROUP>();
        let mut located = [Located::<D>::EMPTY; 4];
        let mut deferred = DeferredBlocks::<D>::EMPTY;
        let mut prepared = W::Prepared::default();
        if let Some(first) = groups.first() {
            prepared = way.prepare(first);
        }
        for turn in 0..groups.len() + 4 {
            // Group t: locate its queries. Group t + 1: prepare for that.
            if let Some(group) = groups.get(turn) {
                way.locate(group, &prepared, &mut located[turn % 4]);
                prepared = way.prepare(groups.get(turn + 1).unwrap_or(group));
            }
            // Group t - 2: its lines have arrived. Lines of group t are prefetched meanwhile, one
            // for each line that is read, so that requests are spread evenly.
            let ahead = located[turn % 4].buckets;
            match turn.checked_sub(2).and_then(|now| answers.get_mut(now)) {
                Some(out) if W::IS_QUICK && lines.len() <= NEAR_LINES => {
                    answer_near(simd, lines, &located[(turn + 2) % 4], out)
                }
                Some(out) => self.answer(simd, lines, &located[(turn + 2) % 4], &ahead, out),
                None => ahead.iter().for_each(|&bucket| simd.prefetch(lines, bucket as usize)),
            }
            // Group t - 4: the blocks of its crowded queries have arrived.
            if let Some(done) = turn.checked_sub(4) {
                deferred.finish(simd, lines, &mut answers[done]);
            }
            // Group t - 3: its marked answers are crowded queries.
            if let Some(out) = turn.checked_sub(3).and_then(|before| answers.get(before)) {
                self.defer(simd, lines, &located[(turn + 1) % 4], simd.marked(out, DIRECTORY), &mut deferred);
            }
        }
        groups.len() * GROUP
    }

    /// Answers the group `now`, treats directories as lines, and prefetches the lines `ahead`.
    #[inline(always)]
    fn answer<D: Digit, S: Simd>(
        &self,
        simd: S,
        lines: &[Line],
        now: &Located<D>,
        ahead: &[u32; GROUP],
        out: &mut [usize; GROUP],
    ) {
        for first in (0..GROUP).step_by(UNROLLED) {
            for place in first..first + UNROLLED {
                simd.prefetch(lines, ahead[place] as usize);
                let line = &lines[now.buckets[place] as usize];
                out[place] = head(line) as usize + D::less_in_line(simd, line, now.digits[place]);
            }
        }
    }

    /// Prefetches the blocks of the crowded queries of a group.
    #[inline(always)]
    fn defer<D: Digit, S: Simd>(
        &self,
        simd: S,
        lines: &[Line],
        now: &Located<D>,
        mut crowded: u64,
        deferred: &mut DeferredBlocks<D>,
    ) {
        // Each set bit is a query; the lowest comes first.
        deferred.count = 0;
        while crowded != 0 {
            let place = crowded.trailing_zeros() as usize;
            crowded &= crowded - 1;
            let (digit, line) = (now.digits[place], &lines[now.buckets[place] as usize]);
            let (block, rank) = self.block(simd, line, digit);
            simd.prefetch(lines, block);
            deferred.queries[deferred.count % GROUP] = (place as u32, block as u32, rank, digit);
            deferred.count += 1;
        }
    }
}
