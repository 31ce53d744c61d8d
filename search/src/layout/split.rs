//! Split keys: a key's line is computed from its high part, and only a short digit of its low part is stored. One line per query.
//!
//! A linear map (`scale`) sends a key to a line, with an average of about two thirds of a line's keys in each. The line holds the rank of its first key and the
//! digits of its keys: 8, 16 or 32 bits (64 for u64), whichever is the shortest that tells the keys of a line apart. The rank of a query is that
//! first rank plus the number of smaller digits: one multiplication, one line, one vector compare, no pointer and no second access.
//!
//! ```text
//! line:      first rank (top bit 0) | digits, padded with all ones, which are never counted
//! overflow:  first rank (top bit 1) | number of the first block | the largest digit of each block but the last
//! block:     digits of a crowded line, in order, padded
//! ```
//!
//! A line with too many keys becomes a directory of blocks; that is the second and last line any query reads. Keys that would need more, or too
//! many directories, are refused, and the planner takes the tree: skew costs a plan, never a slow query. Duplicates are stored as often
//! as they occur. Memory: u32 keys spread evenly take 1.5 (dense) to 3.1 bytes each, 64-bit digits 15; no copy of the sorted array is kept, a
//! key is computed back from line and digit.
//!
//! Leaves out: values beside keys, more than 2^31 keys, keys whose spread is not roughly even.
//! Source: the prefix partition of Groot Koerkamp 2024 and the bucketed layouts of hash joins, taken to one line.

use alloc::vec::Vec;
use core::ops::Range;

use super::{Method, Refusal, Shape};
use crate::kernel::{Simd, MARKS};
use crate::key::{Exact, Lane};
use crate::line::{lanes, lanes_mut, Line, Plain, LINE_BYTES};
use crate::memory::Draft;
use crate::scale::Scale;

/// n keys in `scale.buckets()` lines, then `blocks` overflow blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split<L: Lane> {
    n: usize,
    scale: Scale<L>,
    digit: Width,
    blocks: usize,
}

/// How many bits of a key are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Bits8,
    Bits16,
    Bits32,
    Bits64,
}

/// Every width, with the average number of keys to put in a line: as full as leaves few lines crowded.
const WIDTHS: [(Width, usize); 4] =
    [(Width::Bits8, 44), (Width::Bits16, 21), (Width::Bits32, 9), (Width::Bits64, 4)];

/// Queries that are located together; their lines are asked for one group ahead of being read.
const GROUP: usize = MARKS;

/// Lines read per turn of the inner loop.
const UNROLLED: usize = 8;

/// The top bit of a line's first rank: the line is a directory.
const DIRECTORY: u32 = 1 << 31;

impl Width {
    fn bits(self) -> u32 {
        match self {
            Width::Bits8 => 8,
            Width::Bits16 => 16,
            Width::Bits32 => 32,
            Width::Bits64 => 64,
        }
    }
}

/// A stored digit: the leading bits of a fraction.
trait Digit: Plain + Ord {
    /// Digits of a line.
    const PER_LINE: usize = LINE_BYTES / size_of::<Self>();
    /// Lanes that the first rank takes, and again that a directory's block number takes.
    const HEAD: usize;
    /// Keys that a line holds.
    const CAPACITY: usize = Self::PER_LINE - Self::HEAD;
    /// Keys that a directory's blocks hold.
    const CROWD: usize = (Self::PER_LINE - 2 * Self::HEAD + 1) * Self::PER_LINE;
    /// No digit in particular.
    const ZERO: Self;
    /// The digit that pads: no digit is larger.
    const LARGEST: Self;
    /// The leading bits of a left-aligned fraction.
    fn of(fraction: u64) -> Self;
    /// The digit as a left-aligned fraction.
    fn left(self) -> u64;
    /// Digits of `line` less than `q`, the first rank left out.
    fn less_in_line<S: Simd>(simd: S, line: &Line, q: Self) -> usize;
    /// Digits of a directory less than `q`.
    fn less_in_directory<S: Simd>(simd: S, line: &Line, q: Self) -> usize;
    /// Digits of a block less than `q`.
    fn less_in_block<S: Simd>(simd: S, line: &Line, q: Self) -> usize;
}

macro_rules! define_digit {
    ($digit:ty, $head:literal, $lanes:ident, $less:ident) => {
        impl Digit for $digit {
            const HEAD: usize = $head;
            const ZERO: Self = 0;
            const LARGEST: Self = <$digit>::MAX;

            #[inline(always)]
            fn of(fraction: u64) -> Self {
                (fraction >> (64 - <$digit>::BITS)) as $digit
            }

            #[inline(always)]
            fn left(self) -> u64 {
                (self as u64) << (64 - <$digit>::BITS)
            }

            #[inline(always)]
            fn less_in_line<S: Simd>(simd: S, line: &Line, q: Self) -> usize {
                simd.$less::<$head>(line.$lanes(), q)
            }

            #[inline(always)]
            fn less_in_directory<S: Simd>(simd: S, line: &Line, q: Self) -> usize {
                simd.$less::<{ 2 * $head }>(line.$lanes(), q)
            }

            #[inline(always)]
            fn less_in_block<S: Simd>(simd: S, line: &Line, q: Self) -> usize {
                simd.$less::<0>(line.$lanes(), q)
            }
        }
    };
}

define_digit!(u8, 4, u8s, less_u8);
define_digit!(u16, 2, u16s, less_u16);
define_digit!(u32, 1, u32s, less_u32);
define_digit!(u64, 1, u64s, less_u64);

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
            let (at, fraction) = scale.locate(q);
            *bucket = at as u32;
            *digit = D::of(fraction);
        }
    }
}

/// A stretch of keys and the lines that they fill.
pub(crate) struct Part<'a> {
    ranks: Range<usize>,
    /// The number of the first of `lines`.
    first_line: usize,
    lines: &'a mut [Line],
    /// Where crowded lines' blocks go, numbered from 0.
    blocks: &'a mut [Line],
}

/// What was used of a part's blocks, and the numbers of the lines that refer to them.
pub(crate) struct Filled {
    blocks: usize,
    directories: Vec<usize>,
}

/// The line that keys are being placed in, and the rank of its first key.
struct Open {
    start: usize,
    line: u32,
}

/// How far placing a run came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placed {
    All,
    UntilCrowded,
}

/// Where a part begins.
struct Bound {
    rank: usize,
    line: usize,
}

/// Fewest keys that are worth a thread to place them.
const WORTH_A_PART: usize = 1 << 15;

/// Keys that are placed together.
const RUN: usize = 64;

/// Where the keys of a run go.
struct Run<D> {
    buckets: [u32; RUN],
    digits: [D; RUN],
}

impl<D: Digit> Run<D> {
    const EMPTY: Run<D> = Run { buckets: [0; RUN], digits: [D::ZERO; RUN] };

    #[inline(always)]
    fn locate<L: Lane, K: Exact<As = L>>(&mut self, scale: &Scale<L>, first_line: u32, keys: &[K]) {
        for ((key, bucket), digit) in keys.iter().zip(&mut self.buckets).zip(&mut self.digits) {
            let (at, fraction) = scale.locate_key(key.to_lane());
            *bucket = (at as u32).wrapping_sub(first_line);
            *digit = D::of(fraction);
        }
    }

    /// Places the keys `range` of a run that begins at `rank`, up to the first that its line has no place for.
    #[inline(always)]
    fn place(&self, open: &mut Open, lines: &mut [Line], rank: usize, range: Range<usize>) -> Placed {
        let Open { mut start, mut line } = *open;
        let buckets = self.buckets[range.clone()].iter();
        let mut placed = Placed::All;
        for ((&at, &digit), i) in buckets.zip(&self.digits[range.clone()]).zip(range) {
            start = if at == line { start } else { rank + i };
            line = at;
            let place = rank + i - start;
            if place >= D::CAPACITY {
                placed = Placed::UntilCrowded;
                break;
            }
            let slot = core::slice::from_mut(&mut lines[at as usize]);
            lanes_mut::<u32>(slot)[0] = start as u32;
            lanes_mut::<D>(slot)[D::HEAD + place] = digit;
        }
        *open = Open { start, line };
        placed
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

/// Calls `$body` with `$digit` standing for the type of the shape's digits.
macro_rules! with_digit {
    ($width:expr, $digit:ident => $body:expr) => {
        match $width {
            Width::Bits8 => {
                type $digit = u8;
                $body
            }
            Width::Bits16 => {
                type $digit = u16;
                $body
            }
            Width::Bits32 => {
                type $digit = u32;
                $body
            }
            Width::Bits64 => {
                type $digit = u64;
                $body
            }
        }
    };
}

/// The first rank in a line's head, its top bit telling a directory.
#[inline(always)]
fn head(line: &Line) -> u32 {
    line.u32s()[0]
}

/// The rank of a line's first key.
fn first_rank(line: &Line) -> usize {
    (head(line) & !DIRECTORY) as usize
}

/// The number of a directory's first block.
fn first_block<D: Digit>(line: &Line) -> usize {
    line.u32s()[block_word::<D>()] as usize
}

/// The 32-bit word of a directory that holds the number of its first block.
const fn block_word<D: Digit>() -> usize {
    D::HEAD * size_of::<D>() / 4
}

/// Checks that the `count` keys from `rank` on are in order behind the key before them, and none is larger than the key before `end`, whose line is the last to be filled.
#[inline(always)]
fn check_run<K: Exact>(keys: &[K], rank: usize, count: usize, end: usize) -> Result<(), Refusal> {
    let run = &keys[rank.saturating_sub(1)..rank + count];
    let descents = run.windows(2).map(|pair| u32::from(pair[0].to_lane() > pair[1].to_lane())).sum::<u32>();
    let beyond = keys[rank + count - 1].to_lane() > keys[end - 1].to_lane();
    if descents > 0 || beyond {
        return Err(Refusal::Unsorted);
    }
    Ok(())
}

impl<L: Lane> Split<L> {
    /// The plan for the sorted `keys` before any is placed: digit width and number of lines, the fewest bytes that tell keys apart.
    pub(crate) fn plan<K: Exact<As = L>>(keys: &[K]) -> Result<Split<L>, Refusal> {
        if keys.len() >= DIRECTORY as usize {
            return Err(Refusal::TooMany);
        }
        let (Some(min), Some(max)) = (keys.first(), keys.last()) else { return Err(Refusal::Crowded) };
        let (min, max) = (min.to_lane(), max.to_lane());
        let values = max.minus(min).widen() as u128 + 2;
        let best = WIDTHS.into_iter().filter(|(digit, _)| digit.bits() <= L::BITS).map(|(digit, load)| {
            let needed = usize::try_from((values >> digit.bits()) + 1).unwrap_or(usize::MAX);
            (needed.max(keys.len().div_ceil(load)), digit)
        });
        let (lines, digit) = best.min_by_key(|&(lines, _)| lines).ok_or(Refusal::Crowded)?;
        let scale = Scale::new(min, max, lines);
        debug_assert!(scale.tells_apart(digit.bits()));
        Ok(Split { n: keys.len(), scale, digit, blocks: 0 })
    }

    /// Lines to allocate before filling: the buckets, and the most overflow blocks that are accepted.
    pub(crate) fn lines_max(&self) -> usize {
        self.scale.buckets() + self.blocks_max()
    }

    fn blocks_max(&self) -> usize {
        self.scale.buckets() / 6 + 16
    }

    /// Writes the sorted `keys` into `lines` (as many as `lines_max`), each part with `fill_part` on a thread of its own, and returns the finished shape. The bytes are the
    /// same for any number of parts. That the keys are sorted is checked on the way, so that they are read once.
    ///
    /// # Errors
    /// [`Refusal::Unsorted`]; [`Refusal::Crowded`] as soon as the keys turn out too unevenly spread.
    pub(crate) fn fill<K: Exact<As = L>>(
        mut self,
        keys: &[K],
        lines: &mut [Line],
        threads: usize,
        fill_part: impl Fn(&Split<L>, &[K], Part<'_>) -> Result<Filled, Refusal> + Sync,
    ) -> Result<Split<L>, Refusal> {
        let bounds = self.bounds(keys, threads);
        let (mut rest, blocks) = lines.split_at_mut(self.scale.buckets());
        let blocks_max = blocks.len();
        // The first part's blocks are written where they stay, the others' are moved behind them.
        let mut drafts: Vec<Draft> = bounds[2..].iter().map(|_| Draft::new(self.blocks_max())).collect();
        let areas = core::iter::once(blocks).chain(drafts.iter_mut().map(Draft::lines_mut));
        let mut parts = Vec::new();
        for (pair, blocks) in bounds.windows(2).zip(areas) {
            let (lines, later) = core::mem::take(&mut rest).split_at_mut(pair[1].line - pair[0].line);
            parts.push(Part { ranks: pair[0].rank..pair[1].rank, first_line: pair[0].line, lines, blocks });
            rest = later;
        }
        let filled = crate::parallel::each(parts, |part| fill_part(&self, keys, part));
        for (i, filled) in filled.into_iter().enumerate() {
            let filled = filled?;
            if self.blocks + filled.blocks > blocks_max {
                return Err(Refusal::Crowded);
            }
            if i > 0 {
                let moved = &drafts[i - 1].lines_mut()[..filled.blocks];
                let to = self.scale.buckets() + self.blocks;
                lines[to..to + filled.blocks].copy_from_slice(moved);
                for line in filled.directories {
                    let directory = core::slice::from_mut(&mut lines[line]);
                    with_digit!(self.digit, D => lanes_mut::<u32>(directory)[block_word::<D>()] += self.blocks as u32);
                }
            }
            self.blocks += filled.blocks;
        }
        Ok(self)
    }

    /// Where the parts for `threads` threads begin, and the end: in the middle of nothing, between two lines.
    fn bounds<K: Exact<As = L>>(&self, keys: &[K], threads: usize) -> Vec<Bound> {
        let (n, mut bounds) = (keys.len(), alloc::vec![Bound { rank: 0, line: 0 }]);
        let parts = threads.clamp(1, n.div_ceil(WORTH_A_PART).max(1));
        for part in 1..parts {
            let from = n / parts * part;
            let begins = |rank: &usize| self.bucket(keys[*rank]) > self.bucket(keys[*rank - 1]);
            let Some(rank) = (from..n.min(from + WORTH_A_PART / 2)).find(begins) else { continue };
            let line = self.bucket(keys[rank]);
            if line > bounds[bounds.len() - 1].line {
                bounds.push(Bound { rank, line });
            }
        }
        bounds.push(Bound { rank: n, line: self.scale.buckets() });
        bounds
    }

    /// Fills one part.
    #[inline(always)]
    pub(crate) fn fill_part<K: Exact<As = L>>(&self, keys: &[K], part: Part<'_>) -> Result<Filled, Refusal> {
        with_digit!(self.digit, D => self.fill_as::<D, K>(keys, part))
    }

    /// Some keys at a time: they are located together (vector arithmetic) and their lines are opened; then each is placed by data alone. A branch on whether a key begins
    /// a line would be mispredicted once a line, and finding a line's end before the next line's beginning would make every line wait for the one before.
    #[inline(always)]
    fn fill_as<D: Digit, K: Exact<As = L>>(&self, keys: &[K], part: Part<'_>) -> Result<Filled, Refusal> {
        let Part { ranks, first_line, lines, blocks } = part;
        let mut filled = Filled { blocks: 0, directories: Vec::new() };
        let (mut rank, mut opened) = (ranks.start, 0);
        let mut open = Open { start: rank, line: u32::MAX };
        let mut run = Run::<D>::EMPTY;
        while rank < ranks.end {
            let some = &keys[rank..ranks.end.min(rank + RUN)];
            check_run(keys, rank, some.len(), ranks.end)?;
            run.locate(&self.scale, first_line as u32, some);
            let last = run.buckets[some.len() - 1] as usize;
            if last >= opened {
                lines[opened..=last].fill(opened_line::<D>());
            }
            let mut i = 0;
            while i < some.len() {
                if run.place(&mut open, lines, rank, i..some.len()) == Placed::All {
                    i = some.len();
                    break;
                }
                let at = open.line;
                let (line, end) = self.crowd::<D, K>(keys, open.start, blocks, &mut filled)?;
                filled.directories.push(first_line + at as usize);
                lines[at as usize] = line;
                i = end - rank;
            }
            let done = open.line as usize + 1;
            number_empty_lines(&mut lines[opened.min(done)..done]);
            (rank, opened) = (rank + i, done);
        }
        lines[opened..].fill(empty_line::<D>(ranks.end));
        Ok(filled)
    }

    #[inline(always)]
    fn bucket<K: Exact<As = L>>(&self, key: K) -> usize {
        self.scale.locate(key.to_lane()).0
    }

    /// Puts the keys of a crowded bucket, from `rank` on, into blocks; returns the directory and the first rank behind them.
    #[cold]
    fn crowd<D: Digit, K: Exact<As = L>>(
        &self,
        keys: &[K],
        rank: usize,
        blocks: &mut [Line],
        filled: &mut Filled,
    ) -> Result<(Line, usize), Refusal> {
        let bucket = self.bucket(keys[rank]);
        let reach = keys.len().min(rank + D::CROWD + 1);
        let count = keys[rank..reach].iter().take_while(|&&key| self.bucket(key) == bucket).count();
        let needed = count.div_ceil(D::PER_LINE);
        check_run(keys, rank, count, rank + count)?;
        if count > D::CROWD || filled.blocks + needed > blocks.len() {
            return Err(Refusal::Crowded);
        }
        let mut line = Line::PADDING;
        let directory = core::slice::from_mut(&mut line);
        lanes_mut::<u32>(directory)[..2 * block_word::<D>()].fill(0);
        lanes_mut::<u32>(directory)[0] = rank as u32 | DIRECTORY;
        lanes_mut::<u32>(directory)[block_word::<D>()] = filled.blocks as u32;
        for (i, keys) in keys[rank..rank + count].chunks(D::PER_LINE).enumerate() {
            let block = &mut blocks[filled.blocks + i..=filled.blocks + i];
            block.fill(Line::PADDING);
            let digits = lanes_mut::<D>(block);
            digits
                .iter_mut()
                .zip(keys)
                .for_each(|(digit, key)| *digit = D::of(self.scale.locate(key.to_lane()).1));
            if i + 1 < needed {
                lanes_mut::<D>(directory)[2 * D::HEAD + i] = digits[D::PER_LINE - 1];
            }
        }
        filled.blocks += needed;
        Ok((line, rank + count))
    }

    /// The rank of a query that was located.
    #[inline(always)]
    fn rank_at<D: Digit, S: Simd>(&self, simd: S, lines: &[Line], bucket: usize, digit: D) -> usize {
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
    fn ranks_as<D: Digit, S: Simd>(&self, simd: S, lines: &[Line], qs: &[L], out: &mut [usize]) {
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

    /// Hands out keys line by line: a search for the first line, then a walk.
    fn read_as<D: Digit>(&self, lines: &[Line], ranks: Range<usize>, each: &mut dyn FnMut(L)) {
        let buckets = &lines[..self.scale.buckets()];
        let mut rank = ranks.start;
        let mut after = buckets.partition_point(|line| first_rank(line) <= rank);
        while rank < ranks.end {
            let bucket = after - 1;
            let end = buckets.get(after).map_or(self.n, first_rank).min(ranks.end);
            let line = &buckets[bucket];
            let digits = if head(line) & DIRECTORY == 0 {
                &lanes::<D>(core::slice::from_ref(line))[D::HEAD..]
            } else {
                lanes::<D>(&lines[self.scale.buckets() + first_block::<D>(line)..])
            };
            let held = rank - first_rank(line)..end.saturating_sub(first_rank(line));
            digits[held].iter().for_each(|digit| each(self.scale.key(bucket, digit.left())));
            rank = end;
            after += 1;
        }
    }

    /// True when every line holds as many digits in order as the next line's first rank says, and the blocks follow one another.
    fn holds_as<D: Digit>(&self, lines: &[Line]) -> bool {
        let (buckets, blocks) = lines.split_at(self.scale.buckets());
        let (mut rank, mut used) = (0, 0);
        for (i, line) in buckets.iter().enumerate() {
            let end = buckets.get(i + 1).map_or(self.n, first_rank);
            if first_rank(line) != rank || end < rank {
                return false;
            }
            let whole = if head(line) & DIRECTORY == 0 {
                padded(&lanes::<D>(core::slice::from_ref(line))[D::HEAD..], end - rank)
            } else {
                let blocks = &blocks[used..];
                let needed = (end - rank).div_ceil(D::PER_LINE);
                let numbered = first_block::<D>(line) == used && needed <= blocks.len();
                used += needed;
                numbered && directory_holds::<D>(line, &blocks[..needed], end - rank)
            };
            if !whole {
                return false;
            }
            rank = end;
        }
        rank == self.n && used == blocks.len()
    }

    /// The shape of a file's numbers.
    pub(crate) fn from_words(n: usize, words: [u64; 6]) -> Option<Split<L>> {
        let scale = Scale::from_words([words[0], words[1], words[2], words[3]])?;
        let (digit, _) = WIDTHS
            .into_iter()
            .find(|(digit, _)| digit.bits() as u64 == words[4] && digit.bits() <= L::BITS)?;
        let blocks = usize::try_from(words[5]).ok()?;
        (n < DIRECTORY as usize && blocks < DIRECTORY as usize).then_some(Split { n, scale, digit, blocks })
    }

    /// Bits of a stored digit.
    pub(crate) fn digit_bits(&self) -> u32 {
        self.digit.bits()
    }
}

/// True when `count` digits in order and padding are all there is.
fn padded<D: Digit>(digits: &[D], count: usize) -> bool {
    count <= digits.len()
        && digits[..count].is_sorted()
        && digits[count..].iter().all(|&digit| digit == D::LARGEST)
}

/// True when the blocks hold `count` digits in order and the directory their largest ones.
fn directory_holds<D: Digit>(line: &Line, blocks: &[Line], count: usize) -> bool {
    let largest = &lanes::<D>(core::slice::from_ref(line))[2 * D::HEAD..];
    let digits = lanes::<D>(blocks);
    (1..=D::CROWD).contains(&count)
        && padded(digits, count)
        && padded(largest, blocks.len() - 1)
        && (1..blocks.len()).all(|i| largest[i - 1] == digits[i * D::PER_LINE - 1])
}

/// The head of a line that was opened and has no key yet: no rank, because ranks are below 2^31 − 1.
const NO_RANK: u32 = u32::MAX;

/// A line ready to take keys.
#[inline(always)]
fn opened_line<D: Digit>() -> Line {
    let mut line = empty_line::<D>(0);
    lanes_mut::<u32>(core::slice::from_mut(&mut line))[0] = NO_RANK;
    line
}

/// Gives the lines that stayed without keys the rank of the line behind them. The last line has keys.
#[inline(always)]
fn number_empty_lines(lines: &mut [Line]) {
    let mut behind = 0;
    for line in lines.iter_mut().rev() {
        let own = head(line);
        behind = if own == NO_RANK { behind } else { own & !DIRECTORY };
        let number = if own == NO_RANK { behind } else { own };
        lanes_mut::<u32>(core::slice::from_mut(line))[0] = number;
    }
}

/// A line without keys whose first rank is `rank`.
fn empty_line<D: Digit>(rank: usize) -> Line {
    let mut line = Line::PADDING;
    let words = lanes_mut::<u32>(core::slice::from_mut(&mut line));
    words[..block_word::<D>()].fill(0);
    words[0] = rank as u32;
    line
}

impl<L: Lane> Method<L> for Split<L> {
    fn of(shape: &Shape<L>) -> &Self {
        let Shape::Split(this) = shape else { unreachable!("the kernel was chosen for this layout") };
        this
    }

    fn lines(&self) -> usize {
        self.scale.buckets().saturating_add(self.blocks)
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, simd: S, lines: &[Line], q: L) -> usize {
        let (bucket, fraction) = self.scale.locate(q);
        with_digit!(self.digit, D => self.rank_at::<D, S>(simd, lines, bucket, D::of(fraction)))
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], qs: &[L], out: &mut [usize]) {
        with_digit!(self.digit, D => self.ranks_as::<D, S>(simd, lines, qs, out))
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        let mut found = L::MIN;
        self.read(lines, rank..rank + 1, &mut |key| found = key);
        found
    }

    fn read(&self, lines: &[Line], ranks: Range<usize>, each: &mut dyn FnMut(L)) {
        with_digit!(self.digit, D => self.read_as::<D>(lines, ranks, each));
    }

    fn holds(&self, lines: &[Line]) -> bool {
        with_digit!(self.digit, D => self.holds_as::<D>(lines))
    }

    fn words(&self) -> [u64; 6] {
        let [min, beyond, multiplier, buckets] = self.scale.words();
        [min, beyond, multiplier, buckets, self.digit.bits() as u64, self.blocks as u64]
    }
}
