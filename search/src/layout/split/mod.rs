//! Split keys: a key's line is computed from its high part, and only a short digit of its low part
//! is stored. One line per query.
//!
//! A linear map (`scale`) sends a key to a line, with an average of about two thirds of a line's
//! keys in each. The line holds the rank of its first key and the digits of its keys: 8, 16 or 32
//! bits (64 for u64), the shortest width that distinguishes the keys of a line. The rank of a query
//! is that first rank plus the number of smaller digits: one multiplication, one line, one vector
//! compare, no pointer and no second access.
//!
//! ```text
//! line:      first rank (top bit 0) | digits, padded with all ones, which are never counted
//! directory: first rank (top bit 1) | number of the first block | largest digits of blocks
//! block:     digits of a crowded line, in order, padded
//! ```
//!
//! A line with too many keys becomes a directory of blocks; a block is then the second and last
//! line that a query reads. Keys that need more lines, or too many directories, are refused, and
//! the planner takes the tree instead: skewed keys never make slow queries. Duplicates are stored
//! as often as they occur. Memory: u32 keys spread evenly take 1.8 (dense) to 9.1 bytes each, u64
//! keys of a wide range 17; no copy of the sorted array is kept, because a key can be computed from
//! its line and digit.
//!
//! `plan` chooses the numbers, `fill` builds, `query` finds ranks, `check` examines bytes from
//! outside, and `digit` defines the contents of a line.
//!
//! **Leaves out** values beside keys, more than 2^31 keys, keys whose spread is not roughly even.
//! Source: the prefix partition of Groot Koerkamp 2024 and the bucketed layouts of hash joins,
//! reduced to one line.

mod check;
mod depth;
pub(super) mod digit;
mod fill;
mod plan;
mod query;

pub(super) use fill::{empty_line, FillPart, Part};
pub(crate) use plan::Split;
pub(super) use query::{Locate, Located, GROUP};

use alloc::string::String;
use core::ops::Range;

use self::digit::{first_block, first_rank, head, with_digit, Digit, Width, DIRECTORY};
use super::method::{Contents, Method, Numbers, Placing, Properties, Refusal};
use crate::lane::{Exact, Lane};
use crate::line::{lanes, Line};
use crate::memory::{Draft, Memory};
use crate::simd::{Simd, Vectors};

/// The layout's entry of the table of layouts.
pub(super) const PROPERTIES: Properties = Properties {
    code: 8,
    name: "split",
    about: "keys split into a line number and a short digit kept in the line",
    bound: "1 a query, at most 2; keys that need more are refused",
    is_order_checked: true,
};

impl<L: Lane> Split<L> {
    /// Reads keys line by line: a search for the first line, then a walk.
    fn read_as<D: Digit>(&self, lines: &[Line], ranks: Range<usize>, each: &mut dyn FnMut(L)) {
        let (buckets, inverse) = (&lines[..self.scale.buckets()], self.scale.inverse());
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
            digits[held].iter().for_each(|digit| each(inverse.key(bucket, digit.left())));
            rank = end;
            after += 1;
        }
    }
}

impl<L: Lane> Contents<L> for Split<L> {
    fn lines(&self) -> usize {
        self.scale.buckets().saturating_add(self.blocks)
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

    fn numbers(&self) -> Numbers {
        let [min, beyond, multiplier, buckets] = self.scale.numbers();
        [min, beyond, multiplier, buckets, self.digit.bits() as u64, self.blocks as u64]
    }

    fn detail(&self) -> String {
        alloc::format!(", {}-bit digits", self.digit.bits())
    }
}

impl<L: Lane> Method<L> for Split<L> {
    fn build<K: Exact<As = L>>(
        keys: &[K],
        placing: Placing<impl Vectors>,
    ) -> Result<(Self, Memory), Refusal> {
        let plan = Split::plan(keys)?;
        let mut draft = Draft::new(plan.lines_max());
        let shape = plan.fill(keys, draft.lines_mut(), placing)?;
        let lines = Contents::<L>::lines(&shape);
        Ok((shape, draft.finish(lines)))
    }

    fn from_numbers(n: usize, numbers: Numbers) -> Option<Self> {
        Split::of_numbers(n, numbers)
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, simd: S, lines: &[Line], query: L) -> usize {
        let (bucket, fraction) = self.scale.locate(query);
        with_digit!(self.digit, D => self.rank_at::<D, S>(simd, lines, bucket, D::of(fraction)))
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        with_digit!(self.digit, D => self.ranks_as::<D, S>(simd, lines, queries, out))
    }
}
