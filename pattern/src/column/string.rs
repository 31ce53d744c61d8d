//! Rows that hold a string without which nothing matches, found where values lie.
//!
//! Values of one row behind the other are one text: a rare string is found in it at the speed of
//! memory, without a look at the offsets. A hit leads to its row by steps that double, and counts
//! if it ends within the row. Where hits are dense the search is given up, and streams go on.
//! **Leaves out** views, whose strings lie anywhere.

use crate::bits::Bitmap;
use crate::literal::finder::Finder;
use crate::literal::required::rarest;
use crate::plan::expression::has_rare_string;
use regex_syntax::hir::{Hir, HirKind};

/// With fewer bytes to a hit, streams over all rows are faster.
const SPARSE_BYTES: usize = 4 << 10;
/// So many hits more than the bytes so far allow are let pass.
const SLACK_HITS: usize = 16;

/// A string that every match holds.
#[derive(Debug)]
pub(super) struct RowString {
    finder: Finder,
    /// The expression is the string.
    is_whole: bool,
}

impl RowString {
    /// The string of an expression, where looking for it is likely to be worth it.
    pub(super) fn new(hir: &Hir) -> Option<RowString> {
        if let HirKind::Literal(literal) = hir.kind() {
            let finder = Finder::new(&literal.0);
            return Some(RowString { finder, is_whole: true });
        }
        let string = rarest(hir).filter(|_| has_rare_string(hir))?;
        Some(RowString { finder: Finder::new(string), is_whole: false })
    }

    /// Sets the bits of matching rows, of which `confirm` decides those that hold the string, up to
    /// where the string is dense; the first row that was not searched.
    pub(super) fn run<O: Copy + Into<i64>>(
        &self,
        values: &[u8],
        offsets: &[O],
        confirm: &dyn Fn(&[u8]) -> bool,
        out: &mut Bitmap,
    ) -> usize {
        let offset = |row: usize| offsets[row].into() as usize;
        let rows = offsets.len() - 1;
        let first = offset(0);
        let text = &values[..offset(rows)];
        let (mut at, mut row, mut spent) = (first, 0, 0);
        while let Some(found) = self.finder.find(text, at) {
            row = row_of(found, row, rows, &offset);
            let (start, end) = (offset(row), offset(row + 1));
            if found + self.finder.string().len() > end {
                // The string stands across two rows.
                at = found + 1;
                continue;
            }
            if self.is_whole || confirm(&values[start..end]) {
                out.set(row, true);
            }
            at = end;
            spent += SPARSE_BYTES;
            if spent > at - first + SLACK_HITS * SPARSE_BYTES {
                return row + 1;
            }
        }
        rows
    }
}

/// The row that holds byte `at`, which lies in `row` or behind it.
fn row_of(at: usize, row: usize, rows: usize, offset: &impl Fn(usize) -> usize) -> usize {
    // Doubles the distance while the row there begins before the byte, then halves it.
    let (mut low, mut step) = (row, 1);
    while low + step <= rows && offset(low + step) <= at {
        low += step;
        step *= 2;
    }
    while step > 0 {
        if low + step <= rows && offset(low + step) <= at {
            low += step;
        }
        step /= 2;
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_leads_to_its_row() {
        let offsets = [3usize, 3, 4, 4, 4, 90, 91, 91, 200, 200];
        for at in 3..200 {
            let expected = (0..9).find(|&row| offsets[row] <= at && at < offsets[row + 1]).unwrap();
            for row in 0..=expected {
                assert_eq!(row_of(at, row, 9, &|row| offsets[row]), expected, "{at} from {row}");
            }
        }
    }
}
