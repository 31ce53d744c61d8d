//! Transposing copies: rows of an array ↔ columns of a panel.
//!
//! **Why this way.** A panel of `p` rows is filled in blocks of `p`×`p`: `p` pieces of `p` adjacent elements are
//! read, turned, and `p²` adjacent elements written. Blocks small enough to live in registers are turned by the
//! compiler's own vector code; the block loop is what keeps cache lines whole.

/// One panel from `panel` rows of `cols` adjacent elements.
///
/// # Safety
/// `cols` elements are readable at `from + i·row_stride` for `i < panel`; `panel·cols` are writable at `to`; no overlap.
pub(crate) unsafe fn to_panel<T: Copy>(
    from: *const T,
    row_stride: isize,
    to: *mut T,
    panel: usize,
    cols: usize,
) {
    let mut col = 0;
    macro_rules! blocks {
        ($p:literal) => {
            while col + $p <= cols {
                let mut block = [[std::mem::MaybeUninit::<T>::uninit(); $p]; $p];
                for i in 0..$p {
                    let row = from.wrapping_offset(i as isize * row_stride).wrapping_add(col);
                    // SAFETY: columns `col..col + p` of row `i` are readable.
                    let row = unsafe { row.cast::<[std::mem::MaybeUninit<T>; $p]>().read_unaligned() };
                    for (column, value) in block.iter_mut().zip(row) {
                        column[i] = value;
                    }
                }
                // SAFETY: columns `col..col + p` of the panel are writable; the block is wholly written above.
                unsafe { to.add(col * $p).cast::<[[std::mem::MaybeUninit<T>; $p]; $p]>().write_unaligned(block) };
                col += $p;
            }
        };
    }
    match panel {
        4 => blocks!(4),
        8 => blocks!(8),
        16 => blocks!(16),
        _ => {}
    }
    for col in col..cols {
        for i in 0..panel {
            // SAFETY: row `i`, column `col` is readable, and that place of the panel writable.
            unsafe {
                *to.add(col * panel + i) = *from.wrapping_offset(i as isize * row_stride).wrapping_add(col)
            };
        }
    }
}

/// `panel` rows of `cols` adjacent elements from one panel.
///
/// # Safety
/// `panel·cols` elements are readable at `from`; `cols` are writable at `to + i·row_stride` for `i < panel`; no
/// overlap.
pub(crate) unsafe fn from_panel<T: Copy>(
    from: *const T,
    to: *mut T,
    row_stride: isize,
    panel: usize,
    cols: usize,
) {
    let mut col = 0;
    while col < cols {
        let end = (col + panel).min(cols);
        for i in 0..panel {
            let row = to.wrapping_offset(i as isize * row_stride);
            for col in col..end {
                // SAFETY: column `col` of row `i` is writable, and that place of the panel readable.
                unsafe { *row.wrapping_add(col) = *from.add(col * panel + i) };
            }
        }
        col = end;
    }
}
