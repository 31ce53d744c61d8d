//! Transposes blocked matrices by panel × panel blocks that are contiguous on both sides.

use crate::panel::{self, Block, Panels};
use crate::transpose::BlockTranspose;
use crate::view::Part;
use crate::{BlockedMatrix, Element, Error};

impl<T: Element> BlockedMatrix<T> {
    /// Aᵀ, stored for the same kernel with the same tile. Every element is read and written once.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the padded size overflows (the padding of Aᵀ differs from that of
    /// A).
    pub fn transposed(&self) -> Result<BlockedMatrix<T>, Error> {
        let mut out = BlockedMatrix::with(self.kernel(), self.cols(), self.rows(), self.layout().tile())?;
        transpose_into(self, &mut out);
        Ok(out)
    }

    /// Writes Aᵀ into a matrix that exists, which spares the first touch of new memory: on large
    /// matrices that takes longer than the transposition.
    ///
    /// # Errors
    /// [`Error::Shape`] when `out` has not the shape of Aᵀ, [`Error::Panels`] when it is stored for
    /// panels of another height.
    pub fn transpose_to(&self, out: &mut BlockedMatrix<T>) -> Result<(), Error> {
        let (own, other) = ((self.cols(), self.rows()), (out.rows(), out.cols()));
        if own != other {
            return Err(Error::Shape {
                what: "the shapes of Aᵀ and of the result", left: own, right: other
            });
        }
        let (left, right) = (self.layout().panel(), out.layout().panel());
        if left != right {
            return Err(Error::Panels { left, right });
        }
        transpose_into(self, out);
        Ok(())
    }
}

/// Panels of the source that are transposed before the next ones, and as many panels of the target:
/// each then gets a few kilobytes in order, while every target is still in the cache and the TLB.
const PANELS_TOGETHER: usize = 8;

/// Rows `row..` of the operand are columns of the stored matrix; every panel of the storage holds
/// `panel` steps of `k` for all of them, so blocks of `panel` × `panel` are contiguous on both
/// sides.
///
/// # Safety
/// The rectangle lies in the stored matrix, whose memory is alive; `to` has room for it.
pub(crate) unsafe fn transpose_block<T: Element>(
    storage: *const T,
    part: Part,
    (row, rows): (usize, usize),
    (k, depth): (usize, usize),
    to: Panels<*mut T>,
) {
    let (panel, transpose) = (to.panel, BlockTranspose::<T>::of(to.panel));
    let chunk = PANELS_TOGETHER * panel;
    for (top, left) in
        (0..depth).step_by(chunk).flat_map(|top| (0..rows).step_by(chunk).map(move |left| (top, left)))
    {
        let (mut done, end) = (top, (top + chunk).min(depth));
        while done < end {
            // The source's panel is read in order, eight columns for each panel of the target.
            let from_row = part.first_row + k + done;
            let steps = (panel - from_row % panel).min(end - done);
            for first in (left..(left + chunk).min(rows)).step_by(panel) {
                let count = panel.min(rows - first);
                let from = storage.wrapping_add(part.layout.offset(from_row, part.first_col + row + first));
                let start = to.start.wrapping_add(first / panel * to.stride + done * panel);
                // SAFETY: `count` columns from `first` on lie in one strip (`rows` of a block never
                // cross one, because strips are whole multiples of a panel), `steps` rows in one
                // panel of it.
                unsafe {
                    if count == panel && steps == panel {
                        transpose.block(from, panel as isize, start, panel as isize);
                    } else {
                        let block = Block {
                            start: from,
                            row_stride: panel as isize,
                            col_stride: 1,
                            rows: count,
                            cols: steps,
                        };
                        panel::pack(block, Panels { start, stride: to.stride, panel }, T::ZERO);
                    }
                }
            }
            done += steps;
        }
    }
}

/// Computes `to ← fromᵀ`, where both have panels of one height.
fn transpose_into<T: Element>(from: &BlockedMatrix<T>, to: &mut BlockedMatrix<T>) {
    let part = from.view().part;
    let layout = *to.layout();
    assert_eq!((layout.rows(), layout.cols(), layout.panel()), (part.cols, part.rows, part.layout.panel()));
    let (storage, target) = (from.storage().as_ptr(), to.storage_mut());
    for first in (0..layout.cols()).step_by(layout.tile()) {
        let depth = layout.tile().min(layout.cols() - first);
        let start = target[layout.offset(0, first)..].as_mut_ptr();
        let stride = layout.panel_stride(layout.strip_of(first).0);
        let panels = Panels { start, stride, panel: layout.panel() };
        // SAFETY: columns `first..first + depth` of `to` are rows of `from`, and the strip holds
        // all its panels.
        unsafe { transpose_block(storage, part, (0, layout.rows()), (first, depth), panels) };
    }
}
