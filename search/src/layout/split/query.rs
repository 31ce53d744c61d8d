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
//! turn       t             t + 1   t + 2           t + 3
//! group t    locate,       wait    answer from     list the
//!            ask for lines         the lines       crowded queries
//!
//! last turn of a span of groups:  finish the crowded queries of the span before from their blocks,
//!                                 find the blocks of this span's, and ask for them
//! ```
//!
//! So in one turn group t is located while group t − 2 is answered, and so on. Locating is vector
//! arithmetic only. A query whose line is a directory is answered as if it were a line, which
//! leaves the directory's mark in the answer. Crowded queries are found later by one compare of all
//! answers and listed without a branch. A loop over the list ends where no processor can predict
//! it, so one loop serves a span of [`SPAN`] groups: that is one mispredicted branch for 256
//! queries, however many of them are crowded.
//!
//! **Invariants.** `located[t % RING]` holds group t from turn t until its span is looked through.
//! `deferred` holds the crowded queries of one span only: `finish` empties it before `defer` fills
//! it. An answer with the mark is replaced before the pipeline ends.
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

/// Groups whose crowded queries are finished together.
const SPAN: usize = 8;

/// Groups whose places are kept: those of a span, and the groups that are on their way.
const RING: usize = 2 * SPAN;

/// Turns from the request for a line to its use: few while lines are in the second-level cache,
/// more where memory takes longer than the queries of so many groups.
const AHEAD_NEAR: usize = 2;
/// Turns ahead of lines that are farther away.
const AHEAD_FAR: usize = 4;
/// More lines are farther away.
pub(super) const FAR_LINES: usize = (4 << 20) / LINE_BYTES;

/// More lines are asked for into the second level where the third is far: fewer are mostly in the
/// second level already.
const SECOND_LEVEL_LINES: usize = (12 << 20) / LINE_BYTES;

/// The level of caches into which lines are asked for.
#[derive(Clone, Copy)]
pub(super) enum PrefetchLevel {
    First,
    Second,
}

impl PrefetchLevel {
    /// The second level for more than `most` lines where the third level is far, else the first.
    #[inline(always)]
    pub(super) fn of<S: Simd>(simd: S, lines: &[Line], most: usize) -> PrefetchLevel {
        if lines.len() > most && simd.is_third_level_far() {
            PrefetchLevel::Second
        } else {
            PrefetchLevel::First
        }
    }

    /// Asks for line `index`.
    #[inline(always)]
    pub(super) fn prefetch<S: Simd>(self, simd: S, lines: &[Line], index: usize) {
        match self {
            PrefetchLevel::First => simd.prefetch(lines, index),
            PrefetchLevel::Second => simd.prefetch_to_second_level(lines, index),
        }
    }
}

/// Lines read per turn of the inner loop.
const UNROLLED: usize = 8;

/// Up to this many lines no line is prefetched: out-of-order execution hides how long the
/// second-level cache takes, and a prefetch costs a fifth of an answer's instructions.
const NEAR_LINES: usize = (3 << 18) / LINE_BYTES;

/// Where the queries of a group go. It stands at the start of a line of memory, as everything of a
/// pipeline does that is read and written by vectors: wherever the stack happened to begin, a
/// process would else have one of two speeds, a quarter apart.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(in crate::layout) struct Located<D> {
    pub(in crate::layout) buckets: [u32; GROUP],
    pub(in crate::layout) digits: [D; GROUP],
}

/// A way to locate queries: a trait and not a closure, because all of it must be inlined where the
/// instruction set is known.
pub(in crate::layout) trait Locate<L: Lane, D: Digit> {
    /// Whether most keys may stand in crowded lines.
    const MAY_BE_DEEP: bool;
    /// Whether locating takes so little that lines which are near need no prefetch.
    fn is_quick(&self) -> bool;
    /// What is found out about a group a turn before it is located.
    type Prepared: Copy + Default;
    /// Looks at a group a turn before it is located.
    fn prepare(&self, queries: &[L; GROUP]) -> Self::Prepared;
    /// Finds the lines and digits of a group.
    fn locate(&self, queries: &[L; GROUP], prepared: &Self::Prepared, located: &mut Located<D>);
}

impl<L: Lane, D: Digit> Locate<L, D> for Scale<L> {
    /// Keys that crowd more lines were refused.
    const MAY_BE_DEEP: bool = false;
    type Prepared = ();

    #[inline(always)]
    fn is_quick(&self) -> bool {
        true
    }

    #[inline(always)]
    fn prepare(&self, _queries: &[L; GROUP]) {}

    #[inline(always)]
    fn locate(&self, queries: &[L; GROUP], _prepared: &(), located: &mut Located<D>) {
        located.locate(self, queries);
    }
}

impl<D: Digit> Located<D> {
    pub(super) const EMPTY: Located<D> = Located { buckets: [0; GROUP], digits: [D::ZERO; GROUP] };

    #[inline(always)]
    fn locate<L: Lane>(&mut self, scale: &Scale<L>, queries: &[L; GROUP]) {
        for ((&query, bucket), digit) in queries.iter().zip(&mut self.buckets).zip(&mut self.digits) {
            let (at, fraction) = scale.locate_abreast(query);
            *bucket = at as u32;
            *digit = D::of(fraction);
        }
    }
}

/// Queries of the previous span that wait for their blocks.
#[repr(align(64))]
struct DeferredBlocks<D> {
    queries: [Waiting<D>; SPAN * GROUP],
    count: usize,
}

/// A query that waits for its block.
#[derive(Clone, Copy)]
struct Waiting<D> {
    /// The query's number.
    place: usize,
    block: u32,
    /// The rank of the block's first key.
    first: u32,
    digit: D,
}

impl<D: Digit> DeferredBlocks<D> {
    const EMPTY: DeferredBlocks<D> = DeferredBlocks {
        queries: [Waiting { place: 0, block: 0, first: 0, digit: D::ZERO }; SPAN * GROUP],
        count: 0,
    };

    /// Answers the waiting queries.
    #[inline(always)]
    fn finish<S: Simd>(&mut self, simd: S, lines: &[Line], out: &mut [usize]) {
        for &Waiting { place, block, first, digit } in &self.queries[..self.count.min(SPAN * GROUP)] {
            out[place] = first as usize + D::less_in_block(simd, &lines[block as usize], digit);
        }
        self.count = 0;
    }
}

/// The crowded queries of a span, as numbers within the span, with room for a group behind them.
#[repr(align(64))]
struct CrowdedList {
    numbers: [u32; SPAN * GROUP + MARKS],
    count: usize,
}

impl CrowdedList {
    /// Lists the marked answers of a group whose first query has the number `first`.
    #[inline(always)]
    fn append<S: Simd>(&mut self, simd: S, first: usize, answers: &[usize; GROUP]) {
        let room = self.numbers[self.count.min(SPAN * GROUP)..].first_chunk_mut().expect("room for a group");
        self.count += simd.list_marks(simd.marked(answers, DIRECTORY), first as u32, room);
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
        let mut located = [Located::<D>::EMPTY; RING];
        let mut crowded = CrowdedList { numbers: [0; SPAN * GROUP + MARKS], count: 0 };
        let mut deferred = DeferredBlocks::<D>::EMPTY;
        let mut prepared = W::Prepared::default();
        if let Some(first) = groups.first() {
            prepared = way.prepare(first);
        }
        let ahead = if lines.len() > FAR_LINES { AHEAD_FAR } else { AHEAD_NEAR };
        let level = PrefetchLevel::of(simd, lines, SECOND_LEVEL_LINES);
        let near = way.is_quick() && lines.len() <= NEAR_LINES;
        if W::MAY_BE_DEEP && self.is_deep::<D>() {
            return self.ranks_in_depth(simd, lines, queries, out, way, ahead);
        }
        for turn in 0..groups.len() + ahead + 1 {
            // Group t: locate its queries. Group t + 1: prepare for that.
            if let Some(group) = groups.get(turn) {
                way.locate(group, &prepared, &mut located[turn % RING]);
                prepared = way.prepare(groups.get(turn + 1).unwrap_or(group));
            }
            // Group t - ahead: its lines have arrived. Lines of group t are prefetched meanwhile,
            // one for each line that is read, so that requests are spread evenly.
            let answers = out.as_chunks_mut::<GROUP>().0;
            let wanted = &located[turn % RING].buckets;
            match turn.checked_sub(ahead).and_then(|now| answers.get_mut(now).map(|out| (now, out))) {
                Some((now, out)) if near => answer_near(simd, lines, &located[now % RING], out),
                Some((now, out)) => self.answer(simd, lines, &located[now % RING], wanted, level, out),
                None if near => {}
                None => wanted.iter().for_each(|&bucket| simd.prefetch(lines, bucket as usize)),
            }
            // The group before: its marked answers are crowded queries. When it ends a span, the
            // blocks of the span before have arrived.
            let Some(listed) = turn.checked_sub(ahead + 1) else { continue };
            crowded.append(simd, listed % SPAN * GROUP, &answers[listed]);
            if listed % SPAN == SPAN - 1 || listed + 1 == groups.len() {
                deferred.finish(simd, lines, out);
                self.defer(simd, lines, &located, listed / SPAN, &mut crowded, &mut deferred);
            }
        }
        deferred.finish(simd, lines, out);
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
        level: PrefetchLevel,
        out: &mut [usize; GROUP],
    ) {
        for first in (0..GROUP).step_by(UNROLLED) {
            for place in first..first + UNROLLED {
                level.prefetch(simd, lines, ahead[place] as usize);
                let line = &lines[now.buckets[place] as usize];
                out[place] = head(line) as usize + D::less_in_line(simd, line, now.digits[place]);
            }
        }
    }

    /// Prefetches the blocks of the crowded queries of a span, and empties their list.
    #[inline(always)]
    fn defer<D: Digit, S: Simd>(
        &self,
        simd: S,
        lines: &[Line],
        located: &[Located<D>; RING],
        span: usize,
        crowded: &mut CrowdedList,
        deferred: &mut DeferredBlocks<D>,
    ) {
        let count = core::mem::take(&mut crowded.count).min(SPAN * GROUP);
        let first = span * SPAN * GROUP;
        for (&number, waiting) in crowded.numbers[..count].iter().zip(&mut deferred.queries) {
            let place = first + number as usize;
            let Located { buckets, digits } = &located[place / GROUP % RING];
            let (digit, line) = (digits[place % GROUP], &lines[buckets[place % GROUP] as usize]);
            let (block, rank) = self.block(simd, line, digit);
            simd.prefetch(lines, block);
            *waiting = Waiting { place, block: block as u32, first: rank as u32, digit };
        }
        deferred.count = count;
    }
}
