//! Packed digits: split keys without a place left empty. A small table says where a bucket's keys start; interpolation inside the bucket says which line.
//!
//! The keys' 16-bit digits stand end to end, so a place is a rank and the memory is half that of u32 keys. The table (4 bytes per [`LOAD`] keys) stays in
//! the near caches; the line that holds the answer is guessed as `start + fraction · count` and fetched at once. Evenly spread keys are where the guess says, or
//! one line beside it; while the index is built the error of *every* possible query is computed, and the layout refuses keys for which it exceeds
//! [`ERROR_LINES_MAX`] lines. Interpolation is used only because it is bounded.
//!
//! ```text
//! table:   starts of the buckets, u32, one more than buckets
//! digits:  u16, in order, padded to a line
//! ```
//!
//! Lines read: one of the table, then the guessed line, rarely its neighbour. Memory: 2.06 bytes a key when a bucket holds 64 keys.
//! Leaves out: digits other than 16 bits, more than 2^31 keys. Source: interpolation search (Peterson 1957) on split keys, with the bound of learned indexes (PGM).

use core::ops::Range;

use super::{Method, Refusal, Shape};
use crate::kernel::{Simd, MARKS};
use crate::key::{Exact, Lane};
use crate::line::{lanes, lanes_mut, lines_for, Line};
use crate::scale::Scale;

/// Keys per bucket, unless 16 bits need more buckets to tell keys apart.
const LOAD: usize = 64;

/// Digits of a line.
const PER_LINE: usize = 32;

/// Lines between the guess and the answer that are accepted.
const ERROR_LINES_MAX: usize = 2;

/// Bits of a digit.
const DIGIT_BITS: u32 = 16;

/// Queries that go through the pipeline together.
const GROUP: usize = MARKS;

/// Set in an answer that may be in a neighbouring line.
const UNSURE: u32 = 1 << 31;

/// n digits behind a table of `scale.buckets() + 1` starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed<L: Lane> {
    n: usize,
    scale: Scale<L>,
    table_lines: usize,
}

/// What is known of a query before its line is read: its bucket's ranks, the guessed rank, its digit.
#[derive(Clone, Copy, Default)]
struct Guess {
    start: u32,
    end: u32,
    at: u32,
    digit: u16,
}

impl Guess {
    /// The first rank of the guessed line.
    #[inline(always)]
    fn line_start(self) -> u32 {
        self.at & !(PER_LINE as u32 - 1)
    }
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
        if self.error_lines(table, digits) > ERROR_LINES_MAX { Err(Refusal::Crowded) } else { Ok(()) }
    }

    /// The largest distance, in lines, between the guess for any query and its answer. Inside a bucket guesses ascend with digits, so for the queries between two
    /// digits the farthest guesses are those of the digits themselves.
    fn error_lines(&self, table: &[u32], digits: &[u16]) -> usize {
        let line = |rank: usize| rank / PER_LINE;
        let mut worst = 0;
        for pair in table[..=self.scale.buckets()].windows(2) {
            let (start, end) = (pair[0] as usize, pair[1] as usize);
            let guess = |digit: u16| start + ((u64::from(digit) * (end - start) as u64) >> DIGIT_BITS) as usize;
            let mut low = start;
            for rank in start..end {
                let high = guess(digits[rank]);
                worst = worst.max(line(rank).abs_diff(line(low))).max(line(rank).abs_diff(line(high)));
                low = high;
            }
            worst = worst.max(line(end).abs_diff(line(low)));
        }
        worst
    }

    /// The guess for a query in `bucket`.
    #[inline(always)]
    fn guess(&self, starts: &[u32], bucket: usize, digit: u16) -> Guess {
        let pair: &[u32; 2] = starts[bucket..].first_chunk().expect("the table ends with the number of keys");
        let [start, end] = *pair;
        let at = start + ((u64::from(digit) * u64::from(end - start)) >> DIGIT_BITS) as u32;
        Guess { start, end, at, digit }
    }

    /// The rank that the guessed line suggests: digits of earlier buckets count as less, of later ones as not less.
    #[inline(always)]
    fn rank_in_line<S: Simd>(simd: S, digits: &[Line], guess: Guess) -> u32 {
        let line_start = guess.line_start();
        let less = simd.mask_less_u16(digits[line_start as usize / PER_LINE].u16s(), guess.digit);
        let before = low_bits(guess.start.saturating_sub(line_start));
        let inside = low_bits(guess.end - line_start);
        line_start + ((less & inside) | before).count_ones()
    }

    /// True when `rank` is at an edge of the line behind which the bucket goes on.
    #[inline(always)]
    fn unsure(guess: Guess, rank: u32) -> bool {
        let line_start = guess.line_start();
        (rank == line_start) & (line_start > guess.start) | (rank == line_start + PER_LINE as u32) & (rank < guess.end)
    }

    /// The rank, from the guessed line on to its neighbours as long as the answer may be there.
    #[inline(always)]
    fn rank_nearby<S: Simd>(simd: S, digits: &[Line], mut guess: Guess) -> usize {
        let mut rank = Self::rank_in_line(simd, digits, guess);
        let ascending = rank > guess.line_start();
        while Self::unsure(guess, rank) && (rank > guess.line_start()) == ascending {
            guess.at = if ascending { rank } else { rank - 1 };
            rank = Self::rank_in_line(simd, digits, guess);
        }
        rank as usize
    }

    /// The shape of a file's numbers.
    pub(crate) fn from_words(n: usize, words: [u64; 6]) -> Option<Packed<L>> {
        let scale = Scale::from_words([words[0], words[1], words[2], words[3]])?;
        (n < UNSURE as usize).then(|| Self::of_scale(n, scale))
    }

    #[inline(always)]
    fn digit(fraction: u64) -> u16 {
        (fraction >> (64 - DIGIT_BITS)) as u16
    }

    /// Locates a group and asks for its lines of the table.
    #[inline(always)]
    fn locate<S: Simd>(&self, simd: S, lines: &[Line], qs: &[L; GROUP], places: &mut Places) {
        for ((&q, bucket), digit) in qs.iter().zip(&mut places.buckets).zip(&mut places.digits) {
            let (at, fraction) = self.scale.locate(q);
            *bucket = at as u32;
            *digit = Self::digit(fraction);
        }
        places.buckets.iter().for_each(|&bucket| simd.prefetch(lines, bucket as usize / 16));
    }
}

/// The lowest `count` bits, all when there are more than 32.
#[inline(always)]
fn low_bits(count: u32) -> u32 {
    ((1u64 << count.min(32)) - 1) as u32
}

/// Where the queries of a group go.
#[derive(Clone, Copy)]
struct Places {
    buckets: [u32; GROUP],
    digits: [u16; GROUP],
}

impl<L: Lane> Method<L> for Packed<L> {
    fn of(shape: &Shape<L>) -> &Self {
        let Shape::Packed(this) = shape else { unreachable!("the kernel was chosen for this layout") };
        this
    }

    fn lines(&self) -> usize {
        // One line more: a guess may be the rank behind the last digit.
        self.table_lines + lines_for::<u16>(self.n) + 1
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, simd: S, lines: &[Line], q: L) -> usize {
        let (table, digits) = lines.split_at(self.table_lines);
        let (bucket, fraction) = self.scale.locate(q);
        Self::rank_nearby(simd, digits, self.guess(lanes(table), bucket, Self::digit(fraction)))
    }

    /// Three groups are under way: one asks for the table, one reads it and asks for digits, one compares.
    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], qs: &[L], out: &mut [usize]) {
        let (table, digits) = lines.split_at(self.table_lines);
        let starts = lanes::<u32>(table);
        let (groups, rest) = qs.as_chunks::<GROUP>();
        let (answers, last) = out.as_chunks_mut::<GROUP>();
        let mut places = Places { buckets: [0; GROUP], digits: [0; GROUP] };
        let mut guesses = [[Guess::default(); GROUP]; 2];
        let mut put_off = PutOff { queries: [(0, Guess::default()); GROUP], count: 0 };
        if let Some(first) = groups.first() {
            self.locate(simd, lines, first, &mut places);
        }
        for i in 0..=answers.len() {
            let [even, odd] = &mut guesses;
            let (now, next) = if i % 2 == 0 { (even, odd) } else { (odd, even) };
            if i < groups.len() {
                for j in 0..GROUP {
                    next[j] = self.guess(starts, places.buckets[j] as usize, places.digits[j]);
                    simd.prefetch(digits, next[j].at as usize / PER_LINE);
                }
            }
            if let Some(group) = groups.get(i + 1) {
                self.locate(simd, lines, group, &mut places);
            }
            let Some(at) = i.checked_sub(1) else { continue };
            let unsure = answer::<L, S>(simd, digits, now, &mut answers[at]);
            if let Some(before) = at.checked_sub(1) {
                put_off.finish::<L, S>(simd, digits, &mut answers[before]);
            }
            put_off.take(simd, digits, now, unsure);
        }
        if let Some(before) = answers.last_mut() {
            put_off.finish::<L, S>(simd, digits, before);
        }
        for (&q, rank) in rest.iter().zip(last) {
            *rank = self.rank(simd, lines, q);
        }
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        let mut found = L::MIN;
        self.read(lines, rank..rank + 1, &mut |key| found = key);
        found
    }

    fn read(&self, lines: &[Line], ranks: Range<usize>, each: &mut dyn FnMut(L)) {
        let (table, digits) = lines.split_at(self.table_lines);
        let starts = &lanes::<u32>(table)[..=self.scale.buckets()];
        let mut after = starts.partition_point(|&start| start as usize <= ranks.start);
        for rank in ranks {
            while starts.get(after).is_some_and(|&start| start as usize <= rank) {
                after += 1;
            }
            let digit = u64::from(lanes::<u16>(digits)[rank]) << (64 - DIGIT_BITS);
            each(self.scale.key(after - 1, digit));
        }
    }

    fn words(&self) -> [u64; 6] {
        let [min, beyond, multiplier, buckets] = self.scale.words();
        [min, beyond, multiplier, buckets, 0, 0]
    }
}

/// Answers a group from the guessed lines; returns which answers may be in a neighbouring line.
#[inline(always)]
fn answer<L: Lane, S: Simd>(simd: S, digits: &[Line], now: &[Guess; GROUP], out: &mut [usize; GROUP]) -> u64 {
    for (guess, out) in now.iter().zip(out.iter_mut()) {
        let rank = Packed::<L>::rank_in_line(simd, digits, *guess);
        *out = (rank | u32::from(Packed::<L>::unsure(*guess, rank)) << 31) as usize;
    }
    simd.marked(out, UNSURE)
}

/// Queries of the group before that wait for a neighbouring line.
struct PutOff {
    queries: [(u32, Guess); GROUP],
    count: usize,
}

impl PutOff {
    /// Takes the unsure queries of a group and asks for their neighbouring lines.
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, digits: &[Line], now: &[Guess; GROUP], mut unsure: u64) {
        self.count = 0;
        while unsure != 0 {
            let j = unsure.trailing_zeros() as usize;
            unsure &= unsure - 1;
            let line = now[j].at as usize / PER_LINE;
            simd.prefetch(digits, line.wrapping_sub(1));
            simd.prefetch(digits, line + 1);
            self.queries[self.count % GROUP] = (j as u32, now[j]);
            self.count += 1;
        }
    }

    /// Answers the waiting queries.
    #[inline(always)]
    fn finish<L: Lane, S: Simd>(&mut self, simd: S, digits: &[Line], out: &mut [usize; GROUP]) {
        for &(j, guess) in &self.queries[..self.count.min(GROUP)] {
            out[j as usize % GROUP] = Packed::<L>::rank_nearby(simd, digits, guess);
        }
        self.count = 0;
    }
}
