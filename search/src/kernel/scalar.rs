//! Plain Rust on any machine: the fallback, and the kernel that Miri can run. The counting loops
//! are written so that a compiler turns them into whatever vectors the build's baseline has (SSE2
//! on x86-64).
#![forbid(unsafe_code)]

use crate::lane::Lane;
use crate::layout::{Member, Shape};
use crate::line::Line;
use crate::simd::{Simd, Task};

/// The kernel's token; it proves nothing, because any processor can run the kernel.
#[derive(Clone, Copy)]
pub(super) struct Scalar;

/// True on every machine.
pub(super) fn is_available() -> bool {
    true
}

/// One query of the layout whose shape type is `M`.
pub(super) fn one<L: Lane, M: Member<L>>(shape: &Shape<L>, lines: &[Line], query: L) -> usize {
    M::of(shape).rank(Scalar, lines, query)
}

/// Many queries of the layout whose shape type is `M`.
pub(super) fn many<L: Lane, M: Member<L>>(
    shape: &Shape<L>,
    lines: &[Line],
    queries: &[L],
    out: &mut [usize],
) {
    // Processors with these instructions have a kernel that keeps many queries under way. Code that
    // does so without them would serve few, and be a fifth of the crate.
    if cfg!(target_arch = "x86_64") {
        assert_eq!(queries.len(), out.len(), "as many answers as queries");
        let shape = M::of(shape);
        out.iter_mut().zip(queries).for_each(|(out, &query)| *out = shape.rank(Scalar, lines, query));
        return;
    }
    M::of(shape).ranks(Scalar, lines, queries, out);
}

/// A task that is not a query.
pub(super) fn run<T: Task>(task: T) -> T::Output {
    task.run(Scalar)
}

/// Lanes from `skip` on that are less than `query`.
#[inline(always)]
fn less<T: PartialOrd + Copy, const N: usize>(lanes: &[T; N], skip: usize, query: T) -> usize {
    lanes[skip..].iter().map(|&lane| u32::from(lane < query)).sum::<u32>() as usize
}

impl Simd for Scalar {
    #[inline(always)]
    fn mask_less_u16(self, lanes: &[u16; 32], query: u16) -> u32 {
        lanes.iter().rev().fold(0, |mask, &lane| mask << 1 | u32::from(lane < query))
    }

    #[inline(always)]
    fn less_u8<const SKIP: usize>(self, lanes: &[u8; 64], query: u8) -> usize {
        less(lanes, SKIP, query)
    }

    #[inline(always)]
    fn less_u16<const SKIP: usize>(self, lanes: &[u16; 32], query: u16) -> usize {
        less(lanes, SKIP, query)
    }

    #[inline(always)]
    fn less_u32<const SKIP: usize>(self, lanes: &[u32; 16], query: u32) -> usize {
        less(lanes, SKIP, query)
    }

    #[inline(always)]
    fn less_u64<const SKIP: usize>(self, lanes: &[u64; 8], query: u64) -> usize {
        less(lanes, SKIP, query)
    }

    #[inline(always)]
    fn prefetch(self, _lines: &[Line], _index: usize) {}
}
