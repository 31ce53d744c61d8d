//! Products that are one block of register tiles: nothing is copied, and no loop around the tiles
//! has a second iteration.
//!
//! A product of 8×8×8 takes 30 ns; describing a [`Job`](super::job::Job) takes longer than that.
//! Blocked operands of one strip whose product is not worth a second thread therefore go straight
//! to the tiles. The arithmetic is the same.

use super::clip::Clip;
use super::direct;
use super::operand::{Op, Operand};
use super::source::PanelWalk;
use super::threads::WORTH_A_THREAD;
use super::tile::{BlockProduct, Edge, Left, Target};
use crate::kernel::{row_mask, DirectTile, Reach, RealKernel};
use crate::tile_sizes::Tiling;
use crate::view::{Part, ViewMut};
use crate::{Element, Real};

/// Computes `C ← α·A·op(B) + β·C` if it is one block, and returns whether it did; otherwise it
/// touches nothing. The shapes must fit.
#[inline(always)]
pub(super) fn run<T: Element>(
    (tiling, threads): (Option<Tiling>, usize),
    alpha: T,
    a: &Operand<'_, T>,
    b: &Operand<'_, T>,
    beta: T,
    c: &mut ViewMut<'_, T>,
) -> bool {
    let (left, right, to) = (&a.view.part, &b.view.part, &c.part);
    let (rows, cols, depth) = (to.rows, to.cols, left.cols);
    let in_place = (a.op, b.op) == (Op::Plain, Op::Transposed) && tiling.is_none();
    let empty = rows == 0 || cols == 0 || depth == 0 || alpha == T::ZERO;
    if !in_place || empty || !(is_near(left) && is_near(right) && is_near(to)) {
        return false;
    }
    if rows * cols * depth >= if threads > 1 { 2 * WORTH_A_THREAD } else { MOST_WORK } {
        return false;
    }
    let panel = to.layout.panel();
    let kernel = <T::Real as Real>::kernel(c.kernel);
    if T::PARTS == 1 && rows <= 3 * panel && cols <= 24 && kernel.columns == 8 && !kernel.direct.is_empty() {
        let panels = (rows + panel - 1) >> panel.trailing_zeros();
        let bytes = |stride: usize| (stride * size_of::<T>()) as isize;
        let b_panel = bytes(right.layout.first_panel_stride());
        let tile = DirectTile {
            k: depth,
            a_panel: bytes(left.layout.first_panel_stride()),
            a_step: bytes(panel),
            b_column: bytes(1),
            b_step: bytes(panel),
            // Column 8 lies in the next panel, or in the same one if panels have 16 rows.
            b_far: if panel == 8 { b_panel } else { bytes(8) },
            c_panel: bytes(to.layout.first_panel_stride()),
            c_column: bytes(panel),
            mask: row_mask(rows - (panels - 1) * panel),
            // Panels of storage are whole.
            back: 0,
            update: direct::update(alpha, beta),
            alpha: alpha.re(),
            beta: beta.re(),
        };
        let (a, b) = (a.view.storage.as_ptr().cast(), b.view.storage.as_ptr().cast());
        let c = c.storage.as_mut_ptr().cast();
        // SAFETY: the operands are as large as their parts say and are borrowed here, `C` mutably;
        // a matrix has a kernel only if the processor has its features.
        unsafe { run_direct(kernel, &tile, (panels, cols), a, (b, b_panel), c) };
        return true;
    }
    let walk = |part: &Part, start: *const T| {
        let panel_stride = part.layout.first_panel_stride() as isize;
        PanelWalk { start, panel_stride, row_stride: 1, step: panel as isize }
    };
    let (start, col_stride) = (c.storage.as_mut_ptr(), panel as isize);
    let panel_stride = to.layout.first_panel_stride() as isize;
    let a = &Left { walk: walk(left, a.view.storage.as_ptr()), tail: None, pending: None };
    let b = &walk(right, b.view.storage.as_ptr());
    let c = &Target { start, panel_stride, row_stride: 1, col_stride, edge: Edge::Padded };
    let (reach, b_edge, clip) = (Reach::Near, Edge::Padded, Clip::None);
    // SAFETY: the operands are as large as their parts say and are borrowed here, `C` mutably; a
    // matrix has a kernel only if the processor has its features.
    unsafe {
        BlockProduct { kernel, panel, rows, cols, depth, alpha, beta, a, b, b_edge, c, reach, clip }.run()
    };
    true
}

/// Computes a few tiles with direct kernels, which have no column group to fill up and no padding
/// to compute. `b_panel` is the distance of B's panels in bytes.
///
/// # Safety
/// The panels hold `panels` panels and `cols` columns of the tile's depth, `C` is writable by this
/// thread alone, and the processor has the kernel's features.
#[inline(always)]
unsafe fn run_direct<R: Real>(
    kernel: &'static RealKernel<R>,
    tile: &DirectTile<R>,
    (panels, cols): (usize, usize),
    a: *const R,
    (b, b_panel): (*const R, isize),
    c: *mut R,
) {
    let kernels = kernel.direct[panels - 1];
    // A group starts at a multiple of eight columns, and may reach into the next panel of B where
    // panels have eight rows.
    let most = if kernel.panel == 8 { kernels.len() } else { kernels.len().min(16) };
    if cols <= most {
        // SAFETY: the caller's promise.
        return unsafe { kernels[cols - 1](tile, a, b, c) };
    }
    let shift = kernel.panel.trailing_zeros();
    let mut col = 0;
    while col < cols {
        let left = cols - col;
        let width = if left <= most && kernel.panel == 8 { left } else { left.min(8) };
        let (high, low) = (col >> shift, col & (kernel.panel - 1));
        let offset = high as isize * b_panel + low as isize * tile.b_column;
        let to = c.wrapping_byte_offset(col as isize * tile.c_column);
        // SAFETY: these columns lie in the panels.
        unsafe { kernels[width - 1](tile, a, b.wrapping_byte_offset(offset), to) };
        col += width;
    }
}

/// The most rows and columns of an operand: three such operands lie in near caches, one block of
/// columns has this width, and products of the three numbers do not overflow.
const MOST: usize = 128;

/// The multiply-adds of a product that the loops of a job compute as fast.
const MOST_WORK: usize = 1 << 21;

/// Whether `part` begins where its matrix begins, is small, and lies in one strip.
#[inline]
fn is_near(part: &Part) -> bool {
    part.first_row | part.first_col == 0 && part.rows <= MOST && part.cols <= MOST.min(part.layout.tile())
}
