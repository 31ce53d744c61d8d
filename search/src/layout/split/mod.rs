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
//! as they occur. Memory: u32 keys spread evenly take 1.5 (dense) to 7.3 bytes each, u64 keys of a wide range 17; no copy of the sorted array is kept, a
//! key is computed back from line and digit.
//!
//! Building: `fill`; ranks: `query`; bytes from outside: `check`; what a line holds: `digit`.
//!
//! Leaves out: values beside keys, more than 2^31 keys, keys whose spread is not roughly even.
//! Source: the prefix partition of Groot Koerkamp 2024 and the bucketed layouts of hash joins, taken to one line.

mod check;
mod digit;
mod fill;
mod query;

pub(crate) use fill::{Filled, Part};

use core::ops::Range;

use self::digit::{first_block, first_rank, head, with_digit, Digit, Width, DIRECTORY, WIDTHS};
use super::{Method, Refusal, Shape};
use crate::kernel::Simd;
use crate::key::{Exact, Lane};
use crate::line::{lanes, Line};
use crate::scale::Scale;

/// n keys in `scale.buckets()` lines, then `blocks` overflow blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split<L: Lane> {
    n: usize,
    scale: Scale<L>,
    digit: Width,
    blocks: usize,
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
