//! Prefix window: a table tells where the keys of a bucket start in the sorted array; one unaligned
//! window of a line's length is compared there.
//!
//! The table has one start (4 bytes) per eight keys, so a bucket mostly fits one window; the build
//! measures the longest bucket and refuses the layout when it needs more than [`WINDOWS_MAX`]
//! windows. Memory: keys · (1 + 4/(8·key bytes)), 1.13 for u32; the sorted array stands as it is.
//!
//! Lines read: one of the table, one or two of the array. It is fast while both are in the near
//! caches; beyond them, `split` is, because it reads fewer lines. Source: Groot Koerkamp 2024
//! (prefix map), with a scaled prefix and a bound.

use super::method::{self, Contents, Method, Numbers, Placing, Properties, Refusal};
use super::ordered::{fill_sorted, holds_sorted};
use crate::lane::{Exact, Lane};
use crate::line::{lanes, lanes_mut, lines_for, Line};
use crate::memory::Memory;
use crate::scale::Scale;
use crate::simd::{Simd, Vectors};

/// Average number of keys per table entry.
const LOAD: usize = 8;

/// The most windows that a query may need.
const WINDOWS_MAX: usize = 5;

/// Queries between the prefetch of a line and its use.
const AHEAD: usize = 32;

/// The layout's entry of the table of layouts.
pub(super) const PROPERTIES: Properties = Properties {
    code: 7,
    name: "window",
    about: "table of starts by scaled key, then unaligned windows of the sorted array",
    bound: "at most 1 + 6 a query; keys that need more are refused",
    is_order_checked: false,
};

/// n sorted keys behind a table of `scale.buckets()` starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window<L: Lane> {
    n: usize,
    scale: Scale<L>,
    table_lines: usize,
}

impl<L: Lane> Window<L> {
    /// The plan for the sorted `keys`.
    pub(crate) fn plan<K: Exact<As = L>>(keys: &[K]) -> Result<Window<L>, Refusal> {
        let (Some(min), Some(max)) = (keys.first(), keys.last()) else { return Err(Refusal::Crowded) };
        if keys.len() > u32::MAX as usize {
            return Err(Refusal::TooMany);
        }
        let scale = Scale::new(min.to_lane(), max.to_lane(), keys.len().div_ceil(LOAD));
        Ok(Window { n: keys.len(), scale, table_lines: lines_for::<u32>(scale.buckets()) })
    }

    /// Writes the table and the keys into `lines`.
    ///
    /// # Errors
    /// [`Refusal::Crowded`] when a bucket needs too many windows.
    pub(crate) fn fill<K: Exact<As = L>>(
        &self,
        keys: &[K],
        lines: &mut [Line],
        threads: usize,
    ) -> Result<(), Refusal> {
        let (table, array) = lines.split_at_mut(self.table_lines);
        let table = &mut lanes_mut::<u32>(table)[..self.scale.buckets()];
        // A bucket's start is the rank of its first key, or of the next key if the bucket is empty.
        // A bucket that is too long for the windows of a query is detected while it grows.
        let mut next = 0;
        for (rank, key) in keys.iter().enumerate() {
            let bucket = self.scale.locate(key.to_lane()).0;
            if bucket >= next {
                table[next..=bucket].fill(rank as u32);
                next = bucket + 1;
            } else if rank - table[bucket] as usize >= WINDOWS_MAX * L::PER_LINE - 1 {
                return Err(Refusal::Crowded);
            }
        }
        table[next..].fill(keys.len() as u32);
        fill_sorted(keys, array, threads);
        Ok(())
    }

    /// The rank of `query`, whose bucket starts at `start`.
    #[inline(always)]
    fn rank_from<S: Simd>(simd: S, array: &[L], start: usize, query: L) -> usize {
        // Nearly always the answer is in the first window.
        let less = L::less(simd, L::window(array, start), query);
        if less < L::PER_LINE {
            return start + less;
        }
        Self::rank_beyond(simd, array, start + less, query)
    }

    #[inline(always)]
    fn rank_beyond<S: Simd>(simd: S, array: &[L], mut start: usize, query: L) -> usize {
        for _ in 1..WINDOWS_MAX {
            let less = L::less(simd, L::window(array, start), query);
            start += less;
            if less < L::PER_LINE {
                break;
            }
        }
        start
    }
}

impl<L: Lane> Contents<L> for Window<L> {
    fn lines(&self) -> usize {
        self.table_lines + lines_for::<L>(self.n) + 1
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        lanes::<L>(&lines[self.table_lines..])[rank]
    }

    fn holds(&self, lines: &[Line]) -> bool {
        let (table, array) = lines.split_at(self.table_lines);
        let starts = &lanes::<u32>(table)[..self.scale.buckets()];
        // Every start of a bucket must be the rank of its first key, or of the next key if the
        // bucket is empty. Then every query begins where it reaches its answer.
        let mut next = 0;
        let placed = lanes::<L>(array)[..self.n].iter().enumerate().all(|(rank, &key)| {
            let bucket = self.scale.locate(key).0;
            let begins = next;
            next = next.max(bucket + 1);
            starts[begins.min(next)..next].iter().all(|&start| start as usize == rank)
                && rank.wrapping_sub(starts[bucket] as usize) < WINDOWS_MAX * L::PER_LINE - 1
        });
        holds_sorted::<L>(self.n, array)
            && placed
            && starts[next..].iter().all(|&start| start as usize == self.n)
    }

    fn numbers(&self) -> Numbers {
        let [min, beyond, multiplier, buckets] = self.scale.numbers();
        [min, beyond, multiplier, buckets, 0, 0]
    }
}

impl<L: Lane> Method<L> for Window<L> {
    fn build<K: Exact<As = L>>(
        keys: &[K],
        placing: Placing<impl Vectors>,
    ) -> Result<(Self, Memory), Refusal> {
        method::filled::<L, _>(Window::plan(keys)?, |shape, lines| shape.fill(keys, lines, placing.threads))
    }

    fn from_numbers(n: usize, numbers: Numbers) -> Option<Self> {
        let scale = Scale::from_numbers([numbers[0], numbers[1], numbers[2], numbers[3]])?;
        (n <= u32::MAX as usize && scale.buckets() <= u32::MAX as usize).then(|| Window {
            n,
            scale,
            table_lines: lines_for::<u32>(scale.buckets()),
        })
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, simd: S, lines: &[Line], query: L) -> usize {
        let (table, array) = lines.split_at(self.table_lines);
        let start = lanes::<u32>(table)[self.scale.locate(query).0] as usize;
        Self::rank_from(simd, lanes(array), start, query)
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        if lines.len() <= NEAR_LINES {
            queries.iter().zip(out).for_each(|(&query, rank)| *rank = self.rank(simd, lines, query));
        } else {
            self.ranks_ahead(simd, lines, queries, out);
        }
    }
}

/// Up to this many lines the near caches answer so fast that prefetching costs more than it gains.
const NEAR_LINES: usize = (2 << 20) / 64;

impl<L: Lane> Window<L> {
    /// Ranks in three steps per group: prefetch the table's lines, read them and prefetch the
    /// array's lines, compare.
    #[inline(always)]
    fn ranks_ahead<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        let (table, array) = lines.split_at(self.table_lines);
        let starts = lanes::<u32>(table);
        // Three passes over a group; each prefetches what the next one reads.
        for (queries, out) in queries.chunks(AHEAD).zip(out.chunks_mut(AHEAD)) {
            for &query in queries {
                simd.prefetch(table, self.scale.locate(query).0 / 16);
            }
            for (&query, start) in queries.iter().zip(out.iter_mut()) {
                *start = starts[self.scale.locate(query).0] as usize;
                simd.prefetch(array, *start / L::PER_LINE);
                simd.prefetch(array, start.div_ceil(L::PER_LINE));
            }
            for (&query, rank) in queries.iter().zip(out.iter_mut()) {
                *rank = Self::rank_from(simd, lanes(array), *rank, query);
            }
        }
    }
}
