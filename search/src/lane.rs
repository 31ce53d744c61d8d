//! Lanes: the unsigned integers of 32 or 64 bits that searches compare.
//!
//! A key maps to a lane so that lanes are ordered as keys are: integers by flipping the sign bit,
//! floats in IEEE total order (−NaN < −∞ < −0 < +0 < ∞ < NaN) by flipping the sign or all bits,
//! `u128` by its most significant 64 varying bits, ties settled on the keys themselves. The mapping
//! is a few bit operations per query, so two searches (one per lane type) serve every key type.

use core::fmt::Debug;

use crate::cut::{Cut, Word};
use crate::line::{Line, Plain};
use crate::simd::{Found, Simd, GATHERED};

/// The unsigned integer that is compared: `u32` or `u64`.
pub(crate) trait Lane: Plain + Word + Debug + Send + Sync {
    /// A line of lanes.
    type Node: 'static;
    /// Bits of a lane.
    const BITS: u32;
    /// Lanes of a line.
    const PER_LINE: usize;
    /// The smallest lane.
    const MIN: Self;
    /// The largest lane.
    const MAX: Self;
    /// A line as lanes.
    fn node(line: &Line) -> &Self::Node;
    /// A line's worth of lanes from `at` on, aligned or not.
    ///
    /// # Panics
    /// When the window leaves the slice.
    fn window(flat: &[Self], at: usize) -> &Self::Node;
    /// The number of lanes of `node` less than `query`.
    fn less<S: Simd>(simd: S, node: &Self::Node, query: Self) -> usize;
    /// The cells of queries, from the entries of their roots; a root behind the last stands for the
    /// last.
    fn cells<S: Simd>(simd: S, roots: &[u32], cut: &Cut<Self>, queries: &[Self; GATHERED])
        -> [u32; GATHERED];
    /// The lines of queries, from the entries of their roots, and their fractions there, not
    /// widened; a root behind the last stands for the last.
    fn lines<S: Simd>(simd: S, roots: &[u32], cut: &Cut<Self>, queries: &[Self; GATHERED]) -> Found<Self>;
    /// The lines of queries, and their fractions there, not widened, from the rows of a table of
    /// maps at the places `at`; a place behind the last row stands for the last.
    fn map<S: Simd>(
        simd: S,
        table: &[[Self; 4]],
        at: &[u32; GATHERED],
        queries: &[Self; GATHERED],
    ) -> Found<Self>;
    /// `self · multiplier` as a whole number and a fraction: `(product >> BITS, product mod
    /// 2^BITS)`, the fraction left-aligned in 64 bits. The multiplier fits a lane: for u32 the
    /// product is one 32-by-32-bit multiplication, which vectors have.
    fn scale(self, multiplier: u64) -> (usize, u64);
    /// [`Lane::scale`] from multiplications of 32 by 32 bits: more of them, but vectors have those.
    /// For loops over many lanes.
    #[inline(always)]
    fn scale_abreast(self, multiplier: u64) -> (usize, u64) {
        if Self::BITS == 32 {
            return self.scale(multiplier);
        }
        let low = |wide: u64| wide & 0xFFFF_FFFF;
        let (a, b) = (self.widen(), multiplier);
        let lowest = low(a) * low(b);
        let middle = (a >> 32) * low(b) + (lowest >> 32);
        let other = low(a) * (b >> 32) + low(middle);
        let whole = (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
        (whole as usize, other << 32 | low(lowest))
    }
}

macro_rules! define_lane {
    ($lane:ty, $wide:ty, $per:literal, $node:ident, $less:ident, $cells:ident, $lines:ident, $map:ident) => {
        impl Lane for $lane {
            type Node = [$lane; $per];
            const BITS: u32 = <$lane>::BITS;
            const PER_LINE: usize = $per;
            const MIN: Self = 0;
            const MAX: Self = <$lane>::MAX;

            #[inline(always)]
            fn node(line: &Line) -> &Self::Node {
                line.$node()
            }

            #[inline(always)]
            fn window(flat: &[Self], at: usize) -> &Self::Node {
                flat[at..].first_chunk().expect("a window stays inside its padded array")
            }

            #[inline(always)]
            fn less<S: Simd>(simd: S, node: &Self::Node, query: Self) -> usize {
                simd.$less::<0>(node, query)
            }

            #[inline(always)]
            fn cells<S: Simd>(
                simd: S,
                roots: &[u32],
                cut: &Cut<Self>,
                queries: &[Self; GATHERED],
            ) -> [u32; GATHERED] {
                simd.$cells(roots, cut, queries)
            }

            #[inline(always)]
            fn lines<S: Simd>(
                simd: S,
                roots: &[u32],
                cut: &Cut<Self>,
                queries: &[Self; GATHERED],
            ) -> Found<Self> {
                simd.$lines(roots, cut, queries)
            }

            #[inline(always)]
            fn map<S: Simd>(
                simd: S,
                table: &[[Self; 4]],
                at: &[u32; GATHERED],
                queries: &[Self; GATHERED],
            ) -> Found<Self> {
                simd.$map(table, at, queries)
            }

            #[inline(always)]
            fn scale(self, multiplier: u64) -> (usize, u64) {
                let product = self as $wide * (multiplier as $lane) as $wide;
                ((product >> <$lane>::BITS) as usize, (product as u64) << (64 - <$lane>::BITS))
            }
        }
    };
}

define_lane!(u32, u64, 16, u32s, less_u32, cells_u32, lines_u32, map_u32);
define_lane!(u64, u128, 8, u64s, less_u64, cells_u64, lines_u64, map_u64);

/// A key type whose order a lane keeps exactly: the six types of 32 and 64 bits.
pub(crate) trait Exact: Copy + Sync {
    /// The lane type.
    type As: Lane;
    /// The key's lane.
    fn to_lane(self) -> Self::As;
    /// The key of a lane.
    fn from_lane(lane: Self::As) -> Self;
    /// The keys themselves when they are their own lanes.
    fn as_lanes(keys: &[Self]) -> Option<&[Self::As]>;
}

macro_rules! define_exact {
    ($key:ty, $lane:ty, $own:expr, |$k:ident| $to:expr, |$l:ident| $from:expr) => {
        impl Exact for $key {
            type As = $lane;

            #[inline(always)]
            fn to_lane(self) -> $lane {
                let $k = self;
                $to
            }

            #[inline(always)]
            fn from_lane($l: $lane) -> $key {
                $from
            }

            #[inline(always)]
            fn as_lanes(keys: &[$key]) -> Option<&[$lane]> {
                let own: fn(&[$key]) -> Option<&[$lane]> = $own;
                own(keys)
            }
        }
    };
}

const TOP32: u32 = 1 << 31;
const TOP64: u64 = 1 << 63;

define_exact!(u32, u32, |keys| Some(keys), |k| k, |l| l);
define_exact!(u64, u64, |keys| Some(keys), |k| k, |l| l);
define_exact!(i32, u32, |_| None, |k| k as u32 ^ TOP32, |l| (l ^ TOP32) as i32);
define_exact!(i64, u64, |_| None, |k| k as u64 ^ TOP64, |l| (l ^ TOP64) as i64);
define_exact!(f32, u32, |_| None, |k| k.to_bits() ^ ((k.to_bits() as i32 >> 31) as u32 | TOP32), |l| {
    f32::from_bits(if l & TOP32 != 0 { l ^ TOP32 } else { !l })
});
define_exact!(f64, u64, |_| None, |k| k.to_bits() ^ ((k.to_bits() as i64 >> 63) as u64 | TOP64), |l| {
    f64::from_bits(if l & TOP64 != 0 { l ^ TOP64 } else { !l })
});

/// How `u128` keys become 64-bit lanes: `(key - base) >> shift`, order preserving, exact when the
/// shift is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The smallest key.
    pub(crate) base: u128,
    /// Bits that the lane cannot hold.
    pub(crate) shift: u32,
}

impl Frame {
    /// The frame of keys between `min` and `max`.
    pub(crate) fn new(min: u128, max: u128) -> Frame {
        Frame { base: min, shift: (128 - (max - min).leading_zeros()).saturating_sub(64) }
    }

    /// The lane of `key`; keys outside the frame go to its nearest end.
    pub(crate) fn lane(&self, key: u128) -> u64 {
        u64::try_from(key.saturating_sub(self.base) >> self.shift).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_in_total_order() {
        let ascending = [
            -f64::NAN,
            f64::NEG_INFINITY,
            f64::MIN,
            -1.0,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            1.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        for pair in ascending.windows(2) {
            assert!(pair[0].to_lane() < pair[1].to_lane(), "{pair:?}");
            assert!(pair[0].total_cmp(&pair[1]).is_lt(), "{pair:?}");
        }
        for bits in [0u32, 1, TOP32, TOP32 + 1, 0x7F80_0001, 0xFFC0_1234, u32::MAX] {
            assert_eq!(f32::from_lane(f32::from_bits(bits).to_lane()).to_bits(), bits);
        }
    }

    #[test]
    fn a_frame_keeps_the_order() {
        let frame = Frame::new(5, u128::MAX);
        assert_eq!(frame.shift, 64);
        assert!(frame.lane(0) <= frame.lane(5));
        assert!(frame.lane(u128::MAX) > frame.lane(1 << 100));
        assert_eq!(Frame::new(1 << 100, (1 << 100) + 9).lane((1 << 100) + 7), 7);
    }

    #[test]
    fn products_of_halves_are_the_product() {
        let some = [0, 1, 2, 0xFFFF_FFFF, 1 << 32, 0x1234_5678_9ABC_DEF0, u64::MAX - 1, u64::MAX];
        for a in some {
            for b in some {
                assert_eq!(a.scale_abreast(b), a.scale(b), "{a} {b}");
            }
            let (a, b) = (a as u32, 0x89AB_CDEF);
            assert_eq!(a.scale_abreast(b), a.scale(b), "{a}");
        }
    }
}
