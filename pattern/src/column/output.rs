//! Columns that results are: owned values, offsets and validity, in Arrow's layout.

use super::error::ColumnError;
use super::rows::Column;
use crate::bits::Bitmap;

/// A column of strings that owns its memory: what extraction and replacement return.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringColumn {
    values: Vec<u8>,
    /// One more than rows; the first is 0.
    offsets: Vec<i64>,
    valid: Bitmap,
}

impl StringColumn {
    /// A column of null rows so far; each is appended once.
    pub(super) fn with_rows(rows: usize, bytes: usize) -> StringColumn {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        StringColumn { values: Vec::with_capacity(bytes), offsets, valid: Bitmap::zeros(rows) }
    }

    /// Ends a row: its bytes are what was written to the values since the last one.
    pub(super) fn end_row(&mut self, is_valid: bool) {
        let row = self.offsets.len() - 1;
        self.offsets.push(self.values.len() as i64);
        self.valid.set(row, is_valid);
    }

    /// Ends rows up to `row` that are null.
    pub(super) fn end_null_rows(&mut self, row: usize) {
        // The bits of null rows are not set yet.
        self.offsets.resize(row + 1, self.values.len() as i64);
    }

    /// The values, to be appended to.
    pub(super) fn values_mut(&mut self) -> &mut Vec<u8> {
        &mut self.values
    }

    /// The bytes of all rows.
    pub fn values(&self) -> &[u8] {
        &self.values
    }

    /// Row `i` is `values[offsets[i]..offsets[i + 1]]`.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// The offsets with 32 bits.
    ///
    /// # Errors
    /// The values have more bytes than such offsets address.
    pub fn small_offsets(&self) -> Result<Vec<i32>, ColumnError> {
        match i32::try_from(self.values.len()) {
            Ok(_) => Ok(self.offsets.iter().map(|&offset| offset as i32).collect()),
            Err(_) => Err(ColumnError::TooLong { bytes: self.values.len() }),
        }
    }

    /// Which rows are not null.
    pub fn validity(&self) -> &Bitmap {
        &self.valid
    }

    /// A row's bytes; `None` for a null row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, row: usize) -> Option<&[u8]> {
        let bytes = &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize];
        self.valid.get(row).then_some(bytes)
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.valid.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.valid.is_empty()
    }

    /// The column, to be searched again.
    pub fn as_column(&self) -> Column<'_> {
        let column = Column::with_large_offsets(&self.values, &self.offsets);
        column.expect("offsets were appended in order").with_valid_rows(self.valid.clone())
    }

    /// Values, offsets and validity.
    pub fn into_parts(self) -> (Vec<u8>, Vec<i64>, Bitmap) {
        (self.values, self.offsets, self.valid)
    }
}
