//! One row of tags, touched: the innermost operation, in a version per instruction set.
//!
//! **What.** [`TouchRow`] finds a line among a row's lanes and puts it in front. **Why this way.** The set is stored in recency order, so the same
//! shift serves hit and miss, without a branch. `Kernel` is chosen once; holding one proves that the processor has the instructions,
//! which is `pulp`'s business, and the reason why this crate needs no `unsafe`.
//!
//! **Shapes.** 8 or 16 lanes of 8 bytes, or 16 of 4; logical ways are the first lanes, the others stay empty.

mod avx2;
mod avx512;
mod portable;

use pulp::x86::{V3, V4};
use pulp::NullaryFnOnce;
use std::marker::PhantomData;

/// No line has this number: the smallest line has 4 bytes.
pub(crate) const EMPTY: u64 = u64::MAX;

/// A set's tags, most recent first.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Row<T, const LANES: usize>(pub(crate) [T; LANES]);

/// A tag, of a width that rows have. Wide tags are line numbers; narrow ones leave the set's bits out.
pub(crate) trait Tag: Copy + Eq {
    /// No line has it.
    const EMPTY: Self;
    /// What is kept of a line number that is `quotient` times the number of sets, plus the set; `None` where that does not fit.
    fn new(line: u64, quotient: u64) -> Option<Self>;
}

impl Tag for u64 {
    const EMPTY: u64 = EMPTY;

    #[inline(always)]
    fn new(line: u64, _quotient: u64) -> Option<u64> {
        Some(line)
    }
}

impl Tag for u32 {
    const EMPTY: u32 = u32::MAX;

    #[inline(always)]
    fn new(_line: u64, quotient: u64) -> Option<u32> {
        (quotient < u64::from(u32::MAX)).then_some(quotient as u32)
    }
}

/// What a touch found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    Hit,
    Missed,
}

/// Touches rows of `LANES` tags.
pub(crate) trait TouchRow<T, const LANES: usize>: Copy {
    /// Finds `tag` and moves it to the front; when it is missing, `fill` says what happens.
    fn touch_row<F: Fill>(self, row: &mut Row<T, LANES>, tag: T, fill: F) -> Touched;
}

/// What a touch does to its row when the line is missing.
pub(crate) trait Fill: Copy {
    /// Lanes that move: up to and with the lowest one of `found`; where none is, all ways, or none if nothing enters.
    fn moved(self, found: u32) -> u32;
}

/// The line always enters. `last` is the last way's bit.
#[derive(Clone, Copy)]
pub(crate) struct Enters {
    pub(crate) last: u32,
}

/// The line enters where `enters` is all ones, and does not where it is 0.
#[derive(Clone, Copy)]
pub(crate) struct MayEnter {
    pub(crate) last: u32,
    pub(crate) enters: u32,
}

impl Fill for Enters {
    #[inline(always)]
    fn moved(self, found: u32) -> u32 {
        let last = found | self.last;
        last ^ (last - 1)
    }
}

impl Fill for MayEnter {
    #[inline(always)]
    fn moved(self, found: u32) -> u32 {
        let hit = (found as i32).wrapping_neg() >> 31;
        Enters { last: self.last }.moved(found) & (self.enters | hit as u32)
    }
}

#[inline(always)]
fn touched(found: u32) -> Touched {
    if found != 0 {
        Touched::Hit
    } else {
        Touched::Missed
    }
}

/// A loop over rows, generic over the kernel that it is compiled for.
pub(crate) trait Work<T, const LANES: usize> {
    type Output;
    fn run<K: TouchRow<T, LANES>>(self, kernel: K) -> Self::Output;
}

/// The kernel in use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    Avx512(V4),
    Avx2(V3),
    Portable,
}

impl Kernel {
    /// All that this processor has, fastest first.
    pub(crate) fn all() -> impl Iterator<Item = Kernel> {
        let avx512 = V4::try_new().map(Kernel::Avx512);
        let avx2 = V3::try_new().map(Kernel::Avx2);
        avx512.into_iter().chain(avx2).chain([Kernel::Portable])
    }

    /// The best that this processor has.
    pub(crate) fn fastest() -> Kernel {
        Kernel::all().next().unwrap_or(Kernel::Portable)
    }

    /// Runs `work`, compiled for this kernel.
    pub(crate) fn run<T, const LANES: usize, W: Work<T, LANES>>(self, work: W) -> W::Output
    where
        V4: TouchRow<T, LANES>,
        V3: TouchRow<T, LANES>,
        portable::Portable: TouchRow<T, LANES>,
    {
        let tags = PhantomData;
        match self {
            Kernel::Avx512(avx512) => avx512.vectorize(Compiled { kernel: avx512, work, tags }),
            Kernel::Avx2(avx2) => avx2.vectorize(Compiled { kernel: avx2, work, tags }),
            Kernel::Portable => work.run(portable::Portable),
        }
    }
}

/// `work` on `kernel`, inlined into a function that has the kernel's instructions.
struct Compiled<K, W, T, const LANES: usize> {
    kernel: K,
    work: W,
    tags: PhantomData<[T; LANES]>,
}

impl<T, K, W, const LANES: usize> NullaryFnOnce for Compiled<K, W, T, LANES>
where
    K: TouchRow<T, LANES>,
    W: Work<T, LANES>,
{
    type Output = W::Output;

    #[inline(always)]
    fn call(self) -> W::Output {
        self.work.run(self.kernel)
    }
}
