//! Columns of strings as their memory is: values and offsets, or views, and which rows are valid.
//!
//! A [`Column`] borrows plain slices in Arrow's layout and copies nothing. It is checked when it is
//! made, so that every row can be read afterwards. **Leaves out** dictionaries and runs: their
//! values are columns, and each value is searched once.

use super::error::ColumnError;
use crate::bits::Bitmap;

/// Where strings lie.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layout<'a> {
    /// Row `i` is `values[offsets[i]..offsets[i + 1]]`.
    Offsets(&'a [u8], &'a [i32]),
    LargeOffsets(&'a [u8], &'a [i64]),
    /// A view of 16 bytes for each row: its length, and the string or where it lies.
    Views(&'a [[u8; 16]], &'a [&'a [u8]]),
}

/// A view's string lies within the view up to this length.
pub(super) const INLINE_BYTES: usize = 12;

/// A column of strings, borrowed.
///
/// Strings may hold any bytes: line feeds, NUL, and what is not UTF-8. Rows that are not valid
/// (null) match nothing.
///
/// ```
/// use lightfoot_pattern::column::Column;
/// let column = Column::new(b"GET /POST /a", &[0, 5, 5, 12])?.with_validity(&[0b101], 0)?;
/// assert_eq!((column.row(0), column.row(1), column.row(2)), (Some(&b"GET /"[..]), None, Some(&b"POST /a"[..])));
///
/// let error = Column::new(b"GET /", &[0, 5, 3]).unwrap_err();
/// assert_eq!(error.to_string(), "offsets decrease at row 1: 3 after 5");
/// # Ok::<(), lightfoot_pattern::column::ColumnError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Column<'a> {
    pub(super) layout: Layout<'a>,
    pub(super) valid: Option<Bitmap>,
    rows: usize,
}

impl<'a> Column<'a> {
    /// A column of values and offsets of 32 bits, as Arrow's `Utf8` and `Binary`: row `i` is
    /// `values[offsets[i]..offsets[i + 1]]`. The first offset need not be 0.
    ///
    /// # Errors
    /// There are no offsets, they decrease, or they leave the values. Cost: a look at each offset.
    pub fn new(values: &'a [u8], offsets: &'a [i32]) -> Result<Column<'a>, ColumnError> {
        check(values, offsets)?;
        Ok(Column { layout: Layout::Offsets(values, offsets), valid: None, rows: offsets.len() - 1 })
    }

    /// A column of values and offsets of 64 bits, as Arrow's `LargeUtf8` and `LargeBinary`.
    ///
    /// # Errors
    /// There are no offsets, they decrease, or they leave the values. Cost: a look at each offset.
    pub fn with_large_offsets(values: &'a [u8], offsets: &'a [i64]) -> Result<Column<'a>, ColumnError> {
        check(values, offsets)?;
        Ok(Column { layout: Layout::LargeOffsets(values, offsets), valid: None, rows: offsets.len() - 1 })
    }

    /// A column of views, as Arrow's `Utf8View` and `BinaryView`: 16 bytes a row, little-endian, of
    /// which the first four are the length. Up to 12 bytes follow it in the view; of a longer
    /// string its first four bytes, the number of its buffer and its offset there.
    ///
    /// ```
    /// use lightfoot_pattern::column::Column;
    /// let mut long = [0; 16];
    /// (long[0], long[12]) = (15, 2);
    /// let views = [*b"\x05\0\0\0hello\0\0\0\0\0\0\0", long];
    /// let column = Column::from_views(&views, &[b"a string of some length"])?;
    /// assert_eq!((column.row(0), column.row(1)), (Some(&b"hello"[..]), Some(&b"string of some "[..])));
    /// # Ok::<(), lightfoot_pattern::column::ColumnError>(())
    /// ```
    ///
    /// # Errors
    /// A view names a buffer that is not there, or leaves it. Cost: a look at each view.
    pub fn from_views(views: &'a [[u8; 16]], buffers: &'a [&'a [u8]]) -> Result<Column<'a>, ColumnError> {
        for (row, view) in views.iter().enumerate() {
            let (bytes, buffer, offset) = parts(view);
            if bytes <= INLINE_BYTES {
                continue;
            }
            let Some(found) = buffers.get(buffer as usize) else {
                return Err(ColumnError::NoSuchBuffer { row, buffer, buffers: buffers.len() });
            };
            let end = offset as u64 + bytes as u64;
            if end > found.len() as u64 {
                return Err(ColumnError::BeyondBuffer { row, end, buffer, bytes: found.len() });
            }
        }
        Ok(Column::of_views(views, buffers))
    }

    /// A column of views that were checked.
    pub(super) fn of_views(views: &'a [[u8; 16]], buffers: &'a [&'a [u8]]) -> Column<'a> {
        Column { layout: Layout::Views(views, buffers), valid: None, rows: views.len() }
    }

    /// A column of offsets that ascend within the values.
    pub(super) fn of_offsets(values: &'a [u8], offsets: &'a [i32]) -> Column<'a> {
        debug_assert!(check(values, offsets).is_ok());
        Column { layout: Layout::Offsets(values, offsets), valid: None, rows: offsets.len() - 1 }
    }

    /// The column with a validity bitmap in Arrow's layout: bit `first_bit + i` belongs to row `i`
    /// and is set where the row is valid. Others are null: they match nothing, whatever bytes they
    /// have.
    ///
    /// # Errors
    /// The bitmap has too few bits.
    pub fn with_validity(mut self, bits: &[u8], first_bit: usize) -> Result<Column<'a>, ColumnError> {
        let rows = self.rows;
        let there = (8 * bits.len()).saturating_sub(first_bit);
        if there < rows {
            return Err(ColumnError::ShortValidity { bits: there, rows });
        }
        let byte = |at: usize| u64::from(bits.get(at).copied().unwrap_or(0));
        let (from, shift) = (first_bit / 8, first_bit % 8);
        let words = (0..rows.div_ceil(64)).map(|word| {
            let at = from + 8 * word;
            let low = (0..8).fold(0, |low, next| low | byte(at + next) << (8 * next));
            if shift == 0 {
                low
            } else {
                low >> shift | byte(at + 8) << (64 - shift)
            }
        });
        self.valid = Some(Bitmap::from_words(words.collect(), rows));
        Ok(self)
    }

    /// The column with a validity bitmap of as many rows.
    pub(super) fn with_valid_rows(mut self, valid: Bitmap) -> Column<'a> {
        debug_assert_eq!(valid.len(), self.rows);
        self.valid = Some(valid);
        self
    }

    /// The rows from `row` on; null rows are what they are in memory.
    pub(super) fn rows_behind(&self, row: usize) -> Column<'a> {
        let layout = match self.layout {
            Layout::Offsets(values, offsets) => Layout::Offsets(values, &offsets[row..]),
            Layout::LargeOffsets(values, offsets) => Layout::LargeOffsets(values, &offsets[row..]),
            Layout::Views(views, buffers) => Layout::Views(&views[row..], buffers),
        };
        Column { layout, valid: None, rows: self.rows - row }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// A row's bytes; `None` for a null row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, row: usize) -> Option<&'a [u8]> {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        if self.valid.as_ref().is_some_and(|valid| !valid.get(row)) {
            return None;
        }
        Some(self.bytes(row))
    }

    /// A row's bytes, whether or not it is null.
    pub(super) fn bytes(&self, row: usize) -> &'a [u8] {
        match self.layout {
            Layout::Offsets(values, offsets) => &values[offsets[row] as usize..offsets[row + 1] as usize],
            Layout::LargeOffsets(values, offsets) => {
                &values[offsets[row] as usize..offsets[row + 1] as usize]
            }
            Layout::Views(views, buffers) => {
                let (slice, start, end) = place(&views[row], buffers);
                &slice[start..end]
            }
        }
    }

    /// Whether all rows together have as many bytes. Cost: of views, a look at the first ones.
    pub(super) fn has_bytes(&self, bytes: usize) -> bool {
        match self.layout {
            Layout::Offsets(..) | Layout::LargeOffsets(..) => self.total_bytes() >= bytes,
            Layout::Views(views, _) => {
                let mut left = bytes;
                bytes == 0
                    || views.iter().any(|view| {
                        left = left.saturating_sub(parts(view).0);
                        left == 0
                    })
            }
        }
    }

    /// The bytes of all rows together.
    pub(super) fn total_bytes(&self) -> usize {
        match self.layout {
            Layout::Offsets(_, offsets) => (offsets[self.rows] - offsets[0]) as usize,
            Layout::LargeOffsets(_, offsets) => (offsets[self.rows] - offsets[0]) as usize,
            Layout::Views(views, _) => views.iter().map(|view| parts(view).0).sum(),
        }
    }
}

/// Length, buffer and offset of a view.
#[inline(always)]
pub(super) fn parts(view: &[u8; 16]) -> (usize, u32, usize) {
    let number = |at: usize| u32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]);
    (number(0) as usize, number(8), number(12) as usize)
}

/// Where the string of a view that was checked lies: between two places of a slice.
#[inline(always)]
pub(super) fn place<'a>(view: &'a [u8; 16], buffers: &[&'a [u8]]) -> (&'a [u8], usize, usize) {
    let (bytes, buffer, offset) = parts(view);
    match bytes {
        ..=INLINE_BYTES => (view, 4, 4 + bytes),
        _ => (buffers[buffer as usize], offset, offset + bytes),
    }
}

/// Offsets of 32 or 64 bits.
pub(super) trait Offset: Copy + Ord + Into<i64> {}
impl Offset for i32 {}
impl Offset for i64 {}

fn check<O: Offset>(values: &[u8], offsets: &[O]) -> Result<(), ColumnError> {
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return Err(ColumnError::NoOffsets);
    };
    if first.into() < 0 {
        return Err(ColumnError::NegativeOffset { offset: first.into() });
    }
    // Ascending offsets leave the values only at their end. The fold has no branch, so that the
    // compiler makes vectors of it; the row is looked for when something is wrong.
    let descends = offsets.windows(2).fold(false, |found, pair| found | (pair[1] < pair[0]));
    if !descends && last.into() as u64 <= values.len() as u64 {
        return Ok(());
    }
    for (row, pair) in offsets.windows(2).enumerate() {
        let (start, end) = (pair[0].into(), pair[1].into());
        if end < start {
            return Err(ColumnError::DecreasingOffsets { row, start, end });
        }
        if end as u64 > values.len() as u64 {
            return Err(ColumnError::BeyondValues { row, end, bytes: values.len() });
        }
    }
    // A column without rows, whose only offset lies behind the values.
    Err(ColumnError::BeyondValues { row: 0, end: last.into(), bytes: values.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(values: &[u8], offsets: &[i32]) -> String {
        let large: Vec<i64> = offsets.iter().map(|&offset| i64::from(offset)).collect();
        let error = Column::new(values, offsets).unwrap_err();
        assert_eq!(Column::with_large_offsets(values, &large).unwrap_err(), error);
        error.to_string()
    }

    #[test]
    fn offsets_are_checked() {
        let values = [b'x'; 800];
        assert_eq!(refusal(&values, &[0, 52, 40]), "offsets decrease at row 1: 40 after 52");
        assert_eq!(refusal(&values, &[0, 1, 2, 3, 900]), "row 3 ends at 900, beyond the 800 bytes of values");
        assert_eq!(refusal(&values, &[-1, 3]), "offsets begin at -1; expected 0 or more");
        assert_eq!(refusal(&values, &[0, 900, 3]), "row 0 ends at 900, beyond the 800 bytes of values");
        assert!(refusal(&values, &[]).starts_with("no offsets: a column of n rows has n + 1"));
        assert!(refusal(&values, &[801]).ends_with("beyond the 800 bytes of values"));
        let column = Column::new(&values, &[3, 3, 800]).unwrap();
        assert_eq!((column.len(), column.total_bytes(), column.row(0)), (2, 797, Some(&b""[..])));
    }

    #[test]
    fn views_are_checked() {
        let view = |bytes: u32, buffer: u32, offset: u32| {
            let mut view = [0; 16];
            view[..4].copy_from_slice(&bytes.to_le_bytes());
            view[8..12].copy_from_slice(&buffer.to_le_bytes());
            view[12..].copy_from_slice(&offset.to_le_bytes());
            view
        };
        let refusal = |view| Column::from_views(&[view], &[b"twenty bytes of text"]).unwrap_err().to_string();
        assert_eq!(refusal(view(13, 1, 0)), "row 0 lies in buffer 1; the column has 1, counted from 0");
        assert_eq!(refusal(view(13, 0, 8)), "row 0 ends at 21, beyond the 20 bytes of buffer 0");
        assert_eq!(
            refusal(view(u32::MAX, 0, u32::MAX)),
            format!("row 0 ends at {}, beyond the 20 bytes of buffer 0", 2 * u64::from(u32::MAX))
        );
        assert!(Column::from_views(&[view(13, 0, 7), view(12, 9, 9)], &[b"twenty bytes of text"]).is_ok());
    }

    #[test]
    fn validity_may_begin_anywhere() {
        let offsets = [0; 131];
        let column = || Column::new(b"", &offsets).unwrap();
        assert_eq!(
            column().with_validity(&[0xff; 17], 7).unwrap_err().to_string(),
            "the validity bitmap has 129 bits for 130 rows; each row takes one"
        );
        let bits: Vec<u8> = (0..20u32).map(|at| (at.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect();
        for first in 0..17 {
            let column = column().with_validity(&bits, first).unwrap();
            for row in 0..130 {
                let at = first + row;
                assert_eq!(column.row(row).is_some(), bits[at / 8] >> (at % 8) & 1 == 1, "{first} {row}");
            }
        }
    }
}
