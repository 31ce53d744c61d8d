//! The kernels of one instruction set, which are one member of the family of kernels.

use super::direct::{DirectKernels, ThinKernel};
use super::factor::FactorSet;
use super::microkernel::MicroKernel;

/// The kernels of one instruction set for one real type.
#[derive(Debug)]
pub struct RealKernel<T: 'static> {
    /// Rows of a panel.
    pub panel: usize,
    /// The most columns of `C` that one call computes; divides `panel`.
    pub columns: usize,
    /// `run[p - 1][c - 1]` takes `p` panels and `c` columns.
    pub run: &'static [&'static [MicroKernel<T>]],
    /// `tall[p - 1]` takes `p` panels and a single column, for instruction sets with enough
    /// registers; it may be empty. (One column of three panels is bound by the latency of three
    /// sums, not by their number.)
    pub tall: &'static [MicroKernel<T>],
    /// Kernels for small products of plain arrays; it may be empty.
    pub direct: DirectKernels<T>,
    /// A kernel for the last few rows of such products, where that pays.
    pub thin: Option<ThinKernel<T>>,
}

/// The kernels of one instruction set that this processor has: a `Kernel` is the proof that it can
/// run.
///
/// Only [`Kernel::available`], [`Kernel::best`] and [`Kernel::named`] return kernels, and all of
/// them check the processor first. The table of kernels is private, and no other kernel can be
/// made:
///
/// ```compile_fail
/// let unfiltered = lightfoot_matrix::kernel::KERNELS;
/// ```
/// ```compile_fail
/// let other = lightfoot_matrix::Kernel { name: "mine", ..*lightfoot_matrix::Kernel::best() };
/// ```
#[derive(Debug)]
pub struct Kernel {
    /// Short name, as printed.
    pub(super) name: &'static str,
    /// Whether this processor's feature bits allow these kernels.
    pub(super) is_available: fn() -> bool,
    /// Its kernels for blocks of factorisations. They are not part of this table, so that programs
    /// that only multiply do not hold them.
    pub(crate) factor: FactorSet,
    pub(crate) f32: RealKernel<f32>,
    pub(crate) f64: RealKernel<f64>,
}
