//! The pairs of narrow types that can be multiplied, and a kernel of such a pair.

use super::kernel::Run;
use super::narrow::{sealed, Narrow, Sum};
use super::source::Source;
use std::fmt::Debug;
use std::ops::Range;

/// A pair of types that can be multiplied: the left operand's and the right operand's. It is
/// implemented for pairs of `u8`, `i8` and for `(i16, i16)`, and with feature `half` for
/// `(bf16, bf16)` and `(f16, f16)`.
pub trait Product: sealed::Sealed + Sized + Debug + 'static {
    /// The type of `A`.
    type Left: Narrow;
    /// The type of `B`.
    type Right: Narrow;
    /// The type of `C`.
    type Sum: Sum;
    /// The pair of `Bᵀ` and `Aᵀ`.
    type Exchanged: Product<Left = Self::Right, Right = Self::Left, Sum = Self::Sum, Exchanged = Self>;
    /// The kernels of this pair, fastest first; the last one runs anywhere. The list of the
    /// exchanged pair has kernels of the same instruction sets in the same order.
    #[doc(hidden)]
    const KERNELS: &'static [TileKernel<Self>];
    /// `left · right`, in double precision, which is exact.
    fn exact(left: Self::Left, right: Self::Right) -> f64;
}

/// Packs the words of steps `ks` of the rows `rows`, panel after panel of so many groups.
///
/// # Safety
/// These entries of the source are readable.
pub(super) type Pack<T> =
    unsafe fn(&Source<T>, rows: Range<usize>, ks: Range<usize>, groups: usize, panels: &mut [u32]);

/// A kernel for one pair of types on one instruction set. Only [`TileKernel::available`],
/// [`TileKernel::best`] and [`TileKernel::named`] return kernels, and all of them check the
/// processor first.
#[derive(Debug)]
pub struct TileKernel<P: Product> {
    pub(super) name: &'static str,
    pub(super) is_available: fn() -> bool,
    /// Whether this processor runs it faster than the next one of the list.
    pub(super) is_fast: fn() -> bool,
    /// Rows of a panel of `A`.
    pub(super) rows: usize,
    /// Columns of `B` of a panel of `Bᵀ`.
    pub(super) columns: usize,
    /// Steps of `k` for each word.
    pub(super) depth: usize,
    pub(super) pack_left: Pack<P::Left>,
    pub(super) pack_right: Pack<P::Right>,
    pub(super) run: Run<P::Sum>,
    pub(super) blocks: Blocks,
}

/// What a kernel asks of the loops around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// Words of a row that are packed at a time.
    pub(super) words: usize,
    /// Rows that are packed at a time: a multiple of the panel.
    pub(super) rows: usize,
    /// Groups come in multiples of this, with zeros behind the last.
    pub(super) unit: usize,
    /// How the words of packed columns of `B` lie.
    pub(super) right: RightWords,
    /// Products of fewer multiply-adds are left to the next kernel, unless somebody chose this one.
    pub(super) least: usize,
    /// What runs before the first tile of a thread's part, and behind the last.
    pub(super) around: Option<Around>,
}

/// What prepares the processor for a kernel's tiles, and what ends that. Both need a processor on
/// which the kernel is available.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    pub(super) before: unsafe fn(),
    pub(super) behind: unsafe fn(),
}

/// How the words of packed columns of `B` lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RightWords {
    /// In panels: those of one group side by side.
    ByGroup,
    /// Those of one column side by side.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "AMX alone wants it"))]
    ByColumn,
}

impl<P: Product> TileKernel<P> {
    /// The kernels that this processor can run, fastest first, except that `bf16` comes before
    /// `avx512` always.
    pub fn available() -> impl Iterator<Item = &'static TileKernel<P>> {
        P::KERNELS.iter().filter(|kernel| (kernel.is_available)())
    }

    /// The fastest kernel of this processor for large products. Feature bits decide, and for `bf16`
    /// a measurement of a few microseconds, once: some processors that have its instruction take
    /// four times as long for it as for one of `f32`, which does half of its work.
    pub fn best() -> &'static TileKernel<P> {
        let mut kernels = Self::available().filter(|kernel| (kernel.is_fast)());
        kernels.next().expect("the scalar kernel runs anywhere")
    }

    /// The fastest kernel for a product of so many multiply-adds.
    pub(super) fn best_for(work: usize) -> &'static TileKernel<P> {
        let mut kernels =
            Self::available().filter(|kernel| (kernel.is_fast)() && kernel.blocks.least <= work);
        kernels.next().expect("the scalar kernel runs anywhere")
    }

    /// The kernel called `name`, if this processor can run it.
    pub fn named(name: &str) -> Option<&'static TileKernel<P>> {
        Self::available().find(|kernel| kernel.name == name)
    }

    /// The short name: `amx`, `vnni`, `bf16`, `avx512`, `avx-vnni`, `avx2` or `scalar`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the words of `B` are its own bytes, so that they need no packing where steps of `k`
    /// are contiguous.
    pub(super) fn takes_right_unpacked(&self) -> bool {
        cfg!(target_endian = "little") && size_of::<P::Right>() * self.depth == size_of::<u32>()
    }

    /// The kernel of the exchanged pair on this instruction set.
    pub(super) fn exchanged(&self) -> &'static TileKernel<P::Exchanged> {
        let mut kernels = P::Exchanged::KERNELS.iter();
        kernels.find(|kernel| kernel.name == self.name).expect("both lists have the same names")
    }
}
