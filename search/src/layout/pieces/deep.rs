//! The plan of pieces in one table whose lines are directories: for keys that are uneven at every
//! scale, and for many equal keys. Every query reads an entry, a directory and a block.
//!
//! A line of a root is as wide as its directory bears, so the number of lines follows the densest
//! part of the root. There are few lines then, which stay near, and blocks have no gaps but at the
//! end of each line's.

use alloc::vec::Vec;

use super::cost::Costs;
use super::plan::{Cuts, Pieces, Planned};
use super::roots::Roots;
use crate::cut::BELOW_BITS;
use crate::lane::{Exact, Lane};
use crate::layout::split::digit::Width;
use crate::line::LINE_BYTES;

/// The numbers of roots that are tried, as binary logarithms.
const ROOTS_BITS: [u32; 3] = [10, 13, 16];

/// Fewest keys for each root on average.
const KEYS_PER_ROOT: usize = 16;

/// The most bytes of lines, without blocks, for each byte of keys.
const GROWTH: usize = 2;

impl<L: Lane> Pieces<L> {
    /// The plan whose lines are directories with the fewest lines and entries, or `None` where a
    /// line would be too crowded however narrow it is, lines would take too much memory, or the
    /// plan would cost more than `most`.
    pub(super) fn plan_deep<K: Exact<As = L>>(
        keys: &[K],
        roots: &mut Roots<'_, K>,
        costs: &Costs,
        most: usize,
    ) -> Option<Planned<L>> {
        // Digits of half a key: shorter ones need too many lines, and directories of longer ones
        // bear few. Of short keys there are few different ones.
        let digit = match L::BITS {
            32 => Width::Bits16,
            64 => Width::Bits32,
            _ => return None,
        };
        let finest = (keys.len() / KEYS_PER_ROOT).checked_ilog2().filter(|&bits| bits >= 2)?;
        let mut best: Option<Planned<L>> = None;
        for roots_bits in ROOTS_BITS.map(|bits| bits.min(finest)) {
            let Some(mut plan) = Pieces::with_roots(keys, |bits| bits.saturating_sub(roots_bits)) else {
                continue;
            };
            if plan.cut.shift < 2
                || best.as_ref().is_some_and(|(_, best, _)| best.cut.shift == plan.cut.shift)
            {
                continue;
            }
            let least =
                costs.deep[costs.distance(size_of_val(keys))] + costs.table(plan.roots() * size_of::<u32>());
            if least > most || best.as_ref().is_some_and(|&(cost, ..)| cost <= least) {
                break;
            }
            plan.inner.digit = digit;
            let Some((lines, cuts)) = plan.cut_directories(keys, roots.ranks(&plan.cut)) else { continue };
            let is_numbered = lines < 1 << (u32::BITS - BELOW_BITS);
            if !is_numbered || lines * LINE_BYTES > GROWTH * size_of_val(keys) + 4096 {
                continue;
            }
            // Lines are read at random like the table, of which each query reads one word.
            let cost = least + costs.directories(lines * LINE_BYTES);
            if best.as_ref().is_none_or(|&(lowest, ..)| cost < lowest) {
                best = Some((cost, plan, cuts));
            }
        }
        best
    }

    /// Cuts roots that begin at `ranks` into as few lines as their directories bear. Returns the
    /// lines and the cuts.
    fn cut_directories<K: Exact<As = L>>(&self, keys: &[K], ranks: Vec<usize>) -> Option<(usize, Cuts)> {
        let logarithms: Option<Vec<u32>> =
            (0..self.roots()).map(|root| self.fewest_lines(keys, root, &ranks)).collect();
        let cuts = Cuts { logarithms: logarithms?, ranks };
        Some((self.lines_of_roots(&cuts), cuts))
    }

    /// The binary logarithm of the number of lines that a root needs, or `None` if a line would
    /// still be too crowded.
    fn fewest_lines<K: Exact<As = L>>(&self, keys: &[K], root: usize, ranks: &[usize]) -> Option<u32> {
        let held = &keys[ranks[root]..ranks[root + 1]];
        if held.is_empty() {
            return Some(0);
        }
        // A line with more keys than a directory bears has two sampled keys that are so far apart.
        let (step, most) = (self.inner.digit.per_line(), self.inner.digit.crowd());
        let apart = most - step;
        let least = self.cut.shift.saturating_sub(self.inner.digit.bits());
        let first = held.len().div_ceil(most).next_power_of_two().ilog2().max(least);
        (first..self.cut.shift).find(|logarithm| {
            let below = self.cut.shift - logarithm;
            let line = |rank: usize| self.cut.distance(held[rank].to_lane()).widen() >> below;
            let mut sampled = (0..held.len().saturating_sub(apart)).step_by(step);
            sampled.all(|rank| line(rank) < line(rank + apart))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::cost::NEAR;
    use super::super::fill::build_planned;
    use super::*;
    use crate::choose::Kernel;
    use crate::kernel::{Isa, KERNELS};
    use crate::layout::method::{Contents, Placing};
    use crate::layout::Shape;
    use crate::sample::{Distribution, DISTRIBUTIONS};

    /// Builds the plan, whatever it costs, and asks it for every rank with every instruction set.
    /// Returns whether its queries go through directories and blocks.
    fn answers_rightly<L: Lane + Exact<As = L>>(keys: &[L], name: &str) -> bool {
        let Some((_, plan, cuts)) = Pieces::plan_deep(keys, &mut Roots::of(keys), &NEAR, usize::MAX) else {
            return false;
        };
        let placing = Placing { vectors: Isa::detect(), threads: 1 };
        let (shape, memory) = build_planned(plan, &cuts, keys, placing).expect("lines bear what was planned");
        assert!(shape.holds(memory.lines()), "{name}");
        let mut read = Vec::new();
        shape.read(memory.lines(), 0..keys.len(), &mut |key| read.push(key));
        assert_eq!(read, keys, "{name}");
        let beside = |by: u64| keys.iter().step_by(3).map(move |key| L::narrow(key.widen().wrapping_add(by)));
        let queries: Vec<L> = beside(0).chain(beside(1)).chain(beside(u64::MAX)).collect();
        let expected: Vec<usize> = queries.iter().map(|q| keys.partition_point(|key| key < q)).collect();
        let is_deep = shape.inner.blocks * shape.inner.digit.per_line() >= keys.len() / 5;
        let shape = Shape::Pieces(shape);
        for &isa in KERNELS {
            let Some(kernel) = Kernel::choose(&shape, isa) else { continue };
            // Numbers of queries that fill no group, some groups, and many.
            for count in [1, 31, 32, 33, 100, 257, queries.len()] {
                let mut ranks = alloc::vec![usize::MAX; count];
                kernel.ranks(&shape, memory.lines(), &queries[..count], &mut ranks);
                assert_eq!(ranks, expected[..count], "{name}, {}", isa.name());
            }
            let one = queries.iter().map(|&query| kernel.rank(&shape, memory.lines(), query));
            assert!(one.eq(expected.iter().copied()), "{name}, {}", isa.name());
        }
        is_deep
    }

    /// Keys that need few enough lines of digits of half a key.
    fn keys<L: Lane>(distribution: Distribution, n: usize) -> Vec<L> {
        distribution.keys(n, L::MAX.widen() >> (L::BITS / 2 - 11), 5).into_iter().map(L::narrow).collect()
    }

    #[test]
    fn every_kernel_goes_through_directories_and_blocks_alike() {
        let mut deep = 0;
        for &(distribution, name) in DISTRIBUTIONS {
            deep += usize::from(answers_rightly(&keys::<u32>(distribution, 20_000), name));
            deep += usize::from(answers_rightly(&keys::<u64>(distribution, 20_000), name));
        }
        assert!(deep > DISTRIBUTIONS.len(), "{deep} of the plans are deep");
    }

    #[test]
    fn a_line_that_no_directory_bears_is_refused() {
        // 2,000 copies of one key, whatever the cut.
        let mut equal: Vec<u32> = (0..20_000).map(|i| i * 100).collect();
        equal.extend([777_777; 2000]);
        equal.sort_unstable();
        assert!(Pieces::plan_deep(&equal, &mut Roots::of(&equal), &NEAR, usize::MAX).is_none());
        // 500 are borne.
        equal.dedup();
        equal.extend([777_777; 500]);
        equal.sort_unstable();
        assert!(Pieces::plan_deep(&equal, &mut Roots::of(&equal), &NEAR, usize::MAX).is_some());
        answers_rightly(&equal, "500 copies");
    }
}
