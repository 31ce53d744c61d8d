//! The kernels of mixed products: each multiplies one packed panel of `A` with one of `Bᵀ`.
//!
//! **What.** Panels hold 32-bit words: for each group of `depth` steps of `k`, one word for each
//! row of the panel. A kernel keeps its whole tile of sums in registers: it loads vectors of words
//! of `A`, repeats single words of `B`, and multiplies and adds. Then it adds the tile to `C`.
//!
//! **Why this way.** Every type's instruction has one shape (a vector of sums, a vector of words,
//! another vector of words), so each instruction set has one macro and every pair one line. The
//! exchanged pair has a kernel of its own, because VPDPBUSD takes unsigned bytes on one side and
//! signed ones on the other.
//!
//! **Leaves out** NEON's dot products: other processors get plain Rust.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use super::blocks::Source;
use super::product::{Product, Sum};
use std::ops::Range;

/// Packs the words of steps `ks` of the rows `rows`, panel after panel.
///
/// # Safety
/// These entries of the source are readable.
pub(super) type Pack<T> = unsafe fn(&Source<T>, rows: Range<usize>, ks: Range<usize>, panels: &mut [u32]);

/// Multiplies one panel of `A` with one of `Bᵀ`.
///
/// # Safety
/// The processor has the kernel's features; the panels hold `groups` groups of words; the existing
/// entries of the tile of `C` are writable, and initialised unless β is 0.
pub(super) type Run<S> = unsafe fn(&Tile<S>);

/// A kernel for one pair of types on one instruction set. Only [`TileKernel::available`],
/// [`TileKernel::best`] and [`TileKernel::named`] return kernels, and all of them check the
/// processor first.
#[derive(Debug)]
pub struct TileKernel<P: Product> {
    name: &'static str,
    is_available: fn() -> bool,
    /// Rows of a panel of `A`.
    pub(super) rows: usize,
    /// Columns of `B` of a panel of `Bᵀ`.
    pub(super) columns: usize,
    /// Steps of `k` for each word.
    pub(super) depth: usize,
    pub(super) pack_left: Pack<P::Left>,
    pub(super) pack_right: Pack<P::Right>,
    pub(super) run: Run<P::Sum>,
}

impl<P: Product> TileKernel<P> {
    /// The kernels that this processor can run, fastest first.
    pub fn available() -> impl Iterator<Item = &'static TileKernel<P>> {
        P::KERNELS.iter().filter(|kernel| (kernel.is_available)())
    }

    /// The fastest kernel that this processor can run, by its feature bits.
    pub fn best() -> &'static TileKernel<P> {
        Self::available().next().expect("the scalar kernel runs anywhere")
    }

    /// The kernel called `name`, if this processor can run it.
    pub fn named(name: &str) -> Option<&'static TileKernel<P>> {
        Self::available().find(|kernel| kernel.name == name)
    }

    /// The short name: `vnni`, `bf16`, `avx512`, `avx-vnni`, `avx2` or `scalar`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The kernel of the exchanged pair on this instruction set.
    pub(super) fn exchanged(&self) -> &'static TileKernel<P::Exchanged> {
        let mut kernels = P::Exchanged::KERNELS.iter();
        kernels.find(|kernel| kernel.name == self.name).expect("both lists have the same names")
    }
}

/// One tile of work. Strides count elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile<S> {
    /// Groups of steps of `k`.
    pub(super) groups: usize,
    /// The panel of `A`.
    pub(super) a: *const u32,
    /// The panel of `Bᵀ`.
    pub(super) b: *const u32,
    /// Factor of the product.
    pub(super) alpha: S,
    /// Factor of the old contents of `C`. If it is zero, `C` is not read.
    pub(super) beta: S,
    /// The tile's first entry of `C`.
    pub(super) c: *mut S,
    pub(super) row_stride: isize,
    pub(super) col_stride: isize,
    /// Existing rows of the tile.
    pub(super) rows: usize,
    /// Existing columns of the tile.
    pub(super) columns: usize,
}

impl<S: Sum> Tile<S> {
    /// Adds the sums of a tile, column after column of `ROWS`, to `C`.
    ///
    /// It is compiled into each kernel with that kernel's instructions.
    ///
    /// # Safety
    /// The requirements of [`Run`]; the sums of existing entries are readable.
    #[inline(always)]
    pub(super) unsafe fn store<const ROWS: usize>(&self, sums: *const S) {
        for j in 0..self.columns {
            let column = self.c.wrapping_offset(j as isize * self.col_stride);
            let sums = sums.wrapping_add(j * ROWS);
            // SAFETY: the existing rows of column `j` are writable, and initialised if they are
            // read; in both branches.
            unsafe {
                if self.row_stride == 1 {
                    self.store_column(sums, |i| column.add(i));
                } else {
                    self.store_column(sums, |i| column.wrapping_offset(i as isize * self.row_stride));
                }
            }
        }
    }

    /// Adds the sums of the existing rows to the entries at `place(0)`, `place(1)`, ….
    ///
    /// # Safety
    /// These entries are writable, and initialised unless β is 0; the sums are readable.
    #[inline(always)]
    unsafe fn store_column(&self, sums: *const S, place: impl Fn(usize) -> *mut S) {
        let (alpha, beta) = (self.alpha, self.beta);
        // SAFETY: the caller's promise, for each of the loops.
        unsafe {
            if beta == S::ZERO && alpha == S::ONE {
                (0..self.rows).for_each(|i| place(i).write(*sums.add(i)));
            } else if beta == S::ZERO {
                (0..self.rows).for_each(|i| place(i).write((*sums.add(i)).times(alpha)));
            } else if alpha == S::ONE && beta == S::ONE {
                (0..self.rows).for_each(|i| *place(i) = (*sums.add(i)).plus(*place(i)));
            } else {
                let old = |i: usize| (*place(i)).times(beta);
                (0..self.rows).for_each(|i| *place(i) = (*sums.add(i)).times(alpha).plus(old(i)));
            }
        }
    }
}

/// A kernel of the list of `$pair`: its name, when it is available, its shape, its words and its
/// function.
macro_rules! kernel {
    ($name:literal, $available:expr, $rows:literal x $columns:literal, $depth:literal, $pack:ident, $run:expr) => {
        TileKernel {
            name: $name,
            is_available: || $available,
            rows: $rows,
            columns: $columns,
            depth: $depth,
            pack_left: crate::mixed::pack::$pack::<_, $rows, $depth>,
            pack_right: crate::mixed::pack::$pack::<_, $columns, $depth>,
            run: $run,
        }
    };
}

/// The kernels of the pairs with 8-bit numbers of two kinds.
macro_rules! dot_products {
    ($list:ident, $pair:ty, $wide:ident) => {
        pub(super) const $list: &[TileKernel<$pair>] = &[
            #[cfg(target_arch = "x86_64")]
    kernel!("vnni", avx512::has_vnni(), 48 x 8, 4, avx512, avx512::$wide::<3>),
            #[cfg(target_arch = "x86_64")]
    kernel!("avx-vnni", avx2::has_vnni(), 16 x 6, 4, avx2, avx2::$wide),
            #[cfg(target_arch = "x86_64")]
    kernel!("avx2", avx2::has_avx2(), 16 x 6, 2, avx2, avx2::pairs),
    kernel!("scalar", true, 8 x 4, 1, plain, scalar::integers),
        ];
    };
}
dot_products!(U8_I8, (u8, i8), unsigned_signed);
dot_products!(I8_U8, (i8, u8), signed_unsigned);

/// The kernels of pairs whose numbers become words of two 16-bit numbers.
macro_rules! pairs {
    ($list:ident, $pair:ty) => {
        pub(super) const $list: &[TileKernel<$pair>] = &[
            #[cfg(target_arch = "x86_64")]
    kernel!("vnni", avx512::has_vnni(), 48 x 8, 2, avx512, avx512::pairs::<3>),
            #[cfg(target_arch = "x86_64")]
    kernel!("avx2", avx2::has_avx2(), 16 x 6, 2, avx2, avx2::pairs),
    kernel!("scalar", true, 8 x 4, 1, plain, scalar::integers),
        ];
    };
}
pairs!(U8_U8, (u8, u8));
pairs!(I8_I8, (i8, i8));
pairs!(I16_I16, (i16, i16));

#[cfg(feature = "half")]
pub(super) const BF16_BF16: &[TileKernel<(half::bf16, half::bf16)>] = &[
    #[cfg(target_arch = "x86_64")]
    kernel!("bf16", avx512::has_bf16(), 48 x 8, 2, avx512, avx512::bf16::<3>),
    #[cfg(target_arch = "x86_64")]
    kernel!("avx512", avx512::has_avx512(), 48 x 8, 1, avx512, avx512::floats::<3>),
    #[cfg(target_arch = "x86_64")]
    kernel!("avx2", avx2::has_fma(), 16 x 6, 1, avx2, avx2::floats),
    kernel!("scalar", true, 8 x 4, 1, plain, scalar::floats),
];
#[cfg(feature = "half")]
pub(super) const F16_F16: &[TileKernel<(half::f16, half::f16)>] = &[
    #[cfg(target_arch = "x86_64")]
    kernel!("avx512", avx512::has_avx512(), 48 x 8, 1, avx512, avx512::floats::<3>),
    #[cfg(target_arch = "x86_64")]
    kernel!("avx2", avx2::has_fma(), 16 x 6, 1, avx2, avx2::floats),
    kernel!("scalar", true, 8 x 4, 1, plain, scalar::floats),
];
