//! `BlockedMatrix<T>`: a matrix that is stored strip by strip and panel by panel. One storage
//! serves for every role in a product.

use crate::buffer::Buffer;
use crate::kernel::Kernel;
use crate::layout::Layout;
use crate::panel::{self, Block, Panels};
use crate::strided::{Strided, StridedMut};
use crate::tile_sizes::Tiling;
use crate::{Element, Error};

/// A matrix in blocked storage (see [`Layout`]) for the kernels of one instruction set.
///
/// ```
/// use lightfoot_matrix::{BlockedMatrix, Strided};
/// let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let a = BlockedMatrix::from_strided(Strided::row_major(&rows, 2, 3)?)?;
/// assert_eq!((a.rows(), a.cols(), a.get(1, 0)), (2, 3, 4.0));
/// assert_eq!(a.to_col_major(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # Ok::<(), lightfoot_matrix::Error>(())
/// ```
#[derive(Clone)]
pub struct BlockedMatrix<T: Element> {
    layout: Layout,
    kernel: &'static Kernel,
    storage: Buffer<T>,
}

/// Rows per panel of `kernel` for elements `T`.
pub(crate) fn panel_rows<T: Element>(kernel: &'static Kernel) -> usize {
    <T::Real as crate::Real>::kernel(kernel).panel / T::PARTS
}

impl<T: Element> BlockedMatrix<T> {
    /// A matrix of zeros for the fastest kernel of this processor and the tile of the default
    /// [`Tiling`].
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the padded size overflows.
    pub fn zeros(rows: usize, cols: usize) -> Result<Self, Error> {
        let tile = Tiling::storage_tile::<T>(cols);
        Self::with(Kernel::best(), rows, cols, tile)
    }

    /// A matrix of zeros for `kernel`, in strips of `tile` columns.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the padded size overflows, [`Error::Invalid`] when `tile` is 0.
    pub fn with(kernel: &'static Kernel, rows: usize, cols: usize, tile: usize) -> Result<Self, Error> {
        let layout = Layout::new(rows, cols, panel_rows::<T>(kernel), tile)?;
        Ok(BlockedMatrix { layout, kernel, storage: Buffer::zeroed(layout.len())? })
    }

    /// A copy of a plain array.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the padded size overflows.
    pub fn from_strided(source: Strided<'_, T>) -> Result<Self, Error> {
        let mut matrix = Self::zeros(source.rows(), source.cols())?;
        matrix.copy_from(source)?;
        Ok(matrix)
    }

    /// A matrix whose entries a function of row and column computes.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the padded size overflows.
    pub fn from_fn(
        rows: usize,
        cols: usize,
        mut entry: impl FnMut(usize, usize) -> T,
    ) -> Result<Self, Error> {
        let mut matrix = Self::zeros(rows, cols)?;
        matrix.fill_with(&mut entry);
        Ok(matrix)
    }

    /// Sets every entry from a function of row and column.
    pub fn fill_with(&mut self, mut entry: impl FnMut(usize, usize) -> T) {
        for col in 0..self.cols() {
            for row in 0..self.rows() {
                let at = self.layout.offset(row, col);
                self.storage[at] = entry(row, col);
            }
        }
    }

    /// Copies a plain array of the same shape into this matrix.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes differ.
    pub fn copy_from(&mut self, source: Strided<'_, T>) -> Result<(), Error> {
        self.same_shape((source.rows(), source.cols()))?;
        let (from, row_stride, col_stride) = source.raw();
        for strip in 0..self.layout.tiles().1 {
            let (first, cols) = self.strip_columns(strip);
            let start = from.wrapping_offset(first as isize * col_stride);
            let block = Block { start, row_stride, col_stride, rows: self.rows(), cols };
            let panels = self.strip_panels_mut(strip);
            // SAFETY: `Strided` checked the strides against its slice; the strip is our own
            // storage, held by `&mut`.
            unsafe { panel::pack(block, panels, T::ZERO) };
        }
        Ok(())
    }

    /// Copies this matrix out into a plain array of the same shape.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes differ.
    pub fn copy_to(&self, target: &mut StridedMut<'_, T>) -> Result<(), Error> {
        self.same_shape((target.rows(), target.cols()))?;
        let (to, row_stride, col_stride) = target.raw();
        let is_near = size_of_val(self.storage()) <= Tiling::near_bytes();
        let together = if is_near { panel::FEW_TOGETHER } else { panel::MANY_TOGETHER };
        for strip in 0..self.layout.tiles().1 {
            let (first, cols) = self.strip_columns(strip);
            let start = to.wrapping_offset(first as isize * col_stride);
            let block = Block { start, row_stride, col_stride, rows: self.rows(), cols };
            // SAFETY: `StridedMut` checked the strides against its slice and that no two entries
            // overlap.
            unsafe { panel::unpack(self.strip_panels(strip), block, together) };
        }
        Ok(())
    }

    /// The entries, row after row.
    pub fn to_row_major(&self) -> Vec<T> {
        let mut out = vec![T::ZERO; self.rows() * self.cols()];
        let mut view = StridedMut::row_major(&mut out, self.rows(), self.cols()).expect("made to fit");
        self.copy_to(&mut view).expect("made to fit");
        out
    }

    /// The entries, column after column.
    pub fn to_col_major(&self) -> Vec<T> {
        let mut out = vec![T::ZERO; self.rows() * self.cols()];
        let mut view = StridedMut::col_major(&mut out, self.rows(), self.cols()).expect("made to fit");
        self.copy_to(&mut view).expect("made to fit");
        out
    }

    /// The number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.layout.rows()
    }

    /// The number of columns.
    #[inline]
    pub fn cols(&self) -> usize {
        self.layout.cols()
    }

    /// The shape and the addressing.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The kernel to whose panels this matrix is cut.
    #[inline]
    pub fn kernel(&self) -> &'static Kernel {
        self.kernel
    }

    /// All stored elements, including padding, in storage order.
    #[inline]
    pub fn storage(&self) -> &[T] {
        &self.storage
    }

    /// All stored elements, for writing; [`Layout::offset`] gives the place of each.
    #[inline]
    pub fn storage_mut(&mut self) -> &mut [T] {
        &mut self.storage
    }

    /// Entry (`row`, `col`).
    ///
    /// # Panics
    /// When the entry is outside the shape.
    #[inline]
    pub fn get(&self, row: usize, col: usize) -> T {
        self.check(row, col);
        self.storage[self.layout.offset(row, col)]
    }

    /// Writes entry (`row`, `col`).
    ///
    /// # Panics
    /// When the entry is outside the shape.
    #[inline]
    pub fn set(&mut self, row: usize, col: usize, value: T) {
        self.check(row, col);
        let at = self.layout.offset(row, col);
        self.storage[at] = value;
    }

    /// `(row, column, value)` of every entry, in storage order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, T)> + '_ {
        let (panel, rows) = (self.layout.panel(), self.rows());
        (0..self.layout.tiles().1).flat_map(move |strip| {
            let (first, cols) = self.strip_columns(strip);
            (0..rows).step_by(panel).flat_map(move |top| {
                (first..first + cols).flat_map(move |col| {
                    let at = self.layout.offset(top, col);
                    let rows = panel.min(rows - top);
                    self.storage[at..at + rows].iter().enumerate().map(move |(i, &v)| (top + i, col, v))
                })
            })
        })
    }

    fn check(&self, row: usize, col: usize) {
        assert!(
            row < self.rows() && col < self.cols(),
            "entry ({row}, {col}) of a {}×{} matrix",
            self.rows(),
            self.cols()
        );
    }

    fn same_shape(&self, other: (usize, usize)) -> Result<(), Error> {
        let own = (self.rows(), self.cols());
        if own == other {
            return Ok(());
        }
        Err(Error::Shape { what: "the shapes of the two matrices", left: own, right: other })
    }

    /// The first column and the number of columns of a strip.
    fn strip_columns(&self, strip: usize) -> (usize, usize) {
        let first = strip * self.layout.tile();
        (first, self.layout.tile().min(self.cols() - first))
    }

    fn strip_panels(&self, strip: usize) -> Panels<*const T> {
        let start = &self.storage[self.layout.offset(0, strip * self.layout.tile())..];
        let (stride, panel) = (self.layout.panel_stride(strip), self.layout.panel());
        Panels { start: start.as_ptr(), stride, panel }
    }

    fn strip_panels_mut(&mut self, strip: usize) -> Panels<*mut T> {
        let start = self.layout.offset(0, strip * self.layout.tile());
        let (stride, panel) = (self.layout.panel_stride(strip), self.layout.panel());
        Panels { start: self.storage[start..].as_mut_ptr(), stride, panel }
    }
}

impl<T: Element> std::fmt::Debug for BlockedMatrix<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kernel = self.kernel.name();
        write!(f, "BlockedMatrix<{}>({:?}, kernel {kernel})", T::NAME, self.layout)
    }
}

impl<T: Element> PartialEq for BlockedMatrix<T> {
    /// Whether shapes and entries are equal; storage and padding may differ.
    fn eq(&self, other: &Self) -> bool {
        (self.rows(), self.cols()) == (other.rows(), other.cols())
            && self.iter().all(|(row, col, value)| value == other.get(row, col))
    }
}
