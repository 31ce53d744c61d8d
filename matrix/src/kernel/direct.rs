//! The arguments of a direct kernel, which computes a register tile of a small product straight
//! from the caller's arrays.
//!
//! **Why beside the others.** A product of 4×4×4 has 128 flops, which take 4 ns. Packing, a whole
//! panel of padding, or a description of the tile that is filled in for every call take longer than
//! that. A direct kernel reads only entries that exist. An incomplete last panel begins so many
//! rows earlier that it is whole; a mask keeps it from writing the rows that it shares with the
//! panel before. A panel that is the only one has a mask for `A`, too. All numbers but three
//! addresses are those of a shape and are written once ([`DirectTile`]).
//!
//! The arithmetic is that of [`super::MicroKernel`]: one chain of fused multiply-adds in the order
//! of `k` for each entry, then `α·sum + β·C`, so both give the same bits.

/// What a direct kernel knows about its tile in addition to the three addresses. Strides count
/// bytes.
#[derive(Clone, Copy, Debug)]
pub struct DirectTile<T> {
    /// Depth of the product, at least 1.
    pub k: usize,
    /// Bytes from one panel of `A` to the next.
    pub a_panel: isize,
    /// Bytes from one column of `A` to the next.
    pub a_step: isize,
    /// Bytes from one column of `B` to the next.
    pub b_column: isize,
    /// Bytes from one row of `B` to the next.
    pub b_step: isize,
    /// Bytes from column 0 of `B` to column 8: eight times `b_column`, unless `B` is in panels.
    pub b_far: isize,
    /// Bytes from one panel of `C` to the next.
    pub c_panel: isize,
    /// Bytes from one column of `C` to the next.
    pub c_column: isize,
    /// The rows of the last panel that are written, as bits.
    pub mask: u32,
    /// Bytes by which the last panel of `A` and of `C` begins before the end of the one before it;
    /// zero if there is one panel.
    pub back: isize,
    /// What happens to `C`.
    pub update: Update,
    /// Factor of the product.
    pub alpha: T,
    /// Factor of the old contents of `C`. If it is zero, `C` is not read.
    pub beta: T,
}

/// What a product does to `C`, by its factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// α = 1 and β = 0: `C` becomes the sums.
    Set,
    /// β = 0: `C` becomes α times the sums, and is not read.
    Scale,
    /// `C` is multiplied by β, and α times the sums are added.
    Add,
}

/// The mask of a last panel with `rows` rows, 1 to 32.
#[inline]
pub(crate) fn row_mask(rows: usize) -> u32 {
    u32::MAX >> (32 - rows)
}

/// A direct kernel for one number of panels and of columns: the tile, then the addresses of the
/// first entries of `A`, `B` and `C`.
///
/// # Safety
/// The processor has the kernel's features. For every panel, step of `k` and column of the kernel,
/// the entries of `A` and `B` are readable and those of `C` writable, and initialised unless `beta`
/// is 0. All rows of the panels of `A` are readable, or those in `mask` if there is one panel; of
/// the last panel of `C` only the rows in `mask` need to exist.
pub type DirectKernel<T> = unsafe fn(&DirectTile<T>, *const T, *const T, *mut T);

/// The rows that a [`ThinKernel`] takes at most, and the fewest columns.
pub(crate) const THIN: usize = 4;

/// A direct kernel for the last rows of a product, at most four, and any number of columns from
/// thirteen on: the tile, the columns, then the addresses of the first entries of the last panel of
/// `A` and `C`, and of `B`. Of the tile's mask only the number of rows counts.
///
/// # Safety
/// The processor has the kernel's features. Entries of a column of `B` are adjacent. Every column
/// and step of `A` and `B` is readable, and those of `C` writable, and initialised unless `beta` is
/// 0; there are four rows up to the last one.
pub type ThinKernel<T> = unsafe fn(&DirectTile<T>, usize, *const T, *const T, *mut T);

/// The direct kernels of an instruction set: `[p - 1][c - 1]` takes `p` panels and `c` columns.
/// Empty if the instruction set has no masks.
pub type DirectKernels<T> = &'static [&'static [DirectKernel<T>]];
