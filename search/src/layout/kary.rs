//! k-ary: the paper's cache-aware tree on whole lines. Every key stands once, k of them in a line; the children of line i are lines
//! (k+1)·i + 1 … (k+1)·i + k + 1, so nodes are in breadth-first order and nothing points.
//!
//! Because inner keys are not repeated below, a key's place does not tell its rank; ranks stand in a second array of the same order
//! (4 bytes a key), read once at the end. Lines read: log(k+1) n, and one of ranks.
//! Source: Ladner, Fortna and Nguyen 2002, section 4.3; the child index is derived there from a root at 0 (see `paper::aware`).

use super::{Fill, Method, Refusal, Shape};
use crate::kernel::Simd;
use crate::key::{Exact, Lane};
use crate::line::{lanes, lanes_mut, lines_for, Line};

/// n keys in `nodes` lines, then their ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kary {
    n: usize,
    nodes: usize,
    lines: usize,
}

/// A rank that no key has: the slot is padding.
const NO_RANK: u32 = u32::MAX;

/// Queries whose descents run abreast.
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

    /// One step at `node`: the child to visit, and the slot of the smallest key there that is not less than `q`, or `best` when there is none.
    #[inline(always)]
    fn step<L: Lane, S: Simd>(
        &self,
        simd: S,
        lines: &[Line],
        node: usize,
        q: L,
        best: usize,
    ) -> (usize, usize) {
        let less = L::less(simd, L::node(&lines[node]), q);
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
        for j in 0..per {
            self.visit(per, first + j, each);
            let slot = node * per + j;
            if slot < self.n {
                each(slot);
            }
        }
        self.visit(per, first + per, each);
    }
}

/// No slot found yet: beyond every array.
const NOWHERE: usize = usize::MAX;

impl<L: Lane> Method<L> for Kary {
    fn of(shape: &Shape<L>) -> &Self {
        let Shape::Kary(this) = shape else { unreachable!("the kernel was chosen for this layout") };
        this
    }

    fn lines(&self) -> usize {
        self.lines
    }

    #[inline(always)]
    fn rank<S: Simd>(&self, simd: S, lines: &[Line], q: L) -> usize {
        let (mut node, mut best) = (0, NOWHERE);
        while node < self.nodes {
            (node, best) = self.step(simd, lines, node, q, best);
        }
        self.rank_of_slot(lines, best)
    }

    #[inline(always)]
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], qs: &[L], out: &mut [usize]) {
        for (qs, out) in qs.chunks(ABREAST).zip(out.chunks_mut(ABREAST)) {
            let mut at = [(0, NOWHERE); ABREAST];
            let mut busy = self.nodes > 0;
            while busy {
                busy = false;
                for (at, &q) in at.iter_mut().zip(qs) {
                    if at.0 < self.nodes {
                        *at = self.step(simd, lines, at.0, q, at.1);
                        simd.prefetch(lines, at.0);
                        busy = true;
                    }
                }
            }
            out.iter_mut().zip(at).for_each(|(rank, (_, best))| *rank = self.rank_of_slot(lines, best));
        }
    }

    fn key(&self, lines: &[Line], rank: usize) -> L {
        // The ranks are a search tree of the same shape: descend on them.
        let per = L::PER_LINE;
        let ranks = lanes::<u32>(&lines[self.nodes..]);
        let mut node = 0;
        loop {
            let slots = &ranks[node * per..(node * per + per).min(self.n)];
            let less = slots.partition_point(|&r| (r as usize) < rank);
            if slots.get(less).is_some_and(|&r| r as usize == rank) {
                return lanes::<L>(lines)[node * per + less];
            }
            node = node * (per + 1) + 1 + less;
        }
    }

    fn holds(&self, lines: &[Line]) -> bool {
        let (nodes, ranks) = lines.split_at(self.nodes);
        let (flat, ranks) = (lanes::<L>(nodes), lanes::<u32>(ranks));
        let (mut next, mut last, mut ordered) = (0, L::MIN, true);
        self.visit(L::PER_LINE, 0, &mut |slot| {
            ordered &= flat[slot] >= last && ranks[slot] == next;
            (next, last) = (next + 1, flat[slot]);
        });
        ordered && flat[self.n..].iter().all(|&lane| lane == L::MAX)
    }
}

impl<L: Lane> Fill<L> for Kary {
    fn fill<K: Exact<As = L>>(&self, keys: &[K], lines: &mut [Line], _threads: usize) {
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
