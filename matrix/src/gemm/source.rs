//! The source of an operand's panels: blocked storage or a plain array in place, or a copy that is
//! made block by block.
//!
//! The rows of an operand always run along the panels: they are those of `op(A)` on the left, and
//! of `op(B)ᵀ` on the right.

use crate::kernel::Reach;
use crate::panel::{self, Block, Panels};
use crate::transposed::transpose_block;
use crate::view::Part;
use crate::Element;

/// How a kernel reaches an operand's entries: entry (i, k) is at
/// `start + (i / panel)·panel_stride + (i % panel)·row_stride + k·step`.
#[derive(Clone, Copy)]
pub(super) struct PanelWalk<T> {
    pub(super) start: *const T,
    pub(super) panel_stride: isize,
    pub(super) row_stride: isize,
    pub(super) step: isize,
}

/// Columns of a plain array that are further apart than this are copied, even if they could be used
/// in place: every step would touch another page and, if the distance is a power of two, the same
/// few cache sets.
const STRIDE_IN_PLACE_BYTES: usize = 4096;

/// A plain array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Plain<T> {
    pub(super) start: *const T,
    pub(super) row_stride: isize,
    pub(super) col_stride: isize,
}

impl<T: Element> Plain<T> {
    /// The array as the left operand, which can be used in place if its rows are adjacent.
    pub(super) fn left(self, reach: Reach) -> Source<T> {
        match reach == Reach::Near && self.row_stride == 1 && self.is_dense() {
            true => Source::InPlace(self),
            false => Source::Copied(self),
        }
    }

    /// The array as the right operand. Kernels read single numbers of it, so either stride may be
    /// one. The parts of a complex number share one stride. If steps of `k` are adjacent, a line
    /// serves several steps, as it does in a panel, so even a large array is used in place.
    pub(super) fn right(self, reach: Reach) -> Source<T> {
        if T::PARTS == 1 && self.col_stride == 1 {
            return Source::InPlace(self);
        }
        let reads = self.row_stride == 1 || T::PARTS == 1 && self.col_stride == 1;
        match reach == Reach::Near && reads && self.is_dense() {
            true => Source::InPlace(self),
            false => Source::Copied(self),
        }
    }

    fn is_dense(&self) -> bool {
        let stride = self.row_stride.unsigned_abs().max(self.col_stride.unsigned_abs());
        stride < STRIDE_IN_PLACE_BYTES / size_of::<T>()
    }
}

/// An operand of `rows` × `k`.
#[derive(Clone, Copy)]
pub(super) enum Source<T> {
    /// Blocked storage in the needed orientation, used in place.
    Stored { storage: *const T, part: Part },
    /// Blocked storage in the other orientation: blocks of panel × panel are transposed.
    Transposed { storage: *const T, part: Part },
    /// A plain array, used in place.
    InPlace(Plain<T>),
    /// A plain array, copied.
    Copied(Plain<T>),
}

// SAFETY: a `Source` only reads, and lives no longer than the borrows from which it was made (a
// `Job` is built from sources and used within one call).
unsafe impl<T: Sync> Sync for Source<T> {}
// SAFETY: a `Source` only reads, within the borrows from which it was made, so another thread may
// hold it.
unsafe impl<T: Sync> Send for Source<T> {}

impl<T: Element> Source<T> {
    /// Whether blocks are copied into scratch memory.
    pub(super) fn copies(&self) -> bool {
        matches!(self, Source::Transposed { .. } | Source::Copied(_))
    }

    /// How far a block that starts at depth `k` may reach.
    pub(super) fn depth_limit(&self, k: usize) -> usize {
        match self {
            Source::Stored { part, .. } => part.layout.tile() - part.layout.strip_of(k).1,
            _ => usize::MAX,
        }
    }

    /// The panels of rows `row..row + rows`, depth `k..k + depth`; `row` is a multiple of `panel`.
    ///
    /// # Safety
    /// The rectangle lies in the operand, whose memory is alive; `scratch` has room for it when
    /// [`Self::copies`].
    pub(super) unsafe fn block(
        &self,
        (row, rows): (usize, usize),
        (k, depth): (usize, usize),
        panel: usize,
        scratch: *mut T,
    ) -> PanelWalk<T> {
        // The place of a copy, if one is made: panel after panel.
        let packed = Panels { start: scratch, stride: panel * depth, panel };
        match *self {
            // In place: the storage already consists of panels.
            Source::Stored { storage, ref part } => return stored(storage, part, (row, k)),
            Source::InPlace(plain) => {
                // In place: the strides of an array serve as steps.
                let Plain { row_stride, col_stride, .. } = plain;
                let start = plain.start.wrapping_offset(row as isize * row_stride + k as isize * col_stride);
                return PanelWalk {
                    start,
                    panel_stride: panel as isize * row_stride,
                    row_stride,
                    step: col_stride,
                };
            }
            Source::Copied(plain) => {
                // SAFETY: the caller's promise.
                unsafe { plain.copy((row, rows), (k, depth), packed) };
            }
            Source::Transposed { storage, part } => {
                // SAFETY: the caller guarantees the rectangle and the room in `scratch`.
                unsafe { transpose_block(storage, part, (row, rows), (k, depth), packed) };
            }
        }
        PanelWalk::of(packed)
    }
}

/// The address of row `row`, depth `k` of a stored operand, and the distances from there.
#[inline]
pub(super) fn stored<T: Element>(storage: *const T, part: &Part, (row, k): (usize, usize)) -> PanelWalk<T> {
    let (row, col) = (part.first_row + row, part.first_col + k);
    PanelWalk {
        start: storage.wrapping_add(part.layout.offset(row, col)),
        panel_stride: part.layout.panel_stride(part.layout.strip_of(col).0) as isize,
        row_stride: 1,
        step: part.layout.panel() as isize,
    }
}

impl<T: Element> Plain<T> {
    /// Copies rows `row..row + rows`, depth `k..k + depth`, to panels.
    ///
    /// # Safety
    /// The rectangle lies in the array, whose memory is alive; `to` has room for it.
    pub(super) unsafe fn copy(
        self,
        (row, rows): (usize, usize),
        (k, depth): (usize, usize),
        to: Panels<*mut T>,
    ) -> PanelWalk<T> {
        let Plain { row_stride, col_stride, .. } = self;
        let start = self.start.wrapping_offset(row as isize * row_stride + k as isize * col_stride);
        let block = Block { start, row_stride, col_stride, rows, cols: depth };
        // SAFETY: the block lies in the array, `to` has room for its panels.
        unsafe { panel::pack(block, to, T::ZERO) };
        PanelWalk::of(to)
    }
}

impl<T> PanelWalk<T> {
    pub(super) fn of(panels: Panels<*mut T>) -> PanelWalk<T> {
        let Panels { start, stride, panel } = panels;
        PanelWalk { start, panel_stride: stride as isize, row_stride: 1, step: panel as isize }
    }
}
