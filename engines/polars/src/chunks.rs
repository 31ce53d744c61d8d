//! Chunks of strings as columns of the crate `lightfoot-pattern`, and its results as chunks.
//!
//! Polars keeps strings as Arrow's views: 16 bytes a row, with the string or its place. A column
//! borrows them, and results share their memory: what a group holds is a view of the searched
//! string's bytes, and a row without a match keeps its view. Only rows with replaced matches have
//! new bytes, which the chunk takes as they are.

use lightfoot_pattern::column::{Bitmap as Rows, Column, StringColumn};
use polars_arrow::array::{Array, BooleanArray, Utf8ViewArray, View};
use polars_arrow::bitmap::Bitmap;
use polars_arrow::datatypes::ArrowDataType;
use polars_buffer::Buffer;
use polars_core::prelude::{polars_err, PolarsResult};
use std::ops::Range;

/// What a view addresses of a buffer, in bytes.
const MOST_BUFFER_BYTES: usize = u32::MAX as usize;

/// Calls `search` with the column that a chunk is; null rows match nothing.
pub(crate) fn with_column<T>(
    chunk: &Utf8ViewArray,
    search: impl FnOnce(&Column<'_>) -> T,
) -> PolarsResult<T> {
    let views: &[[u8; 16]] = bytemuck::cast_slice(chunk.views().as_slice());
    let buffers: Vec<&[u8]> = chunk.data_buffers().iter().map(|buffer| buffer.as_slice()).collect();
    let column = Column::from_views(views, &buffers).and_then(|column| match chunk.validity() {
        Some(validity) => {
            let (bytes, first, _) = validity.as_slice();
            column.with_validity(bytes, first)
        }
        None => Ok(column),
    });
    Ok(search(&column.map_err(|error| polars_err!(ComputeError: "{error}"))?))
}

/// Rows that match as a chunk of booleans, null where the searched rows are.
pub(crate) fn booleans(rows: &Rows, validity: Option<&Bitmap>) -> BooleanArray {
    let bits = Bitmap::from_u8_vec(rows.to_bytes(), rows.len());
    BooleanArray::new(ArrowDataType::Boolean, bits, validity.cloned())
}

/// A chunk that shares a chunk's buffers: parts of some of its rows, and nulls.
pub(crate) struct Parts<'c> {
    chunk: &'c Utf8ViewArray,
    views: Vec<View>,
    /// Bit `i % 8` of byte `i / 8` says whether row `i` is there.
    valid: Vec<u8>,
}

impl Parts<'_> {
    /// A chunk of nulls so far.
    pub(crate) fn of(chunk: &Utf8ViewArray) -> Parts<'_> {
        let rows = chunk.len();
        Parts { chunk, views: vec![View::default(); rows], valid: vec![0; rows.div_ceil(8)] }
    }

    /// Gives a row a part of its string.
    ///
    /// # Panics
    /// The part is none of a string: it leaves it or divides a character.
    pub(crate) fn set(&mut self, row: usize, part: Range<usize>) {
        let whole = self.chunk.views()[row];
        let offset = if whole.is_inline() { 0 } else { whole.offset + part.start as u32 };
        let part = &self.chunk.value(row)[part];
        self.views[row] = View::new_from_bytes(part.as_bytes(), whole.buffer_idx, offset);
        self.valid[row / 8] |= 1 << (row % 8);
    }

    /// The chunk.
    pub(crate) fn finish(self) -> PolarsResult<Utf8ViewArray> {
        let validity = Bitmap::from_u8_vec(self.valid, self.views.len());
        chunk_of(self.views, self.chunk.data_buffers().clone(), Some(validity))
    }
}

/// The rows of a chunk, of which those that are not null in `replaced` are replaced by it.
pub(crate) fn merged(chunk: &Utf8ViewArray, replaced: StringColumn) -> PolarsResult<Utf8ViewArray> {
    merged_within(chunk, replaced, MOST_BUFFER_BYTES)
}

fn merged_within(
    chunk: &Utf8ViewArray,
    replaced: StringColumn,
    most_buffer_bytes: usize,
) -> PolarsResult<Utf8ViewArray> {
    let (values, offsets, rows) = replaced.into_parts();
    let values = Buffer::from(values);
    let mut views = chunk.views().as_slice().to_vec();
    let mut buffers: Vec<Buffer<u8>> = chunk.data_buffers().iter().cloned().collect();
    // A buffer's part of the values that no view behind it addresses any more.
    let mut first = 0;
    let mut last = 0;
    for row in rows.ones() {
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        if end - first > most_buffer_bytes {
            buffers.push(values.clone().sliced(first..start));
            first = start;
        }
        let place = start.saturating_sub(first) as u32;
        views[row] = View::new_from_bytes(&values[start..end], buffers.len() as u32, place);
        last = end;
    }
    if last > first {
        buffers.push(values.sliced(first..last));
    }
    // What a null row holds is nobody's business, and need not be checked.
    if let Some(validity) = chunk.validity().filter(|validity| validity.unset_bits() > 0) {
        for (view, is_valid) in views.iter_mut().zip(validity.iter()) {
            if !is_valid {
                *view = View::default();
            }
        }
    }
    chunk_of(views, Buffer::from(buffers), chunk.validity().cloned())
}

/// A chunk of views. Polars checks that they lie within buffers and are UTF-8: view by view, where
/// making strings of binaries would have it read all buffers.
fn chunk_of(
    views: Vec<View>,
    buffers: Buffer<Buffer<u8>>,
    validity: Option<Bitmap>,
) -> PolarsResult<Utf8ViewArray> {
    Utf8ViewArray::try_new(ArrowDataType::Utf8View, views.into(), buffers, validity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightfoot_pattern::column::{ColumnRegex, Occurrences};

    /// Buffers end where a view could not address their bytes.
    #[test]
    fn long_results_lie_in_several_buffers() {
        let rows: Vec<String> = (0..50).map(|row| format!("row {row} of a column of strings")).collect();
        let chunk = Utf8ViewArray::from_slice_values(&rows);
        let regex = ColumnRegex::new("[1-9]+").unwrap();
        let expected: Vec<String> = rows
            .iter()
            .map(|row| row.replace(['1', '2', '3', '4', '5', '6', '7', '8', '9'], "#").replace("##", "#"))
            .collect();
        for most_buffer_bytes in [30, 33, 100, 1500, MOST_BUFFER_BYTES] {
            let found =
                with_column(&chunk, |column| regex.replace_matching(column, b"#", Occurrences::All)).unwrap();
            let merged = merged_within(&chunk, found, most_buffer_bytes).unwrap();
            assert_eq!(merged.values_iter().collect::<Vec<_>>(), expected, "{most_buffer_bytes}");
            let added = merged.data_buffers().len() - chunk.data_buffers().len();
            assert_eq!(added == 1, most_buffer_bytes >= 1500, "{added} for {most_buffer_bytes}");
        }
    }

    #[test]
    fn results_share_memory() {
        let chunk =
            Utf8ViewArray::from_slice_values(["id=a number of many digits;", "nothing that matches here"]);
        let regex = ColumnRegex::new("id=([^;]+)").unwrap();
        let mut parts = Parts::of(&chunk);
        with_column(&chunk, |column| regex.each_group(column, 1, |row, part| parts.set(row, part)))
            .unwrap()
            .unwrap();
        let found = parts.finish().unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), [Some("a number of many digits"), None]);
        assert!(found.data_buffers()[0].is_same_buffer(&chunk.data_buffers()[0]));
        let replaced =
            with_column(&chunk, |column| regex.replace_matching(column, b"", Occurrences::All)).unwrap();
        let merged = merged(&chunk, replaced).unwrap();
        assert_eq!(merged.value(1).as_ptr(), chunk.value(1).as_ptr());
        assert_eq!(merged.value(0), ";");
    }
}
