//! Copying between plain arrays and panels: the only way in and out of blocked storage.
//!
//! **Shapes.** A block of `rows`×`cols` of an array with any strides ↔ panels of `panel` rows,
//! column after column. **Cost.** Every element is read and written once. Arrays whose rows are
//! adjacent (`row_stride` 1) are copied a column of a panel at a time; arrays whose columns are
//! adjacent are transposed in square blocks of `panel`, so that both sides touch whole cache lines;
//! other strides element by element. **Left out.** Padding is filled with zeros on the way in (a
//! subnormal left there would slow the kernels down) and never read on the way out.

use crate::transpose;

/// A block of an array, by pointer: entry (i, j) is `*start.offset(i·row_stride + j·col_stride)`.
#[derive(Clone, Copy)]
pub(crate) struct Block<P> {
    pub(crate) start: P,
    pub(crate) row_stride: isize,
    pub(crate) col_stride: isize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
}

/// Panels, by pointer: `panel` rows each, `stride` elements from one to the next.
#[derive(Clone, Copy)]
pub(crate) struct Panels<P> {
    pub(crate) start: P,
    pub(crate) stride: usize,
    pub(crate) panel: usize,
}

/// Copies a block into panels; rows that fill up the last panel become `zero`.
///
/// # Safety
/// All entries of `from` are readable; `cols` columns of every panel that holds a row of it are
/// writable; the two do not overlap.
pub(crate) unsafe fn pack<T: Copy>(from: Block<*const T>, to: Panels<*mut T>, zero: T) {
    let panel = to.panel;
    let mut first = 0;
    while first < from.rows {
        let source = from.start.wrapping_offset(first as isize * from.row_stride);
        let target = to.start.wrapping_add(first / panel * to.stride);
        let whole = (from.rows - first) / panel;
        // SAFETY: rows from `first` on, and the panels that hold them: both within what the caller
        // promises.
        unsafe {
            if whole > 0 && from.row_stride == 1 {
                let panels = whole.min(PANELS_TOGETHER);
                pack_columns(source, from.col_stride, Panels { start: target, ..to }, panels, from.cols);
                first += panels * panel;
                continue;
            }
            if whole > 0 && from.col_stride == 1 {
                transpose::to_panel(source, from.row_stride, target, panel, from.cols);
            } else {
                pack_edge(from, source, panel.min(from.rows - first), target, panel, zero);
            }
        }
        first += panel;
    }
}

/// Panels that are filled side by side: enough to read more than a line of each column while it is
/// there, few enough to write to as many places at once.
const PANELS_TOGETHER: usize = 4;

/// `count` columns of `panels` adjacent panels.
///
/// # Safety
/// As for [`pack`].
unsafe fn pack_columns<T: Copy>(
    from: *const T,
    from_stride: isize,
    to: Panels<*mut T>,
    panels: usize,
    count: usize,
) {
    macro_rules! fixed {
        ($len:literal) => {
            for j in 0..count {
                let column = from.wrapping_offset(j as isize * from_stride);
                for p in 0..panels {
                    let source = column.wrapping_add(p * $len).cast::<[T; $len]>();
                    let target = to.start.wrapping_add(p * to.stride + j * $len).cast::<[T; $len]>();
                    // SAFETY: `len` elements of panel `p` in column `j`, readable there, writable
                    // here.
                    unsafe { target.write_unaligned(source.read_unaligned()) }
                }
            }
        };
    }
    match to.panel {
        2 => fixed!(2),
        4 => fixed!(4),
        8 => fixed!(8),
        _ => fixed!(16),
    }
}

/// `count` columns of `len` adjacent elements, out of a panel.
///
/// # Safety
/// As for [`unpack`].
unsafe fn copy_columns<T: Copy>(
    from: *const T,
    panel: usize,
    to: *mut T,
    to_stride: isize,
    len: usize,
    count: usize,
) {
    for j in 0..count {
        let (from, to) = (from.wrapping_add(j * panel), to.wrapping_offset(j as isize * to_stride));
        // SAFETY: `len` elements at each column are readable, and writable on the other side.
        unsafe { to.copy_from_nonoverlapping(from, len) }
    }
}

/// One panel with any strides, and the last panel with fewer rows.
///
/// # Safety
/// As for [`pack`].
unsafe fn pack_edge<T: Copy>(
    from: Block<*const T>,
    source: *const T,
    rows: usize,
    target: *mut T,
    panel: usize,
    zero: T,
) {
    let entry = |row: usize, col: usize| {
        source.wrapping_offset(row as isize * from.row_stride).wrapping_offset(col as isize * from.col_stride)
    };
    let place = |row: usize, col: usize| target.wrapping_add(col * panel + row);
    // SAFETY: `row < rows` is an entry of the block; the panel has `panel` rows in each column.
    unsafe {
        if from.col_stride == 1 {
            for row in 0..rows {
                (0..from.cols).for_each(|col| *place(row, col) = *entry(row, col));
            }
        } else {
            for col in 0..from.cols {
                (0..rows).for_each(|row| *place(row, col) = *entry(row, col));
            }
        }
        for col in 0..from.cols {
            (rows..panel).for_each(|row| place(row, col).write(zero));
        }
    }
}

/// Copies panels out into a block; padding stays behind.
///
/// # Safety
/// All entries of `to` are writable; `cols` columns of every panel that holds a row of it are
/// readable; the two do not overlap.
pub(crate) unsafe fn unpack<T: Copy>(from: Panels<*const T>, to: Block<*mut T>) {
    let panel = from.panel;
    for first in (0..to.rows).step_by(panel) {
        let rows = panel.min(to.rows - first);
        let source = from.start.wrapping_add(first / panel * from.stride);
        let target = to.start.wrapping_offset(first as isize * to.row_stride);
        // SAFETY: rows `first..first + rows` of the block, and one panel: both within what the
        // caller promises.
        unsafe {
            if to.row_stride == 1 {
                copy_columns(source, panel, target, to.col_stride, rows, to.cols);
            } else if rows == panel && to.col_stride == 1 {
                transpose::from_panel(source, target, to.row_stride, panel, to.cols);
            } else {
                for col in 0..to.cols {
                    for row in 0..rows {
                        let at = row as isize * to.row_stride + col as isize * to.col_stride;
                        *target.wrapping_offset(at) = *source.wrapping_add(col * panel + row);
                    }
                }
            }
        }
    }
}
