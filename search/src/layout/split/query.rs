//! Ranks in a split layout: one query, and the pipeline of many.

use super::digit::{first_block, first_rank, head, Digit, DIRECTORY};
use super::Split;
use crate::kernel::{Simd, MARKS};
use crate::key::Lane;
use crate::line::Line;
use crate::scale::Scale;

/// Queries that are located together; their lines are asked for one group ahead of being read.
const GROUP: usize = MARKS;

/// Lines read per turn of the inner loop.
const UNROLLED: usize = 8;

/// Where the queries of a group go.
#[derive(Clone, Copy)]
struct Located<D> {
    buckets: [u32; GROUP],
    digits: [D; GROUP],
}

impl<D: Digit> Located<D> {
    const EMPTY: Located<D> = Located { buckets: [0; GROUP], digits: [D::ZERO; GROUP] };

    #[inline(always)]
    fn locate<L: Lane>(&mut self, scale: &Scale<L>, qs: &[L; GROUP]) {
        for ((&q, bucket), digit) in qs.iter().zip(&mut self.buckets).zip(&mut self.digits) {
            let (at, fraction) = scale.locate_abreast(q);
            *bucket = at as u32;
            *digit = D::of(fraction);
        }
    }
}

/// Queries of the group before that wait for their blocks: place in the group, block, rank of the block's first key, digit.
struct PutOff<D> {
    queries: [(u32, u32, usize, D); GROUP],
    count: usize,
}

impl<D: Digit> PutOff<D> {
    const EMPTY: PutOff<D> = PutOff { queries: [(0, 0, 0, D::ZERO); GROUP], count: 0 };

    /// Answers the waiting queries.
    #[inline(always)]
    fn finish<S: Simd>(&mut self, simd: S, lines: &[Line], out: &mut [usize; GROUP]) {
        for &(j, block, first, digit) in &self.queries[..self.count.min(GROUP)] {
            out[j as usize % GROUP] = first + D::less_in_block(simd, &lines[block as usize], digit);
        }
        self.count = 0;
    }
}

impl<L: Lane> Split<L> {
    /// The rank of a query that was located.
    #[inline(always)]
    pub(super) fn rank_at<D: Digit, S: Simd>(
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

    /// A pipeline of groups: in turn t, group t is located (all vector arithmetic) and its lines are asked for, group t − 2 is answered from its lines, the
    /// directories among the answers of group t − 3 are found and their blocks asked for, and group t − 4 is finished. Crowded queries are never branched on where they are
    /// found, the branch would wait for memory; and what was stored word by word is read as vectors only turns later, when it has left the store buffer.
    #[inline(always)]
    pub(super) fn ranks_as<D: Digit, S: Simd>(&self, simd: S, lines: &[Line], qs: &[L], out: &mut [usize]) {
        let (groups, rest) = qs.as_chunks::<GROUP>();
        let (answers, last) = out.as_chunks_mut::<GROUP>();
        let mut located = [Located::<D>::EMPTY; 4];
        let mut put_off = PutOff::<D>::EMPTY;
        for turn in 0..groups.len() + 4 {
            if let Some(group) = groups.get(turn) {
                located[turn % 4].locate(&self.scale, group);
            }
            let ahead = located[turn % 4].buckets;
            match turn.checked_sub(2).and_then(|now| answers.get_mut(now)) {
                Some(out) => self.answer(simd, lines, &located[(turn + 2) % 4], &ahead, out),
                None => ahead.iter().for_each(|&bucket| simd.prefetch(lines, bucket as usize)),
            }
            if let Some(done) = turn.checked_sub(4) {
                put_off.finish(simd, lines, &mut answers[done]);
            }
            if let Some(out) = turn.checked_sub(3).and_then(|before| answers.get(before)) {
                self.put_off(
                    simd,
                    lines,
                    &located[(turn + 1) % 4],
                    simd.marked(out, DIRECTORY),
                    &mut put_off,
                );
            }
        }
        for (&q, rank) in rest.iter().zip(last) {
            let (bucket, fraction) = self.scale.locate(q);
            *rank = self.rank_at::<D, S>(simd, lines, bucket, D::of(fraction));
        }
    }

    /// Answers the group `now`, directories as if they were lines, and asks for the lines `ahead`.
    #[inline(always)]
    fn answer<D: Digit, S: Simd>(
        &self,
        simd: S,
        lines: &[Line],
        now: &Located<D>,
        ahead: &[u32; GROUP],
        out: &mut [usize; GROUP],
    ) {
        for j in (0..GROUP).step_by(UNROLLED) {
            for k in j..j + UNROLLED {
                simd.prefetch(lines, ahead[k] as usize);
                let line = &lines[now.buckets[k] as usize];
                out[k] = head(line) as usize + D::less_in_line(simd, line, now.digits[k]);
            }
        }
    }

    /// Asks for the blocks of the crowded queries of a group.
    #[inline(always)]
    fn put_off<D: Digit, S: Simd>(
        &self,
        simd: S,
        lines: &[Line],
        now: &Located<D>,
        mut crowded: u64,
        put_off: &mut PutOff<D>,
    ) {
        put_off.count = 0;
        while crowded != 0 {
            let j = crowded.trailing_zeros() as usize;
            crowded &= crowded - 1;
            let (digit, line) = (now.digits[j], &lines[now.buckets[j] as usize]);
            let (block, rank) = self.block(simd, line, digit);
            simd.prefetch(lines, block);
            put_off.queries[put_off.count % GROUP] = (j as u32, block as u32, rank, digit);
            put_off.count += 1;
        }
    }
}
