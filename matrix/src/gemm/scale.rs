//! `C ← β·C`, to which a multiplication with α = 0 or K = 0 reduces.

use super::job::Destination;
use crate::Element;

/// Scales the m×n entries of `C`; β = 0 writes zeros without reading.
///
/// # Safety
/// `c` is alive and at least m×n, and nothing else touches it.
pub(super) unsafe fn scale<T: Element>(c: &Destination<T>, m: usize, n: usize, beta: T) {
    if beta == T::ONE {
        return;
    }
    for col in 0..n {
        for row in 0..m {
            // Scales entry by entry: this is no product, and it is rarely large.
            let at = match *c {
                Destination::Stored { storage, part } => {
                    storage.wrapping_add(part.layout.offset(part.first_row + row, part.first_col + col))
                }
                Destination::Plain { start, row_stride, col_stride } => {
                    start.wrapping_offset(row as isize * row_stride + col as isize * col_stride)
                }
            };
            // SAFETY: an entry of C.
            unsafe { *at = if beta == T::ZERO { T::ZERO } else { beta * *at } };
        }
    }
}
