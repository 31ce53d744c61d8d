//! Plain Rust that counts from the last lane to the first: a kernel that only the tests have.
//!
//! It shows what a kernel needs: this file, and its entry in the table of the parent module. Tests
//! that go through the table then compare every layout on it with the reference.
#![forbid(unsafe_code)]

use crate::lane::Lane;
use crate::layout::{Member, Shape};
use crate::line::Line;
use crate::simd::{Simd, Task};

/// The kernel's token; it proves nothing, because any processor can run the kernel.
#[derive(Clone, Copy)]
struct Backwards;

/// True on every machine.
pub(super) fn is_available() -> bool {
    true
}

/// One query of the layout whose shape type is `M`.
pub(super) fn one<L: Lane, M: Member<L>>(shape: &Shape<L>, lines: &[Line], query: L) -> usize {
    M::of(shape).rank(Backwards, lines, query)
}

/// Many queries of the layout whose shape type is `M`.
pub(super) fn many<L: Lane, M: Member<L>>(
    shape: &Shape<L>,
    lines: &[Line],
    queries: &[L],
    out: &mut [usize],
) {
    M::of(shape).ranks(Backwards, lines, queries, out);
}

/// A task that is not a query.
pub(super) fn run<T: Task>(task: T) -> T::Output {
    task.run(Backwards)
}

/// Lanes behind the first `skip` that are less than `query`.
fn less<T: PartialOrd + Copy>(lanes: &[T], skip: usize, query: T) -> usize {
    lanes.iter().rev().take(lanes.len() - skip).filter(|&&lane| lane < query).count()
}

impl Simd for Backwards {
    fn less_u8<const SKIP: usize>(self, lanes: &[u8; 64], query: u8) -> usize {
        less(lanes, SKIP, query)
    }

    fn less_u16<const SKIP: usize>(self, lanes: &[u16; 32], query: u16) -> usize {
        less(lanes, SKIP, query)
    }

    fn less_u32<const SKIP: usize>(self, lanes: &[u32; 16], query: u32) -> usize {
        less(lanes, SKIP, query)
    }

    fn less_u64<const SKIP: usize>(self, lanes: &[u64; 8], query: u64) -> usize {
        less(lanes, SKIP, query)
    }

    fn mask_less_u16(self, lanes: &[u16; 32], query: u16) -> u32 {
        (0..32).filter(|&lane| lanes[lane] < query).fold(0, |mask, lane| mask | 1 << lane)
    }

    fn prefetch(self, _lines: &[Line], _index: usize) {}
}
