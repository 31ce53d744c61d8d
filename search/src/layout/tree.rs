//! S+tree: the sorted array in lines of k keys, and above it levels of separators, k in a line,
//! each node with k + 1 children.
//!
//! A separator is the largest key of the subtree to its left, so one vector compare counts the
//! separators that are less than the query, and the child's number is `node · (k+1) + count`. The
//! leaves are the sorted array itself: a place is a rank, duplicates need no special case, and
//! padding with MAX is never less than a query, so it is never counted and never chosen. Nothing
//! depends on how keys are spread. Planners therefore fall back to this layout.
//!
//! Lines read: 1 + ⌈log(k+1) ⌈n/k⌉⌉. Memory: keys · (1 + 1/k + …) ≈ 1.06 (u32), 1.14 (u64). Source:
//! the S+tree of Algorithmica (Slotin) and of Groot Koerkamp 2024 ("left-max"), with unsigned
//! compares and ranks instead of values.

use core::ops::Range;

use super::method::{self, Contents, Method, Numbers, Placing, Properties, Refusal};
use super::ordered::{fill_sorted, holds_sorted};
use crate::lane::{Exact, Lane};
use crate::line::{lanes, lanes_mut, lines_for, Line};
use crate::memory::Memory;
use crate::simd::{Simd, Vectors};

/// The most levels of any tree: 9^21 > 2^64.
const LEVELS_MAX: usize = 22;

/// Queries that descend in step, so that their misses overlap.
const ABREAST: usize = 64;

/// The layout's entry of the table of layouts.
pub(super) const PROPERTIES: Properties = Properties {
    code: 5,
    name: "tree",
    about: "S+tree: separators over the sorted array, one line per level",
    bound: "at most log(k+1) n a query",
    is_order_checked: false,
};

/// n keys; `first[d]` is the first line of level d. The root's level is 0, that of the leaves is
/// `depth - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    n: usize,
    depth: usize,
    first: [usize; LEVELS_MAX],
    lines: usize,
}

impl Tree {
    /// The shape of n keys.
    pub(crate) fn new<L: Lane>(n: usize) -> Tree {
        // Computes sizes from the leaves up, where each level has a (k + 1)-th of the lines below
        // it; then the first lines from the root down.
        let mut sizes = [0; LEVELS_MAX];
        let (mut depth, mut size) = (0, lines_for::<L>(n));
        while size > 0 {
            sizes[depth] = size;
            depth += 1;
            size = if size == 1 { 0 } else { size.div_ceil(L::PER_LINE + 1) };
        }
        let mut first = [0; LEVELS_MAX];
        let mut lines = 0;
        for level in 0..depth {
            first[level] = lines;
            lines += sizes[depth - 1 - level];
        }
        Tree { n, depth, first, lines }
    }

    /// The levels above the leaves, and the leaves, as slices of lines.
    #[inline(always)]
    fn levels<'a>(&self, lines: &'a [Line]) -> ([&'a [Line]; LEVELS_MAX], usize) {
        let mut levels = [&lines[..0]; LEVELS_MAX];
        for level in 0..self.depth {
            let end = if level + 1 < self.depth { self.first[level + 1] } else { self.lines };
            levels[level] = &lines[self.first[level]..end];
        }
        (levels, self.depth)
    }

    /// Separator `i` of a level in which each child spans `span` leaves.
    fn separator<L: Lane>(&self, i: usize, span: usize, leaves: &[L]) -> L {
        // Node i / k has the children from (k + 1) · (i / k) on. Its separator i % k is the largest
        // key of the leaves under that child, or MAX if there is no such key: no query passes MAX.
        let per = L::PER_LINE;
        let child = i / per * (per + 1) + i % per;
        let last = (child + 1) * span * per;
        if last < self.n {
            leaves[last - 1]
        } else {
            L::MAX
        }
    }

    /// The levels above the leaves, lowest first: their lines, and the number of leaves that a
    /// child spans.
    fn upper_levels<L: Lane>(&self) -> impl Iterator<Item = (Range<usize>, usize)> + '_ {
        let levels = (0..self.depth.saturating_sub(1)).rev();
        levels.scan(1, |span, depth| {
            let level = (self.first[depth]..self.first[depth + 1], *span);
            *span *= L::PER_LINE + 1;
            Some(level)
        })
    }
}

impl<L: Lane> Contents<L> for Tree {
    fn lines(&self) -> usize {
        self.lines
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        lanes::<L>(&lines[self.first[self.depth - 1]..])[rank]
    }

    fn holds(&self, lines: &[Line]) -> bool {
        let Some(leaves) = self.depth.checked_sub(1) else { return true };
        let (upper, leaf_lines) = lines.split_at(self.first[leaves]);
        let flat = lanes::<L>(leaf_lines);
        holds_sorted::<L>(self.n, leaf_lines)
            && self.upper_levels::<L>().all(|(level, span)| {
                let mut separators = lanes::<L>(&upper[level]).iter().enumerate();
                separators.all(|(i, &separator)| separator == self.separator(i, span, flat))
            })
    }
}

impl<L: Lane> Method<L> for Tree {
    fn build<K: Exact<As = L>>(
        keys: &[K],
        placing: Placing<impl Vectors>,
    ) -> Result<(Self, Memory), Refusal> {
        method::filled::<L, _>(Tree::new::<L>(keys.len()), |shape, lines| {
            shape.fill(keys, lines, placing.threads);
            Ok(())
        })
    }

    fn from_numbers(n: usize, _numbers: Numbers) -> Option<Self> {
        Some(Tree::new::<L>(n))
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, simd: S, lines: &[Line], query: L) -> usize {
        let Some(leaves) = self.depth.checked_sub(1) else { return 0 };
        // Separators less than the query stand to the left of the child to visit, and count up to
        // it.
        let mut node = 0;
        for &first in &self.first[..leaves] {
            node = node * (L::PER_LINE + 1) + L::less(simd, L::node(&lines[first + node]), query);
        }
        node * L::PER_LINE + L::less(simd, L::node(&lines[self.first[leaves] + node]), query)
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        let (levels, depth) = self.levels(lines);
        if depth == 0 {
            return out.fill(0);
        }
        for (queries, out) in queries.chunks(ABREAST).zip(out.chunks_mut(ABREAST)) {
            descend(simd, &levels[..depth], queries, out);
        }
    }
}

/// Takes a group of queries down all levels in step. `out` holds their nodes on the way and their
/// ranks at the end.
#[inline(always)]
fn descend<L: Lane, S: Simd>(simd: S, levels: &[&[Line]], queries: &[L], out: &mut [usize]) {
    out.fill(0);
    for pair in levels.windows(2) {
        for (node, &query) in out.iter_mut().zip(queries) {
            *node = *node * (L::PER_LINE + 1) + L::less(simd, L::node(&pair[0][*node]), query);
            simd.prefetch(pair[1], *node);
        }
    }
    let leaves = levels[levels.len() - 1];
    for (node, &query) in out.iter_mut().zip(queries) {
        *node = *node * L::PER_LINE + L::less(simd, L::node(&leaves[*node]), query);
    }
}

impl Tree {
    /// Writes the sorted `keys` into `lines`, whose number the shape determines.
    fn fill<L: Lane, K: Exact<As = L>>(&self, keys: &[K], lines: &mut [Line], threads: usize) {
        let Some(leaves) = self.depth.checked_sub(1) else { return };
        let (upper, leaf_lines) = lines.split_at_mut(self.first[leaves]);
        fill_sorted(keys, leaf_lines, threads);
        for (level, span) in self.upper_levels::<L>() {
            // Every level is filled from the leaves, not from the level below.
            for (i, separator) in lanes_mut::<L>(&mut upper[level]).iter_mut().enumerate() {
                *separator = self.separator(i, span, lanes::<L>(leaf_lines));
            }
        }
    }
}
