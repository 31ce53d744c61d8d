//! Arrays of strings as columns of the crate `lightfoot-pattern`, and its results as arrays.
//!
//! Both sides have Arrow's layout, so that a column borrows an array's values, offsets or views and
//! copies no string. Results of views share the array's buffers: what a group holds is a view of
//! the searched string's bytes, and rows without a match keep their views. **Leaves out**
//! dictionaries and runs: the rule rewrites no expression over them.

use arrow::array::{
    make_view, Array, ArrayRef, AsArray, BooleanArray, ByteView, GenericStringArray, OffsetSizeTrait,
    StringViewArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::DataType;
use datafusion::common::{exec_datafusion_err, exec_err, Result};
use lightfoot_pattern::column::{Bitmap, Column, StringColumn};
use std::ops::Range;
use std::sync::Arc;

/// Whether columns of this type are searched where they lie.
pub(crate) fn is_string(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Which rows a search reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Those that are not null: results of null rows are empty.
    Valid,
    /// All of them, where the caller gives the result the array's null rows anyway.
    All,
}

/// Calls `search` with the column that an array is.
///
/// # Errors
/// The array holds no strings, or is not what Arrow's format says.
pub(crate) fn with_column<T>(
    array: &dyn Array,
    rows: Rows,
    search: impl FnOnce(&Column<'_>) -> T,
) -> Result<T> {
    let column = match array.data_type() {
        DataType::Utf8 => {
            let strings = array.as_string::<i32>();
            Column::new(strings.value_data(), strings.value_offsets())
        }
        DataType::LargeUtf8 => {
            let strings = array.as_string::<i64>();
            Column::with_large_offsets(strings.value_data(), strings.value_offsets())
        }
        DataType::Utf8View => return with_views(array.as_string_view(), rows, search),
        other => return exec_err!("lightfoot's functions search columns of strings, not of {other}"),
    };
    let column = column.map_err(|error| exec_datafusion_err!("{error}"))?;
    Ok(search(&with_nulls(column, array, rows)?))
}

fn with_views<T>(array: &StringViewArray, rows: Rows, search: impl FnOnce(&Column<'_>) -> T) -> Result<T> {
    let bytes = array.views().inner().as_slice();
    let (views, _) = bytes.as_chunks::<16>();
    let buffers: Vec<&[u8]> = array.data_buffers().iter().map(|buffer| buffer.as_slice()).collect();
    let column = Column::from_views(views, &buffers).map_err(|error| exec_datafusion_err!("{error}"))?;
    Ok(search(&with_nulls(column, array, rows)?))
}

fn with_nulls<'a>(column: Column<'a>, array: &dyn Array, rows: Rows) -> Result<Column<'a>> {
    match array.nulls() {
        Some(nulls) if rows == Rows::Valid && nulls.null_count() > 0 => column
            .with_validity(nulls.validity(), nulls.offset())
            .map_err(|error| exec_datafusion_err!("{error}")),
        _ => Ok(column),
    }
}

/// Rows that match as an array of booleans, null where the searched rows are.
pub(crate) fn booleans(rows: &Bitmap, nulls: Option<&NullBuffer>) -> BooleanArray {
    BooleanArray::new(bits(rows), nulls.cloned())
}

fn bits(rows: &Bitmap) -> BooleanBuffer {
    let bytes: Vec<u8> = rows.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    BooleanBuffer::new(Buffer::from_vec(bytes), 0, rows.len())
}

/// A column of results as an array of the type of the array that was searched.
///
/// # Errors
/// Offsets of the type do not address so many bytes.
pub(crate) fn strings(column: StringColumn, data_type: &DataType) -> Result<ArrayRef> {
    let nulls = Some(NullBuffer::new(bits(column.validity()))).filter(|nulls| nulls.null_count() > 0);
    match data_type {
        DataType::Utf8 => {
            let offsets = column.small_offsets().map_err(|error| exec_datafusion_err!("{error}"))?;
            let (values, _, _) = column.into_parts();
            with_offsets(values, offsets, nulls)
        }
        DataType::LargeUtf8 => {
            let (values, offsets, _) = column.into_parts();
            with_offsets(values, offsets, nulls)
        }
        DataType::Utf8View => views(column, nulls),
        other => exec_err!("lightfoot's functions return columns of strings, not of {other}"),
    }
}

fn with_offsets<O: OffsetSizeTrait>(
    values: Vec<u8>,
    offsets: Vec<O>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(Arc::new(GenericStringArray::try_new(offsets, Buffer::from_vec(values), nulls)?))
}

fn views(column: StringColumn, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    // Views address 4 GB of a buffer.
    column.small_offsets().map_err(|error| exec_datafusion_err!("{error}"))?;
    let (values, offsets, _) = column.into_parts();
    let views: Vec<u128> = offsets
        .windows(2)
        .map(|row| make_view(&values[row[0] as usize..row[1] as usize], 0, row[0] as u32))
        .collect();
    let buffers: Arc<[Buffer]> = Arc::new([Buffer::from_vec(values)]);
    Ok(Arc::new(StringViewArray::try_new(ScalarBuffer::from(views), buffers, nulls)?))
}

/// Parts of an array's rows as an array that shares its buffers; null where there is none.
pub(crate) fn view_parts(array: &StringViewArray, spans: &[Option<Range<usize>>]) -> Result<ArrayRef> {
    let views: Vec<u128> = spans
        .iter()
        .enumerate()
        .map(|(row, span)| {
            let Some(span) = span else { return 0 };
            let whole = ByteView::from(array.views()[row]);
            let part = &array.value(row).as_bytes()[span.clone()];
            // What a short view has in place of a buffer is not read: its parts are short.
            make_view(part, whole.buffer_index, whole.offset.wrapping_add(span.start as u32))
        })
        .collect();
    let nulls = NullBuffer::from_iter(spans.iter().map(Option::is_some));
    let buffers = array.data_buffers().to_vec();
    Ok(Arc::new(StringViewArray::try_new(ScalarBuffer::from(views), buffers, Some(nulls))?))
}

/// An array's rows, of which those that are not null in `replaced` are replaced by it.
///
/// # Errors
/// The replaced rows have more bytes than a view addresses.
pub(crate) fn view_merged(array: &StringViewArray, replaced: StringColumn) -> Result<ArrayRef> {
    replaced.small_offsets().map_err(|error| exec_datafusion_err!("{error}"))?;
    let (values, offsets, rows) = replaced.into_parts();
    let mut views = array.views().to_vec();
    let mut buffers = array.data_buffers().to_vec();
    for row in rows.ones() {
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        views[row] = make_view(&values[start..end], buffers.len() as u32, start as u32);
    }
    buffers.push(Buffer::from_vec(values));
    let nulls = array.nulls().cloned();
    Ok(Arc::new(StringViewArray::try_new(ScalarBuffer::from(views), buffers, nulls)?))
}
