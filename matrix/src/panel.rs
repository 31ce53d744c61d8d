//! Copies between plain arrays and panels, which is the only way in and out of blocked storage.
//!
//! **Shapes.** A block of `rows`×`cols` of an array with any strides ↔ panels of `panel` rows,
//! column after column. **Cost.** Every element is read and written once. Arrays whose rows are
//! adjacent (`row_stride` 1) are copied one column of a panel at a time. Arrays whose columns are
//! adjacent are transposed in square blocks of `panel`, so that both sides touch whole cache lines.
//! Arrays with other strides are copied element by element. **Padding** is filled with zeros on the
//! way in, because a subnormal number there would slow the kernels down, and is never read on the
//! way out.

use crate::transpose;

/// A block of an array, by pointer. Entry (i, j) is `*start.offset(i·row_stride + j·col_stride)`.
#[derive(Clone, Copy)]
pub(crate) struct Block<P> {
    pub(crate) start: P,
    pub(crate) row_stride: isize,
    pub(crate) col_stride: isize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
}

/// Panels, by pointer: `panel` rows each, and `stride` elements from one to the next.
#[derive(Clone, Copy)]
pub(crate) struct Panels<P> {
    pub(crate) start: P,
    pub(crate) stride: usize,
    pub(crate) panel: usize,
}

/// Copies a block into panels, and fills missing rows of the last panel with `zero`.
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
        // SAFETY: the rows from `first` on, and the panels that hold them, lie within the ranges
        // that the caller promises.
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

/// The number of panels that are filled side by side: so many that each column's whole line is read
/// while it is in the cache, and so few that as many places can be written at once.
const PANELS_TOGETHER: usize = 4;

/// Copies `count` columns of `panels` adjacent panels.
///
/// # Safety
/// The requirements of [`pack`].
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
                    // SAFETY: panel `p` has `len` elements in column `j`, which are readable in the
                    // source and writable in the target.
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

/// Copies `count` columns of `len` adjacent elements out of a panel.
///
/// # Safety
/// The requirements of [`unpack`].
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
        // SAFETY: `len` elements of each column are readable on one side and writable on the other.
        unsafe { to.copy_from_nonoverlapping(from, len) }
    }
}

/// Copies one panel with any strides, or the last panel, which may have fewer rows.
///
/// # Safety
/// The requirements of [`pack`].
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

/// Copies panels into a block, without their padding. Where rows are adjacent, `together` panels
/// are emptied side by side: a column then gets so many lines at once.
///
/// # Safety
/// All entries of `to` are writable; `cols` columns of every panel that holds a row of it are
/// readable; the two do not overlap.
pub(crate) unsafe fn unpack<T: Copy>(from: Panels<*const T>, to: Block<*mut T>, together: usize) {
    let panel = from.panel;
    let mut first = 0;
    while first < to.rows {
        let rows = panel.min(to.rows - first);
        let source = from.start.wrapping_add(first / panel * from.stride);
        let target = to.start.wrapping_offset(first as isize * to.row_stride);
        // SAFETY: the rows `first..first + rows` of the block, and one panel, lie within the ranges
        // that the caller promises.
        unsafe {
            let whole = ((to.rows - first) / panel).min(together);
            if to.row_stride == 1 && whole > 1 {
                // Several panels side by side: a column gets several lines at once.
                let panels = Panels { start: source, ..from };
                unpack_columns(panels, target, to.col_stride, whole, to.cols);
                first += whole * panel;
                continue;
            }
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
        first += panel;
    }
}

/// Panels that are emptied side by side into an array that is in or near the second level: a column
/// gets half a kilobyte at once.
pub(crate) const FEW_TOGETHER: usize = 8;
/// Panels that are emptied side by side into a larger array, whose columns are in pages of their
/// own: each page is visited less often, and the processor sees a stream of lines.
pub(crate) const MANY_TOGETHER: usize = 32;

/// Copies `count` columns of `panels` adjacent panels to columns.
///
/// # Safety
/// The requirements of [`unpack`].
unsafe fn unpack_columns<T: Copy>(
    from: Panels<*const T>,
    to: *mut T,
    to_stride: isize,
    panels: usize,
    count: usize,
) {
    macro_rules! fixed {
        ($len:literal) => {
            for j in 0..count {
                let column = to.wrapping_offset(j as isize * to_stride);
                for p in 0..panels {
                    let source = from.start.wrapping_add(p * from.stride + j * $len).cast::<[T; $len]>();
                    let target = column.wrapping_add(p * $len).cast::<[T; $len]>();
                    // SAFETY: panel `p` has `len` elements in column `j`, which are readable in the
                    // source and writable in the target.
                    unsafe { target.write_unaligned(source.read_unaligned()) }
                }
            }
        };
    }
    match from.panel {
        2 => fixed!(2),
        4 => fixed!(4),
        8 => fixed!(8),
        _ => fixed!(16),
    }
}
