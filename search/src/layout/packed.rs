//! Packed digits are split keys without gaps. A small table holds the start of each bucket's keys,
//! and interpolation inside the bucket finds the line.
//!
//! The keys' 16-bit digits follow one another without gaps, so a place is a rank, and the memory is
//! half that of u32 keys. The table (4 bytes per [`LOAD`] keys) stays in the near caches; the line
//! that holds the answer is guessed as `start + fraction · count` and prefetched at once. With
//! evenly spread keys the answer is in the guessed line or in one beside it. The build computes the
//! error of *every* possible query, and the layout refuses keys for which an error exceeds
//! [`ERROR_LINES_MAX`] lines: interpolation is acceptable only with a bound.
//!
//! ```text
//! table:   starts of the buckets, u32, one more than buckets
//! digits:  u16, in order, padded to a line
//! ```
//!
//! Lines read: one of the table, then the guessed line, rarely its neighbour. Memory: 2.06 bytes a
//! key when a bucket holds 64 keys. **Leaves out** digits other than 16 bits, more than 2^31 keys.
//! Source: interpolation search (Peterson 1957) on split keys, with the bound of learned indexes
//! (PGM).

use core::ops::Range;

use super::method::{self, Contents, Method, Numbers, Placing, Properties, Refusal};
use crate::lane::{Exact, Lane};
use crate::line::{lanes, lanes_mut, lines_for, Line};
use crate::memory::Memory;
use crate::scale::Scale;
use crate::simd::{Simd, Vectors, MARKS};

/// Keys per bucket, unless 16 bits need more buckets to tell keys apart.
const LOAD: usize = 64;

/// Number of digits of a line.
const PER_LINE: usize = 32;

/// The largest distance in lines between guess and answer that is accepted.
const ERROR_LINES_MAX: usize = 2;

/// Bits of a digit.
const DIGIT_BITS: u32 = 16;

/// Number of queries that go through the pipeline together.
const GROUP: usize = MARKS;

/// The bit that is set in an answer that may be in a neighbouring line.
const UNSURE: u32 = 1 << 31;

/// The layout's entry of the table of layouts.
pub(super) const PROPERTIES: Properties = Properties {
    code: 9,
    name: "packed",
    about: "16-bit digits end to end, a table of starts, interpolation in between",
    bound: "2 a query, at most 4; keys that interpolation misses by more are refused",
    is_order_checked: false,
};

/// n digits behind a table of `scale.buckets() + 1` starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed<L: Lane> {
    n: usize,
    scale: Scale<L>,
    table_lines: usize,
}

/// The state of a query before its line is read: the ranks of its bucket, the first rank of the
/// line to read, and its digit.
#[derive(Clone, Copy, Default)]
struct Guess {
    start: u32,
    end: u32,
    line: u32,
    digit: u16,
}

/// The rank that a digit suggests in a bucket of fewer than 2^16 keys.
#[inline(always)]
fn interpolate(start: u32, end: u32, digit: u16) -> u32 {
    start.wrapping_add(u32::from(digit).wrapping_mul(end.wrapping_sub(start)) >> DIGIT_BITS)
}

/// The first rank of the line that holds a rank.
#[inline(always)]
fn line_start(rank: u32) -> u32 {
    rank & !(PER_LINE as u32 - 1)
}

/// Whether `rank` is at an edge of the line, and its bucket continues behind that edge.
#[inline(always)]
fn unsure(start: u32, end: u32, line: u32, rank: u32) -> bool {
    (rank == line) & (line > start) | (rank == line + PER_LINE as u32) & (rank < end)
}

impl<L: Lane> Packed<L> {
    /// The plan for the sorted `keys`.
    pub(crate) fn plan<K: Exact<As = L>>(keys: &[K]) -> Result<Packed<L>, Refusal> {
        let (Some(min), Some(max)) = (keys.first(), keys.last()) else { return Err(Refusal::Crowded) };
        if keys.len() >= UNSURE as usize {
            return Err(Refusal::TooMany);
        }
        let (min, max) = (min.to_lane(), max.to_lane());
        let needed = ((max.minus(min).widen() as u128 + 2) >> DIGIT_BITS) + 1;
        if needed > keys.len() as u128 {
            return Err(Refusal::Crowded);
        }
        let scale = Scale::new(min, max, keys.len().div_ceil(LOAD).max(needed as usize));
        Ok(Self::of_scale(keys.len(), scale))
    }

    fn of_scale(n: usize, scale: Scale<L>) -> Packed<L> {
        Packed { n, scale, table_lines: lines_for::<u32>(scale.buckets() + 1) }
    }

    /// Writes table and digits into `lines`.
    ///
    /// # Errors
    /// [`Refusal::Crowded`] when some query's answer would be too far from its guess.
    pub(crate) fn fill<K: Exact<As = L>>(&self, keys: &[K], lines: &mut [Line]) -> Result<(), Refusal> {
        // The start of a bucket is written with the bucket's first key, together with the starts of
        // the empty buckets before it.
        let (table, digits) = lines.split_at_mut(self.table_lines);
        let table = lanes_mut::<u32>(table);
        let digits = lanes_mut::<u16>(digits);
        let mut next = 0;
        for (rank, key) in keys.iter().enumerate() {
            let (bucket, fraction) = self.scale.locate(key.to_lane());
            if bucket >= next {
                table[next..=bucket].fill(rank as u32);
                next = bucket + 1;
            }
            digits[rank] = (fraction >> (64 - DIGIT_BITS)) as u16;
        }
        table[next..].fill(keys.len() as u32);
        digits[keys.len()..].fill(u16::MAX);
        if self.error_lines(table, digits) > ERROR_LINES_MAX {
            Err(Refusal::Crowded)
        } else {
            Ok(())
        }
    }

    /// The largest distance, in lines, between the guess for any query and its answer. Inside a
    /// bucket guesses ascend with digits, so for the queries between two digits the farthest
    /// guesses are those of the digits themselves.
    fn error_lines(&self, table: &[u32], digits: &[u16]) -> usize {
        let line = |rank: usize| rank / PER_LINE;
        let mut worst = 0;
        for pair in table[..=self.scale.buckets()].windows(2) {
            let (start, end) = (pair[0] as usize, pair[1] as usize);
            let guess = |digit: u16| interpolate(pair[0], pair[1], digit) as usize;
            // Interpolation multiplies in 32 bits.
            if end - start > u16::MAX as usize {
                return usize::MAX;
            }
            let mut low = start;
            for (rank, &digit) in (start..end).zip(&digits[start..end]) {
                let high = guess(digit);
                worst = worst.max(line(rank).abs_diff(line(low))).max(line(rank).abs_diff(line(high)));
                low = high;
            }
            worst = worst.max(line(end).abs_diff(line(low)));
        }
        worst
    }

    /// The rank according to the guessed line: digits of earlier buckets count as less, digits of
    /// later ones as not less.
    #[inline(always)]
    fn rank_in_line<S: Simd>(simd: S, digits: &[Line], guess: Guess) -> u32 {
        let less = simd.mask_less_u16(digits[guess.line as usize / PER_LINE].u16s(), guess.digit);
        let before = low_bits(guess.start.saturating_sub(guess.line));
        let inside = low_bits(guess.end.wrapping_sub(guess.line));
        guess.line + ((less & inside) | before).count_ones()
    }

    /// The rank according to the guessed line and its neighbours, which are read as long as the
    /// answer may be there.
    #[inline(always)]
    fn rank_nearby<S: Simd>(simd: S, digits: &[Line], mut guess: Guess) -> usize {
        // At an edge of the line the answer may be in the neighbour. The walk goes in one direction
        // and stops where it would turn back: there the answer is the edge between two lines.
        let mut rank = Self::rank_in_line(simd, digits, guess);
        let ascending = rank > guess.line;
        while unsure(guess.start, guess.end, guess.line, rank) && (rank > guess.line) == ascending {
            guess.line = line_start(if ascending { rank } else { rank - 1 });
            rank = Self::rank_in_line(simd, digits, guess);
        }
        rank as usize
    }

    #[inline(always)]
    fn digit(fraction: u64) -> u16 {
        (fraction >> (64 - DIGIT_BITS)) as u16
    }

    /// Locates the buckets of a group, and prefetches its lines of the table.
    #[inline(always)]
    fn locate<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L; GROUP], located: &mut Located) {
        for ((&query, bucket), digit) in queries.iter().zip(&mut located.buckets).zip(&mut located.digits) {
            let (at, fraction) = self.scale.locate(query);
            *bucket = at as u32;
            *digit = Self::digit(fraction);
        }
        located.buckets.iter().for_each(|&bucket| simd.prefetch(lines, bucket as usize / 16));
    }
}

/// The lowest `count` bits, or all if `count` exceeds 32.
#[inline(always)]
fn low_bits(count: u32) -> u32 {
    ((1u64 << count.min(32)) - 1) as u32
}

/// The buckets and digits of a group's queries.
#[derive(Clone, Copy)]
struct Located {
    buckets: [u32; GROUP],
    digits: [u16; GROUP],
}

/// The guesses of a group, in one array per field. Only the table's reads are not vector
/// arithmetic.
#[derive(Clone, Copy)]
struct GroupGuesses {
    starts: [u32; GROUP],
    ends: [u32; GROUP],
    digits: [u16; GROUP],
    /// The first ranks of the guessed lines.
    lines: [u32; GROUP],
    /// The numbers of the lines' digits that belong to earlier buckets: these count as less,
    /// whatever they are.
    before: [u32; GROUP],
    /// The numbers of the lines' digits that belong to the query's bucket or earlier ones.
    inside: [u32; GROUP],
}

impl GroupGuesses {
    const EMPTY: GroupGuesses = GroupGuesses {
        starts: [0; GROUP],
        ends: [0; GROUP],
        digits: [0; GROUP],
        lines: [0; GROUP],
        before: [0; GROUP],
        inside: [0; GROUP],
    };

    /// Reads the table for a group and guesses lines.
    #[inline(always)]
    fn take(&mut self, starts: &[u32], located: &Located) {
        // Reading the table takes one load per query; the rest is vector arithmetic.
        for place in 0..GROUP {
            let pair: &[u32; 2] =
                starts[located.buckets[place] as usize..].first_chunk().expect("the table ends with n");
            [self.starts[place], self.ends[place]] = *pair;
        }
        self.digits = located.digits;
        for place in 0..GROUP {
            let (start, end) = (self.starts[place], self.ends[place]);
            let line = line_start(interpolate(start, end, self.digits[place]));
            self.lines[place] = line;
            self.before[place] = low_bits(start.saturating_sub(line));
            self.inside[place] = low_bits(end.wrapping_sub(line));
        }
    }

    /// Answers the group; returns which answers may be in a neighbouring line.
    #[inline(always)]
    fn answer<S: Simd>(&self, simd: S, digits: &[Line], out: &mut [usize; GROUP]) -> u64 {
        let mut counts = [0; GROUP];
        for place in 0..GROUP {
            let line = &digits[self.lines[place] as usize / PER_LINE];
            let less = simd.mask_less_u16(line.u16s(), self.digits[place]);
            counts[place] = ((less & self.inside[place]) | self.before[place]).count_ones();
        }
        for place in 0..GROUP {
            let rank = self.lines[place] + counts[place];
            let unsure = unsure(self.starts[place], self.ends[place], self.lines[place], rank);
            out[place] = (rank | u32::from(unsure) << 31) as usize;
        }
        simd.marked(out, UNSURE)
    }

    /// One guess of the group.
    #[inline(always)]
    fn of(&self, place: usize) -> Guess {
        Guess {
            start: self.starts[place],
            end: self.ends[place],
            line: self.lines[place],
            digit: self.digits[place],
        }
    }
}

impl<L: Lane> Contents<L> for Packed<L> {
    fn lines(&self) -> usize {
        // There is one line more, because a guess may be the rank behind the last digit.
        self.table_lines + lines_for::<u16>(self.n) + 1
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        let mut found = L::MIN;
        self.read(lines, rank..rank + 1, &mut |key| found = key);
        found
    }

    fn read(&self, lines: &[Line], ranks: Range<usize>, each: &mut dyn FnMut(L)) {
        let (table, digits) = lines.split_at(self.table_lines);
        let inverse = self.scale.inverse();
        let starts = &lanes::<u32>(table)[..=self.scale.buckets()];
        let mut after = starts.partition_point(|&start| start as usize <= ranks.start);
        // Buckets ascend with ranks: the walk to the next one is shorter than a search.
        for rank in ranks {
            while starts.get(after).is_some_and(|&start| start as usize <= rank) {
                after += 1;
            }
            let digit = u64::from(lanes::<u16>(digits)[rank]) << (64 - DIGIT_BITS);
            each(inverse.key(after - 1, digit));
        }
    }

    fn holds(&self, lines: &[Line]) -> bool {
        let (table, digits) = lines.split_at(self.table_lines);
        let (table, digits) = (lanes::<u32>(table), lanes::<u16>(digits));
        // Starts that ascend from 0 to n keep every guess within the digits. Digits in order and
        // the bound on the error keep every answer within two lines of its guess.
        let starts = &table[..=self.scale.buckets()];
        let whole = starts[0] == 0 && starts.is_sorted() && starts[starts.len() - 1] as usize == self.n;
        whole
            && starts.windows(2).all(|pair| digits[pair[0] as usize..pair[1] as usize].is_sorted())
            && digits[self.n..].iter().all(|&digit| digit == u16::MAX)
            && self.error_lines(table, digits) <= ERROR_LINES_MAX
    }

    fn numbers(&self) -> Numbers {
        let [min, beyond, multiplier, buckets] = self.scale.numbers();
        [min, beyond, multiplier, buckets, 0, 0]
    }
}

impl<L: Lane> Method<L> for Packed<L> {
    fn build<K: Exact<As = L>>(
        keys: &[K],
        _placing: Placing<impl Vectors>,
    ) -> Result<(Self, Memory), Refusal> {
        method::filled::<L, _>(Packed::plan(keys)?, |shape, lines| shape.fill(keys, lines))
    }

    fn from_numbers(n: usize, numbers: Numbers) -> Option<Self> {
        let scale = Scale::from_numbers([numbers[0], numbers[1], numbers[2], numbers[3]])?;
        (n < UNSURE as usize).then(|| Self::of_scale(n, scale))
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, simd: S, lines: &[Line], query: L) -> usize {
        let (table, digits) = lines.split_at(self.table_lines);
        let (bucket, fraction) = self.scale.locate(query);
        let pair: &[u32; 2] = lanes::<u32>(table)[bucket..].first_chunk().expect("the table ends with n");
        let (start, end, digit) = (pair[0], pair[1], Self::digit(fraction));
        Self::rank_nearby(
            simd,
            digits,
            Guess { start, end, line: line_start(interpolate(start, end, digit)), digit },
        )
    }

    /// Three groups are in the pipeline: one prefetches its part of the table, one reads the table
    /// and prefetches its digits, one compares.
    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        let (table, digits) = lines.split_at(self.table_lines);
        let starts = lanes::<u32>(table);
        // Step i: group i reads the table and prefetches its digits, group i + 1 prefetches its
        // part of the table, group i - 1 compares, and the unsure queries of group i - 2 are
        // completed.
        let (groups, rest) = queries.as_chunks::<GROUP>();
        let (answers, last) = out.as_chunks_mut::<GROUP>();
        let mut located = Located { buckets: [0; GROUP], digits: [0; GROUP] };
        let mut guesses = [GroupGuesses::EMPTY; 2];
        let mut deferred = DeferredQueries { queries: [(0, Guess::default()); GROUP], count: 0 };
        if let Some(first) = groups.first() {
            self.locate(simd, lines, first, &mut located);
        }
        for step in 0..=answers.len() {
            // Guesses of two groups are needed at a time, in alternating buffers.
            let [even, odd] = &mut guesses;
            let (now, next) = if step % 2 == 0 { (even, odd) } else { (odd, even) };
            if step < groups.len() {
                next.take(starts, &located);
                next.lines.iter().for_each(|&line| simd.prefetch(digits, line as usize / PER_LINE));
            }
            if let Some(group) = groups.get(step + 1) {
                self.locate(simd, lines, group, &mut located);
            }
            let Some(at) = step.checked_sub(1) else { continue };
            let unsure = now.answer(simd, digits, &mut answers[at]);
            if let Some(before) = at.checked_sub(1) {
                deferred.finish::<L, S>(simd, digits, &mut answers[before]);
            }
            deferred.take(simd, digits, now, unsure);
        }
        if let Some(before) = answers.last_mut() {
            deferred.finish::<L, S>(simd, digits, before);
        }
        for (&query, rank) in rest.iter().zip(last) {
            *rank = self.rank(simd, lines, query);
        }
    }
}

/// Queries of the previous group that wait for a neighbouring line.
struct DeferredQueries {
    queries: [(u32, Guess); GROUP],
    count: usize,
}

impl DeferredQueries {
    /// Stores the unsure queries of a group and prefetches their neighbouring lines.
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, digits: &[Line], now: &GroupGuesses, mut unsure: u64) {
        self.count = 0;
        while unsure != 0 {
            let place = unsure.trailing_zeros() as usize;
            unsure &= unsure - 1;
            let line = now.lines[place] as usize / PER_LINE;
            simd.prefetch(digits, line.wrapping_sub(1));
            simd.prefetch(digits, line + 1);
            self.queries[self.count % GROUP] = (place as u32, now.of(place));
            self.count += 1;
        }
    }

    /// Answers the stored queries.
    #[inline(always)]
    fn finish<L: Lane, S: Simd>(&mut self, simd: S, digits: &[Line], out: &mut [usize; GROUP]) {
        for &(place, guess) in &self.queries[..self.count.min(GROUP)] {
            out[place as usize % GROUP] = Packed::<L>::rank_nearby(simd, digits, guess);
        }
        self.count = 0;
    }
}
