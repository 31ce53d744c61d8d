//! The interface between searches and instruction sets: comparing a line of memory with a query.
//!
//! Layouts use the traits of this file and depend on no instruction set; `kernel` has the
//! instruction sets. So a new layout works on every instruction set, and a new instruction set runs
//! every layout. A [`Simd`] value is a zero-sized proof that the processor has the instructions:
//! only a check of the processor creates one.

use crate::cut::{Cut, Word};
use crate::line::Line;

/// Number of words that [`Simd::marked`] tests.
pub(crate) const MARKS: usize = 32;

/// Places of a table that are read together.
pub(crate) const GATHERED: usize = 16;

/// Numbers that [`Simd::differs`] compares.
pub(crate) const DIFFERS: usize = 64;

/// Where queries go: their lines, and what tells the keys of a line apart. It stands at the start
/// of a line of memory, wherever the stack begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Found<L> {
    pub(crate) lines: [u32; GATHERED],
    pub(crate) fractions: [L; GATHERED],
}

/// An instruction set that searches a line: a zero-sized proof that the processor has it.
///
/// Every `less_*` counts the lanes from `SKIP` on that are less than `query`, unsigned. Cost: one
/// line read.
pub(crate) trait Simd: Copy {
    /// Lanes of 8 bits.
    fn less_u8<const SKIP: usize>(self, lanes: &[u8; 64], query: u8) -> usize;
    /// Lanes of 16 bits.
    fn less_u16<const SKIP: usize>(self, lanes: &[u16; 32], query: u16) -> usize;
    /// Lanes of 32 bits; the slice may be unaligned.
    fn less_u32<const SKIP: usize>(self, lanes: &[u32; 16], query: u32) -> usize;
    /// Lanes of 64 bits; the slice may be unaligned.
    fn less_u64<const SKIP: usize>(self, lanes: &[u64; 8], query: u64) -> usize;
    /// A mask of the lanes that are less than `query`; the first lane's bit is the lowest.
    fn mask_less_u16(self, lanes: &[u16; 32], query: u16) -> u32;
    /// A mask of the words that share a bit with `mask`; the first word's bit is the lowest.
    #[inline(always)]
    fn marked(self, words: &[usize; MARKS], mask: u32) -> u64 {
        words.iter().rev().fold(0, |marks, &word| marks << 1 | u64::from(word as u32 & mask != 0))
    }
    /// Writes the numbers of the set bits of `marks` into `list`, lowest first, each plus `first`,
    /// and returns how many there are. What it writes behind them means nothing.
    #[inline(always)]
    fn list_marks(self, mut marks: u64, first: u32, list: &mut [u32; MARKS]) -> usize {
        let count = (marks.count_ones() as usize).min(MARKS);
        for number in &mut list[..count] {
            *number = first + marks.trailing_zeros();
            marks &= marks - 1;
        }
        count
    }
    /// A mask of the numbers of `a` that differ from those of `b`; the first number's bit is the
    /// lowest.
    #[inline(always)]
    fn differs(self, a: &[u32; DIFFERS], b: &[u32; DIFFERS]) -> u64 {
        a.iter().zip(b).rev().fold(0, |bits, (a, b)| bits << 1 | u64::from(a != b))
    }
    /// The cells of queries, from the entries of their roots; a root behind the last stands for the
    /// last.
    ///
    /// # Panics
    /// When there are no roots.
    #[inline(always)]
    fn cells_u32(self, roots: &[u32], cut: &Cut<u32>, queries: &[u32; GATHERED]) -> [u32; GATHERED] {
        plain_cells(roots, cut, queries)
    }
    /// [`Simd::cells_u32`] of 64-bit lanes.
    ///
    /// # Panics
    /// When there are no roots.
    #[inline(always)]
    fn cells_u64(self, roots: &[u32], cut: &Cut<u64>, queries: &[u64; GATHERED]) -> [u32; GATHERED] {
        plain_cells(roots, cut, queries)
    }
    /// The lines of queries, from the entries of their roots, and their fractions there
    /// ([`Cut::line`]); a root behind the last stands for the last.
    ///
    /// # Panics
    /// When there are no roots.
    #[inline(always)]
    fn lines_u32(self, roots: &[u32], cut: &Cut<u32>, queries: &[u32; GATHERED]) -> Found<u32> {
        plain_lines(roots, cut, queries)
    }
    /// [`Simd::lines_u32`] of 64-bit lanes.
    ///
    /// # Panics
    /// When there are no roots.
    #[inline(always)]
    fn lines_u64(self, roots: &[u32], cut: &Cut<u64>, queries: &[u64; GATHERED]) -> Found<u64> {
        plain_lines(roots, cut, queries)
    }
    /// The lines of queries, and their fractions there, from the rows of a table at the places
    /// `at`: the smallest key of a map, its reach, its multiplier, its first line. A place behind
    /// the last row stands for the last.
    ///
    /// # Panics
    /// When the table is empty.
    #[inline(always)]
    fn map_u32(self, table: &[[u32; 4]], at: &[u32; GATHERED], queries: &[u32; GATHERED]) -> Found<u32> {
        plain_map_u32(table, at, queries)
    }
    /// [`Simd::map_u32`] of 64-bit lanes.
    ///
    /// # Panics
    /// When the table is empty.
    #[inline(always)]
    fn map_u64(self, table: &[[u64; 4]], at: &[u32; GATHERED], queries: &[u64; GATHERED]) -> Found<u64> {
        plain_map_u64(table, at, queries)
    }
    /// Prefetches line `index`. Any index is allowed: a prefetch never faults.
    fn prefetch(self, lines: &[Line], index: usize);
    /// Whether the third level of caches is so far that requests for lines in it should end in the
    /// second ([`Simd::prefetch_to_second_level`]): those to the first level wait for one of few
    /// buffers.
    #[inline(always)]
    fn is_third_level_far(self) -> bool {
        false
    }
    /// Prefetches line `index` into the second level of caches where the third is far.
    #[inline(always)]
    fn prefetch_to_second_level(self, lines: &[Line], index: usize) {
        self.prefetch(lines, index);
    }
}

/// [`Simd::cells_u32`] for lanes of any width. This function and the next three are called and not
/// inlined, as what calls them is compiled for each width of digits.
#[inline(never)]
fn plain_cells<L: Word>(roots: &[u32], cut: &Cut<L>, queries: &[L; GATHERED]) -> [u32; GATHERED] {
    let mut cells = [0; GATHERED];
    for (cell, &query) in cells.iter_mut().zip(queries) {
        *cell = cut.cell(roots[cut.root(query).min(roots.len() - 1)], query);
    }
    cells
}

/// [`Simd::lines_u32`] for lanes of any width.
#[inline(never)]
fn plain_lines<L: Word>(roots: &[u32], cut: &Cut<L>, queries: &[L; GATHERED]) -> Found<L> {
    let mut found = Found { lines: [0; GATHERED], fractions: [L::narrow(0); GATHERED] };
    for (i, &query) in queries.iter().enumerate() {
        let root = roots[cut.root(query).min(roots.len() - 1)];
        (found.lines[i], found.fractions[i]) = cut.line(root, query);
    }
    found
}

/// [`Simd::map_u32`] in plain Rust.
#[inline(never)]
fn plain_map_u32(table: &[[u32; 4]], at: &[u32; GATHERED], queries: &[u32; GATHERED]) -> Found<u32> {
    let mut found = Found { lines: [0; GATHERED], fractions: [0; GATHERED] };
    for (i, &query) in queries.iter().enumerate() {
        let [min, beyond, multiplier, first] = table[(at[i] as usize).min(table.len() - 1)];
        let product = u64::from(query.saturating_sub(min).min(beyond)) * u64::from(multiplier);
        found.lines[i] = first.wrapping_add((product >> 32) as u32);
        found.fractions[i] = product as u32;
    }
    found
}

/// [`Simd::map_u64`] in plain Rust.
#[inline(never)]
fn plain_map_u64(table: &[[u64; 4]], at: &[u32; GATHERED], queries: &[u64; GATHERED]) -> Found<u64> {
    let mut found = Found { lines: [0; GATHERED], fractions: [0; GATHERED] };
    for (i, &query) in queries.iter().enumerate() {
        let [min, beyond, multiplier, first] = table[(at[i] as usize).min(table.len() - 1)];
        let product = u128::from(query.saturating_sub(min).min(beyond)) * u128::from(multiplier);
        found.lines[i] = (first as u32).wrapping_add((product >> 64) as u32);
        found.fractions[i] = product as u64;
    }
    found
}

/// Work that is compiled once for every instruction set.
pub(crate) trait Task {
    /// Whether vectors of 512 bits do the work so much faster that it is worth more code.
    const IS_WIDE: bool = true;
    /// What the work returns.
    type Output;
    /// Does the work with the instructions that `simd` proves.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// An instruction set that is chosen while the program runs.
pub(crate) trait Vectors: Copy + Sync {
    /// Whether the third level of caches is far, as [`Simd::is_third_level_far`] says, whatever
    /// instructions were chosen.
    fn is_third_level_far(self) -> bool {
        false
    }
    /// Runs `task` with the chosen instructions, or with plain Rust where the processor lacks them.
    fn run<T: Task>(self, task: T) -> T::Output;
}
