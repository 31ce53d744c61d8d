//! Columns of strings that Python objects lend by the Arrow C data interface, and how each chunk is
//! read as a column of crate `pattern`.
//!
//! An object lends one array by `__arrow_c_array__` or a stream of arrays by `__arrow_c_stream__`,
//! as capsules around structures of C. The structures are moved out of their capsules and released
//! when the [`Lent`] column is dropped; strings are not copied. The interface has no length for
//! values, so offsets are checked among themselves and against the last one. **Leaves out**
//! dictionaries and tables, whose refusals say what to pass. **Source**: The Arrow C data interface
//! and its PyCapsule protocol.

use lightfoot_pattern::column::{Column, ColumnError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::{null, null_mut};
use std::slice::from_raw_parts;

pub(crate) const SCHEMA_NAME: &CStr = c"arrow_schema";
pub(crate) const ARRAY_NAME: &CStr = c"arrow_array";
pub(crate) const STREAM_NAME: &CStr = c"arrow_array_stream";

/// No array has as many rows or buffers: beyond it, sizes in bytes would not fit an address.
const MOST_ROWS: usize = 1 << 48;

/// A structure of C that is released by a function of its own.
pub(crate) trait Structure: Sized {
    /// Calls the structure's release function, if it was not called.
    ///
    /// # Safety
    /// The structure is as its producer made it, or released.
    unsafe fn release(&mut self);
    /// A structure that is released already.
    fn released() -> Self;
}

/// `struct ArrowSchema` of the interface.
#[repr(C)]
pub(crate) struct ArrowSchema {
    pub(crate) format: *const c_char,
    pub(crate) name: *const c_char,
    pub(crate) metadata: *const c_char,
    pub(crate) flags: i64,
    pub(crate) n_children: i64,
    pub(crate) children: *mut *mut ArrowSchema,
    pub(crate) dictionary: *mut ArrowSchema,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub(crate) private_data: *mut c_void,
}

/// `struct ArrowArray` of the interface.
#[repr(C)]
pub(crate) struct ArrowArray {
    pub(crate) length: i64,
    pub(crate) null_count: i64,
    pub(crate) offset: i64,
    pub(crate) n_buffers: i64,
    pub(crate) n_children: i64,
    pub(crate) buffers: *mut *const c_void,
    pub(crate) children: *mut *mut ArrowArray,
    pub(crate) dictionary: *mut ArrowArray,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(crate) private_data: *mut c_void,
}

/// `struct ArrowArrayStream` of the interface.
#[repr(C)]
pub(crate) struct ArrowArrayStream {
    pub(crate) get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub(crate) get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub(crate) get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    pub(crate) private_data: *mut c_void,
}

macro_rules! structure {
    ($($name:ident { $($field:ident: $zero:expr),* }),*) => {$(
        impl Structure for $name {
            unsafe fn release(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the caller vouches for the structure, whose release function takes
                    // it.
                    unsafe { release(self) };
                    self.release = None;
                }
            }
            fn released() -> $name {
                $name { $($field: $zero,)* release: None, private_data: null_mut() }
            }
        }
    )*};
}
structure!(
    ArrowSchema {
        format: null(),
        name: null(),
        metadata: null(),
        flags: 0,
        n_children: 0,
        children: null_mut(),
        dictionary: null_mut()
    },
    ArrowArray {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: null_mut(),
        children: null_mut(),
        dictionary: null_mut()
    },
    ArrowArrayStream { get_schema: None, get_next: None, get_last_error: None }
);

/// A structure that is released when it is dropped.
pub(crate) struct Owned<S: Structure>(pub(crate) S);

impl<S: Structure> Drop for Owned<S> {
    fn drop(&mut self) {
        // SAFETY: an owned structure is one that a producer filled, or a released one.
        unsafe { self.0.release() }
    }
}

/// Takes the structure out of a capsule, which keeps a released one.
fn take<S: Structure>(capsule: &Bound<'_, PyAny>, name: &'static CStr) -> PyResult<Owned<S>> {
    let wrong = || PyTypeError::new_err(format!("expected a capsule {}", name.to_string_lossy()));
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| wrong())?;
    let pointer = capsule.pointer_checked(Some(name)).map_err(|_| wrong())?.cast::<S>();
    // SAFETY: a capsule of this name holds this structure of the interface, which nobody else uses
    // while the interpreter's lock is held; it is left released, as a consumer has to.
    Ok(Owned(unsafe { std::mem::replace(&mut *pointer.as_ptr(), S::released()) }))
}

/// How the strings of a column lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Offsets,
    LargeOffsets,
    Views,
}

/// The type of a column of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StringType {
    pub(crate) layout: Layout,
    /// UTF-8, rather than any bytes.
    pub(crate) is_text: bool,
}

/// A column that a Python object lends: chunks of one type.
pub(crate) struct Lent {
    pub(crate) kind: StringType,
    chunks: Vec<Owned<ArrowArray>>,
}

// SAFETY: what the structures point to is immutable while they are not released, which happens in
// the drop only; the interface lets any thread read and release them.
unsafe impl Send for Lent {}
// SAFETY: shared references only read immutable memory.
unsafe impl Sync for Lent {}

impl Lent {
    /// The column that an object lends; `None` if it lends none.
    ///
    /// # Errors
    /// `TypeError` for columns of other types, and what the object itself raises.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Lent>> {
        if object.hasattr("__arrow_c_array__")? {
            let pair = object.call_method0("__arrow_c_array__")?;
            let wrong = |_| PyTypeError::new_err("__arrow_c_array__: expected a pair of capsules");
            let pair = pair.cast_into::<PyTuple>().map_err(|error| wrong(PyErr::from(error)))?;
            if pair.len() != 2 {
                return Err(PyTypeError::new_err("__arrow_c_array__: expected a pair of capsules"));
            }
            let schema = take::<ArrowSchema>(&pair.get_item(0)?, SCHEMA_NAME)?;
            let array = take::<ArrowArray>(&pair.get_item(1)?, ARRAY_NAME)?;
            return Ok(Some(Lent { kind: string_type(&schema)?, chunks: vec![array] }));
        }
        if object.hasattr("__arrow_c_stream__")? {
            let mut stream = take(&object.call_method0("__arrow_c_stream__")?, STREAM_NAME)?;
            return all_of(&mut stream).map(Some);
        }
        Ok(None)
    }

    /// The number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Calls `work` with a chunk as a column, with the validity bits that it has.
    pub(crate) fn with_chunk<T>(
        &self,
        chunk: usize,
        work: impl FnOnce(&Column<'_>) -> T,
    ) -> Result<T, ChunkError> {
        let raw = Raw::of(&self.chunks[chunk].0, self.kind.layout)?;
        let column = match raw.strings {
            Strings::Offsets(values, offsets) => Column::new(values, offsets)?,
            Strings::LargeOffsets(values, offsets) => Column::with_large_offsets(values, offsets)?,
            Strings::Views(views, ref buffers) => Column::from_views(views, buffers)?,
        };
        Ok(work(&match raw.valid {
            Some((bits, first)) => column.with_validity(bits, first)?,
            None => column,
        }))
    }

    /// The validity of a chunk: its bytes and the bit of the first row.
    pub(crate) fn validity(&self, chunk: usize) -> Option<(&[u8], usize)> {
        Raw::of(&self.chunks[chunk].0, self.kind.layout).ok()?.valid
    }
}

/// A chunk that cannot be read.
pub(crate) enum ChunkError {
    /// Its strings contradict themselves.
    Column(ColumnError),
    /// Its structure is not one of the column's type.
    Structure(&'static str),
}

impl From<ColumnError> for ChunkError {
    fn from(error: ColumnError) -> ChunkError {
        ChunkError::Column(error)
    }
}

impl From<ChunkError> for PyErr {
    fn from(error: ChunkError) -> PyErr {
        match error {
            // The values of a lent column end where its last row does.
            ChunkError::Column(ColumnError::BeyondValues { row, end, bytes }) => {
                let message = format!("offsets decrease: row {row} ends at {end}, the last one at {bytes}");
                PyValueError::new_err(format!("column: {message}"))
            }
            ChunkError::Column(error) => PyValueError::new_err(format!("column: {error}")),
            ChunkError::Structure(what) => PyValueError::new_err(format!("column: {what}")),
        }
    }
}

/// Reads a stream to its end.
fn all_of(stream: &mut Owned<ArrowArrayStream>) -> PyResult<Lent> {
    let (Some(get_schema), Some(get_next)) = (stream.0.get_schema, stream.0.get_next) else {
        return Err(PyValueError::new_err("column: the stream has been read before"));
    };
    let mut schema = Owned(ArrowSchema::released());
    // SAFETY: the stream is its producer's and not released, and the schema is to be filled.
    let status = unsafe { get_schema(&mut stream.0, &mut schema.0) };
    if status != 0 {
        return Err(stream_error(stream, status));
    }
    let kind = string_type(&schema)?;
    let mut chunks = Vec::new();
    loop {
        let mut array = Owned(ArrowArray::released());
        // SAFETY: the stream is its producer's and not released, and the array is to be filled.
        let status = unsafe { get_next(&mut stream.0, &mut array.0) };
        if status != 0 {
            return Err(stream_error(stream, status));
        }
        if array.0.release.is_none() {
            return Ok(Lent { kind, chunks });
        }
        chunks.push(array);
    }
}

fn stream_error(stream: &mut Owned<ArrowArrayStream>, status: c_int) -> PyErr {
    // SAFETY: the stream is its producer's and has just failed, which is when it may be asked why.
    let said = stream.0.get_last_error.map_or(null(), |why| unsafe { why(&mut stream.0) });
    let said = match said.is_null() {
        true => format!("error {status}"),
        // SAFETY: the producer's message ends with a NUL and lives until the stream is used again.
        false => unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned(),
    };
    PyValueError::new_err(format!("column: the stream failed: {said}"))
}

/// The type that a schema describes.
fn string_type(schema: &Owned<ArrowSchema>) -> PyResult<StringType> {
    if schema.0.format.is_null() {
        return Err(PyValueError::new_err("column: the schema has no format"));
    }
    // SAFETY: the format of a schema that is not released is a string that ends with a NUL.
    let format = unsafe { CStr::from_ptr(schema.0.format) }.to_string_lossy();
    if !schema.0.dictionary.is_null() {
        let message = "column: a dictionary; cast it to strings, or search its values";
        return Err(PyTypeError::new_err(message));
    }
    let (layout, is_text) = match &*format {
        "u" => (Layout::Offsets, true),
        "z" => (Layout::Offsets, false),
        "U" => (Layout::LargeOffsets, true),
        "Z" => (Layout::LargeOffsets, false),
        "vu" => (Layout::Views, true),
        "vz" => (Layout::Views, false),
        "+s" => return Err(PyTypeError::new_err("column: a table; pass one of its columns")),
        other => {
            let message = format!("column: expected strings or binaries, got the Arrow format {other:?}");
            return Err(PyTypeError::new_err(message));
        }
    };
    Ok(StringType { layout, is_text })
}

/// A chunk as slices.
struct Raw<'a> {
    strings: Strings<'a>,
    valid: Option<(&'a [u8], usize)>,
}

enum Strings<'a> {
    Offsets(&'a [u8], &'a [i32]),
    LargeOffsets(&'a [u8], &'a [i64]),
    Views(&'a [[u8; 16]], Vec<&'a [u8]>),
}

impl<'a> Raw<'a> {
    fn of(array: &'a ArrowArray, layout: Layout) -> Result<Raw<'a>, ChunkError> {
        let number = |value: i64| usize::try_from(value).ok().filter(|&value| value < MOST_ROWS);
        let (Some(rows), Some(first), Some(count)) =
            (number(array.length), number(array.offset), number(array.n_buffers))
        else {
            return Err(ChunkError::Structure("a length or offset that no memory has"));
        };
        let least = if layout == Layout::Views { 2 } else { 3 };
        if count < least || array.buffers.is_null() {
            return Err(ChunkError::Structure("fewer buffers than its type has"));
        }
        // SAFETY: an array that is not released has `n_buffers` pointers, which live as long as it.
        let buffers: &'a [*const c_void] = unsafe { from_raw_parts(array.buffers.cast(), count) };
        let strings = match layout {
            Layout::Offsets => {
                let (values, offsets) = with_offsets::<i32>(buffers, first, rows, &[0])?;
                Strings::Offsets(values, offsets)
            }
            Layout::LargeOffsets => {
                let (values, offsets) = with_offsets::<i64>(buffers, first, rows, &[0])?;
                Strings::LargeOffsets(values, offsets)
            }
            Layout::Views => views(buffers, first, rows)?,
        };
        let valid = (!buffers[0].is_null() && array.null_count != 0)
            .then(|| Ok::<_, ChunkError>((slice::<u8>(buffers[0], (first + rows).div_ceil(8))?, first)))
            .transpose()?;
        Ok(Raw { strings, valid })
    }
}

/// Memory of an array as a slice.
fn slice<'a, T>(start: *const c_void, length: usize) -> Result<&'a [T], ChunkError> {
    if length == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(ChunkError::Structure("a buffer is missing"));
    }
    if !start.cast::<T>().is_aligned() {
        return Err(ChunkError::Structure("a buffer is not aligned; pass a copy"));
    }
    // SAFETY: the producer vouches that the buffer holds what the array's type, length and offset
    // say, for as long as the array is not released; callers pass lengths that follow from those,
    // and element types of which all bytes are valid.
    Ok(unsafe { from_raw_parts(start.cast(), length) })
}

/// Values and offsets of a chunk. One without rows may come without any offset: it gets `no_rows`.
fn with_offsets<'a, O: Copy + Into<i64>>(
    buffers: &[*const c_void],
    first: usize,
    rows: usize,
    no_rows: &'static [O],
) -> Result<(&'a [u8], &'a [O]), ChunkError> {
    if rows == 0 {
        return Ok((&[], no_rows));
    }
    let offsets = &slice::<O>(buffers[1], first + rows + 1)?[first..];
    let last: i64 = offsets[rows].into();
    let values = slice::<u8>(buffers[2], usize::try_from(last).unwrap_or(0))?;
    Ok((values, offsets))
}

fn views<'a>(buffers: &[*const c_void], first: usize, rows: usize) -> Result<Strings<'a>, ChunkError> {
    let views = match rows {
        0 => &[],
        _ => &slice::<[u8; 16]>(buffers[1], first + rows)?[first..],
    };
    // Behind the views stand buffers of strings, and last their lengths.
    let strings = buffers.get(2..buffers.len().saturating_sub(1)).unwrap_or(&[]);
    let lengths = match strings.len() {
        0 => &[],
        count => slice::<i64>(buffers[buffers.len() - 1], count)?,
    };
    let pairs = strings.iter().zip(lengths);
    let strings = pairs.map(|(&start, &length)| slice(start, usize::try_from(length).unwrap_or(0)));
    Ok(Strings::Views(views, strings.collect::<Result<_, _>>()?))
}
