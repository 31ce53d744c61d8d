//! Register-tile kernels: the only place where a matrix product is computed.
//!
//! **What.** A kernel multiplies a stack of one to three *row panels* of `A` with one *column
//! group* of `B` and keeps the product in registers over the whole depth `k`:
//! `C ← β·C + α·Σₖ A[:, k]·B[k, :]`.
//!
//! **Why this way.** Panels have the same shape in `A`, in `Bᵀ` and in `C` (`panel` rows, column
//! after column, one vector register wide or two), so one storage serves all three roles and
//! nothing is repacked between two multiplications. Every entry of `C` is one chain of fused
//! multiply-adds in the order of `k`, whatever the shape of its register tile, so results do not
//! depend on the number of threads or on the place of an entry.
//!
//! Operands need not be panels: operands have steps of their own, so a plain array with adjacent
//! rows serves as `A`, and any plain array as `B`.
//!
//! **Edges.** There is a kernel for every number of columns up to a group. Only existing rows of
//! the last panel of `C` are touched; `A` is always read in whole panels, with the padding of
//! storage or of a copy. **Leaves out** complex numbers, which use the real kernels (see
//! [`crate::Element`]).
//!
//! Source: Goto and van de Geijn 2008 (register tile in the middle of blocked loops); Frison et al.
//! 2018 (panel-major operands).

/// The table of a kernel that takes one to three panels and one to four columns.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! table {
    ($tile:ident) => {
        &[
            &[$tile::<1, 1>, $tile::<1, 2>, $tile::<1, 3>, $tile::<1, 4>],
            &[$tile::<2, 1>, $tile::<2, 2>, $tile::<2, 3>, $tile::<2, 4>],
            &[$tile::<3, 1>, $tile::<3, 2>, $tile::<3, 3>, $tile::<3, 4>],
        ]
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod direct;
#[cfg(target_arch = "x86_64")]
mod direct_avx2;
#[cfg(target_arch = "x86_64")]
mod direct_avx512;
pub(crate) mod factor;
mod instruction_set;
mod microkernel;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod thin_avx512;

pub(crate) use direct::{row_mask, THIN};
pub use direct::{DirectKernel, DirectKernels, DirectTile, ThinKernel, Update};
pub use instruction_set::{Kernel, RealKernel};
pub use microkernel::{MicroKernel, MicrokernelArguments, Reach, MAX_PANELS};

use std::sync::OnceLock;

/// All kernels that this build has, fastest first; the last one runs anywhere.
const KERNELS: &[Kernel] = &[
    #[cfg(target_arch = "x86_64")]
    avx512::KERNEL,
    #[cfg(target_arch = "x86_64")]
    avx2::KERNEL,
    #[cfg(target_arch = "aarch64")]
    neon::KERNEL,
    scalar::KERNEL,
];

static FAMILY: &[Kernel] = KERNELS;

/// Those kernels of a family that this processor can run.
fn runnable(family: &'static [Kernel]) -> impl Iterator<Item = &'static Kernel> {
    family.iter().filter(|kernel| (kernel.is_available)())
}

impl Kernel {
    /// The kernels that this processor can run, fastest first.
    pub fn available() -> impl Iterator<Item = &'static Kernel> {
        runnable(FAMILY)
    }

    /// The fastest kernel that this processor can run. It is chosen once, by feature bits and never
    /// by the processor's model.
    #[inline]
    pub fn best() -> &'static Kernel {
        static BEST: OnceLock<&'static Kernel> = OnceLock::new();
        BEST.get_or_init(|| Kernel::available().next().expect("the scalar kernel runs anywhere"))
    }

    /// The kernel called `name`, if this processor can run it.
    pub fn named(name: &str) -> Option<&'static Kernel> {
        Kernel::available().find(|kernel| kernel.name == name)
    }

    /// The names of all kernels that this build has, fastest first. No machine runs them all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FAMILY.iter().map(Kernel::name)
    }

    /// The short name, as printed.
    pub fn name(&self) -> &'static str {
        self.name
    }
}
