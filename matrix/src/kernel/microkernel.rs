//! The arguments of a microkernel, which computes one register tile.

/// The most row panels that any kernel takes at once.
pub const MAX_PANELS: usize = 3;

/// The cache levels in which the operands of a multiplication are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// In the first and second level: prefetching costs more than it gains.
    Near,
    /// Beyond the second level.
    Far,
}

/// One register tile of work. Strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct MicrokernelArguments<T> {
    /// Depth of the product: columns of `A`, rows of `B`. Zero is allowed.
    pub k: usize,
    /// First panel of `A`: `panel` adjacent rows of column 0.
    pub a: *const T,
    /// Distance from one panel of `A` to the next.
    pub a_panel: isize,
    /// Distance from one column of `A` to the next.
    pub a_step: isize,
    /// The column group of `B`: the first number of row 0.
    pub b: *const T,
    /// Distance from one column of `B` to the next.
    pub b_column: isize,
    /// Distance from one row of `B` to the next.
    pub b_step: isize,
    /// First entry of the tile of `C`.
    pub c: *mut T,
    /// Distance from one panel of `C` to the next.
    pub c_panel: isize,
    /// Distance from one column of `C` to the next.
    pub c_column: isize,
    /// Number of existing rows of the last panel of `C`, 1 to `panel`.
    pub last_rows: usize,
    /// Factor of the product.
    pub alpha: T,
    /// Factor of the old contents of `C`. If it is zero, `C` is not read.
    pub beta: T,
    /// The part of `A` that later calls will read: prefetched if `reach` is far. Never
    /// dereferenced.
    pub next: *const T,
    /// Bytes from one prefetched line to the next.
    pub ahead: isize,
    /// The cache levels in which the operands are expected.
    pub reach: Reach,
}

impl<T: Copy + Default> MicrokernelArguments<T> {
    /// The address of column `j` of panel `p` of `C`.
    #[inline(always)]
    pub(super) fn c_at(&self, p: usize, j: usize) -> *mut T {
        self.c.wrapping_offset(p as isize * self.c_panel + j as isize * self.c_column)
    }

    /// Calls `change` with column `j` of panel `p` of `P`. If rows are missing, it gets a copy,
    /// whose existing rows are then written back.
    ///
    /// # Safety
    /// The requirements of [`MicroKernel`]; `ROWS` is the number of rows of a panel.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[inline(always)]
    pub(super) unsafe fn through<const P: usize, const ROWS: usize>(
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
        // SAFETY: the first `last_rows` rows of the last panel exist. Values that are read where β
        // = 0 are not used.
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
/// The processor has the kernel's features, and pointers are valid: `panel` numbers are readable at
/// `a + p·a_panel + i·a_step` for every panel `p` of the kernel and `i < k`, and one at
/// `b + j·b_column + i·b_step` for every column `j`; at every `c + p·c_panel + j·c_column` begin
/// `panel` writable numbers, or `last_rows` in the last panel, which are initialised unless `beta`
/// is 0.
pub type MicroKernel<T> = unsafe fn(&MicrokernelArguments<T>);
