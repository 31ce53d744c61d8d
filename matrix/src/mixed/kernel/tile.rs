//! The arguments of a kernel, which computes one tile of `C`, and what all kernels share.

use crate::mixed::narrow::Sum;

/// Multiplies one panel of `A` with one of `Bᵀ`.
///
/// # Safety
/// The processor has the kernel's features; the panel of `A` holds `groups` groups of words, and so
/// does each existing column of `B`; the existing entries of the tile of `C` are writable, and
/// initialised unless β is 0.
pub(crate) type Run<S> = unsafe fn(&Tile<S>);

/// One tile of work. Strides count elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile<S> {
    /// Groups of steps of `k`.
    pub(crate) groups: usize,
    /// The panel of `A`.
    pub(crate) a: *const u32,
    /// The words of the first column of the panel of `Bᵀ`, or of `B` itself.
    pub(crate) b: *const u8,
    /// Bytes from one column to the next.
    pub(crate) b_column: isize,
    /// Bytes from one group to the next.
    pub(crate) b_step: isize,
    /// Factor of the product.
    pub(crate) alpha: S,
    /// Factor of the old contents of `C`. If it is zero, `C` is not read.
    pub(crate) beta: S,
    /// The tile's first entry of `C`.
    pub(crate) c: *mut S,
    pub(crate) row_stride: isize,
    pub(crate) col_stride: isize,
    /// Existing rows of the tile.
    pub(crate) rows: usize,
    /// Existing columns of the tile.
    pub(crate) columns: usize,
}

impl<S: Sum> Tile<S> {
    /// Where the words of each column of `B` begin. Columns that do not exist begin where the last
    /// one does.
    #[inline(always)]
    pub(crate) fn columns<const COLUMNS: usize>(&self) -> [*const u8; COLUMNS] {
        let last = self.columns - 1;
        std::array::from_fn(|j| self.b.wrapping_offset(j.min(last) as isize * self.b_column))
    }

    /// Word `group` of a column of `B`.
    ///
    /// # Safety
    /// The requirements of [`Run`].
    #[inline(always)]
    pub(crate) unsafe fn word(&self, column: *const u8, group: usize) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { column.wrapping_offset(group as isize * self.b_step).cast::<u32>().read_unaligned() }
    }

    /// Adds the sums of a tile, column after column of `ROWS`, to `C`.
    ///
    /// It is compiled into each kernel with that kernel's instructions.
    ///
    /// # Safety
    /// The requirements of [`Run`]; the sums of existing entries are readable.
    #[inline(always)]
    pub(crate) unsafe fn store<const ROWS: usize>(&self, sums: *const S) {
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
