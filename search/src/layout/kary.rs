//! k-ary: the paper's cache-aware tree on whole lines. Every key is stored once, k of them in a
//! line. The children of line i are lines (k+1)·i + 1 … (k+1)·i + k + 1, so nodes are in
//! breadth-first order and need no pointers.
//!
//! Inner keys are not repeated in lower levels, so a key's slot does not determine its rank. Ranks
//! are in a second array of the same order (4 bytes a key), which is read once at the end. Lines
//! read: log(k+1) n, and one of ranks. Source: Ladner, Fortna and Nguyen 2002, section 4.3; the
//! child index is derived there from a root at 0 (see `paper::aware`).

use super::method::{self, Contents, Method, Numbers, Placing, Properties, Refusal};
use crate::lane::{Exact, Lane};
use crate::line::{lanes, lanes_mut, lines_for, Line};
use crate::memory::Memory;
use crate::simd::{Simd, Vectors};

/// The layout's entry of the table of layouts.
pub(super) const PROPERTIES: Properties = Properties {
    code: 4,
    name: "k-ary",
    about: "breadth-first tree of lines, every key once, ranks beside the keys",
    bound: "at most log(k+1) n a query, and one of ranks",
    is_order_checked: false,
};

/// n keys in `nodes` lines, then their ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kary {
    n: usize,
    nodes: usize,
    lines: usize,
}

/// The rank of slots that are padding; no key has it.
const NO_RANK: u32 = u32::MAX;

/// Queries that descend in step.
const ABREAST: usize = 32;

impl Kary {
    /// The shape of n keys, which must be fewer than 2^32 − 1.
    pub(crate) fn new<L: Lane>(n: usize) -> Result<Kary, Refusal> {
        if n >= NO_RANK as usize {
            return Err(Refusal::TooMany);
        }
        let nodes = lines_for::<L>(n);
        Ok(Kary { n, nodes, lines: nodes + lines_for::<u32>(nodes * L::PER_LINE) })
    }

    /// One step at `node`: returns the child to visit, and the slot of the smallest key in the node
    /// that is not less than `query`, or `best` if there is none.
    #[inline(always)]
    fn step<L: Lane, S: Simd>(
        &self,
        simd: S,
        lines: &[Line],
        node: usize,
        query: L,
        best: usize,
    ) -> (usize, usize) {
        // The first key that is not less is the best one so far, unless it is padding.
        let less = L::less(simd, L::node(&lines[node]), query);
        let slot = node * L::PER_LINE + less;
        let found = less < L::PER_LINE && slot < self.n;
        (node * (L::PER_LINE + 1) + 1 + less, if found { slot } else { best })
    }

    /// The rank of the key in `slot`; n when there is no such key.
    #[inline(always)]
    fn rank_of_slot(&self, lines: &[Line], slot: usize) -> usize {
        lanes::<u32>(&lines[self.nodes..]).get(slot).map_or(self.n, |&rank| rank as usize)
    }

    /// Visits the slots of the subtree at `node` in the order of their keys.
    fn visit(&self, per: usize, node: usize, each: &mut impl FnMut(usize)) {
        if node >= self.nodes {
            return;
        }
        let first = node * (per + 1) + 1;
        for lane in 0..per {
            self.visit(per, first + lane, each);
            let slot = node * per + lane;
            if slot < self.n {
                each(slot);
            }
        }
        self.visit(per, first + per, each);
    }
}

/// The slot before any was found, which lies beyond every array.
const NOWHERE: usize = usize::MAX;

impl<L: Lane> Contents<L> for Kary {
    fn lines(&self) -> usize {
        self.lines
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        // The ranks are a search tree of the same shape: descend on them.
        let per = L::PER_LINE;
        let ranks = lanes::<u32>(&lines[self.nodes..]);
        let mut node = 0;
        loop {
            let slots = &ranks[node * per..(node * per + per).min(self.n)];
            let less = slots.partition_point(|&other| (other as usize) < rank);
            if slots.get(less).is_some_and(|&other| other as usize == rank) {
                return lanes::<L>(lines)[node * per + less];
            }
            node = node * (per + 1) + 1 + less;
        }
    }

    fn holds(&self, lines: &[Line]) -> bool {
        let (nodes, ranks) = lines.split_at(self.nodes);
        let (flat, ranks) = (lanes::<L>(nodes), lanes::<u32>(ranks));
        // In the order of their keys, ranks must count up and keys must not descend.
        let (mut next, mut last, mut ordered) = (0, L::MIN, true);
        self.visit(L::PER_LINE, 0, &mut |slot| {
            ordered &= flat[slot] >= last && ranks[slot] == next;
            (next, last) = (next + 1, flat[slot]);
        });
        ordered && flat[self.n..].iter().all(|&lane| lane == L::MAX)
    }
}

impl<L: Lane> Method<L> for Kary {
    fn build<K: Exact<As = L>>(
        keys: &[K],
        _placing: Placing<impl Vectors>,
    ) -> Result<(Self, Memory), Refusal> {
        method::filled::<L, _>(Kary::new::<L>(keys.len())?, |shape, lines| {
            shape.fill(keys, lines);
            Ok(())
        })
    }

    fn from_numbers(n: usize, _numbers: Numbers) -> Option<Self> {
        Kary::new::<L>(n).ok()
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, simd: S, lines: &[Line], query: L) -> usize {
        let (mut node, mut best) = (0, NOWHERE);
        while node < self.nodes {
            (node, best) = self.step(simd, lines, node, query, best);
        }
        self.rank_of_slot(lines, best)
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]) {
        for (queries, out) in queries.chunks(ABREAST).zip(out.chunks_mut(ABREAST)) {
            // Each query is at a node and has a best slot so far. A query that has left the tree
            // waits.
            let mut at = [(0, NOWHERE); ABREAST];
            let mut busy = self.nodes > 0;
            // All queries take a step, then all take the next one, until the last has left the
            // tree.
            while busy {
                busy = false;
                for (at, &query) in at.iter_mut().zip(queries) {
                    if at.0 < self.nodes {
                        *at = self.step(simd, lines, at.0, query, at.1);
                        simd.prefetch(lines, at.0);
                        busy = true;
                    }
                }
            }
            out.iter_mut().zip(at).for_each(|(rank, (_, best))| *rank = self.rank_of_slot(lines, best));
        }
    }
}

impl Kary {
    /// Writes the sorted `keys` into `lines`, whose number the shape determines.
    fn fill<L: Lane, K: Exact<As = L>>(&self, keys: &[K], lines: &mut [Line]) {
        let (nodes, ranks) = lines.split_at_mut(self.nodes);
        nodes.fill(Line::PADDING);
        ranks.fill(Line::PADDING);
        let (flat, ranks) = (lanes_mut::<L>(nodes), lanes_mut::<u32>(ranks));
        let mut next = 0;
        self.visit(L::PER_LINE, 0, &mut |slot| {
            flat[slot] = keys[next].to_lane();
            ranks[slot] = next as u32;
            next += 1;
        });
    }
}
