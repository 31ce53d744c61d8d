//! Arrays of strings as columns of the crate `lightfoot-pattern`, and its results as arrays.
//!
//! Both sides have Arrow's layout, so that a column borrows an array's values, offsets or views and
//! copies no string. Results of views share the array's buffers: what a group holds is a view of
//! the searched string's bytes, and rows without a match keep their views. **Leaves out**
//! dictionaries and runs: the rule rewrites no expression over them.

use arrow::array::{
    make_view, Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, ByteView, GenericStringArray,
    OffsetSizeTrait, StringViewArray,
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
    let words = rows.words().iter().map(|word| word.to_le()).collect();
    BooleanBuffer::new(Buffer::from_vec::<u64>(words), 0, rows.len())
}

/// A column of results as an array of the type of the array that was searched.
///
/// # Errors
/// Offsets of the type do not address so many bytes.
///
/// # Safety
/// The column is what an expression [for strings](lightfoot_pattern::column::ColumnRegex::for_strings)
/// made of rows and a replacement that are UTF-8.
pub(crate) unsafe fn strings(column: StringColumn, data_type: &DataType) -> Result<ArrayRef> {
    let nulls = Some(NullBuffer::new(bits(column.validity()))).filter(|nulls| nulls.null_count() > 0);
    match data_type {
        DataType::Utf8 => {
            let offsets = column.small_offsets().map_err(|error| exec_datafusion_err!("{error}"))?;
            let (values, _, _) = column.into_parts();
            // SAFETY: the caller's.
            Ok(unsafe { with_offsets(values, offsets, nulls) })
        }
        DataType::LargeUtf8 => {
            let (values, offsets, _) = column.into_parts();
            // SAFETY: the caller's.
            Ok(unsafe { with_offsets(values, offsets, nulls) })
        }
        DataType::Utf8View => views(column, nulls),
        other => exec_err!("lightfoot's functions return columns of strings, not of {other}"),
    }
}

/// # Safety
/// Offsets ascend within the values, and what lies between two of them is UTF-8.
unsafe fn with_offsets<O: OffsetSizeTrait>(
    values: Vec<u8>,
    offsets: Vec<O>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    // SAFETY: the caller's. A check would read all bytes again, at a third of the search's speed
    // where they are not ASCII.
    unsafe {
        let offsets = OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets));
        Arc::new(GenericStringArray::new_unchecked(offsets, Buffer::from_vec(values), nulls))
    }
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

/// An array that shares an array's buffers: parts of some of its rows, and nulls.
pub(crate) struct Parts<'a> {
    array: &'a StringViewArray,
    views: Vec<u128>,
    /// Which rows are there.
    valid: BooleanBufferBuilder,
}

impl Parts<'_> {
    /// An array of nulls so far.
    pub(crate) fn of(array: &StringViewArray) -> Parts<'_> {
        let rows = array.len();
        let mut valid = BooleanBufferBuilder::new(rows);
        valid.append_n(rows, false);
        Parts { array, views: vec![0; rows], valid }
    }

    /// Gives a row a part of its string.
    ///
    /// # Panics
    /// The part is none of a string: it leaves it or divides a character.
    pub(crate) fn set(&mut self, row: usize, part: Range<usize>) {
        let whole = ByteView::from(self.array.views()[row]);
        // What a short view has in place of an offset is not read: its parts are short.
        let offset = whole.offset.wrapping_add(part.start as u32);
        let part = &self.array.value(row)[part];
        self.views[row] = make_view(part.as_bytes(), whole.buffer_index, offset);
        self.valid.set_bit(row, true);
    }

    /// The array.
    pub(crate) fn finish(mut self) -> ArrayRef {
        let nulls = NullBuffer::new(self.valid.finish());
        let buffers = self.array.data_buffers().to_vec();
        // SAFETY: each view is empty, or `set` made it of a string and where that lies in these
        // buffers; as many rows are null or not.
        let array = unsafe { StringViewArray::new_unchecked(self.views.into(), buffers, Some(nulls)) };
        Arc::new(array)
    }
}

/// An array's rows, of which those that are not null in `replaced` are replaced by it.
///
/// # Errors
/// The replaced rows have more bytes than a view addresses, or are not UTF-8.
pub(crate) fn view_merged(array: &StringViewArray, replaced: StringColumn) -> Result<ArrayRef> {
    replaced.small_offsets().map_err(|error| exec_datafusion_err!("{error}"))?;
    let (values, offsets, rows) = replaced.into_parts();
    let text = std::str::from_utf8(&values).map_err(|error| exec_datafusion_err!("{error}"))?;
    let mut views = array.views().to_vec();
    let mut buffers = array.data_buffers().to_vec();
    for row in rows.ones() {
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        views[row] = make_view(text[start..end].as_bytes(), buffers.len() as u32, start as u32);
    }
    buffers.push(Buffer::from_vec(values));
    // SAFETY: views of the array point to its buffers, which are all there in their places, and the
    // other ones were made of strings in the buffer behind; null rows are the array's.
    let array = unsafe { StringViewArray::new_unchecked(views.into(), buffers, array.nulls().cloned()) };
    Ok(Arc::new(array))
}
