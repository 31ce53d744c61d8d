//! Pieces: split keys whose lines are found through a table of straight pieces, for keys that are
//! not spread evenly. One line per query, as in `split`, behind two small tables.
//!
//! `split` maps all keys to lines by one multiplication, which one bend in their distribution makes
//! useless. Here the range of the keys is cut twice: into at most 1,024 equal *roots*, and each
//! root into as many equal *cells*, a power of two, as its number of keys deserves. A cell has a
//! linear map of its own, from its smallest key to its largest. So the map follows the distribution
//! at the scale of some hundred keys, gaps between cells take no lines, and outliers take one line
//! each.
//!
//! ```text
//! query - min ──▶ root = its top bits    [first cell, shift]     4 bytes each, 4 KiB at most
//!             ──▶ cell = the next bits   [min, beyond, multiplier, first line]
//!             ──▶ line = first line + (query - min of the cell) · multiplier, and a digit
//! ```
//!
//! Lines, directories and blocks are those of `split`, and so are their search, their filling and
//! their check. Both tables stand before the lines.
//!
//! Where the distribution is smooth at the scale of a root, there is no table of cells: a root is
//! cut into lines as it would be into cells, and a key's digit is what the cut leaves of it.
//!
//! ```text
//! query - min ──▶ root = its top bits    [first line, shift]     4 bytes each, 64 KiB at most
//!             ──▶ line = first line + the next bits, and the other bits as a digit
//! ```
//!
//! Where the distribution is uneven at every scale, nearly all lines of that one table may be
//! directories; every query then reads a block besides ([`deep`]).
//!
//! **Bound.** Two entries of tables, a line, and a block if the line is crowded. Cells that would
//! crowd a line beyond a directory get up to 64 times their lines; keys that need more, such as ten
//! thousand equal ones, are refused, and the planner takes the tree.
//!
//! **Leaves out** threads while building; more than 2^31 keys; more than two cuts. Source: the
//! piecewise linear maps of learned indexes (Kraska 2018; Ferragina and Vinciguerra 2020) and the
//! Hist-Tree of Crotty 2021, with an exact map instead of an error bound.

mod check;
mod cost;
mod crowd;
mod deep;
mod fill;
mod plan;
mod roots;

use alloc::string::String;
use core::ops::Range;

pub(crate) use self::plan::Pieces;
use super::method::{Contents, Method, Numbers, Placing, Properties, Refusal};
use super::split::digit::{first_block, first_rank, head, with_digit, Digit, Width, DIRECTORY};
use super::split::{Locate, Located, GROUP};
use crate::cut::BELOW_BITS;
use crate::lane::{Exact, Lane};
use crate::line::{lanes, Line, LINE_BYTES};
use crate::memory::Memory;
use crate::scale::Scale;
use crate::simd::{Found, Simd, Vectors, GATHERED};

/// The layout's entry of the table of layouts.
pub(super) const PROPERTIES: Properties = Properties {
    code: 10,
    name: "pieces",
    about: "split keys, their lines found through a table of straight pieces",
    bound: "2 of small tables and 1 a query, at most 4; keys that need more are refused",
    is_order_checked: false,
};

/// A table of more cells is prefetched.
const NEAR_CELLS: usize = 1 << 14;

/// A cell of the table: the smallest key, the reach of the map, its multiplier, and the first line.
pub(super) type Cell<L> = [L; 4];

/// The tables of an index, as slices.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a, L> {
    /// The entries of roots, which [`Cut`](crate::cut::Cut) reads.
    pub(super) roots: &'a [u32],
    pub(super) cells: &'a [Cell<L>],
}

impl<L: Lane> Tables<'_, L> {
    /// The line of a query in a cell, and the query's fraction there.
    #[inline(always)]
    pub(super) fn locate(&self, cell: usize, query: L) -> (usize, u64) {
        let [min, beyond, multiplier, first] = self.cells[cell];
        let (line, fraction) = Scale::of_table(min, beyond, multiplier).locate(query);
        (first.widen() as usize + line, fraction)
    }
}

impl<L: Lane> Tables<'_, L> {
    /// The first line of a map of keys to lines, which is a cell, or a root without cells.
    fn first_line(&self, map: usize) -> Option<usize> {
        if self.cells.is_empty() {
            return self.roots.get(map).map(|root| (root >> BELOW_BITS) as usize);
        }
        self.cells.get(map).map(|cell| cell[3].widen() as usize)
    }

    /// The number of maps that begin before `line`.
    fn first_map_from(&self, line: usize) -> usize {
        if self.cells.is_empty() {
            return self.roots.partition_point(|root| ((root >> BELOW_BITS) as usize) < line);
        }
        self.cells.partition_point(|cell| (cell[3].widen() as usize) < line)
    }
}

/// A lane's bits as a fraction of 64 bits.
#[inline(always)]
fn left_aligned<L: Lane>(fraction: L) -> u64 {
    fraction.widen() << (64 - L::BITS)
}

impl<L: Lane> Pieces<L> {
    /// A map of keys to lines.
    fn scale_of(&self, tables: &Tables<'_, L>, map: usize) -> Scale<L> {
        if self.is_direct() {
            return self.scale_of_root(map, tables.roots[map]);
        }
        let [min, beyond, multiplier, _] = tables.cells[map];
        Scale::of_table(min, beyond, multiplier)
    }

    /// The tables, and the lines behind them.
    #[inline(always)]
    pub(super) fn parts<'a>(&self, lines: &'a [Line]) -> (Tables<'a, L>, &'a [Line]) {
        let (tables, lines) = lines.split_at(self.table_lines());
        let (roots, cells) = tables.split_at(self.root_lines());
        let roots = &lanes::<u32>(roots)[..self.roots()];
        let cells = &lanes::<L>(cells).as_chunks::<4>().0[..self.cells];
        (Tables { roots, cells }, lines)
    }

    /// Whether roots are cut into lines, without a table of cells.
    #[inline(always)]
    pub(super) fn is_direct(&self) -> bool {
        self.cells == 0
    }

    /// The map of the keys of a root that is cut into lines: `number` and entry of the root.
    pub(super) fn scale_of_root(&self, number: usize, root: u32) -> Scale<L> {
        let low = self.cut.min.widen().wrapping_add((number as u64) << self.cut.shift);
        let by = root & ((1 << BELOW_BITS) - 1);
        let multiplier = 1u64.checked_shl(L::BITS - by.min(L::BITS)).unwrap_or(0);
        Scale::of_table(L::narrow(low), self.cut.within(), L::narrow(multiplier))
    }

    /// The rank of one query.
    #[inline(always)]
    fn rank_as<D: Digit, S: Simd>(&self, simd: S, tables: &Tables<'_, L>, lines: &[Line], query: L) -> usize {
        let root = tables.roots[self.cut.root(query)];
        let (line, fraction) = if self.is_direct() {
            let (line, fraction) = self.cut.line(root, query);
            (line as usize, left_aligned(fraction))
        } else {
            tables.locate(self.cut.cell(root, query) as usize, query)
        };
        self.inner.rank_at(simd, lines, line, D::of(fraction))
    }

    /// Many ranks.
    #[inline(always)]
    fn ranks_as<D: Digit, S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        let (tables, behind) = self.parts(lines);
        let way = ThroughTables { simd, pieces: self, tables, lines };
        let lines = behind;
        let done = self.inner.ranks_of_groups::<D, S, _>(simd, lines, queries, out, &way);
        for (&query, rank) in queries[done..].iter().zip(&mut out[done..]) {
            *rank = self.rank_as::<D, S>(simd, &tables, lines, query);
        }
    }

    /// Reads keys line by line: searches for the first line and its cell, then walks along both.
    fn read_as<D: Digit>(&self, lines: &[Line], ranks: Range<usize>, each: &mut dyn FnMut(L)) {
        let (tables, lines) = self.parts(lines);
        let buckets = &lines[..self.inner.scale.buckets()];
        let mut rank = ranks.start;
        let mut after = buckets.partition_point(|line| first_rank(line) <= rank);
        // Of the maps that begin with one line only the last has keys.
        let mut map = tables.first_map_from(after);
        while rank < ranks.end {
            let bucket = after - 1;
            while tables.first_line(map).is_some_and(|first| first <= bucket) {
                map += 1;
            }
            let number = map.saturating_sub(1);
            let first = tables.first_line(number).unwrap_or(0);
            let inverse = self.scale_of(&tables, number).inverse();
            let within = bucket.saturating_sub(first);
            let end = buckets.get(after).map_or(self.inner.n, first_rank).min(ranks.end);
            let line = &buckets[bucket];
            let digits = if head(line) & DIRECTORY == 0 {
                &lanes::<D>(core::slice::from_ref(line))[D::HEAD..]
            } else {
                lanes::<D>(&lines[buckets.len() + first_block::<D>(line)..])
            };
            let held = rank - first_rank(line)..end.saturating_sub(first_rank(line));
            digits[held].iter().for_each(|digit| each(inverse.key(within, digit.left())));
            rank = end;
            after += 1;
        }
    }
}

/// The cells of a group of queries.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Cells([[u32; GATHERED]; GROUP / GATHERED]);

/// The way of many queries through the tables.
struct ThroughTables<'a, L: Lane, S> {
    simd: S,
    pieces: &'a Pieces<L>,
    tables: Tables<'a, L>,
    /// The tables and what is behind them.
    lines: &'a [Line],
}

impl<L: Lane, D: Digit, S: Simd> Locate<L, D> for ThroughTables<'_, L, S> {
    const MAY_BE_DEEP: bool = true;
    type Prepared = Cells;

    #[inline(always)]
    fn is_quick(&self) -> bool {
        self.pieces.is_direct()
    }

    /// The cells of a group, whose rows are prefetched where the table is large.
    #[inline(always)]
    fn prepare(&self, queries: &[L; GROUP]) -> Self::Prepared {
        let (simd, pieces) = (self.simd, self.pieces);
        let mut all = Cells::default();
        if pieces.is_direct() {
            return all;
        }
        for (queries, cells) in queries.as_chunks::<GATHERED>().0.iter().zip(&mut all.0) {
            *cells = L::cells(simd, self.tables.roots, &pieces.cut, queries);
            if pieces.cells > NEAR_CELLS {
                let first = pieces.root_lines();
                let per_line = LINE_BYTES / size_of::<Cell<L>>();
                cells.iter().for_each(|&cell| simd.prefetch(self.lines, first + cell as usize / per_line));
            }
        }
        all
    }

    /// Locates a group from its cells: vector arithmetic, but for one load for each query.
    #[inline(always)]
    fn locate(&self, queries: &[L; GROUP], cells: &Self::Prepared, located: &mut Located<D>) {
        let (buckets, _) = located.buckets.as_chunks_mut::<GATHERED>();
        let (digits, _) = located.digits.as_chunks_mut::<GATHERED>();
        let queries = queries.as_chunks::<GATHERED>().0.iter().zip(&cells.0);
        let (simd, tables, cut) = (self.simd, &self.tables, &self.pieces.cut);
        let is_direct = self.pieces.is_direct();
        for (((queries, cells), buckets), digits) in queries.zip(buckets).zip(digits) {
            let Found { lines, fractions } = if is_direct {
                L::lines(simd, tables.roots, cut, queries)
            } else {
                L::map(simd, tables.cells, cells, queries)
            };
            *buckets = lines;
            for (digit, fraction) in digits.iter_mut().zip(fractions) {
                *digit = D::of(left_aligned(fraction));
            }
        }
    }
}

impl<L: Lane> Contents<L> for Pieces<L> {
    fn lines(&self) -> usize {
        self.table_lines().saturating_add(self.inner.scale.buckets()).saturating_add(self.inner.blocks)
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        let mut found = L::MIN;
        self.read(lines, rank..rank + 1, &mut |key| found = key);
        found
    }

    fn read(&self, lines: &[Line], ranks: Range<usize>, each: &mut dyn FnMut(L)) {
        with_digit!(self.inner.digit, D => self.read_as::<D>(lines, ranks, each));
    }

    fn holds(&self, lines: &[Line]) -> bool {
        let (tables, lines) = self.parts(lines);
        self.holds_tables(&tables) && with_digit!(self.inner.digit, D => self.inner.holds_as::<D>(lines))
    }

    fn numbers(&self) -> Numbers {
        let packed = u64::from(self.cut.shift) | (u64::from(self.inner.digit.bits()) << 32);
        let (buckets, blocks) = (self.inner.scale.buckets() as u64, self.inner.blocks as u64);
        [self.cut.min.widen(), self.cut.beyond.widen(), packed, self.cells as u64, buckets, blocks]
    }

    fn detail(&self) -> String {
        let bits = self.inner.digit.bits();
        if self.is_direct() {
            return alloc::format!(", {} pieces in one table, {bits}-bit digits", self.roots());
        }
        alloc::format!(", {} pieces, {bits}-bit digits", self.cells)
    }
}

impl<L: Lane> Method<L> for Pieces<L> {
    fn build<K: Exact<As = L>>(
        keys: &[K],
        placing: Placing<impl Vectors>,
    ) -> Result<(Self, Memory), Refusal> {
        fill::build(keys, placing)
    }

    fn from_numbers(n: usize, numbers: Numbers) -> Option<Self> {
        Pieces::of_numbers(n, numbers)
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, simd: S, lines: &[Line], query: L) -> usize {
        let (tables, lines) = self.parts(lines);
        with_digit!(self.inner.digit, D => self.rank_as::<D, S>(simd, &tables, lines, query))
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        with_digit!(self.inner.digit, D => self.ranks_as::<D, S>(simd, lines, queries, out))
    }
}
