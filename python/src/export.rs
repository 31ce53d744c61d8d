//! Columns that searches made, lent to other libraries by the Arrow C data interface.
//!
//! A [`Column`] owns its chunks and lends their memory: an export holds a reference to its chunk,
//! so it may outlive the column. It is lent as a stream alone, which any number of chunks is.
//! **Source**: The Arrow C data interface and its PyCapsule protocol.

use crate::arrow::{ArrowArray, ArrowArrayStream, ArrowSchema, Structure, SCHEMA_NAME, STREAM_NAME};
use crate::buffer::Buffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyString};
use pyo3::IntoPyObjectExt;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::{null, NonNull};
use std::sync::Arc;

/// The flag of a schema whose arrays may hold nulls.
const NULLABLE: i64 = 2;
/// What a stream's functions return for success.
const SUCCESS: c_int = 0;

/// The type of a column that a search made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    UInt32,
    Int64,
    String,
    LargeString,
    Binary,
    LargeBinary,
}

impl Kind {
    fn format(self) -> &'static CStr {
        match self {
            Kind::Bool => c"b",
            Kind::UInt32 => c"I",
            Kind::Int64 => c"l",
            Kind::String => c"u",
            Kind::LargeString => c"U",
            Kind::Binary => c"z",
            Kind::LargeBinary => c"Z",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::UInt32 => "uint32",
            Kind::Int64 => "int64",
            Kind::String => "string",
            Kind::LargeString => "large_string",
            Kind::Binary => "binary",
            Kind::LargeBinary => "large_binary",
        }
    }
}

/// The values of a chunk, in Arrow's layout.
pub(crate) enum Values {
    /// One bit a row.
    Bits(Vec<u64>),
    UInt32(Vec<u32>),
    Int64(Vec<i64>),
    Strings(Vec<u8>, Vec<i32>),
    LargeStrings(Vec<u8>, Vec<i64>),
}

/// A chunk of a column.
pub(crate) struct Chunk {
    pub(crate) rows: usize,
    pub(crate) values: Values,
    /// A bit for each row that is not null, unless none is.
    pub(crate) valid: Option<Vec<u64>>,
}

impl Chunk {
    fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|words| bit(words, row))
    }

    fn null_count(&self) -> usize {
        let valid =
            self.valid.as_ref().map(|words| words.iter().map(|word| word.count_ones() as usize).sum());
        valid.map_or(0, |valid: usize| self.rows.saturating_sub(valid))
    }

    /// The addresses of the buffers, validity first.
    fn buffers(&self) -> Vec<*const c_void> {
        let valid = self.valid.as_ref().map_or(null(), |words| words.as_ptr().cast());
        match &self.values {
            Values::Bits(words) => vec![valid, words.as_ptr().cast()],
            Values::UInt32(numbers) => vec![valid, numbers.as_ptr().cast()],
            Values::Int64(numbers) => vec![valid, numbers.as_ptr().cast()],
            Values::Strings(values, offsets) => {
                vec![valid, offsets.as_ptr().cast(), values.as_ptr().cast()]
            }
            Values::LargeStrings(values, offsets) => {
                vec![valid, offsets.as_ptr().cast(), values.as_ptr().cast()]
            }
        }
    }
}

fn bit(words: &[u64], row: usize) -> bool {
    words[row / 64] >> (row % 64) & 1 == 1
}

/// A column that a search made: pyarrow, polars and others take it without a copy.
#[pyclass(frozen, module = "lightfoot")]
pub(crate) struct Column {
    kind: Kind,
    chunks: Vec<Arc<Chunk>>,
}

impl Column {
    pub(crate) fn new(kind: Kind, chunks: Vec<Chunk>) -> Column {
        Column { kind, chunks: chunks.into_iter().map(Arc::new).collect() }
    }
}

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.rows).sum()
    }

    fn __repr__(&self) -> String {
        let (rows, nulls) = (self.__len__(), self.null_count());
        format!("<lightfoot.Column: {}, {rows} rows, {nulls} null>", self.kind.name())
    }

    /// The name of the column's Arrow type.
    #[getter]
    fn r#type(&self) -> &'static str {
        self.kind.name()
    }

    /// The number of chunks.
    #[getter]
    fn num_chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The number of null rows.
    #[getter]
    fn null_count(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.null_count()).sum()
    }

    /// The rows as Python objects, None for null rows.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for chunk in &self.chunks {
            for row in 0..chunk.rows {
                list.append(self.object(py, chunk, row)?)?;
            }
        }
        Ok(list)
    }

    /// Writes the rows to a NumPy array of as many elements.
    fn write_to(&self, out: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.null_count() > 0 {
            let message =
                "the column has null rows, which NumPy arrays have not; pass it to pyarrow or polars";
            return Err(PyValueError::new_err(message));
        }
        let mut out = Buffer::of("out", out)?;
        let rows = self.__len__();
        let mut at = 0;
        for chunk in &self.chunks {
            let part = at..at + chunk.rows;
            at = part.end;
            match &chunk.values {
                Values::Bits(words) => {
                    let rows = out.elements_mut::<u8>(rows, &[])?[part].iter_mut().enumerate();
                    rows.for_each(|(row, out)| *out = u8::from(bit(words, row)));
                }
                Values::UInt32(numbers) => out.elements_mut(rows, &[])?[part].copy_from_slice(numbers),
                Values::Int64(numbers) => out.elements_mut(rows, &[])?[part].copy_from_slice(numbers),
                _ => return Err(PyTypeError::new_err("strings have no NumPy array here; use to_pylist()")),
            }
        }
        Ok(())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule(py, schema(self.kind), SCHEMA_NAME)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish for another type may be ignored by the protocol.
        drop(requested_schema);
        let rest = Box::new(Rest { kind: self.kind, chunks: self.chunks.clone(), next: 0 });
        let stream = ArrowArrayStream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_stream),
            private_data: Box::into_raw(rest).cast(),
        };
        capsule(py, stream, STREAM_NAME)
    }
}

impl Column {
    fn object<'py>(&self, py: Python<'py>, chunk: &Chunk, row: usize) -> PyResult<Bound<'py, PyAny>> {
        if !chunk.is_valid(row) {
            return py.None().into_bound_py_any(py);
        }
        let bytes = match &chunk.values {
            Values::Bits(words) => return bit(words, row).into_bound_py_any(py),
            Values::UInt32(numbers) => return numbers[row].into_bound_py_any(py),
            Values::Int64(numbers) => return numbers[row].into_bound_py_any(py),
            Values::Strings(values, offsets) => &values[offsets[row] as usize..offsets[row + 1] as usize],
            Values::LargeStrings(values, offsets) => {
                &values[offsets[row] as usize..offsets[row + 1] as usize]
            }
        };
        match self.kind {
            Kind::String | Kind::LargeString => {
                Ok(PyString::new(py, &String::from_utf8_lossy(bytes)).into_any())
            }
            _ => Ok(PyBytes::new(py, bytes).into_any()),
        }
    }
}

/// What a stream has not handed out.
struct Rest {
    kind: Kind,
    chunks: Vec<Arc<Chunk>>,
    next: usize,
}

/// What an exported array keeps alive.
struct Kept {
    _chunk: Arc<Chunk>,
    buffers: Vec<*const c_void>,
}

fn schema(kind: Kind) -> ArrowSchema {
    let flags = NULLABLE;
    ArrowSchema {
        format: kind.format().as_ptr(),
        name: c"".as_ptr(),
        flags,
        release: Some(release_schema),
        ..ArrowSchema::released()
    }
}

fn array(chunk: &Arc<Chunk>) -> ArrowArray {
    let mut kept = Box::new(Kept { _chunk: chunk.clone(), buffers: chunk.buffers() });
    ArrowArray {
        length: chunk.rows as i64,
        null_count: chunk.null_count() as i64,
        n_buffers: kept.buffers.len() as i64,
        buffers: kept.buffers.as_mut_ptr(),
        release: Some(release_array),
        private_data: Box::into_raw(kept).cast(),
        ..ArrowArray::released()
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: consumers pass the schema that they release; its strings are static.
    unsafe { (*schema).release = None };
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: consumers pass the array that they release, once; `array` boxed its private data.
    unsafe {
        drop(Box::from_raw((*array).private_data.cast::<Kept>()));
        (*array).release = None;
    }
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: consumers pass the stream that they release, once; its private data is a boxed
    // `Rest`.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<Rest>()));
        (*stream).release = None;
    }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: consumers pass a stream that is not released, and a schema to be filled.
    unsafe { out.write(schema((*(*stream).private_data.cast::<Rest>()).kind)) };
    SUCCESS
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: consumers pass a stream that is not released and that no other thread uses.
    let rest = unsafe { &mut *(*stream).private_data.cast::<Rest>() };
    let next = rest.chunks.get(rest.next).map_or_else(ArrowArray::released, array);
    rest.next += 1;
    // SAFETY: consumers pass an array to be filled; a released one ends the stream.
    unsafe { out.write(next) };
    SUCCESS
}

unsafe extern "C" fn get_last_error(_stream: *mut ArrowArrayStream) -> *const c_char {
    // No function of the stream fails.
    null()
}

/// A capsule that owns a structure: what nobody took out of it is released with the capsule.
fn capsule<'py, S: Structure>(
    py: Python<'py>,
    structure: S,
    name: &'static CStr,
) -> PyResult<Bound<'py, PyCapsule>> {
    let pointer = NonNull::from(Box::leak(Box::new(structure))).cast();
    // SAFETY: the pointer is not null, the name is static, and the destructor frees what was boxed
    // here, of this type.
    unsafe { PyCapsule::new_with_pointer_and_destructor(py, pointer, name, Some(destroy::<S>)) }
}

unsafe extern "C" fn destroy<S: Structure>(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter passes a capsule that is going away; its name is the one it was made
    // with, so the pointer is the box of a structure of this type.
    unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule, ffi::PyCapsule_GetName(capsule));
        if !pointer.is_null() {
            let mut structure = Box::from_raw(pointer.cast::<S>());
            structure.release();
        }
    }
}
