//! The kernels of one instruction set: what one member of the family consists of.

use super::microkernel::MicroKernel;

/// The kernels of one instruction set for one real type.
#[derive(Debug)]
pub struct RealKernel<T: 'static> {
    /// Rows of a panel.
    pub panel: usize,
    /// Columns of `C` that one call computes at most; divides `panel`.
    pub columns: usize,
    /// `run[p - 1][c - 1]` takes `p` panels and `c` columns.
    pub run: &'static [&'static [MicroKernel<T>]],
    /// `tall[p - 1]` takes `p` panels and a single column, where an instruction set has registers
    /// for more of them; may be empty. (One column of three panels is bound by the latency of three
    /// sums, not by their number.)
    pub tall: &'static [MicroKernel<T>],
}

/// The kernels of one instruction set, which this processor has: holding one proves that it runs.
///
/// Only [`Kernel::available`], [`Kernel::best`] and [`Kernel::named`] hand kernels out, and all of
/// them ask the processor first. The family itself cannot be reached, and no other one can be made:
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
    /// Whether this processor can run them, from its feature bits.
    pub(super) is_available: fn() -> bool,
    pub(crate) f32: RealKernel<f32>,
    pub(crate) f64: RealKernel<f64>,
}
