//! Marks one window after the other. This is the slow twin of the other kernels, and marks the end
//! of a text for them.

use super::marks::Marks;
use super::tables::{window_at, Tables};

/// Marks the windows at `from..end` that pass the tables, at those positions that are looked at;
/// their number.
pub(super) fn mark(tables: &Tables, text: &[u8], from: usize, end: usize, marks: &mut Marks) -> usize {
    let mut count = 0;
    for at in (from.next_multiple_of(tables.step)..end).step_by(tables.step) {
        let window = tables.folded(window_at(text, at));
        if tables.passes_bitmaps(window) && tables.passes_filters(window) {
            marks[count] = (at - from) as u16;
            count += 1;
        }
    }
    count
}
