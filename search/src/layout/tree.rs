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
use crate::line::{lanes, lanes_mut, lines_for, Level, Line, Place, LINE_BYTES};
use crate::memory::Memory;
use crate::simd::{Simd, Vectors};

/// The most levels of any tree: 9^21 > 2^64.
const LEVELS_MAX: usize = 22;

/// Queries that descend in step. From a line's address to the next one takes some twenty cycles,
/// and out-of-order execution looks some fifty steps ahead: these are to be of as many queries.
/// Where a level is far, a group's lines are prefetched one group before they are read.
const GROUP: usize = 32;

/// A tree of no more bytes is near: reading one of its lines is so fast that out-of-order execution
/// hides it.
const NEAR_TREE_BYTES: usize = 5 << 18;

/// Of a larger tree levels are near while they and the levels above them take no more bytes: the
/// lines of lower levels, which are read once and seldom again, displace others from larger caches.
const NEAR_BYTES: usize = 1 << 17;

/// The most far levels that the pipeline has room for; a tree with more has them in near levels.
const FAR_MAX: usize = 7;

/// Queries of a part of a group: stages of a pipeline take turns after so many.
const PART: usize = 8;

/// Groups in the pipeline.
const RING: usize = FAR_MAX + 1;

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
    fn levels<'a>(&self, lines: &'a [Line]) -> [Level<'a>; LEVELS_MAX] {
        let mut levels = [Level::of(&lines[..0]); LEVELS_MAX];
        for level in 0..self.depth {
            let end = if level + 1 < self.depth { self.first[level + 1] } else { self.lines };
            levels[level] = Level::of(&lines[self.first[level]..end]);
        }
        levels
    }

    /// The number of levels that are near.
    fn near(&self) -> usize {
        if self.lines * LINE_BYTES <= NEAR_TREE_BYTES {
            return self.depth;
        }
        let ends = self.first[1..self.depth].iter().chain(core::iter::once(&self.lines));
        let near = ends.take_while(|&&end| end * LINE_BYTES <= NEAR_BYTES).count();
        near.max(self.depth.saturating_sub(FAR_MAX)).max(1)
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
        if self.depth == 0 {
            return out.fill(0);
        }
        let levels = self.levels(lines);
        let (near, far) = levels[..self.depth].split_at(self.near());
        let rest = match far {
            [] => descend_near(simd, near, queries, out),
            _ => descend_far(simd, near, far, queries, out),
        };
        for (&query, rank) in queries[rest..].iter().zip(&mut out[rest..]) {
            *rank = self.rank(simd, lines, query);
        }
    }
}

/// The places of a group at the start of a line of memory, wherever the stack begins.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Places([Place; GROUP]);

/// One step down for a group of queries.
#[inline(always)]
fn step<L: Lane, S: Simd, const N: usize>(
    simd: S,
    level: Level<'_>,
    places: &mut [Place; N],
    queries: &[L; N],
) {
    for (place, &query) in places.iter_mut().zip(queries) {
        let count = L::less(simd, L::node(level.at(*place)), query);
        *place = place.child(L::PER_LINE + 1, count);
    }
}

/// The first step down: all queries read the root.
#[inline(always)]
fn first_step<L: Lane, S: Simd, const N: usize>(
    simd: S,
    level: Level<'_>,
    places: &mut [Place; N],
    queries: &[L; N],
) {
    let root = L::node(level.at(Place::FIRST));
    for (place, &query) in places.iter_mut().zip(queries) {
        *place = Place::FIRST.child(L::PER_LINE + 1, L::less(simd, root, query));
    }
}

/// One step down into a level that is far, whose lines are prefetched.
#[inline(always)]
fn step_ahead<L: Lane, S: Simd, const N: usize>(
    simd: S,
    (level, next): (Level<'_>, Level<'_>),
    places: &mut [Place; N],
    queries: &[L; N],
) {
    for (place, &query) in places.iter_mut().zip(queries) {
        let count = L::less(simd, L::node(level.at(*place)), query);
        *place = place.child(L::PER_LINE + 1, count);
        simd.prefetch(next.lines(), place.number());
    }
}

/// The ranks of queries whose leaves are at `places`.
#[inline(always)]
fn finish<L: Lane, S: Simd, const N: usize>(
    simd: S,
    leaves: Level<'_>,
    places: &[Place; N],
    queries: &[L; N],
    out: &mut [usize; N],
) {
    for ((place, &query), rank) in places.iter().zip(queries).zip(out) {
        let count = L::less(simd, L::node(leaves.at(*place)), query);
        *rank = place.first_lane::<L>() + count;
    }
}

/// Takes queries down a tree that is near. Returns how many were answered: all but a last few.
#[inline(always)]
fn descend_near<L: Lane, S: Simd>(simd: S, levels: &[Level<'_>], queries: &[L], out: &mut [usize]) -> usize {
    let Some((&leaves, upper)) = levels.split_last() else { return 0 };
    let ((groups, _), (outs, _)) = (queries.as_chunks::<GROUP>(), out.as_chunks_mut::<GROUP>());
    for (queries, out) in groups.iter().zip(outs) {
        let mut aligned = Places([Place::FIRST; GROUP]);
        let places = &mut aligned.0;
        let Some((&root, others)) = upper.split_first() else {
            finish(simd, leaves, places, queries, out);
            continue;
        };
        first_step(simd, root, places, queries);
        for &level in others {
            step(simd, level, places, queries);
        }
        finish(simd, leaves, places, queries, out);
    }
    groups.len() * GROUP
}

/// Takes queries down a tree with far levels. In turn t, group t goes through the near levels,
/// group t - 1 through the first far level, and so on: each reads lines that were prefetched a turn
/// before. Returns how many queries were answered: all but a last few.
#[inline(always)]
fn descend_far<L: Lane, S: Simd>(
    simd: S,
    near: &[Level<'_>],
    far: &[Level<'_>],
    queries: &[L],
    out: &mut [usize],
) -> usize {
    let ((groups, _), (outs, _)) = (queries.as_chunks::<GROUP>(), out.as_chunks_mut::<GROUP>());
    let (Some((&root, inner)), Some((&leaves, _))) = (near.split_first(), far.split_last()) else { return 0 };
    let mut ring = [Places([Place::FIRST; GROUP]); RING];
    for turn in 0..groups.len() + far.len() {
        // Parts of groups take turns: prefetches are then spread evenly, as the processor has room
        // for some twenty at a time.
        for part in 0..GROUP / PART {
            let queries = |group: usize| &groups[group].as_chunks::<PART>().0[part];
            // The group that ends in this turn.
            if let Some(last) = turn.checked_sub(far.len()) {
                let places = &ring[last % RING].0.as_chunks().0[part];
                finish(simd, leaves, places, queries(last), &mut outs[last].as_chunks_mut().0[part]);
            }
            // The groups in the midst of the far levels: fewer in the first and the last turns.
            for stage in (1..far.len().min(turn + 1)).rev().take_while(|stage| turn - stage < groups.len()) {
                let places = &mut ring[(turn - stage) % RING].0.as_chunks_mut().0[part];
                step_ahead(simd, (far[stage - 1], far[stage]), places, queries(turn - stage));
            }
            // The group that begins.
            if turn < groups.len() {
                let places: &mut [Place; PART] = &mut ring[turn % RING].0.as_chunks_mut().0[part];
                if inner.is_empty() {
                    places.fill(Place::FIRST);
                } else {
                    first_step(simd, root, places, queries(turn));
                }
                for pair in near.windows(2).skip(1) {
                    step(simd, pair[0], places, queries(turn));
                }
                step_ahead(simd, (near[near.len() - 1], far[0]), places, queries(turn));
            }
        }
    }
    groups.len() * GROUP
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
