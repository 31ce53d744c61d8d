//! Register-tile kernels: the only place where a matrix product is computed.
//!
//! **What.** A kernel multiplies a stack of one to three *row panels* of `A` with one *column group* of `B` and
//! keeps the product in registers over the whole depth `k`: `C ← β·C + α·Σₖ A[:, k]·B[k, :]`.
//!
//! **Why this way.** Panels have the same shape in `A`, in `Bᵀ` and in `C` (`panel` rows, column after column,
//! one vector register wide or two), so one storage serves all three roles and nothing is repacked between two
//! multiplications. Every entry of `C` is one chain of fused multiply-adds in the order of `k`, whichever shape of
//! register tile it falls into: results do not depend on the number of threads or on the place of an entry.
//!
//! **Left out.** Edges. Panels are padded, a kernel always computes whole ones, and `gemm` sees to it that what lies
//! in the padding is never copied out. Complex numbers: they use the real kernels (see [`crate::Element`]).
//!
//! Source: Goto and van de Geijn 2008 (register tile in the middle of blocked loops); Frison et al. 2018
//! (panel-major operands).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use std::sync::OnceLock;

/// Largest number of row panels that any kernel takes at once.
pub const MAX_PANELS: usize = 3;

/// Where the operands of a multiplication are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// In the first and second level: fetching ahead costs more than it brings.
    Near,
    /// Beyond.
    Far,
}

/// One register tile of work. Strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct Micro<T> {
    /// Depth of the product: columns of `A`, rows of `B`. Zero is allowed.
    pub k: usize,
    /// First panel of `A`: `panel` rows of column 0, then column 1, …
    pub a: *const T,
    /// From one panel of `A` to the next.
    pub a_panel: usize,
    /// The column group of `B`: `columns` numbers of row 0; row 1 follows `panel` elements later.
    pub b: *const T,
    /// First entry of the tile of `C`.
    pub c: *mut T,
    /// From one panel of `C` to the next.
    pub c_panel: usize,
    /// From one column of `C` to the next.
    pub c_column: usize,
    /// Factor of the product.
    pub alpha: T,
    /// Factor of what `C` held; zero means that `C` is not read.
    pub beta: T,
    /// What later calls will read of `A`: fetched meanwhile when `reach` is far. Never dereferenced.
    pub next: *const T,
    /// Where the operands are expected.
    pub reach: Reach,
}

/// A kernel for one number of panels.
///
/// # Safety
/// The processor has the kernel's features; for every panel `p` of the kernel, `k` columns of `panel` numbers are
/// readable at `a + p·a_panel`; `k` rows are readable at `b` (`panel` apart, `columns` long, or half of
/// that); every `c + p·c_panel + j·c_column`, `j < columns` (or half), starts `panel` writable numbers (initialised unless `beta` is 0).
pub type MicroKernel<T> = unsafe fn(&Micro<T>);

/// The kernels of one instruction set for one real type.
#[derive(Debug)]
pub struct RealKernel<T: 'static> {
    /// Rows of a panel.
    pub panel: usize,
    /// Columns of `C` that one call computes; divides `panel`.
    pub columns: usize,
    /// `run[p - 1]` takes `p` panels.
    pub run: &'static [MicroKernel<T>],
    /// The same for the first half of a column group, where an instruction set gains by it; may be empty.
    pub half: &'static [MicroKernel<T>],
}

/// The kernels of one instruction set.
#[derive(Debug)]
pub struct Kernel {
    /// Short name, as printed.
    pub name: &'static str,
    /// Whether this processor can run them, from its feature bits.
    pub is_available: fn() -> bool,
    /// Single precision.
    pub f32: RealKernel<f32>,
    /// Double precision.
    pub f64: RealKernel<f64>,
}

/// All kernels that this build knows, fastest first; the last runs anywhere.
pub const KERNELS: &[Kernel] = &[
    #[cfg(target_arch = "x86_64")]
    avx512::KERNEL,
    #[cfg(target_arch = "x86_64")]
    avx2::KERNEL,
    #[cfg(target_arch = "aarch64")]
    neon::KERNEL,
    scalar::KERNEL,
];

static TABLE: &[Kernel] = KERNELS;

impl Kernel {
    /// The kernels that this processor can run, fastest first.
    pub fn available() -> impl Iterator<Item = &'static Kernel> {
        TABLE.iter().filter(|kernel| (kernel.is_available)())
    }

    /// The fastest kernel that this processor can run; decided once by feature bits, never by processor model.
    pub fn best() -> &'static Kernel {
        static BEST: OnceLock<&'static Kernel> = OnceLock::new();
        BEST.get_or_init(|| Kernel::available().next().expect("the scalar kernel runs anywhere"))
    }

    /// The kernel called `name`, when this processor can run it.
    pub fn named(name: &str) -> Option<&'static Kernel> {
        Kernel::available().find(|kernel| kernel.name == name)
    }
}
