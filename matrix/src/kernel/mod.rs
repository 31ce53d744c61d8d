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
//! Operands need not be panels: with steps of their own, a plain array whose rows are adjacent serves as `A`, and any as `B`.
//!
//! **Edges.** There is a kernel for every number of columns up to a group. Of the last panel of `C` only the rows that are there are
//! touched; `A` is always read in whole panels (the padding of storage, or a copy).
//! **Left out.** Complex numbers: they use the real kernels (see [`crate::Element`]).
//!
//! Source: Goto and van de Geijn 2008 (register tile in the middle of blocked loops); Frison et al. 2018
//! (panel-major operands).

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
    /// First panel of `A`: `panel` adjacent rows of column 0.
    pub a: *const T,
    /// From one panel of `A` to the next.
    pub a_panel: isize,
    /// From one column of `A` to the next.
    pub a_step: isize,
    /// The column group of `B`: the first number of row 0.
    pub b: *const T,
    /// From one column of `B` to the next.
    pub b_column: isize,
    /// From one row of `B` to the next.
    pub b_step: isize,
    /// First entry of the tile of `C`.
    pub c: *mut T,
    /// From one panel of `C` to the next.
    pub c_panel: isize,
    /// From one column of `C` to the next.
    pub c_column: isize,
    /// Rows of the last panel of `C` that are there, 1 to `panel`.
    pub last_rows: usize,
    /// Factor of the product.
    pub alpha: T,
    /// Factor of what `C` held; zero means that `C` is not read.
    pub beta: T,
    /// What later calls will read of `A`: fetched meanwhile when `reach` is far. Never dereferenced.
    pub next: *const T,
    /// Where the operands are expected.
    pub reach: Reach,
}

impl<T: Copy + Default> Micro<T> {
    /// Column `j` of panel `p` of `C`.
    #[inline(always)]
    fn c_at(&self, p: usize, j: usize) -> *mut T {
        self.c.wrapping_offset(p as isize * self.c_panel + j as isize * self.c_column)
    }

    /// Calls `change` with column `j` of panel `p` of `P`; where rows are missing, with a copy whose rows are then taken over.
    ///
    /// # Safety
    /// As for [`MicroKernel`]; `ROWS` is the panel.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[inline(always)]
    unsafe fn through<const P: usize, const ROWS: usize>(
        &self,
        p: usize,
        j: usize,
        change: impl FnOnce(*mut T),
    ) {
        let at = self.c_at(p, j);
        if p + 1 < P || self.last_rows == ROWS {
            return change(at);
        }
        let mut copy = [T::default(); ROWS];
        // SAFETY: the first `last_rows` rows of the last panel are there. What is read where β = 0 is not used.
        unsafe {
            copy.as_mut_ptr().copy_from_nonoverlapping(at, self.last_rows);
            change(copy.as_mut_ptr());
            at.copy_from_nonoverlapping(copy.as_ptr(), self.last_rows);
        }
    }
}

/// A kernel for one number of panels and of columns.
///
/// # Safety
/// The processor has the kernel's features; `panel` numbers are readable at `a + p·a_panel + i·a_step` for every panel `p` of the
/// kernel and `i < k`, and one at `b + j·b_column + i·b_step` for every column `j`; every `c + p·c_panel + j·c_column` starts
/// `panel` writable numbers, or `last_rows` in the last panel (initialised unless `beta` is 0).
pub type MicroKernel<T> = unsafe fn(&Micro<T>);

/// The kernels of one instruction set for one real type.
#[derive(Debug)]
pub struct RealKernel<T: 'static> {
    /// Rows of a panel.
    pub panel: usize,
    /// Columns of `C` that one call computes at most; divides `panel`.
    pub columns: usize,
    /// `run[p - 1][c - 1]` takes `p` panels and `c` columns.
    pub run: &'static [&'static [MicroKernel<T>]],
    /// `tall[p - 1]` takes `p` panels and a single column, where an instruction set has registers for more of them; may be empty. (One
    /// column of three panels is bound by the latency of three sums, not by their number.)
    pub tall: &'static [MicroKernel<T>],
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
