//! One row of tags, touched: the innermost operation, in a version per instruction set.
//!
//! **What.** [`TouchRow`] finds a line among a row's lanes and puts it in front. **Why this way.** The set is stored in recency order, so the same
//! shift serves hit and miss, without a branch. `Kernel` is chosen once; holding one proves that the processor has the instructions,
//! which is `pulp`'s business, and the reason why this crate needs no `unsafe`.
//!
//! **Shapes.** 8 or 16 lanes of 8 bytes; logical ways are the first lanes, the others stay empty.

mod avx2;
mod avx512;
mod portable;

use pulp::x86::{V3, V4};
use pulp::NullaryFnOnce;

/// No line has this number: the smallest line has 4 bytes.
pub(crate) const EMPTY: u64 = u64::MAX;

/// A set's line numbers, most recent first.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Row<const LANES: usize>(pub(crate) [u64; LANES]);

/// What a touch found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    Hit,
    Missed,
}

/// Touches rows of `LANES` lanes.
pub(crate) trait TouchRow<const LANES: usize>: Copy {
    /// Finds `line` and moves it to the front; when it is missing, `fill` says what happens.
    fn touch_row(self, row: &mut Row<LANES>, line: u64, fill: Fill) -> Touched;
}

/// What a touch does to its row when the line is missing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fill {
    /// The last way's bit.
    pub(crate) last: u32,
    /// All ones where the line enters, 0 where it does not.
    pub(crate) enters: u32,
}

/// Lanes that move: up to and with the lowest one of `found`, else all ways, or none where nothing enters.
#[inline(always)]
fn moved(found: u32, fill: Fill) -> u32 {
    let last = found | fill.last;
    let hit = u32::from(found != 0).wrapping_neg();
    (last ^ (last - 1)) & (fill.enters | hit)
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
pub(crate) trait Work<const LANES: usize> {
    fn run<K: TouchRow<LANES>>(self, kernel: K) -> usize;
}

/// The kernel in use.
#[derive(Clone, Copy)]
pub(crate) enum Kernel {
    Avx512(V4),
    Avx2(V3),
    Portable,
}

impl Kernel {
    /// The best that this processor has.
    pub(crate) fn fastest() -> Kernel {
        if let Some(avx512) = V4::try_new() {
            return Kernel::Avx512(avx512);
        }
        V3::try_new().map_or(Kernel::Portable, Kernel::Avx2)
    }

    /// Runs `work`, compiled for this kernel.
    pub(crate) fn run<const LANES: usize, W: Work<LANES>>(self, work: W) -> usize
    where
        V4: TouchRow<LANES>,
        V3: TouchRow<LANES>,
        portable::Portable: TouchRow<LANES>,
    {
        match self {
            Kernel::Avx512(avx512) => avx512.vectorize(Compiled { kernel: avx512, work }),
            Kernel::Avx2(avx2) => avx2.vectorize(Compiled { kernel: avx2, work }),
            Kernel::Portable => work.run(portable::Portable),
        }
    }
}

/// `work` on `kernel`, inlined into a function that has the kernel's instructions.
struct Compiled<K, W, const LANES: usize> {
    kernel: K,
    work: W,
}

impl<K: TouchRow<LANES>, W: Work<LANES>, const LANES: usize> NullaryFnOnce for Compiled<K, W, LANES> {
    type Output = usize;

    #[inline(always)]
    fn call(self) -> usize {
        self.work.run(self.kernel)
    }
}
