//! Where the panels of an operand come from: blocked storage as it is, or a copy made block by block.
//!
//! An operand is always seen with its rows along the panels: `op(A)` for the left, `op(B)ᵀ` for the right.

use crate::panel::{self, Block, Panels};
use crate::view::Part;
use crate::{BlockedMatrix, Element};

/// An operand of `rows` × `k`.
#[derive(Clone, Copy)]
pub(super) enum Source<T> {
    /// Blocked, the right way round: used in place.
    Stored { storage: *const T, part: Part },
    /// Blocked, the other way round: blocks of panel × panel are turned.
    Turned { storage: *const T, part: Part },
    /// A plain array.
    Plain { start: *const T, row_stride: isize, col_stride: isize },
}

// SAFETY: a `Source` only reads, and lives no longer than the borrows it was made from (`Job` is built from them
// and used within one call).
unsafe impl<T: Sync> Sync for Source<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Send for Source<T> {}

impl<T: Element> Source<T> {
    /// Whether blocks are copied into scratch memory.
    pub(super) fn copies(&self) -> bool {
        !matches!(self, Source::Stored { .. })
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
    /// The rectangle lies in the operand, whose memory is alive; `scratch` has room for it when [`Self::copies`].
    pub(super) unsafe fn block(
        &self,
        (row, rows): (usize, usize),
        (k, depth): (usize, usize),
        panel: usize,
        scratch: *mut T,
    ) -> Panels<*const T> {
        let packed = Panels { start: scratch, stride: panel * depth, panel };
        match *self {
            Source::Stored { storage, part } => {
                let strip = part.layout.strip_of(part.first_col + k).0;
                let start =
                    storage.wrapping_add(part.layout.offset(part.first_row + row, part.first_col + k));
                return Panels { start, stride: part.layout.panel_stride(strip), panel };
            }
            Source::Plain { start, row_stride, col_stride } => {
                let start = start.wrapping_offset(row as isize * row_stride + k as isize * col_stride);
                let block = Block { start, row_stride, col_stride, rows, cols: depth };
                // SAFETY: the block lies in the operand, scratch has room for its panels.
                unsafe { panel::pack(block, packed, T::ZERO) };
            }
            Source::Turned { storage, part } => {
                // SAFETY: as above.
                unsafe { turn_block(storage, part, (row, rows), (k, depth), packed) };
            }
        }
        Panels { start: scratch, stride: packed.stride, panel }
    }
}

/// Rows `row..` of the operand are columns of the stored matrix; every panel of the storage holds `panel` steps of
/// `k` for all of them, so blocks of `panel` × `panel` lie in one piece on both sides.
///
/// # Safety
/// As for [`Source::block`].
unsafe fn turn_block<T: Element>(
    storage: *const T,
    part: Part,
    (row, rows): (usize, usize),
    (k, depth): (usize, usize),
    to: Panels<*mut T>,
) {
    let panel = to.panel;
    for first in (0..rows).step_by(panel) {
        let count = panel.min(rows - first);
        let target = to.start.wrapping_add(first / panel * to.stride);
        let mut done = 0;
        while done < depth {
            let from_row = part.first_row + k + done;
            let steps = (panel - from_row % panel).min(depth - done);
            let from = storage.wrapping_add(part.layout.offset(from_row, part.first_col + row + first));
            let block =
                Block { start: from, row_stride: panel as isize, col_stride: 1, rows: count, cols: steps };
            let into = Panels { start: target.wrapping_add(done * panel), stride: to.stride, panel };
            // SAFETY: `count` columns from `first` on lie in one strip (`rows` of a block never cross one, because
            // strips are whole multiples of a panel), `steps` rows in one panel of it.
            unsafe { panel::pack(block, into, T::ZERO) };
            done += steps;
        }
    }
}

/// `to ← fromᵀ`, both in panels of the same height.
pub(crate) fn turn_into<T: Element>(from: &BlockedMatrix<T>, to: &mut BlockedMatrix<T>) {
    let part = from.view().part;
    let layout = *to.layout();
    assert_eq!((layout.rows(), layout.cols(), layout.panel()), (part.cols, part.rows, part.layout.panel()));
    let (storage, target) = (from.storage().as_ptr(), to.storage_mut());
    for first in (0..layout.cols()).step_by(layout.tile()) {
        let depth = layout.tile().min(layout.cols() - first);
        let start = target[layout.offset(0, first)..].as_mut_ptr();
        let stride = layout.panel_stride(layout.strip_of(first).0);
        let panels = Panels { start, stride, panel: layout.panel() };
        // SAFETY: columns `first..first + depth` of `to` are rows of `from`, and the strip holds all its panels.
        unsafe { turn_block(storage, part, (0, layout.rows()), (first, depth), panels) };
    }
}
