//! Memory that Python objects lend by the buffer protocol, as slices; and memory that this package
//! made, lent to Python.
//!
//! A [`Buffer`] keeps its object from being resized or freed while it lives. What is lent is
//! checked once: one dimension, no gaps, aligned, and the element type asked for. **Source**: PEP
//! 3118.

use pyo3::buffer::{Element, PyUntypedBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;
use std::ops::Range;

/// A buffer that a Python object lends.
pub(crate) struct Buffer {
    lent: PyUntypedBuffer,
    /// The argument's name, for errors.
    name: &'static str,
}

impl Buffer {
    /// The buffer of an argument.
    ///
    /// # Errors
    /// `TypeError` if the object lends none; `ValueError` if it has several dimensions, gaps, or an
    /// address that its elements may not have.
    pub(crate) fn of(name: &'static str, object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        let lent = PyUntypedBuffer::get(object).map_err(|_| {
            let kind = object.get_type().to_string();
            PyTypeError::new_err(format!("{name}: expected an object that lends its memory, got {kind}"))
        })?;
        if lent.dimensions() > 1 {
            let dimensions = lent.dimensions();
            return Err(PyValueError::new_err(format!("{name}: expected 1 dimension, got {dimensions}")));
        }
        if !lent.is_c_contiguous() {
            let message = "the array has gaps; pass numpy.ascontiguousarray of it";
            return Err(PyValueError::new_err(format!("{name}: {message}")));
        }
        if !(lent.buf_ptr() as usize).is_multiple_of(lent.item_size().clamp(1, 8)) && lent.item_count() > 0 {
            let message = "the array is not aligned; pass a copy of it";
            return Err(PyValueError::new_err(format!("{name}: {message}")));
        }
        Ok(Buffer { lent, name })
    }

    /// The elements, where they are of this type.
    pub(crate) fn elements<T: Element>(&self) -> Option<&[T]> {
        self.lent.as_typed::<T>().ok()?;
        if self.lent.item_count() == 0 {
            return Some(&[]);
        }
        // SAFETY: the buffer lends `item_count` elements of type `T` one behind the other from an
        // aligned address (checked in `of`), and keeps them until it is released in its drop.
        Some(unsafe { std::slice::from_raw_parts(self.lent.buf_ptr().cast(), self.lent.item_count()) })
    }

    /// The bytes, where elements have one byte.
    pub(crate) fn bytes(&self) -> PyResult<&[u8]> {
        if self.lent.item_size() != 1 {
            let (name, bytes) = (self.name, self.lent.item_size());
            return Err(PyTypeError::new_err(format!("{name}: expected bytes, got items of {bytes} bytes")));
        }
        if self.lent.len_bytes() == 0 {
            return Ok(&[]);
        }
        // SAFETY: the buffer lends `len_bytes` bytes without gaps, and keeps them until it is
        // released in its drop; every byte is a valid `u8`.
        Ok(unsafe { std::slice::from_raw_parts(self.lent.buf_ptr().cast(), self.lent.len_bytes()) })
    }

    /// The elements to be written, none of which lies in one of `others`.
    ///
    /// # Errors
    /// `TypeError` for another type; `ValueError` if the buffer is read-only, has another length,
    /// or shares memory with what is read.
    pub(crate) fn elements_mut<T: Element>(
        &mut self,
        length: usize,
        others: &[&Buffer],
    ) -> PyResult<&mut [T]> {
        let name = self.name;
        if self.lent.as_typed::<T>().is_err() {
            let (wanted, got) = (std::any::type_name::<T>(), self.kind());
            let message = format!("{name}: expected items of type {wanted}, got {got}");
            return Err(PyTypeError::new_err(message));
        }
        if self.lent.readonly() {
            return Err(PyValueError::new_err(format!("{name}: the array is read-only")));
        }
        if self.lent.item_count() != length {
            let got = self.lent.item_count();
            return Err(PyValueError::new_err(format!("{name}: expected {length} elements, got {got}")));
        }
        for other in others {
            let (own, theirs) = (self.addresses(), other.addresses());
            if own.start < theirs.end && theirs.start < own.end {
                let message = format!("{name}: the array shares memory with {}", other.name);
                return Err(PyValueError::new_err(message));
            }
        }
        if length == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the buffer lends `length` writable elements of type `T` from an aligned address,
        // keeps them until it is released in its drop, and no slice that is read overlaps them.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.lent.buf_ptr().cast(), length) })
    }

    /// Elements of `numpy.intp` to be written as ranks, which are never negative.
    ///
    /// # Errors
    /// Those of [`Buffer::elements_mut`].
    pub(crate) fn ranks_mut(&mut self, length: usize, others: &[&Buffer]) -> PyResult<&mut [usize]> {
        let words = self.elements_mut::<isize>(length, others)?;
        // SAFETY: signed and unsigned integers of one size have one layout, and all their bytes are
        // valid.
        Ok(unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) })
    }

    /// The number of elements.
    pub(crate) fn length(&self) -> usize {
        self.lent.item_count()
    }

    fn addresses(&self) -> Range<usize> {
        let start = self.lent.buf_ptr() as usize;
        start..start + self.lent.len_bytes()
    }

    /// The element type in the words of module `struct`, for errors.
    pub(crate) fn kind(&self) -> String {
        format!("items of format {:?}", self.lent.format().to_string_lossy())
    }
}

/// Numbers that this package made, lent to whoever asks by the buffer protocol: NumPy makes an
/// array of them without a copy.
#[pyclass(frozen, module = "lightfoot._native")]
pub(crate) struct Words {
    words: Vec<i64>,
}

impl Words {
    pub(crate) fn new(words: Vec<i64>) -> Words {
        Words { words }
    }
}

#[pymethods]
impl Words {
    fn __len__(&self) -> usize {
        self.words.len()
    }

    /// Lends the words as bytes. The array on top of them may be written: nothing else reads them.
    ///
    /// # Safety
    /// `view` is one that the interpreter passes.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let words = &slf.get().words;
        let (start, bytes) = (words.as_ptr().cast_mut().cast(), size_of_val(&words[..]) as isize);
        // SAFETY: the words live as long as the object, which the view refers to, and never move;
        // no reference to them exists outside this function.
        let failed = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, bytes, 0, flags) };
        if failed == 0 {
            return Ok(());
        }
        Err(PyErr::fetch(slf.py()))
    }
}
