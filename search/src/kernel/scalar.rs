//! Plain Rust on any machine: the fallback, and the kernel that Miri can run. The counting loops are written so that a
//! compiler turns them into whatever vectors the build's baseline has (SSE2 on x86-64).
#![forbid(unsafe_code)]

use super::Simd;
use crate::key::Lane;
use crate::layout::{Method, Shape};
use crate::line::Line;

/// No proof needed.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

/// One query with method `M`.
pub(crate) fn one<L: Lane, M: Method<L>>(shape: &Shape<L>, lines: &[Line], q: L) -> usize {
    M::of(shape).rank(Scalar, lines, q)
}

/// Many queries with method `M`.
pub(crate) fn many<L: Lane, M: Method<L>>(shape: &Shape<L>, lines: &[Line], qs: &[L], out: &mut [usize]) {
    M::of(shape).ranks(Scalar, lines, qs, out);
}

/// Lanes from `skip` on that are less than `q`.
#[inline(always)]
fn less<T: PartialOrd + Copy, const N: usize>(lanes: &[T; N], skip: usize, q: T) -> usize {
    lanes[skip..].iter().map(|&lane| u32::from(lane < q)).sum::<u32>() as usize
}

impl Simd for Scalar {
    #[inline(always)]
    fn mask_less_u16(self, lanes: &[u16; 32], q: u16) -> u32 {
        lanes.iter().rev().fold(0, |mask, &lane| mask << 1 | u32::from(lane < q))
    }

    #[inline(always)]
    fn less_u8<const SKIP: usize>(self, lanes: &[u8; 64], q: u8) -> usize {
        less(lanes, SKIP, q)
    }

    #[inline(always)]
    fn less_u16<const SKIP: usize>(self, lanes: &[u16; 32], q: u16) -> usize {
        less(lanes, SKIP, q)
    }

    #[inline(always)]
    fn less_u32<const SKIP: usize>(self, lanes: &[u32; 16], q: u32) -> usize {
        less(lanes, SKIP, q)
    }

    #[inline(always)]
    fn less_u64<const SKIP: usize>(self, lanes: &[u64; 8], q: u64) -> usize {
        less(lanes, SKIP, q)
    }

    #[inline(always)]
    fn prefetch(self, _lines: &[Line], _index: usize) {}
}
